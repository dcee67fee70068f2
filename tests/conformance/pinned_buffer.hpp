// A pinned buffer with one value everywhere: memory that every GPU and the host see on every machine.
#pragma once

#include <isthmus/isthmus.hpp>

#include <cstddef>
#include <cstdint>

namespace conformance {

inline isthmus::Buffer<std::int32_t> pinned(isthmus::Device& device, std::size_t count, std::int32_t value) {
    isthmus::SharedUse use;
    use.kind = isthmus::MemoryKind::pinned;
    isthmus::Buffer<std::int32_t> made = device.allocate_shared<std::int32_t>(count, use).value();
    for (std::int32_t& one : made.write_on_host().value()) one = value;
    return made;
}

}  // namespace conformance
