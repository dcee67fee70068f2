// SPDX-License-Identifier: Apache-2.0
// The line that an index outside its view prints before the kernel ends. Included where bounds are checked on the CPU
// (host_device.hpp). Takes no memory and no lock: write(2) alone, because the thread cannot continue.
#pragma once

#include <isthmus/kernel_info.hpp>
#include <isthmus/parameter_name.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

// write(2) as <unistd.h> declares it, which public headers do not include.
extern "C" std::ptrdiff_t write(int descriptor, const void* bytes, std::size_t count);

// The kernel whose CPU twin this thread runs, and its arguments. One per module.
struct RunningTwin {
    const KernelInfo* kernel = nullptr;
    const void* pack = nullptr;
};
constinit inline thread_local RunningTwin running_twin{};

class TwinScope {
public:
    TwinScope(const KernelInfo& kernel, const void* pack) noexcept
        : before_(std::exchange(running_twin, RunningTwin{&kernel, pack})) {}
    TwinScope(const TwinScope&) = delete;
    TwinScope& operator=(const TwinScope&) = delete;
    ~TwinScope() { running_twin = before_; }

private:
    RunningTwin before_;
};

// A line in a buffer of its own; what does not fit is left out.
class LastLine {
public:
    LastLine& operator<<(std::string_view text) noexcept {
        const std::size_t some = std::min(text.size(), text_.size() - used_);
        std::memcpy(text_.data() + used_, text.data(), some);
        used_ += some;
        return *this;
    }
    LastLine& number(std::uint64_t value, int base = 10) noexcept {
        const std::to_chars_result end = std::to_chars(text_.data() + used_, text_.data() + text_.size(), value, base);
        if (end.ec == std::errc()) used_ = static_cast<std::size_t>(end.ptr - text_.data());
        return *this;
    }
    std::string_view text() const noexcept { return {text_.data(), used_}; }

private:
    std::array<char, 400> text_{};
    std::size_t used_ = 0;
};

// An index as it was written: one beyond half of the numbers was negative.
inline void add_index(LastLine& line, std::uint64_t index) noexcept {
    const bool negative = (index >> 63) != 0;
    (line << (negative ? "index -" : "index ")).number(negative ? ~index + 1 : index);
}

// "argument 'out' (number 1)": the argument that is this view, or that it is a part of; otherwise its address.
inline void add_view(LastLine& line, const RunningTwin& twin, std::uint64_t address, std::uint64_t size) noexcept {
    for (int exact = 1; exact >= 0 && twin.kernel != nullptr; --exact) {
        for (std::uint32_t at = 0; at < twin.kernel->parameter_count; ++at) {
            const ParameterInfo& parameter = twin.kernel->parameter[at];
            if (parameter.use == ArgumentUse::value || parameter.element_bytes == 0) continue;
            struct {
                std::uint64_t address;
                std::uint64_t count;
            } given;
            std::memcpy(&given, static_cast<const unsigned char*>(twin.pack) + parameter.offset_bytes, sizeof given);
            const bool same = given.address == address && given.count == size;
            const bool within = address - given.address < given.count * parameter.element_bytes;
            if (exact != 0 ? !same : !within) continue;
            line << (exact != 0 ? "argument " : "a part of argument ");
            const std::string_view name = parameter_name(*twin.kernel, at);
            if (name.empty()) {
                (line << "number ").number(at + std::uint64_t{1});
            } else {
                ((line << "'" << name << "' (number ").number(at + std::uint64_t{1})) << ")";
            }
            return;
        }
    }
    (line << "the view at 0x").number(address, 16);
}

inline LastLine words_out_of_bounds(const RunningTwin& twin, const volatile void* data, std::uint64_t size,
                                    std::uint64_t index) noexcept {
    LastLine line;
    line << "isthmus: ";
    if (twin.kernel != nullptr) line << "kernel '" << twin.kernel->name << "': ";
    add_index(line, index);
    line << " is outside ";
    add_view(line, twin, static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data)), size);
    (line << ", which has ").number(size) << (size == 1 ? " element\n" : " elements\n");
    return line;
}

[[gnu::cold, gnu::noinline]] inline void say_out_of_bounds(const volatile void* data, std::uint64_t size,
                                                           std::uint64_t index) noexcept {
    const LastLine line = words_out_of_bounds(running_twin, data, size, index);
    constexpr int standard_error = 2;
    [[maybe_unused]] const std::ptrdiff_t written = write(standard_error, line.text().data(), line.text().size());
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
