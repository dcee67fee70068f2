// SPDX-License-Identifier: Apache-2.0
// Recorded allocations and releases of real programs, for tests and benchmarks that replay them. README.md has the
// format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace traces {

struct Event {
    std::uint32_t block = 0;   // blocks are numbered from 0 in the order of their allocation
    std::uint32_t stream = 0;  // from 0
    std::size_t bytes = 0;     // 0: a release
};

struct Trace {
    std::string origin;  // the comment in the first line
    std::vector<Event> events;
    std::uint32_t blocks = 0;
    std::uint32_t streams = 0;
    std::uint64_t peak_bytes = 0;  // the most that lives at one time
    std::string error;             // why the text or the file is no trace; empty: it is one
};

// A trace, or a log of isthmus::LoggingAllocator. Refused: a block that is allocated twice, or released without
// living; what ends within a line. What still lives at the end is released there.
Trace parse(std::string_view text);
// `path` may end in .gz: gzip reads it.
Trace read(const std::string& path);
bool exists(const std::string& path);

}  // namespace traces
