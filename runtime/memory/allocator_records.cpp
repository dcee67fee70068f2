// SPDX-License-Identifier: Apache-2.0
// Logging and tracking: a record of every call of an allocator, and the blocks that are not yet released.
#include <isthmus/allocator_adaptors.hpp>
#include <isthmus/stream.hpp>

#include "composed.hpp"
#include "memory_errors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace isthmus {
inline namespace v0 {

struct LoggingState {
    Allocator upstream;
    LoggingAllocator::Sink sink;
    std::mutex mutex;  // one line at a time

    void write(std::string_view action, const MemoryBlock& block, const Stream* stream) {
        const auto now = std::chrono::system_clock::now().time_since_epoch();
        const std::uint64_t address = block.host ? reinterpret_cast<std::uintptr_t>(block.host) : block.device;
        char line[192];
        const int length = std::snprintf(
            line, sizeof line, "%lld,%zu,%.*s,%llu,0x%llx,%zu,%llu\n",
            static_cast<long long>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()),
            std::hash<std::thread::id>{}(std::this_thread::get_id()), static_cast<int>(action.size()), action.data(),
            static_cast<unsigned long long>(block.id), static_cast<unsigned long long>(address), block.bytes,
            static_cast<unsigned long long>(stream ? stream->id() : 0));
        const std::lock_guard lock(mutex);
        if (sink) sink(std::string_view(line, static_cast<std::size_t>(length)));
    }
};

LoggingAllocator::LoggingAllocator(Allocator upstream, Sink sink) : state_(std::make_shared<LoggingState>()) {
    state_->upstream = std::move(upstream);
    state_->sink = std::move(sink);
    if (state_->sink) state_->sink("time_ns,thread,action,id,address,bytes,stream\n");
}

namespace {

// Written line by line, so that the last event is in the file however the process ends.
struct LogFile {
    explicit LogFile(int opened) : descriptor(opened) {}
    LogFile(const LogFile&) = delete;
    LogFile& operator=(const LogFile&) = delete;
    ~LogFile() { ::close(descriptor); }
    // If the system refuses a line (a full disk), the line is lost and allocation continues.
    void write(std::string_view line) const {
        while (!line.empty()) {
            const ssize_t written = ::write(descriptor, line.data(), line.size());
            if (written < 0 && errno == EINTR) continue;
            if (written <= 0) return;
            line.remove_prefix(static_cast<std::size_t>(written));
        }
    }
    const int descriptor;
};

}  // namespace

Result<LoggingAllocator> LoggingAllocator::create(Allocator upstream, const std::string& path) {
    const int opened = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    if (opened < 0) {
        const int error = errno;
        return make_error<errors::allocation_log_not_writable>(path, std::system_category().message(error))
            .from_call("open", error);
    }
    const auto file = std::make_shared<LogFile>(opened);
    return LoggingAllocator(std::move(upstream), [file](std::string_view line) { file->write(line); });
}

Result<MemoryBlock> LoggingAllocator::allocate(const AllocationRequest& request) {
    Result<MemoryBlock> made = state_->upstream.allocate(request);
    MemoryBlock asked;
    asked.bytes = request.bytes;
    state_->write(made ? "allocate" : "allocate_failure", made ? *made : asked, request.stream);
    return made;
}

Result<void> LoggingAllocator::release(const MemoryBlock& block, Stream* after) {
    Result<void> done = state_->upstream.release(block, after);
    state_->write(done ? "release" : "release_failure", block, after);
    return done;
}

// Releases remembered to tell a double free from an unknown address; bounded, because a program may run for years.
constexpr std::size_t max_remembered = 65536;

struct TrackingState {
    Allocator upstream;
    mutable std::mutex mutex;
    std::uint64_t made = 0;
    std::map<std::uint64_t, TrackingAllocator::Outstanding> out;  // by address
    std::map<std::uint64_t, std::uint64_t> released;              // address → identity released there last

    static std::uint64_t address(const MemoryBlock& block) {
        return block.host ? reinterpret_cast<std::uintptr_t>(block.host) : block.device;
    }
    // Requires the lock.
    Result<void> refuse_unknown(const MemoryBlock& block) const {
        const std::uint64_t wanted = address(block);
        const auto known = out.find(wanted);
        if (known != out.end() && known->second.block.id == block.id) return {};
        const auto last = released.find(wanted);
        if (last != released.end() && (known == out.end() ? last->second == block.id : block.id != 0)) {
            return make_error<errors::tracked_block_released_before>();
        }
        auto behind = out.upper_bound(wanted);
        if (behind != out.begin() && wanted - std::prev(behind)->first < std::prev(behind)->second.block.bytes) {
            return make_error<errors::tracked_block_interior>();
        }
        return make_error<errors::tracked_block_unknown>();
    }
};

TrackingAllocator::TrackingAllocator(Allocator upstream) : state_(std::make_shared<TrackingState>()) {
    state_->upstream = std::move(upstream);
}

Result<MemoryBlock> TrackingAllocator::allocate(const AllocationRequest& request) {
    Result<MemoryBlock> made = state_->upstream.allocate(request);
    if (!made) return made;
    const std::lock_guard lock(state_->mutex);
    state_->out[TrackingState::address(*made)] = {*made, ++state_->made};
    return made;
}

Result<void> TrackingAllocator::release(const MemoryBlock& block, Stream* after) {
    const std::uint64_t address = TrackingState::address(block);
    Outstanding taken;
    {
        // Remove before the upstream's release: another thread may get the same address at once.
        const std::lock_guard lock(state_->mutex);
        if (Result<void> refused = state_->refuse_unknown(block); !refused) return refused;
        taken = state_->out[address];
        state_->out.erase(address);
        if (state_->released.size() >= max_remembered) state_->released.clear();
        state_->released[address] = block.id;
    }
    Result<void> done = state_->upstream.release(block, after);
    if (!done) {
        const std::lock_guard lock(state_->mutex);
        state_->out.emplace(address, taken);
        state_->released.erase(address);
    }
    return done;
}

std::vector<TrackingAllocator::Outstanding> TrackingAllocator::outstanding() const {
    std::vector<Outstanding> found;
    {
        const std::lock_guard lock(state_->mutex);
        for (const auto& [address, one] : state_->out) found.push_back(one);
    }
    std::sort(found.begin(), found.end(),
              [](const Outstanding& a, const Outstanding& b) { return a.number < b.number; });
    return found;
}

std::string TrackingAllocator::leak_report() const {
    std::string report;
    for (const Outstanding& one : outstanding()) {
        report += composed("allocation {}: {} bytes of {} memory, identity {}\n", one.number, one.block.bytes,
                           name(one.block.kind), one.block.id);
    }
    return report;
}

MemoryKind LoggingAllocator::kind() const noexcept {
    return state_->upstream.kind();
}
MemoryKind TrackingAllocator::kind() const noexcept {
    return state_->upstream.kind();
}

}  // namespace v0
}  // namespace isthmus
