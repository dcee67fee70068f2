// Capture, Graph, GraphInstance: work recorded once and launched many times.
//   Capture capture = stream.begin_capture().value();
//   stream.launch(kernel, n, out, in);                     // recorded, not run
//   GraphInstance again = capture.end().value().instantiate().value();
//   stream.launch(again);                                  // all of it, one driver call
#pragma once

#include <isthmus/export.hpp>
#include <isthmus/result.hpp>

#include <cstddef>
#include <memory>

namespace isthmus::inline v0 {

namespace detail {
struct GraphState;
struct InstanceState;
struct Recording;
}  // namespace detail

// A graph that can be launched, with Stream::launch(). A handle: copies name the same instance. Holds every buffer that
// the graph uses. Destroyed with the last copy, after its last launch has finished (at most the runtime's wait
// timeout).
class ISTHMUS_API GraphInstance {
public:
    explicit GraphInstance(std::shared_ptr<detail::InstanceState> state) : state_(std::move(state)) {}
    GraphInstance(const GraphInstance&) = default;  // no move: an instance is never empty
    GraphInstance& operator=(const GraphInstance&) = default;
    ~GraphInstance() = default;
    const std::shared_ptr<detail::InstanceState>& state() const noexcept { return state_; }

private:
    std::shared_ptr<detail::InstanceState> state_;
};

// What a capture recorded. A handle: copies name the same graph. Buffers that it uses cannot be released meanwhile
// (Code::in_use), and destroying them early is fine: the graph holds them (S15).
class ISTHMUS_API Graph {
public:
    explicit Graph(std::shared_ptr<detail::GraphState> state) : state_(std::move(state)) {}
    Graph(const Graph&) = default;  // no move: a graph is never empty
    Graph& operator=(const Graph&) = default;
    ~Graph() = default;
    // Work of this many operations (launches, copies, fills) was recorded.
    std::size_t size() const noexcept;
    // Errors: in_use (a graph that allocates memory has one instance at a time), device_lost, driver_error.
    Result<GraphInstance> instantiate() const;
    const std::shared_ptr<detail::GraphState>& state() const noexcept { return state_; }

private:
    std::shared_ptr<detail::GraphState> state_;
};

// The scope of a capture, made by Stream::begin_capture(). While it is open the stream records what it is given:
// launches, copies between buffers, fills. Refused on that stream, with the capture unharmed (Code::capture_error):
// waiting for it, events, buffers that belong to one side at a time (managed memory of phase-guarded machines; pinned
// memory is the remedy), copies that would pass through the host. On the capturing thread, allocations other than
// Stream::allocate are refused too; other threads allocate, free and wait as they like, through the runtime. What is
// freed anywhere while a capture is open is given back when the last one has ended (K10). CUDA code beside the runtime
// can still end a capture: end() says so.
// One thread begins, fills and ends it. Movable. Destroyed without end(): what was recorded is thrown away.
class [[nodiscard]] ISTHMUS_API Capture {
public:
    explicit Capture(std::shared_ptr<detail::Recording> recording) : recording_(std::move(recording)) {}
    Capture(Capture&&) noexcept = default;
    Capture& operator=(Capture&& other) noexcept;
    ~Capture();
    // Errors: capture_error (the capture was lost, or this is not the thread that began it: it stays open then),
    // invalid_handle (ended or moved from).
    Result<Graph> end();

private:
    std::shared_ptr<detail::Recording> recording_;
};

}  // namespace isthmus::inline v0
