// SPDX-License-Identifier: Apache-2.0
// When the operations of two recordings correspond one to one, so that an instance may be updated in place.
#include "graph_state.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace isthmus::detail {
namespace {

constexpr KernelInfo some_kernel{};

struct Shape {
    const char* name;
    bool kernel;
    std::vector<std::uint32_t> after;
};

std::vector<RecordedOperation> recorded(const std::vector<Shape>& shapes) {
    std::vector<RecordedOperation> operations;
    for (const Shape& shape : shapes) {
        RecordedOperation operation;
        operation.name = shape.name;
        operation.kernel = shape.kernel ? &some_kernel : nullptr;
        operation.after = shape.after;
        operations.push_back(std::move(operation));
    }
    return operations;
}

std::string difference(const std::vector<Shape>& ours, const std::vector<Shape>& theirs) {
    return shape_difference(instance_operations(recorded(ours)), recorded(theirs));
}

// keeps S16
TEST(GraphShapes, KernelsAndNamesMayDifferWhereOrderAndEdgesDoNot) {
    EXPECT_EQ(difference({}, {}), "");
    EXPECT_EQ(difference({{"a", true, {}}, {"b", true, {0}}}, {{"c", true, {}}, {"d", true, {0}}}), "");
    EXPECT_EQ(difference({{"a copy", false, {}}}, {{"a fill", false, {}}}), "") << "the driver tells those apart";
}

// keeps S16: another number, a kernel against a copy, other edges, and edges in another order (nodes pair by it)
TEST(GraphShapes, EveryOtherDifferenceIsNamed) {
    const std::vector<Shape> fork = {{"a", true, {}}, {"b", true, {0}}, {"c", true, {0}}, {"d", true, {1, 2}}};
    EXPECT_EQ(difference(fork, fork), "");
    EXPECT_NE(difference(fork, {}).find("4 and 0 operations"), std::string::npos);
    for (std::size_t at = 0; at < fork.size(); ++at) {
        std::vector<Shape> other = fork;
        other[at].kernel = false;
        EXPECT_EQ(difference(fork, other).rfind("operation " + std::to_string(at) + " is a kernel", 0), 0u);
        EXPECT_EQ(difference(other, fork).rfind("operation " + std::to_string(at) + " is a kernel", 0), 0u);
    }
    for (std::size_t at = 1; at < fork.size(); ++at) {
        std::vector<Shape> other = fork;
        other[at].after.clear();
        EXPECT_EQ(difference(fork, other), "operation " + std::to_string(at) + " follows other operations");
    }
    std::vector<Shape> turned = fork;
    turned[3].after = {2, 1};
    EXPECT_EQ(difference(fork, turned), "operation 3 follows other operations");
}

}  // namespace
}  // namespace isthmus::detail
