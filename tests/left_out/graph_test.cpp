// SPDX-License-Identifier: Apache-2.0
// A library without the component graph: nothing can be captured, and streams work as usual.
#include "left_out.hpp"

namespace left_out {
namespace {

template <class T>
testing::AssertionResult refused(const Result<T>& answer) {
    return refused_without("graph", answer);
}

// No capture, graph or instance can be made. These are empty: a refusal does not use them.
Graph no_graph() {
    return Graph(std::shared_ptr<detail::GraphState>());
}

TEST(GraphLeftOut, CapturesAreRefusedAndTheStreamWorksAsBefore) {
    conformance::on_every_device([](Device& device, Stream stream) {
        auto buffer = conformance::pinned(device, 64, 1);
        EXPECT_TRUE(refused(stream.begin_capture()));
        stream.launch(conformance::add_one, 64, buffer).value();
        EXPECT_TRUE(refused(stream.launch(GraphInstance(std::shared_ptr<detail::InstanceState>()))));
        stream.synchronize().value();
        conformance::expect_all(buffer, 2);
    });
}

TEST(GraphLeftOut, EveryCallOfACaptureIsRefused) {
    Device& device = conformance::runtime().default_device();
    auto buffer = conformance::pinned(device, 64, 1);
    Capture capture{std::shared_ptr<detail::Recording>()};
    EXPECT_TRUE(refused(capture.launch(conformance::add_one, 64, buffer)));
    EXPECT_TRUE(refused(capture.launch(device.stream(), conformance::add_one, 64, buffer)));
    EXPECT_TRUE(refused(capture.append(no_graph())));
    EXPECT_TRUE(refused(capture.append(device.stream(), no_graph())));
    EXPECT_TRUE(refused(capture.loop_while(buffer, no_graph())));
    EXPECT_TRUE(refused(capture.run_if(buffer, no_graph())));
    EXPECT_TRUE(refused(capture.loop_while(buffer, [](Capture&) {})));
    EXPECT_TRUE(refused(capture.stream()));
    Capture other = std::move(capture);
    other = Capture(std::shared_ptr<detail::Recording>());
    EXPECT_TRUE(refused(other.end()));
}

TEST(GraphLeftOut, EveryCallOfAGraphIsRefused) {
    auto buffer = conformance::pinned(conformance::runtime().default_device(), 64, 1);
    EXPECT_EQ(no_graph().size(), 0U);
    EXPECT_EQ(no_graph().dot(), "");
    EXPECT_TRUE(refused(no_graph().instantiate()));
    GraphInstance instance{std::shared_ptr<detail::InstanceState>()};
    EXPECT_TRUE(refused(instance.update(no_graph())));
    const KernelNode<void(Index, View<std::int32_t>)> node{detail::NodeName{}};
    EXPECT_TRUE(refused(instance.set_arguments(node, 64, buffer)));
}

}  // namespace
}  // namespace left_out
