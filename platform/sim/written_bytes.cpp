// SPDX-License-Identifier: Apache-2.0
#include "written_bytes.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include <sys/mman.h>

namespace isthmus::sim::written_bytes {
namespace {

struct Record {
    std::size_t bytes = 0;
    std::byte* state = nullptr;
};
std::mutex guard;
std::map<std::uintptr_t, Record>& records() {
    static auto* const all = new std::map<std::uintptr_t, Record>;  // threads may outlive static objects
    return *all;
}

// The state from `host` on, and how many bytes follow. Requires the mutex.
std::pair<std::byte*, std::size_t> state_from(const void* host) {
    const auto at = reinterpret_cast<std::uintptr_t>(host);
    auto found = records().upper_bound(at);
    if (found == records().begin()) return {nullptr, 0};
    --found;
    const std::size_t offset = at - found->first;
    if (offset >= found->second.bytes) return {nullptr, 0};
    return {found->second.state + offset, found->second.bytes - offset};
}

}  // namespace

bool wanted() {
    static const bool set = ::secure_getenv("ISTHMUS_SIM_UNINITIALISED") != nullptr;
    return set;
}

void begin(const void* host, std::size_t bytes) {
    if (!wanted() || bytes == 0) return;
    // Pages of the record cost memory only where something is written.
    void* const state =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (state == MAP_FAILED) return;  // counts as written
    const std::lock_guard lock(guard);
    records()[reinterpret_cast<std::uintptr_t>(host)] = {bytes, static_cast<std::byte*>(state)};
}

void end(const void* host) {
    if (!wanted()) return;
    const std::lock_guard lock(guard);
    const auto found = records().find(reinterpret_cast<std::uintptr_t>(host));
    if (found == records().end()) return;
    ::munmap(found->second.state, found->second.bytes);
    records().erase(found);
}

std::byte* of(const void* host) {
    if (!wanted()) return nullptr;
    const std::lock_guard lock(guard);
    return state_from(host).first;
}

void written(const void* host, std::size_t bytes) {
    if (!wanted()) return;
    const std::lock_guard lock(guard);
    const auto [state, most] = state_from(host);
    if (state != nullptr) std::memset(state, 1, std::min(bytes, most));
}

void unwritten(const void* host, std::size_t bytes) {
    if (!wanted()) return;
    const std::lock_guard lock(guard);
    const auto [state, most] = state_from(host);
    if (state != nullptr) std::memset(state, 0, std::min(bytes, most));
}

void all_written(const void* host) {
    if (!wanted()) return;
    const std::lock_guard lock(guard);
    const auto at = reinterpret_cast<std::uintptr_t>(host);
    for (const auto& [begin, record] : records()) {
        if (at >= begin && at - begin < record.bytes) std::memset(record.state, 1, record.bytes);
    }
}

void copied(const void* to, const void* from, std::size_t bytes) {
    if (!wanted()) return;
    const std::lock_guard lock(guard);
    const auto [state, most] = state_from(to);
    if (state == nullptr) return;
    const std::size_t count = std::min(bytes, most);
    const auto [source, source_bytes] = state_from(from);
    std::memset(state, 1, count);
    if (source != nullptr) std::memmove(state, source, std::min(count, source_bytes));
}

}  // namespace isthmus::sim::written_bytes
