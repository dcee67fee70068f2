// SPDX-License-Identifier: Apache-2.0
// Applies page protection and protection keys to the simulator's own mappings.
#include "protection.hpp"

#include "fault_handler.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace isthmus::sim {
namespace {

constexpr int fresh = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
// Size of the guard before and after simulated memory: a kernel that exceeds a range faults there and does not change
// other memory of the program or its loader. A multiple of every page size.
constexpr std::size_t guard_bytes = std::size_t{1} << 20;

void unmap_range(std::uintptr_t from, std::uintptr_t to) {
    if (to > from) ::munmap(reinterpret_cast<void*>(from), to - from);
}

// Reserves `bytes`, whole pages, at a multiple of `alignment`, closed to all, with a guard on either side; nullptr: not
// available.
void* reserve_guarded(std::size_t bytes, std::size_t alignment) {
    std::size_t all = 0;
    if (__builtin_add_overflow(bytes, 2 * guard_bytes + alignment, &all)) return nullptr;
    void* const pointer = ::mmap(nullptr, all, PROT_NONE, fresh, -1, 0);
    if (pointer == MAP_FAILED) return nullptr;
    const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
    const std::uintptr_t aligned = (begin + guard_bytes + alignment - 1) / alignment * alignment;
    unmap_range(begin, aligned - guard_bytes);
    unmap_range(aligned + bytes + guard_bytes, begin + all);
    return reinterpret_cast<void*>(aligned);
}

// The same at `hint`, if that range and its guards are free.
void* reserve_guarded_at(void* hint, std::size_t bytes) {
    void* const first = static_cast<char*>(hint) - guard_bytes;
    void* const there = ::mmap(first, bytes + 2 * guard_bytes, PROT_NONE, fresh, -1, 0);
    if (there == first) return hint;
    if (there != MAP_FAILED) ::munmap(there, bytes + 2 * guard_bytes);
    return nullptr;
}

std::size_t page_bytes() {
    return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::size_t round_to_pages(std::size_t bytes) {
    const std::size_t page = page_bytes();
    return (bytes + page - 1) / page * page;
}

constexpr int denied = PKEY_DISABLE_ACCESS;

}  // namespace

Protection::Protection(int devices) {
    const char* wanted = ::secure_getenv("ISTHMUS_SIM_PROTECTION");
    if (wanted && std::strcmp(wanted, "off") == 0) return;
    means_ = Means::pages;
    if (wanted && std::strcmp(wanted, "pages") == 0) return;
    // Threads that exist already cannot access a new key: the kernel starts them with rights to key 0 only.
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

void* Protection::map(std::size_t bytes, std::size_t& mapped_bytes, InChild in_child) {
    mapped_bytes = round_to_pages(bytes);
    void* const pointer = reserve_guarded(mapped_bytes, page_bytes());
    if (!pointer) return nullptr;
    if (::mprotect(pointer, mapped_bytes, PROT_READ | PROT_WRITE) != 0) {
        unmap(pointer, mapped_bytes);
        return nullptr;
    }
    if (in_child == InChild::missing) ::madvise(pointer, mapped_bytes, MADV_DONTFORK);
    return pointer;
}

void* Protection::reserve(std::size_t bytes, std::size_t& mapped_bytes) {
    mapped_bytes = round_to_pages(bytes);
    void* const pointer = reserve_guarded(mapped_bytes, page_bytes());
    if (pointer) ::madvise(pointer, mapped_bytes, MADV_DONTFORK);
    return pointer;
}

void Protection::unmap(void* pointer, std::size_t mapped_bytes) {
    forget_closed_memory(pointer);
    const std::lock_guard lock(mutex_);
    closed_.erase(pointer);
    const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
    unmap_range(begin - guard_bytes, begin + round_to_pages(mapped_bytes) + guard_bytes);
}

void* Protection::reserve_aligned(std::size_t bytes, std::size_t alignment, void* hint) {
    const std::size_t whole = round_to_pages(bytes);
    if (whole < bytes) return nullptr;
    void* pointer = hint ? reserve_guarded_at(hint, whole) : nullptr;
    if (!pointer) pointer = reserve_guarded(whole, std::max(alignment, page_bytes()));
    if (pointer) ::madvise(pointer, whole, MADV_DONTFORK);
    return pointer;
}

bool Protection::map_file(void* at, std::size_t bytes, int file, std::size_t offset) {
    constexpr int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
    if (::mmap(at, bytes, PROT_NONE, flags, file, static_cast<off_t>(offset)) == MAP_FAILED) return false;
    ::madvise(at, bytes, MADV_DONTFORK);
    return true;
}

void Protection::unmap_file(void* at, std::size_t bytes) {
    constexpr int flags = fresh | MAP_FIXED;
    forget_closed_memory(at);
    const std::lock_guard lock(mutex_);
    closed_.erase(at);
    if (::mmap(at, bytes, PROT_NONE, flags, -1, 0) == MAP_FAILED) {
        ::mprotect(at, bytes, PROT_NONE);  // the range stays reserved and inaccessible
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

void Protection::withdraw(void* pointer, std::size_t mapped_bytes, int device) {
    if (means_ == Means::off) return;
    forget_closed_memory(pointer);  // as memory of a device, or before its work has ended
    describe_closed_memory(pointer, mapped_bytes, device, Why::released);
    const std::lock_guard lock(mutex_);
    closed_.erase(pointer);
    ::mprotect(pointer, mapped_bytes, PROT_NONE);
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
