// SPDX-License-Identifier: Apache-2.0
// The camera kernels by the raw driver, as a program without this library launches them.
#pragma once

#include "camera_ways.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bench {

// Three launches over pinned memory in place; the same as a graph whose first node takes each frame; three launches
// between copies.
enum class Raw { launches, graph, copies };
std::unique_ptr<Way> raw_way(const isthmus::kernels::Plane& plane, Raw how);

// Each kernel alone.
class RawKernels {
public:
    RawKernels() = default;
    RawKernels(const RawKernels&) = delete;
    RawKernels& operator=(const RawKernels&) = delete;
    virtual ~RawKernels() = default;
    virtual void write(const std::uint8_t* pixels) = 0;
    // Names and microseconds of one launch: a hundredth of a graph of a hundred.
    virtual std::vector<std::pair<std::string, double>> measure() = 0;
};
std::unique_ptr<RawKernels> raw_kernels(const isthmus::kernels::Plane& plane);  // nullptr: no GPU

}  // namespace bench
