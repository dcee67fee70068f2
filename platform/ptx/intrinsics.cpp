// SPDX-License-Identifier: Apache-2.0
// Functions that the driver provides: vprintf, __assertfail, cudaGraphSetConditional, malloc, free.
#include "warp_execution.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>

namespace isthmus::ptx {
namespace {

class Lane {
public:
    Lane(Warp& warp, const Op& op, std::uint32_t lane, const CallSite& site)
        : warp_(warp), op_(op), lane_(lane), site_(site) {}

    std::uint64_t argument(std::size_t at) const {
        std::uint64_t out = 0;
        if (at >= site_.arguments.size()) return 0;
        const LocalPlace& place = site_.arguments[at];
        std::memcpy(&out, warp_.local_at(lane_) + warp_.now.frame->local_base + place.offset,
                    place.bytes < sizeof out ? place.bytes : sizeof out);
        return out;
    }
    template <class T>
    void answer(T value) {
        if (site_.results.empty() || site_.results[0].bytes < sizeof value) return;
        std::byte* const to = warp_.local_at(lane_) + warp_.now.frame->local_base + site_.results[0].offset;
        std::memcpy(to, &value, sizeof value);
        if (warp_.local_written.empty()) return;
        std::fill_n(warp_.local_written.begin() + (to - warp_.local.data()), sizeof value, std::byte{1});
    }
    // nullopt: the address is refused, and the fault is recorded.
    template <class T>
    std::optional<T> value_at(std::uint64_t address) const {
        const std::byte* const from = reach(warp_, op_, lane_, address, sizeof(T), false);
        if (from == nullptr) return std::nullopt;
        T out;
        std::memcpy(&out, from, sizeof out);
        return out;
    }
    std::optional<std::string> text_at(std::uint64_t address) const {
        constexpr std::size_t longest = 1 << 16;
        std::string out;
        if (address == 0) return "(null)";
        while (out.size() < longest) {
            const std::optional<char> c = value_at<char>(address + out.size());
            if (!c) return std::nullopt;
            if (*c == '\0') break;
            out += *c;
        }
        return out;
    }

private:
    Warp& warp_;
    const Op& op_;
    std::uint32_t lane_;
    const CallSite& site_;
};

// One conversion of a format, such as %-8.3lf, without its length.
struct Conversion {
    std::string flags;
    int longs = 0, shorts = 0;
    char kind = '\0';
};
Conversion read_conversion(const std::string& format, std::size_t& at) {
    Conversion out;
    for (; at < format.size(); ++at) {
        const char c = format[at];
        if (c == 'l' || c == 'j' || c == 'z' || c == 't') {
            out.longs += c == 'l' ? 1 : 2;
        } else if (std::string_view("-+ #0123456789.*").find(c) != std::string_view::npos) {
            out.flags += c;
        } else if (c == 'h') {
            ++out.shorts;
        } else if (c != 'L') {
            out.kind = c;
            ++at;
            return out;
        }
    }
    return out;
}

long long signed_value(const Conversion& one, std::uint64_t value) {
    if (one.longs > 0) return static_cast<long long>(value);
    if (one.shorts > 1) return static_cast<std::int8_t>(value);
    return one.shorts > 0 ? static_cast<std::int16_t>(value) : static_cast<std::int32_t>(value);
}
unsigned long long unsigned_value(const Conversion& one, std::uint64_t value) {
    if (one.longs > 0 || one.shorts == 0) return value;
    return one.shorts > 1 ? static_cast<std::uint8_t>(value) : static_cast<std::uint16_t>(value);
}

template <class T>
std::string printed(const std::string& format, T value) {
    char text[512];
    const int length = std::snprintf(text, sizeof text, format.c_str(), value);
    return std::string(text, length < 0 ? 0 : std::min<std::size_t>(static_cast<std::size_t>(length), sizeof text - 1));
}

// Arguments lie in a buffer, each at a multiple of its size (4 or 8 bytes).
std::optional<std::string> formatted(const Lane& lane, const std::string& format, std::uint64_t buffer, int& count) {
    std::string out;
    std::uint64_t at_bytes = 0;
    const auto next = [&](std::uint32_t bytes) -> std::optional<std::uint64_t> {
        at_bytes = (at_bytes + bytes - 1) & ~std::uint64_t{bytes - 1};
        const std::uint64_t at = buffer + at_bytes;
        at_bytes += bytes;
        ++count;
        if (bytes == 4) {
            const auto word = lane.value_at<std::uint32_t>(at);
            return word ? std::optional<std::uint64_t>(*word) : std::nullopt;
        }
        return lane.value_at<std::uint64_t>(at);
    };
    for (std::size_t at = 0; at < format.size();) {
        if (format[at] != '%') {
            out += format[at++];
            continue;
        }
        ++at;
        Conversion one = read_conversion(format, at);
        std::optional<std::uint64_t> value;
        // A width or precision that is an argument. A negative width aligns to the left, a negative precision is none.
        for (std::size_t star; (star = one.flags.find('*')) != std::string::npos;) {
            if (!(value = next(4))) return std::nullopt;
            const auto number = static_cast<std::int32_t>(*value);
            const bool is_precision = star > 0 && one.flags[star - 1] == '.';
            if (is_precision && number < 0) {
                one.flags.erase(star - 1, 2);
            } else {
                one.flags.replace(star, 1, std::to_string(number));
            }
        }
        const std::string flags = "%" + one.flags;
        switch (one.kind) {
            case '%': out += '%'; continue;
            case 'd':
            case 'i':
                if (!(value = next(one.longs > 0 ? 8 : 4))) return std::nullopt;
                out += printed(flags + "lld", signed_value(one, *value));
                continue;
            case 'u':
            case 'x':
            case 'X':
            case 'o':
                if (!(value = next(one.longs > 0 ? 8 : 4))) return std::nullopt;
                out += printed(flags + "ll" + one.kind, unsigned_value(one, *value));
                continue;
            case 'c':
                if (!(value = next(4))) return std::nullopt;
                out += printed(flags + "c", static_cast<int>(*value));
                continue;
            case 'p':
                if (!(value = next(8))) return std::nullopt;
                out += printed(flags + "p", reinterpret_cast<void*>(static_cast<std::uintptr_t>(*value)));
                continue;
            case 'e':
            case 'E':
            case 'f':
            case 'F':
            case 'g':
            case 'G':
            case 'a':
            case 'A':
                if (!(value = next(8))) return std::nullopt;
                out += printed(flags + one.kind, from_slot<double>(*value));
                continue;
            case 's': {
                if (!(value = next(8))) return std::nullopt;
                const std::optional<std::string> text = lane.text_at(*value);
                if (!text) return std::nullopt;
                out += one.flags.empty() ? *text : printed(flags + "s", text->c_str());
                continue;
            }
            default: out += flags + one.kind;  // as it stands
        }
    }
    return out;
}

void print(Warp& warp, Lane& lane) {
    const std::optional<std::string> format = lane.text_at(lane.argument(0));
    if (!format) return;
    int count = 0;
    const std::optional<std::string> text = formatted(lane, *format, lane.argument(1), count);
    if (!text) return;
    warp.worker->state->memory->print(*text);
    lane.answer(static_cast<std::uint32_t>(count));
}

void fail_assertion(Warp& warp, const Op& op, std::uint32_t number, Lane& lane) {
    const auto message = lane.text_at(lane.argument(0)), file = lane.text_at(lane.argument(1)),
               function = lane.text_at(lane.argument(3));
    if (!message || !file || !function) return;
    fail(warp, op, number, FaultKind::assertion,
         *file + ":" + std::to_string(lane.argument(2) & 0xffffffff) + ": " + *function + ": Assertion `" + *message +
             "` failed.");
}

void set_condition(Warp& warp, const Op& op, std::uint32_t number, Lane& lane) {
    if (warp.worker->state->memory->set_condition(lane.argument(0), static_cast<std::uint32_t>(lane.argument(1))))
        return;
    fail(warp, op, number, FaultKind::illegal_address, "cudaGraphSetConditional: no graph has this condition");
}

void allocate(Warp& warp, Lane& lane) {
    lane.answer(warp.worker->state->memory->allocate(lane.argument(0)));
}

void release(Warp& warp, const Op& op, std::uint32_t number, Lane& lane) {
    const std::uint64_t address = lane.argument(0);
    if (address == 0) return;
    const std::string why = warp.worker->state->memory->release(address);
    if (!why.empty()) return fail(warp, op, number, FaultKind::launch_failed, "free(" + in_hex(address) + "): " + why);
    // What other instructions know of this memory is no longer true.
    warp.worker->windows.assign(warp.worker->windows.size(), {});
}

}  // namespace

void run_intrinsic(Warp& warp, const Op& op, LaneMask mask, Intrinsic intrinsic, const CallSite& site) {
    for (LaneMask rest = mask; rest != 0 && !warp.worker->stop; rest &= rest - 1) {
        const auto number = static_cast<std::uint32_t>(std::countr_zero(rest));
        Lane lane(warp, op, number, site);
        switch (intrinsic) {
            case Intrinsic::vprintf: print(warp, lane); break;
            case Intrinsic::assertfail: fail_assertion(warp, op, number, lane); break;
            case Intrinsic::set_condition: set_condition(warp, op, number, lane); break;
            case Intrinsic::malloc: allocate(warp, lane); break;
            case Intrinsic::free: release(warp, op, number, lane); break;
            default: fail(warp, op, number, FaultKind::illegal_instruction, "the function is not modelled");
        }
    }
}

}  // namespace isthmus::ptx
