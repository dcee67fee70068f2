// The kernel that fills memory where the driver's own fills do not go.
#pragma once

#include <isthmus/kernel_info.hpp>

#include "copy_plan.hpp"

#include <cstddef>
#include <cstdint>

namespace isthmus::inline v0::detail {

// What it is given: the View it writes, and rows of one value in it. An item is 16 bytes at an address that is a
// multiple of 16, or those of them that lie in its row.
struct FillPack {
    std::uint64_t data = 0;  // of the first row
    std::uint64_t size = 0;  // to the end of the last one
    std::uint64_t words[2] = {};
    std::uint64_t width = 0;
    std::uint64_t row = 0;
    std::uint64_t rows = 1;
    std::uint64_t slice = 0;
    std::uint64_t items = 1;  // of a row
};

// The shape's rows from `first` on (it holds the shape's offset), filled with a value of 1, 2, 4, 8 or 16 bytes. Rows
// begin at multiples of the value's size: then each of its bytes has one place in 16.
FillPack fill_pack(std::uint64_t first, const rules::CopyShape& shape, const void* value, std::size_t value_bytes);
Extent fill_extent(const FillPack& pack, const rules::CopyShape& shape);

extern const KernelInfo fill_rows;

}  // namespace isthmus::inline v0::detail
