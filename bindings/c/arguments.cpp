// SPDX-License-Identifier: Apache-2.0
// Checking and packing of a launch's arguments.
#include "arguments.hpp"

#include <isthmus/parameter_name.hpp>

#include <algorithm>
#include <cstring>
#include <string>

namespace isthmus::c {
namespace {

std::string taken_by(const ParameterInfo& parameter) {
    if (parameter.use == ArgumentUse::value) {
        return "a value of " + std::to_string(parameter.size_bytes) + " bytes";
    }
    const char* const use = parameter.use == ArgumentUse::read    ? "reads"
                            : parameter.use == ArgumentUse::write ? "writes"
                                                                  : "reads and writes";
    return std::string("a buffer, of which it ") + use + " elements of " + std::to_string(parameter.element_bytes) +
           " bytes";
}

// "kernel 'scale', argument 2 ('in'): it takes …, and got …".
Error mismatch(const Call& call, const KernelInfo& kernel, std::uint32_t at, const std::string& got) {
    std::string message = std::string(call.name) + ": kernel '" + kernel.name + "', argument " + std::to_string(at + 1);
    if (const std::string_view named = parameter_name(kernel, at); !named.empty()) {
        message.append(" ('").append(named).append("')");
    }
    message += ": it takes " + taken_by(kernel.parameter[at]) + ", and got " + got;
    return {Code::invalid_argument, std::move(message),
            std::string("the kernel is declared with (") + kernel.parameters +
                "); give one isthmus_argument for each "
                "parameter behind the index space"};
}

// The alignment that elements of this size can ask for: the largest power of two that divides it, at most 16.
std::uintptr_t alignment_of(std::uint32_t element_bytes) noexcept {
    const std::uintptr_t lowest = element_bytes & (~element_bytes + 1);
    return std::min<std::uintptr_t>(lowest, 16);
}

struct View {
    void* data;
    std::uint64_t count;
};

Result<void> take_buffer(const Call& call, const KernelInfo& kernel, std::uint32_t at, const isthmus_argument& given,
                         std::byte* pack, detail::LaunchArgument& described) {
    const ParameterInfo& parameter = kernel.parameter[at];
    if (given.buffer == nullptr) {
        return mismatch(call, kernel, at, "a value of " + std::to_string(given.value_bytes) + " bytes");
    }
    if (given.value != nullptr || given.value_bytes != 0) return mismatch(call, kernel, at, "a buffer and a value");
    if (reinterpret_cast<std::uintptr_t>(given.buffer->adopted) % alignment_of(parameter.element_bytes) != 0) {
        return mismatch(call, kernel, at,
                        "adopted memory that does not begin at a multiple of " +
                            std::to_string(alignment_of(parameter.element_bytes)));
    }
    const View view{nullptr, given.buffer->cpp.size_bytes() / parameter.element_bytes};
    std::memcpy(pack + parameter.offset_bytes, &view, sizeof view);
    described = {.buffer = &given.buffer->cpp.state(), .is_view = true};
    return {};
}

Result<void> take_value(const Call& call, const KernelInfo& kernel, std::uint32_t at, const isthmus_argument& given,
                        std::byte* pack) {
    const ParameterInfo& parameter = kernel.parameter[at];
    if (given.buffer != nullptr) return mismatch(call, kernel, at, "a buffer");
    if (given.value == nullptr) return mismatch(call, kernel, at, "NULL");
    if (given.value_bytes != parameter.size_bytes) {
        return mismatch(call, kernel, at, "a value of " + std::to_string(given.value_bytes) + " bytes");
    }
    std::memcpy(pack + parameter.offset_bytes, given.value, parameter.size_bytes);
    return {};
}

}  // namespace

Result<void> pack_arguments(const Call& call, const KernelInfo& kernel, const isthmus_argument* arguments,
                            std::size_t count, std::byte* pack, detail::LaunchArgument* described) {
    if (count != kernel.parameter_count) {
        return Error(Code::invalid_argument,
                     std::string(call.name) + ": kernel '" + kernel.name + "' takes " +
                         std::to_string(kernel.parameter_count) + " arguments, and got " + std::to_string(count),
                     std::string("the kernel is declared with (") + kernel.parameters +
                         "); the index space in front is no argument");
    }
    if (count > 0) ISTHMUS_TRY(call.needs({{"arguments", arguments}}));
    for (std::uint32_t at = 0; at < count; ++at) {
        const bool is_value = kernel.parameter[at].use == ArgumentUse::value;
        Result<void> taken = is_value ? take_value(call, kernel, at, arguments[at], pack)
                                      : take_buffer(call, kernel, at, arguments[at], pack, described[at]);
        if (!taken) return taken;
    }
    return {};
}

}  // namespace isthmus::c
