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

void Protection::close(void* pointer, std::size_t mapped_bytes, int device, Why why) {
    if (means_ == Means::off) return;
    describe_closed_memory(pointer, mapped_bytes, device, why);
    if (means_ == Means::keys) {
        ::pkey_mprotect(pointer, mapped_bytes, PROT_READ | PROT_WRITE, keys_[static_cast<std::size_t>(device)]);
        return;
    }
    const std::lock_guard lock(mutex_);
    closed_[pointer] = {mapped_bytes, device};
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
    for (const auto& [pointer, closed] : closed_) ::mprotect(pointer, closed.bytes, PROT_READ | PROT_WRITE);
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
