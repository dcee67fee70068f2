// SPDX-License-Identifier: Apache-2.0
// Judges arguments: the runtime's own memory by recorded facts, other memory by asking the driver once, with a warning
// if it stays unverified.
#include "launch_judge.hpp"

#include "atomic_guard.hpp"
#include "buffer_state.hpp"
#include "composed.hpp"
#include "device_state.hpp"
#include "extent_rules.hpp"
#include "kernel_argument.hpp"
#include "core_errors.hpp"
#include "launch_errors.hpp"
#include "stream_state.hpp"

#include <cstring>
#include <limits>
#include <string>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

using Doing = JudgedArgument::Doing;

JudgedArgument refused(Code code, AccessAnswer answer) {
    JudgedArgument judged;
    judged.doing = Doing::refuse;
    judged.code = code;
    judged.answer = answer;
    return judged;
}
JudgedArgument passed(std::uint64_t address, AccessAnswer answer) {
    JudgedArgument judged;
    judged.address = address;
    judged.answer = answer;
    return judged;
}
JudgedArgument staged(std::uint64_t address, int ordinal, AccessAnswer answer) {
    JudgedArgument judged = passed(address, answer);
    judged.doing = Doing::stage;
    judged.ordinal = ordinal;
    return judged;
}

JudgedArgument refused_as_lost() {
    return refused(Code::device_lost, {Verdict::no, owner_is_lost, instead_of_lost});
}

JudgedArgument on_the_cpu(const DeviceState& device, const BufferState& buffer) {
    if (buffer.memory->host != nullptr) {
        // The launch opens the buffer as a host view does, even if host and device use it by turns.
        return passed(buffer_address(device, buffer), {Verdict::yes, "the launch opens it as a host view does", {}});
    }
    AccessAnswer answer = buffer_access(device, buffer);
    answer.verdict = Verdict::no;  // without a host address there is nothing to pass
    answer.remedy = "allocate_shared gives memory that both sides may use";
    return refused(Code::not_accessible, answer);
}

// For a buffer that a GPU cannot use: stages its host side, or has the driver copy its memory between two GPUs.
JudgedArgument stage_buffer(const DeviceState& device, const BufferState& buffer, AccessAnswer answer) {
    if (buffer.relay() != nullptr) {
        // A copy engine need not reach the memory that the CPU reads there, and the relay belongs to the owner.
        answer.remedy = "copy it into a buffer of the launch device";
        return refused(Code::unsupported, answer);
    }
    if (buffer.memory->host != nullptr)
        return staged(reinterpret_cast<std::uintptr_t>(buffer.memory->host), -1, answer);
    if (device.driver->transfers() == nullptr || buffer.device->synchronous) {
        return refused(Code::unsupported, answer);
    }
    return staged(buffer.memory->device_address, buffer.device->driver->facts().ordinal, answer);
}

bool is_host_memory(const Provenance& memory) {
    const bool kind = memory.kind == MemoryKind::host || memory.kind == MemoryKind::host_numa ||
                      memory.kind == MemoryKind::pinned || memory.kind == MemoryKind::registered ||
                      memory.kind == MemoryKind::write_combined;
    return kind && !memory.device_address;
}
bool is_gpu_memory(const Provenance& memory) {
    return memory.kind == MemoryKind::device || memory.kind == MemoryKind::pool || memory.kind == MemoryKind::imported;
}

JudgedArgument judge_known_raw(const DeviceState& device, const LaunchArgument& argument, LaunchMode mode,
                               const Provenance& memory, const AccessAnswer& answer) {
    const auto address = reinterpret_cast<std::uintptr_t>(argument.raw);
    const bool ours = !memory.foreign && memory.owner.get() == &device;
    if (mode == LaunchMode::strict && !ours) {
        return refused(Code::unverified, {Verdict::not_verified,
                                          "it is not memory that this runtime allocated on the launch device, and the "
                                          "launch mode is strict",
                                          "pass a Buffer of the launch device, or use LaunchMode::checked"});
    }
    // Only a launch attaches managed memory to its stream, and a raw view names no buffer to attach (K6).
    if (ours && device.paths[static_cast<std::size_t>(memory.kind)].path == LaunchPath::attach) {
        return refused(Code::not_accessible, {Verdict::no,
                                              "managed memory is attached to the stream of the launch here, and a raw "
                                              "view does not tell the launch whose memory it is",
                                              "pass the Buffer"});
    }
    if (answer.verdict == Verdict::yes) return passed(address, answer);
    if (mode == LaunchMode::staged && !device.synchronous) {
        const bool of_gpu = memory.owner && !memory.owner->synchronous;
        if (is_host_memory(memory)) return staged(address, -1, answer);
        if (is_gpu_memory(memory) && of_gpu && device.driver->transfers() != nullptr) {
            return staged(address, memory.owner->driver->facts().ordinal, answer);
        }
    }
    if (answer.verdict == Verdict::no) return refused(Code::not_accessible, answer);
    // The driver's query failed. The check did not happen: unlike for foreign memory, a warning is not enough.
    if (memory.kind == MemoryKind::unknown) return refused(Code::unverified, answer);
    return passed(address, answer);
}

// true: by its address alone, it is this device's own reachable memory, with one address for both sides.
bool plainly_own(const DeviceState& device, const LaunchArgument& argument, std::uint64_t bytes) {
    if (argument.is_span && !device.synchronous) return false;
    const auto address = reinterpret_cast<std::uintptr_t>(argument.raw);
    const provenance::Record record = device.books->addresses.find(address);
    if (!record || record.flags != 0 || record.device != device.index) return false;
    const bool two_names = record.kind == MemoryKind::registered || record.kind == MemoryKind::write_combined;
    const bool attached = device.paths[static_cast<std::size_t>(record.kind)].path == LaunchPath::attach;
    return device.reaches(record.kind) && !two_names && !attached && bytes <= record.bytes - (address - record.base);
}

void warn(const DeviceState& device, const KernelInfo& kernel, std::uint32_t argument, std::string_view what,
          std::uint64_t source, const AccessAnswer& answer) {
    LaunchBooks& books = device.books->launches;
    books.unverified_arguments.fetch_add(1, std::memory_order_relaxed);
    const void* const who = is_native(kernel) ? static_cast<const void*>(kernel.name) : &kernel;
    switch (books.warnings.ask({who, argument, source, device.index})) {
        case WarnOnce::Answer::first:
            books.warnings_given.fetch_add(1, std::memory_order_relaxed);
            device.config->say(Severity::warning, composed("not verified: {} is {}, given to {}: {}. Try: {}",
                                                           argument_text(kernel, argument), what, named(device),
                                                           answer.reason, answer.remedy));
            break;
        case WarnOnce::Answer::first_full:
            device.config->say(
                Severity::warning,
                composed("not verified: further arguments are counted and no longer named, after {} warnings",
                         WarnOnce::max_warnings));
            break;
        case WarnOnce::Answer::known:
        case WarnOnce::Answer::full: break;
    }
}

}  // namespace

Result<void> check_extent(const KernelInfo& kernel, const Extent& extent) {
    const rules::ExtentAnswer answer = rules::judge_extent(kernel.rank, extent);
    if (!answer.refused()) return {};
    const char* const words = rules::extent_words(kernel.rank, answer.dimension);
    if (answer.verdict == rules::ExtentVerdict::negative) {
        return make_error<errors::extent_is_negative>(kernel.name, static_cast<std::int64_t>(answer.number), words);
    }
    return make_error<errors::extent_is_too_large>(kernel.name, answer.number, words, answer.most);
}

bool in_capture(StreamState& stream) {
    return stream.recording_id() != 0;
}

std::uint64_t raw_bytes(const LaunchArgument& argument, const ParameterInfo& parameter) noexcept {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    return argument.raw_count > most / parameter.element_bytes ? most : argument.raw_count * parameter.element_bytes;
}

rules::ByteSpan span_of(const LaunchArgument& argument, const ParameterInfo& parameter) noexcept {
    if (!argument.is_part) return {};
    return span_of(**argument.buffer, argument.first_byte, argument.raw_count * parameter.element_bytes);
}

namespace {

JudgedArgument judge_whole(const DeviceState& device, const BufferState& buffer, LaunchMode mode) {
    const bool here = buffer.device.get() == &device;
    if (!here && mode == LaunchMode::strict) {
        return refused(Code::wrong_device,
                       {Verdict::no, "it was allocated on another device and the launch mode is strict",
                        "allocate it on the launch device, or use LaunchMode::checked"});
    }
    if (device.synchronous) return on_the_cpu(device, buffer);
    const std::uint64_t address = buffer_address(device, buffer);
    if (address == 0) {
        const AccessAnswer nowhere{Verdict::no, "it belongs to another device and has no address on this one",
                                   "allocate it on the launch device and copy, or use LaunchMode::staged"};
        return mode == LaunchMode::staged ? stage_buffer(device, buffer, nowhere)
                                          : refused(Code::wrong_device, nowhere);
    }
    const AccessAnswer answer = buffer_access(device, buffer);
    if (mode == LaunchMode::relaxed || answer.verdict != Verdict::no) return passed(address, answer);
    return mode == LaunchMode::staged ? stage_buffer(device, buffer, answer) : refused(Code::not_accessible, answer);
}

}  // namespace

JudgedArgument judge_buffer(const DeviceState& device, const LaunchArgument& argument, std::uint64_t bytes,
                            LaunchMode mode) {
    if (bytes == 0) return {};
    const BufferState& buffer = **argument.buffer;
    if (argument.is_part && !buffer.holds(argument.first_byte, bytes)) {
        return refused(Code::invalid_argument, {Verdict::no, BufferState::part_beyond, BufferState::part_again});
    }
    if (lost_owner(device, buffer)) return refused_as_lost();
    JudgedArgument judged = judge_whole(device, buffer, mode);
    if (judged.doing != Doing::refuse) judged.address += argument.first_byte;
    return judged;
}

JudgedArgument judge_raw(const DeviceState& device, const LaunchArgument& argument, std::uint64_t bytes,
                         ArgumentUse use, LaunchMode mode) {
    const auto address = reinterpret_cast<std::uintptr_t>(argument.raw);
    if (bytes == 0) return passed(address, {Verdict::yes, "nothing is touched", {}});
    if (argument.is_span && !device.synchronous && mode != LaunchMode::staged) {
        return refused(Code::not_accessible,
                       {Verdict::no, "a plain host span is for launches on the CPU device",
                        "use LaunchMode::staged, or copy it into a buffer that allocate_shared gives"});
    }
    if (mode == LaunchMode::relaxed) return passed(address, {Verdict::yes, "the mode is relaxed", {}});
    Provenance memory;
    AccessAnswer answer = range_access(device, address, bytes, &memory);
    // Access to mapped memory may be for reading only (V9).
    if (answer && rules::writes(use) && is_mapped(device, memory, address)) {
        answer = mapped_access(device, address, bytes, true);
    }
    const bool whole = memory.kind == MemoryKind::unknown || memory.holds(address, bytes);
    JudgedArgument judged;
    if (!whole || address == 0 || bytes > ~address) {
        judged = refused(Code::not_accessible, answer);
    } else if (lost_owner(device, memory, address, bytes)) {
        judged = refused_as_lost();
    } else {
        judged = judge_known_raw(device, argument, mode, memory, answer);
    }
    judged.memory = std::move(memory);
    return judged;
}

Error refusal_of_buffer(const KernelInfo& kernel, std::uint32_t argument, const DeviceState& device,
                        const BufferState& buffer, const JudgedArgument& judged) {
    return make_error_as<errors::argument_refused>(judged.code, argument_text(kernel, argument), described(buffer),
                                                   named(device), judged.answer.reason, judged.answer.remedy);
}

Error refusal_of_raw(const KernelInfo& kernel, std::uint32_t argument, const DeviceState& device,
                     const JudgedArgument& judged) {
    const Words what =
        judged.memory.kind == MemoryKind::unknown ? Words().append("a raw pointer") : described(judged.memory);
    return make_error_as<errors::argument_refused>(judged.code, argument_text(kernel, argument), what, named(device),
                                                   judged.answer.reason, judged.answer.remedy);
}

namespace {

// Judges an argument for which judge_arguments() has no shortcut.
Result<void> judge_one(const DeviceState& device, LaunchMode mode, const KernelInfo& kernel,
                       const LaunchArgument& argument, std::uint32_t at, void* pack, Judgement& out) {
    const ParameterInfo& parameter = kernel.parameter[at];
    JudgedArgument judged;
    std::uint64_t bytes = 0;
    if (argument.buffer == nullptr) {
        bytes = raw_bytes(argument, parameter);
        judged = judge_raw(device, argument, bytes, parameter.use, mode);
        if (judged.doing == Doing::refuse) return refusal_of_raw(kernel, at, device, judged);
        // The launch keeps the host from a buffer. Concurrent users of other memory are not known.
        if (judged.doing == Doing::stage && parameter.use == ArgumentUse::concurrent) {
            return make_error<errors::concurrent_argument_needs_copies>(argument_text(kernel, at), named(device),
                                                                        judged.answer.reason);
        }
    } else {
        const BufferState* buffer = argument.buffer->get();
        if (buffer == nullptr) return make_error<errors::argument_buffer_is_empty>(argument_text(kernel, at));
        if (argument.is_part && buffer->views.released()) {
            return make_error<errors::argument_part_of_released_buffer>(argument_text(kernel, at));
        }
        bytes = argument.is_part ? raw_bytes(argument, parameter) : buffer->memory->bytes;
        judged = judge_buffer(device, argument, bytes, mode);
        if (judged.doing == Doing::refuse) return refusal_of_buffer(kernel, at, device, *buffer, judged);
        std::memcpy(static_cast<unsigned char*>(pack) + parameter.offset_bytes, &judged.address, sizeof judged.address);
    }
    if (bytes == 0) return {};
    if (judged.doing == Doing::stage) {
        const ArgumentUse use = rules::claimed_use(parameter.use, LaunchPath::stage);
        out.staged.push_back({at, {judged.address, bytes, use, judged.ordinal}, argument.buffer});
    } else if (mode != LaunchMode::relaxed && judged.answer.verdict == Verdict::not_verified) {
        ++out.unverified;
        const std::uint64_t source = judged.memory.id != 0 ? judged.memory.id : judged.address;
        warn(device, kernel, at, argument.buffer == nullptr ? described(judged.memory) : described(**argument.buffer),
             source, judged.answer);
    }
    return {};
}

}  // namespace

Result<void> judge_arguments(const DeviceState& device, LaunchMode mode, const KernelInfo& kernel,
                             const LaunchArgument* arguments, std::size_t count, void* pack, Judgement& out) {
    for (std::uint32_t at = 0; at < count; ++at) {
        const LaunchArgument& argument = arguments[at];
        if (!argument.fits) return make_error<errors::argument_number_does_not_fit>(argument_text(kernel, at));
        if (!argument.is_view) continue;
        const ParameterInfo& parameter = kernel.parameter[at];
        if (updates(parameter)) {
            if (Result<void> lawful = check_kernel_atomics(device, kernel, at, argument); !lawful) return lawful;
        }
        if (argument.buffer == nullptr) {
            if (mode == LaunchMode::relaxed && !argument.is_span) continue;  // the pack holds it already
            if (plainly_own(device, argument, raw_bytes(argument, parameter))) continue;
        } else if (const BufferState* buffer = argument.buffer->get();
                   buffer != nullptr && !argument.is_part && buffer->device.get() == &device &&
                   device.reaches(buffer->memory->kind) && !device.synchronous) {
            // The device's own memory that it reaches is allowed in every mode.
            std::memcpy(static_cast<unsigned char*>(pack) + parameter.offset_bytes, &buffer->memory->device_address,
                        sizeof buffer->memory->device_address);
            continue;
        }
        if (Result<void> judged = judge_one(device, mode, kernel, argument, at, pack, out); !judged) return judged;
    }
    return {};
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
