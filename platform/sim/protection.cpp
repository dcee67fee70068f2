// Page protection and protection keys over the simulator's own mappings.
#include "protection.hpp"

#include "fault_handler.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace isthmus::sim {
namespace {

std::size_t round_to_pages(std::size_t bytes) {
    const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
}

void* map_pages(std::size_t bytes, int access) {
    void* pointer = ::mmap(nullptr, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pointer == MAP_FAILED) return nullptr;
    ::madvise(pointer, bytes, MADV_DONTFORK);  // a child of the real driver's process has none of its memory either
    return pointer;
}

constexpr int denied = PKEY_DISABLE_ACCESS;

}  // namespace

Protection::Protection(int devices) {
    const char* wanted = ::secure_getenv("ISTHMUS_SIM_PROTECTION");
    if (wanted && std::strcmp(wanted, "off") == 0) return;
    means_ = Means::pages;
    if (wanted && std::strcmp(wanted, "pages") == 0) return;
    // Threads that exist already are closed to a new key: the kernel starts them with rights to key 0 alone.
    for (int device = 0; device < devices; ++device) {
        const int key = ::pkey_alloc(0, denied);
        if (key < 0) break;
        keys_.push_back(key);
    }
    if (static_cast<int>(keys_.size()) == devices && devices > 0) {
        means_ = Means::keys;
        return;
    }
    for (const int key : keys_) ::pkey_free(key);
    keys_.clear();
}

const char* Protection::means() const noexcept {
    return means_ == Means::keys ? "keys" : means_ == Means::pages ? "pages" : "off";
}

void* Protection::map(std::size_t bytes, std::size_t& mapped_bytes) {
    mapped_bytes = round_to_pages(bytes);
    return map_pages(mapped_bytes, PROT_READ | PROT_WRITE);
}

void* Protection::reserve(std::size_t bytes, std::size_t& mapped_bytes) {
    mapped_bytes = round_to_pages(bytes);
    return map_pages(mapped_bytes, PROT_NONE);
}

void Protection::unmap(void* pointer, std::size_t mapped_bytes) {
    forget_closed_memory(pointer);
    const std::lock_guard lock(mutex_);
    closed_.erase(pointer);
    ::munmap(pointer, mapped_bytes);
}

void* Protection::reserve_aligned(std::size_t bytes, std::size_t alignment, void* hint) {
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    const auto give_back = [](std::uintptr_t from, std::uintptr_t to) {
        if (to > from) ::munmap(reinterpret_cast<void*>(from), to - from);
    };
    if (hint) {
        void* const there = ::mmap(hint, bytes, PROT_NONE, flags, -1, 0);
        if (there == hint) {
            ::madvise(there, bytes, MADV_DONTFORK);
            return there;
        }
        if (there != MAP_FAILED) ::munmap(there, bytes);
    }
    std::size_t spare = 0;
    if (__builtin_add_overflow(bytes, alignment, &spare)) return nullptr;
    void* const pointer = ::mmap(nullptr, spare, PROT_NONE, flags, -1, 0);
    if (pointer == MAP_FAILED) return nullptr;
    const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
    const std::uintptr_t aligned = (begin + alignment - 1) / alignment * alignment;
    const std::uintptr_t end = round_to_pages(aligned + bytes);
    give_back(begin, aligned);
    give_back(end, begin + spare);
    ::madvise(reinterpret_cast<void*>(aligned), bytes, MADV_DONTFORK);
    return reinterpret_cast<void*>(aligned);
}

bool Protection::map_file(void* at, std::size_t bytes, int file, std::size_t offset) {
    constexpr int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
    if (::mmap(at, bytes, PROT_NONE, flags, file, static_cast<off_t>(offset)) == MAP_FAILED) return false;
    ::madvise(at, bytes, MADV_DONTFORK);
    return true;
}

void Protection::unmap_file(void* at, std::size_t bytes) {
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    forget_closed_memory(at);
    const std::lock_guard lock(mutex_);
    closed_.erase(at);
    if (::mmap(at, bytes, PROT_NONE, flags, -1, 0) == MAP_FAILED) {
        ::mprotect(at, bytes, PROT_NONE);  // the range stays what nobody can touch
    } else {
        ::madvise(at, bytes, MADV_DONTFORK);
    }
}

void Protection::open_file(void* at, std::size_t bytes, int owner, const Opening& to) {
    const int access = to.writable ? PROT_READ | PROT_WRITE : PROT_READ;
    const bool nobody = !to.host && to.device < 0;
    const bool by_device = !nobody && !to.host && means_ != Means::off;
    forget_closed_memory(at);
    if (nobody || by_device) describe_closed_memory(at, bytes, owner, nobody ? Why::no_access : Why::device_memory);
    if (means_ == Means::keys) {
        const int key = by_device ? keys_[static_cast<std::size_t>(to.device)] : 0;
        ::pkey_mprotect(at, bytes, nobody ? PROT_NONE : access, key);
        return;
    }
    const std::lock_guard lock(mutex_);
    closed_.erase(at);
    if (by_device) closed_[at] = {bytes, access};
    ::mprotect(at, bytes, nobody || (by_device && gpu_work_ == 0) ? PROT_NONE : access);
}

void Protection::close(void* pointer, std::size_t mapped_bytes, int device, Why why) {
    if (means_ == Means::off) return;
    describe_closed_memory(pointer, mapped_bytes, device, why);
    if (means_ == Means::keys) {
        ::pkey_mprotect(pointer, mapped_bytes, PROT_READ | PROT_WRITE, keys_[static_cast<std::size_t>(device)]);
        return;
    }
    const std::lock_guard lock(mutex_);
    closed_[pointer] = {mapped_bytes, PROT_READ | PROT_WRITE};
    if (gpu_work_ == 0) ::mprotect(pointer, mapped_bytes, PROT_NONE);
}

void Protection::open(void* pointer, std::size_t mapped_bytes) {
    if (means_ == Means::off) return;
    if (means_ == Means::keys) {
        ::pkey_mprotect(pointer, mapped_bytes, PROT_READ | PROT_WRITE, 0);
    } else {
        const std::lock_guard lock(mutex_);
        closed_.erase(pointer);
        ::mprotect(pointer, mapped_bytes, PROT_READ | PROT_WRITE);
    }
    forget_closed_memory(pointer);
}

void Protection::gpu_work_begins(std::uint64_t devices) {
    if (means_ == Means::keys) {
        for (std::size_t device = 0; device < keys_.size(); ++device) {
            ::pkey_set(keys_[device], (devices >> device & 1) != 0 ? 0u : unsigned{denied});
        }
        return;
    }
    const std::lock_guard lock(mutex_);
    if (gpu_work_++ > 0) return;
    for (const auto& [pointer, closed] : closed_) ::mprotect(pointer, closed.bytes, closed.access);
}

void Protection::gpu_work_ends() {
    if (means_ == Means::keys) {
        thread_begins();
        return;
    }
    const std::lock_guard lock(mutex_);
    if (--gpu_work_ > 0) return;
    for (const auto& [pointer, closed] : closed_) ::mprotect(pointer, closed.bytes, PROT_NONE);
}

void Protection::thread_begins() {
    for (const int key : keys_) ::pkey_set(key, unsigned{denied});
}

void Protection::install_handler() {
    install_fault_handler();
}

bool Protection::run_guarded(const std::function<void()>& work, std::uintptr_t& fault) {
    return run_with_landing(work, fault);
}

}  // namespace isthmus::sim
