// KernelNode: a kernel of a graph, by name, so that instances of the graph can give it other arguments.
#pragma once

#include <cstdint>

namespace isthmus::inline v0 {

namespace detail {
// Which operation of which graph. Numbers are never used again, so that a node of a graph that is gone is nobody's.
struct NodeName {
    std::uint64_t graph = 0;
    std::uint32_t operation = 0;
};
}  // namespace detail

// Made by Capture::launch(); the kernel's signature is its type. A name that owns nothing: it may outlive its graph,
// and instances of other graphs refuse it (Code::invalid_handle). Copy it freely, on any thread.
template <class Signature>
class KernelNode {
public:
    explicit KernelNode(detail::NodeName name) noexcept : name_(name) {}
    const detail::NodeName& name() const noexcept { return name_; }

private:
    detail::NodeName name_;
};

}  // namespace isthmus::inline v0
