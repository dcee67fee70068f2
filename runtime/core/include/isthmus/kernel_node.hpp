// SPDX-License-Identifier: Apache-2.0
// KernelNode: names a kernel of a graph, so that its arguments can be changed in instances of the graph.
#pragma once

#include <cstdint>

namespace isthmus {
inline namespace v0 {

namespace detail {
// An operation of a graph. Graph numbers are never reused, so that the node of a destroyed graph matches no other
// graph.
struct NodeName {
    std::uint64_t graph = 0;
    std::uint32_t operation = 0;
};
}  // namespace detail

// Made by Capture::launch(); its type carries the kernel's signature. A name without ownership, free to copy and to use
// on any thread. It may outlive its graph; instances of other graphs refuse it (Code::invalid_handle).
template <class Signature>
class KernelNode {
public:
    explicit KernelNode(detail::NodeName name) noexcept : name_(name) {}
    const detail::NodeName& name() const noexcept { return name_; }

private:
    detail::NodeName name_;
};

}  // namespace v0
}  // namespace isthmus
