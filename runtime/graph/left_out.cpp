// SPDX-License-Identifier: Apache-2.0
// Public calls of this room in a build without it: each refuses before any other check.
#include <isthmus/graph.hpp>
#include <isthmus/stream.hpp>

#include "left_out.hpp"

namespace isthmus {
inline namespace v0 {
namespace {

Error refused() {
    return detail::left_out("graph");
}

}  // namespace

Result<Capture> Stream::begin_capture() {
    return refused();
}
Result<void> Stream::launch(const GraphInstance& /*instance*/) {
    return refused();
}

// No capture can begin, so none holds a recording.
Capture& Capture::operator=(Capture&&) noexcept = default;
Capture::~Capture() = default;
Result<Graph> Capture::end() {
    return refused();
}
Result<detail::NodeName> Capture::launch_packed(const Stream* /*stream*/, const LaunchOptions& /*options*/,
                                                const KernelInfo& /*kernel*/, const Extent& /*extent*/, void* /*pack*/,
                                                const detail::LaunchArgument* /*arguments*/, std::size_t /*count*/) {
    return refused();
}
Result<void> Capture::append(const Graph& /*graph*/) {
    return refused();
}
Result<void> Capture::append(const Stream& /*stream*/, const Graph& /*graph*/) {
    return refused();
}
Result<void> Capture::append_conditional(const std::shared_ptr<detail::BufferState>& /*word*/, const Graph& /*body*/,
                                         bool /*loops*/) {
    return refused();
}
Result<Capture> Capture::begin_body(const std::shared_ptr<detail::BufferState>& /*word*/, bool /*loops*/) {
    return refused();
}
Result<void> Capture::end_body(Capture& /*inside*/, const std::shared_ptr<detail::BufferState>& /*word*/) {
    return refused();
}
Result<Stream> Capture::stream() const {
    return refused();
}
Result<void> Capture::loop_while(const TypedBuffer<std::int32_t>& /*word*/, const Graph& /*body*/) {
    return refused();
}
Result<void> Capture::run_if(const TypedBuffer<std::int32_t>& /*word*/, const Graph& /*body*/) {
    return refused();
}

std::size_t Graph::size() const noexcept {
    return 0;
}
std::string Graph::dot() const {
    return {};
}
Result<GraphInstance> Graph::instantiate() const {
    return refused();
}
Result<GraphUpdate> GraphInstance::update(const Graph& /*graph*/) {
    return refused();
}
Result<void> GraphInstance::set_packed(const detail::NodeName& /*node*/, const Extent& /*extent*/, void* /*pack*/,
                                       const detail::LaunchArgument* /*arguments*/, std::size_t /*count*/) {
    return refused();
}

}  // namespace v0
}  // namespace isthmus
