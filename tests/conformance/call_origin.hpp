// SPDX-License-Identifier: Apache-2.0
// Whose code makes a call: the library, the driver (the simulator or a real one), the program, or the system.
#pragma once

#include <cstdint>

namespace conformance {

enum class Origin : std::uint8_t { library, driver, program, system };
const char* name(Origin origin) noexcept;

// Addresses of code. Objects of one process and of its forked children have the same addresses, unless they were opened
// later.
struct CodeRange {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    bool has(std::uintptr_t at) const noexcept { return at >= begin && at < end; }
    bool has(const void* address) const noexcept { return has(reinterpret_cast<std::uintptr_t>(address)); }
};
struct CodeMap {
    CodeRange library;
    CodeRange driver;
    CodeRange program;
    CodeRange hooks;  // of the program: they pass a call on, and are not its origin

    Origin of(std::uintptr_t address) const noexcept;
    // Of the innermost frame that is not one of the system's. The frames are innermost first, as backtrace() gives
    // them.
    Origin of(void* const* frames, int count) const noexcept;
};
// Of what is open in this process now.
CodeMap find_code() noexcept;

}  // namespace conformance

// Functions of the program that stand in front of others. The library finds only those that the program exports.
#define CONFORMANCE_HOOK __attribute__((section("conformance_hooks"), noinline, visibility("default")))
