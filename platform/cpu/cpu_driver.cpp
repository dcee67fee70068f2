// SPDX-License-Identifier: Apache-2.0
// The CPU as a device: every call has finished its work at return, unless its stream is captured. Every kind of memory
// is host memory.
#include "cpu_driver.hpp"

#include "cpu_captures.hpp"
#include "cpu_errors.hpp"
#include "cpu_transfers.hpp"
#include "cpu_workers.hpp"

#include <platform/os.hpp>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

namespace isthmus::platform::cpu {
namespace {

constexpr Status done{};
// Kernels may use the widest vector loads, and neighbouring allocations never share a cache line.
constexpr std::size_t alignment_bytes = 256;

void* pointer(std::uint64_t address) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}
std::uint64_t address_of(void* data) {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data));
}

class CpuMemory final : public Memory {
public:
    CpuMemory(std::uint64_t total_bytes, CpuCaptures& captures) : total_bytes_(total_bytes), captures_(captures) {}

    Status allocate(MemoryKind kind, std::size_t bytes, Attachment, StreamHandle, Allocation& out) override {
        if (bytes == 0) return {Code::invalid_argument, EINVAL, "aligned_alloc"};
        const std::size_t unit = bytes < os::page_size_bytes() ? alignment_bytes : os::page_size_bytes();
        const std::size_t rounded = (bytes + unit - 1) / unit * unit;
        // The system would grant more than it has, and kill the process when the memory is used.
        const bool absurd = rounded < bytes || (total_bytes_ != 0 && rounded > total_bytes_);
        void* data = absurd ? nullptr : std::aligned_alloc(unit, rounded);
        if (!data) return {Code::out_of_memory, ENOMEM, "aligned_alloc"};
        out = {kind, data, address_of(data), bytes};
        return done;
    }
    Status release(const Allocation& allocation, StreamHandle) override {
        std::free(allocation.host);
        return done;
    }
    // The CPU can already access all host memory.
    Status register_host(void* host, std::size_t, bool, std::uint64_t& device) override {
        device = address_of(host);
        return done;
    }
    Status unregister_host(void*) override { return done; }
    Status copy(std::uint64_t destination, std::uint64_t source, std::size_t bytes, CopyDirection,
                StreamHandle stream) override {
        return captures_.run(stream, [=] {
            if (bytes > 0) std::memmove(pointer(destination), pointer(source), bytes);
            return done;
        });
    }
    Status fill(std::uint64_t destination, std::uint8_t value, std::size_t bytes, StreamHandle stream) override {
        return captures_.run(stream, [=] {
            if (bytes > 0) std::memset(pointer(destination), value, bytes);
            return done;
        });
    }
    // Nothing runs asynchronously, so there is nothing to guard.
    Status attach(const Allocation&, Attachment, StreamHandle) override { return done; }
    Status pointer_facts(std::uint64_t, PointerFacts& out) override {
        out = {};
        return done;
    }
    Status memory_info(std::uint64_t& free_bytes, std::uint64_t& total_bytes) override {
        const os::HostMemory memory = os::host_memory();
        free_bytes = memory.available_bytes;
        total_bytes = memory.total_bytes;
        return done;
    }

private:
    std::uint64_t total_bytes_;  // 0: the system does not say
    CpuCaptures& captures_;
};

// Streams and events are numbers that are never reused, so that a stale one is recognised.
class CpuExecution final : public Execution {
public:
    explicit CpuExecution(CpuCaptures& captures) : captures_(captures) {}
    Status create_stream(int, StreamHandle& out) override {
        const std::lock_guard lock(mutex_);
        out = static_cast<StreamHandle>(++last_id_);
        streams_.insert(last_id_);
        return done;
    }
    Status destroy_stream(StreamHandle stream) override {
        captures_.forget(stream);
        const std::lock_guard lock(mutex_);
        if (streams_.erase(static_cast<std::uintptr_t>(stream)) == 0) {
            return {Code::invalid_handle, EINVAL, "destroy_stream"};
        }
        return done;
    }
    Status query_stream(StreamHandle) override { return done; }

    Status create_event(EventKind kind, EventHandle& out) override {
        const std::lock_guard lock(mutex_);
        out = static_cast<EventHandle>(++last_id_);
        events_[last_id_].timing = kind == EventKind::timing;
        return done;
    }
    Status destroy_event(EventHandle event) override {
        captures_.forget(event);
        const std::lock_guard lock(mutex_);
        if (events_.erase(static_cast<std::uintptr_t>(event)) == 0) {
            return {Code::invalid_handle, EINVAL, "destroy_event"};
        }
        return done;
    }
    Status record_event(EventHandle event, StreamHandle stream) override {
        const std::lock_guard lock(mutex_);
        const auto found = events_.find(static_cast<std::uintptr_t>(event));
        if (found == events_.end()) return {Code::invalid_handle, EINVAL, "record_event"};
        if (captures_.recorded(event, stream)) return done;
        found->second.recorded = true;
        if (found->second.timing) found->second.at = Clock::now();
        return done;
    }
    Status wait_event(StreamHandle stream, EventHandle event) override { return captures_.waited(stream, event); }
    Status query_event(EventHandle event) override { return captures_.outside(event, "query_event"); }
    Status elapsed_ms(EventHandle begin, EventHandle end, float& milliseconds) override {
        const std::lock_guard lock(mutex_);
        const auto first = events_.find(static_cast<std::uintptr_t>(begin));
        const auto last = events_.find(static_cast<std::uintptr_t>(end));
        const bool known = first != events_.end() && last != events_.end();
        if (!known || !first->second.timing || !last->second.timing || !first->second.recorded ||
            !last->second.recorded) {
            return {Code::invalid_handle, EINVAL, "elapsed_ms"};
        }
        milliseconds = std::chrono::duration<float, std::milli>(last->second.at - first->second.at).count();
        return done;
    }

    Status resolve(const KernelInfo& kernel, FunctionHandle& out) override {
        if (!kernel.twin) return {Code::unsupported, ENOEXEC, "resolve"};
        out = static_cast<FunctionHandle>(reinterpret_cast<std::uintptr_t>(&kernel));
        return done;
    }
    Status launch(const LaunchRequest& request) override { return captures_.launch(request); }
    Status run_work(StreamHandle stream, Status (*work)(void*), void* data) override {
        return captures_.run(stream, [=] { return work(data); });
    }
    Status call_on_host(StreamHandle stream, void (*function)(void*), void* data) override {
        return captures_.run(stream, [=] {
            function(data);
            return done;
        });
    }

private:
    using Clock = std::chrono::steady_clock;
    struct Event {
        bool timing = false;
        bool recorded = false;
        Clock::time_point at{};
    };

    CpuCaptures& captures_;
    std::mutex mutex_;
    std::uintptr_t last_id_ = 0;
    std::set<std::uintptr_t> streams_;
    std::map<std::uintptr_t, Event> events_;
};

class CpuDriver final : public Driver {
public:
    CpuDriver(std::uint64_t total_bytes, std::uint32_t threads)
        : workers_(threads),
          captures_(workers_),
          memory_(total_bytes, captures_),
          execution_(captures_),
          transfers_(captures_) {
        facts_.ordinal = -1;
        facts_.name = "CPU";
        facts_.total_memory_bytes = total_bytes;
    }
    const DeviceFacts& facts() const noexcept override { return facts_; }
    Memory& memory() noexcept override { return memory_; }
    Execution& execution() noexcept override { return execution_; }
    Transfers* transfers() noexcept override { return &transfers_; }
    Captures* captures() noexcept override { return &captures_; }
    bool synchronous() const noexcept override { return true; }
    Error explain(const Status& status, std::string_view what_was_asked) const override;

private:
    DeviceFacts facts_;
    CpuWorkers workers_;
    CpuCaptures captures_;
    CpuMemory memory_;
    CpuExecution execution_;
    CpuTransfers transfers_;
};

Error explained(const Status& status, std::string_view what) {
    switch (status.code) {
        case Code::out_of_memory: return make_error<errors::cpu_device_out_of_memory>(what);
        case Code::unsupported:
            if (status.driver_code == ENODEV) return make_error<errors::cpu_device_reaches_no_other>(what);
            if (status.driver_code == ENOSYS) return make_error<errors::cpu_device_takes_no_hints>(what);
            return make_error<errors::kernel_without_cpu_function>(what);
        case Code::invalid_handle: return make_error<errors::unknown_to_cpu_device>(what);
        case Code::capture_error:
            if (status.driver_code == ECHILD) return make_error<errors::cpu_capture_not_joined>(what);
            return make_error<errors::cpu_capture_would_end>(what);
        default: return make_error_as<errors::cpu_device_refused>(status.code, what, name(status.code));
    }
}

Error CpuDriver::explain(const Status& status, std::string_view what_was_asked) const {
    return explained(status, what_was_asked).from_call(status.call, status.driver_code);
}

}  // namespace

std::unique_ptr<Driver> open_device(const MachineFacts& machine, std::uint32_t threads) {
    return std::make_unique<CpuDriver>(os::host_total_bytes(machine.memory_limit_bytes), threads);
}

}  // namespace isthmus::platform::cpu
