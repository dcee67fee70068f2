// SPDX-License-Identifier: Apache-2.0
// The options of one launch, its report, and the explanation of a launch that is not made.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/kernel_info.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>
#include <isthmus/sharing_use.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus {
inline namespace v0 {

struct LaunchOptions {
    std::optional<LaunchMode> mode{};  // none: the stream's mode
};

struct LaunchReport {
    std::uint64_t position = 0;              // of this operation within the stream, from 1
    std::uint32_t unverified_arguments = 0;  // arguments that could not be verified, and were passed as they are
    std::uint64_t staged_bytes = 0;          // copied to the device for this launch
    std::uint64_t copied_back_bytes = 0;     // copied back after it (LaunchMode::staged)
    std::uint32_t unordered_arguments = 0;   // used before they were ordered on the stream (OrderCheck::report)
};

struct ArgumentExplanation {
    std::string name;  // of the kernel's parameter
    ArgumentUse use = ArgumentUse::value;
    MemoryKind kind = MemoryKind::unknown;  // unknown for values
    std::string device;                     // owner of the memory; empty: no device of this runtime
    LaunchPath path = LaunchPath::pass;     // how this launch would treat it
    Verdict verdict = Verdict::yes;         // whether the launch device may access it
    std::string sentence;                   // why, and what works instead
};

// What a launch would do now; nothing was done. Other threads may change the answer before the launch.
struct LaunchExplanation {
    LaunchMode mode = LaunchMode::relaxed;
    std::string device;
    std::vector<ArgumentExplanation> arguments;  // in the kernel's order
    // Calls that give work to the driver. Not counted: what happens once (opening the stream, loading the kernel's
    // code, creating a pooled event), and the queries of a wait, as many as it needs.
    int driver_calls = 0;
    std::optional<Error> refusal;  // why it would be refused; none: it would be launched
};

}  // namespace v0
}  // namespace isthmus
