// SPDX-License-Identifier: Apache-2.0
// The system's facts about memory mapped by other code.
#include <platform/os.hpp>

#include "fact_parsers.hpp"
#include "text_file.hpp"

#include <cstdint>

namespace isthmus::platform::os {

MappingFacts mapping_facts(const void* address, std::size_t bytes) {
    return parse_mapping(read_text("/proc/self/smaps"), reinterpret_cast<std::uintptr_t>(address), bytes);
}

}  // namespace isthmus::platform::os
