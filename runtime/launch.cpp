// A launch: judges the arguments, puts their addresses into the pack, and hands the kernel to the device.
#include <isthmus/stream.hpp>

#include "buffer_state.hpp"
#include "device_state.hpp"
#include "kernel_argument.hpp"
#include "launch_at_once.hpp"
#include "operation.hpp"
#include "stream_state.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace isthmus::inline v0 {
namespace {

using detail::argument_text;
using detail::BufferState;
using detail::DeviceState;
using detail::LaunchArgument;
using detail::StreamState;

bool is_empty(const Extent& extent) {
    return extent.x == 0 || extent.y == 0 || extent.z == 0;
}

// The buffer's address for the launch device, or why there is none. Texts have static storage.
struct Judged {
    std::uint64_t address = 0;
    Code code = Code::ok;
    std::string_view reason;
    std::string_view remedy;
};

Judged judge(const DeviceState& device, const BufferState& buffer, LaunchMode mode) {
    const bool here = buffer.device.get() == &device;
    if (buffer.bytes == 0) return {};
    if (!here && mode == LaunchMode::strict) {
        return {0, Code::wrong_device, "it was allocated on another device and the launch mode is strict",
                "allocate it on the launch device, or use LaunchMode::checked"};
    }
    if (device.synchronous) {
        if (buffer.host != nullptr) return {reinterpret_cast<std::uintptr_t>(buffer.host), Code::ok, {}, {}};
        return {0, Code::not_accessible, "the CPU may not touch it on any machine",
                "allocate_shared gives memory that both sides may use"};
    }
    if (here) {
        if (mode == LaunchMode::relaxed || device.reaches(buffer.kind))
            return {buffer.device_address, Code::ok, {}, {}};
        return {0, Code::not_accessible, "this device cannot reach such memory",
                "use allocate_shared, or copy the data into memory of the device"};
    }
    const bool system_memory = buffer.kind == MemoryKind::host || buffer.kind == MemoryKind::host_numa;
    if (!system_memory) {
        return {0, Code::wrong_device, "it belongs to another device and has no address on this one",
                "allocate it on the launch device and copy"};
    }
    if (mode == LaunchMode::relaxed || device.reaches(buffer.kind)) {
        return {reinterpret_cast<std::uintptr_t>(buffer.host), Code::ok, {}, {}};
    }
    return {0, Code::not_accessible, "this device cannot reach pageable host memory",
            "allocate it with the launch device's allocate_shared"};
}

Error refusal(const KernelInfo& kernel, std::uint32_t argument, const DeviceState& device, const BufferState& buffer,
              const Judged& judged) {
    return {judged.code,
            argument_text(kernel, argument) + " is " + std::string(name(buffer.kind)) + " memory of " +
                std::string(buffer.device->driver->facts().name) + " and was given to " +
                std::string(device.driver->facts().name) + ": " + std::string(judged.reason),
            std::string(judged.remedy)};
}

// Judges all arguments and completes the pack; changes nothing else.
Result<void> place(const StreamState& stream, const KernelInfo& kernel, const LaunchArgument* arguments,
                   std::size_t count, void* pack, LaunchReport& report) {
    const LaunchMode mode = stream.mode.load(std::memory_order_relaxed);
    for (std::uint32_t at = 0; at < count; ++at) {
        const LaunchArgument& argument = arguments[at];
        if (!argument.fits) {
            return Error(Code::invalid_argument,
                         argument_text(kernel, at) + " was given a number that its type does not hold",
                         "pass a number within the parameter's range");
        }
        if (!argument.is_view) continue;
        if (argument.buffer == nullptr) {
            if (mode == LaunchMode::strict) {
                return Error(Code::unverified,
                             argument_text(kernel, at) + " is a raw pointer and the launch mode is strict",
                             "pass a Buffer, or use LaunchMode::checked");
            }
            if (mode == LaunchMode::checked && argument.raw != nullptr) ++report.unverified_arguments;
            continue;
        }
        const BufferState* buffer = argument.buffer->get();
        if (buffer == nullptr) {
            return Error(Code::invalid_handle,
                         argument_text(kernel, at) + " is an empty, moved-from or released buffer",
                         "pass the buffer that it was moved to");
        }
        std::uint64_t address = buffer->device_address;
        // The device's own memory, used in place, is lawful in every mode: nothing to judge.
        const bool own = buffer->device.get() == stream.device.get() && buffer->path == LaunchPath::pass;
        if (!own || stream.device->synchronous) {
            const Judged judged = judge(*stream.device, *buffer, mode);
            if (judged.code != Code::ok) return refusal(kernel, at, *stream.device, *buffer, judged);
            address = judged.address;
        }
        std::memcpy(static_cast<unsigned char*>(pack) + kernel.parameter[at].offset_bytes, &address, sizeof address);
    }
    return {};
}

Result<void> launch_on_gpu(StreamState& stream, const KernelInfo& kernel, const Extent& extent, void* pack,
                           const LaunchArgument* arguments, std::size_t count, LaunchReport& report) {
    detail::Operation operation(stream, kernel.name, &kernel);
    for (std::uint32_t at = 0; at < count; ++at) {
        if (!arguments[at].is_view || arguments[at].buffer == nullptr) continue;
        BufferState& buffer = **arguments[at].buffer;
        if (buffer.bytes > 0) operation.uses(buffer, kernel.parameter[at].use, at);
    }
    Result<std::uint64_t> issued = operation.issue([&] {
        platform::LaunchRequest request{&kernel, platform::FunctionHandle::none, extent, pack, stream.handle};
        const platform::Status found = stream.resolve(kernel, request.function);
        return found.ok() ? stream.device->driver->execution().launch(request) : found;
    });
    if (!issued) return std::move(issued).error();
    report.position = *issued;
    report.staged_bytes = operation.staged_bytes();
    return {};
}

// The same buffer may stand in several places: what the launch does with it altogether.
ArgumentUse combined_use(const KernelInfo& kernel, const LaunchArgument* arguments, std::size_t count,
                         const BufferState* buffer) {
    bool read = false;
    bool written = false;
    for (std::size_t at = 0; at < count; ++at) {
        if (arguments[at].buffer == nullptr || arguments[at].buffer->get() != buffer) continue;
        const ArgumentUse use = kernel.parameter[at].use;
        read |= detail::reads(use);
        written |= detail::writes(use);
    }
    return read && written ? ArgumentUse::read_write : written ? ArgumentUse::write : ArgumentUse::read;
}

// On the CPU device every buffer is opened as a host view would be, for the length of the launch: a GPU's buffers are
// waited for and brought up to date, and views on other threads see the conflict.
Result<void> launch_on_cpu(StreamState& stream, const KernelInfo& kernel, const Extent& extent, void* pack,
                           const LaunchArgument* arguments, std::size_t count, LaunchReport& report) {
    std::vector<detail::ViewScope> scopes;
    scopes.reserve(count);
    for (std::uint32_t at = 0; at < count; ++at) {
        if (!arguments[at].is_view || arguments[at].buffer == nullptr) continue;
        const std::shared_ptr<BufferState>& buffer = *arguments[at].buffer;
        const auto stands_before = [&](const LaunchArgument& earlier) {
            return earlier.buffer != nullptr && *earlier.buffer == buffer;
        };
        if (buffer->bytes == 0 || std::any_of(arguments, arguments + at, stands_before)) continue;  // open already
        Result<detail::ViewScope> scope =
            detail::open_scope(buffer, combined_use(kernel, arguments, count, buffer.get()), Wait{});
        if (!scope) {
            const Error& error = scope.error();
            return Error(error.code(),
                         argument_text(kernel, at) + " cannot be used now: " + std::string(error.message()),
                         std::string(error.remedy()));
        }
        scopes.push_back(std::move(scope).value());
    }
    const std::lock_guard lock(stream.mutex);
    if (Result<void> handle = stream.open_handle(); !handle) return handle;
    platform::LaunchRequest request{&kernel, platform::FunctionHandle::none, extent, pack, stream.handle};
    platform::Status status = stream.resolve(kernel, request.function);
    if (status.ok()) status = stream.device->driver->execution().launch(request);
    if (!status.ok()) return stream.device->failure(status, kernel.name);
    report.position = stream.advance(kernel.name);
    return {};
}

}  // namespace

Stream::Stream(std::shared_ptr<detail::StreamState> state) : state_(std::move(state)) {}

Result<LaunchReport> Stream::launch_packed(const KernelInfo& kernel, const Extent& extent, void* pack,
                                           const LaunchArgument* arguments, std::size_t count) {
    StreamState& stream = *state_;
    if (!stream.device->usable()) {
        return stream.device->unusable("launching kernel '" + std::string(kernel.name) + "'");
    }
    LaunchReport report;
    // Memory of the device alone is lawful in both modes.
    const LaunchMode mode = stream.mode.load(std::memory_order_relaxed);
    if (!stream.device->synchronous && (mode == LaunchMode::relaxed || mode == LaunchMode::checked) &&
        !is_empty(extent)) {
        platform::Status status;
        const detail::AtOnce at_once =
            detail::launch_at_once(stream, kernel, extent, pack, arguments, count, report.position, status);
        if (at_once == detail::AtOnce::done) return report;
        if (at_once == detail::AtOnce::failed) return stream.device->failure(status, kernel.name);
    }
    Result<void> done = place(stream, kernel, arguments, count, pack, report);
    if (done && !is_empty(extent)) {
        done = stream.device->synchronous ? launch_on_cpu(stream, kernel, extent, pack, arguments, count, report)
                                          : launch_on_gpu(stream, kernel, extent, pack, arguments, count, report);
    }
    if (!done) return std::move(done).error();
    return report;
}

}  // namespace isthmus::inline v0
