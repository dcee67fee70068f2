// SPDX-License-Identifier: Apache-2.0
// Capture, Graph, GraphInstance: work recorded once and launched many times.
//   Capture capture = stream.begin_capture().value();
//   stream.launch(kernel, n, out, in);                     // recorded, not run
//   GraphInstance again = capture.end().value().instantiate().value();
//   stream.launch(again);                                  // all of it, one driver call
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/detail/launch_refusal.hpp>
#include <isthmus/export.hpp>
#include <isthmus/kernel.hpp>
#include <isthmus/kernel_node.hpp>
#include <isthmus/launch_argument.hpp>
#include <isthmus/launch_options.hpp>
#include <isthmus/result.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace isthmus {
inline namespace v0 {

class Graph;
class Stream;

namespace detail {
struct BufferState;
struct GraphState;
struct InstanceState;
struct Recording;
}  // namespace detail

// How GraphInstance::update() was done.
struct GraphUpdate {
    bool in_place = false;  // false: a new instance replaced the old one, at the cost of instantiate()
    std::string reason;     // why not in place; else empty
};

// A graph that Stream::launch() can launch. A handle: copies name the same instance. Holds every buffer that it uses
// now (S15). Thread-safe: launches and changes are serialised. Destroyed with the last copy, after its last launch has
// finished (at most the runtime's wait timeout).
class ISTHMUS_API GraphInstance {
public:
    explicit GraphInstance(std::shared_ptr<detail::InstanceState> state) : state_(std::move(state)) {}
    GraphInstance(const GraphInstance&) = default;  // no move: an instance is never empty
    GraphInstance& operator=(const GraphInstance&) = default;
    ~GraphInstance() = default;

    // Changes the arguments of a kernel of the graph for later launches; launches already given to a stream keep theirs
    // (S16). Checked like a launch, at compile time and by the runtime's launch mode. One driver call. Buffers that the
    // instance no longer uses are released from it, but its Graph, while it exists, holds the recorded ones. Raw views
    // are never held.
    // Errors, with nothing changed: invalid_handle (a node of another graph, an empty buffer), invalid_argument (an
    // empty index space, a number that its parameter cannot hold), not_accessible, wrong_device and unverified (see
    // LaunchMode), unsupported, device_lost.
    template <class Space, class... P, class... A>
    Result<void> set_arguments(const KernelNode<void(Space, P...)>& node,
                               typename KernelTraits<void(Space, P...)>::ExtentType extent, A&&... arguments) {
        using Check = detail::CheckArguments<void(Space, P...), A...>;
        if constexpr (Check::value) {
            return detail::with_packed<P...>(
                [&](void* pack, const detail::LaunchArgument* described, std::size_t count) {
                    return set_packed(node.name(), KernelTraits<void(Space, P...)>::extent(extent), pack, described,
                                      count);
                },
                arguments...);
        } else {
            return detail::refuse_launch<Result<void>, Check::found.mistake, Check::found.argument>();
        }
    }
    // Makes later launches do what `graph` says: in place where the driver can (both graphs have the same operations in
    // the same order, apart from their arguments), otherwise by a new instance; the old one ends with its last launch.
    // Changes by set_arguments() are replaced, and the nodes of `graph` are valid from then on.
    // Errors, with nothing changed: wrong_device, in_use (a graph that allocates memory and has an instance),
    // device_lost, driver_error.
    Result<GraphUpdate> update(const Graph& graph);

    const std::shared_ptr<detail::InstanceState>& state() const noexcept { return state_; }

private:
    Result<void> set_packed(const detail::NodeName& node, const Extent& extent, void* pack,
                            const detail::LaunchArgument* arguments, std::size_t count);
    std::shared_ptr<detail::InstanceState> state_;
};

// What a capture recorded. A handle: copies name the same graph. While it exists, release() of a buffer that it uses is
// refused (Code::in_use). Such a buffer may be destroyed: the graph keeps its memory (S15).
class ISTHMUS_API Graph {
public:
    explicit Graph(std::shared_ptr<detail::GraphState> state) : state_(std::move(state)) {}
    Graph(const Graph&) = default;  // no move: a graph is never empty
    Graph& operator=(const Graph&) = default;
    ~Graph() = default;
    // The number of recorded operations (launches, copies, fills).
    std::size_t size() const noexcept;
    // Makes an instance. Errors: in_use (a graph that allocates memory has one instance at a time), device_lost,
    // driver_error.
    Result<GraphInstance> instantiate() const;
    // The recorded work in the DOT language (Graphviz): operations, the buffers that kernels and copies use by name,
    // streams, devices, and what follows what. No driver call.
    std::string dot() const;
    const std::shared_ptr<detail::GraphState>& state() const noexcept { return state_; }

private:
    std::shared_ptr<detail::GraphState> state_;
};

// The scope of a capture, made by Stream::begin_capture(). While it is open, the stream records what it is given:
// launches, copies between buffers, fills. Another stream, of any GPU of the runtime, joins by waiting for an event
// that was recorded in the capture, and records from then on. It must come back before end(): the first stream waits
// for an event behind its work (Stream::wait_stream() does both directions). A stream that took part and is destroyed
// stays until the end.
// Refused on all of these streams, with the capture unharmed (Code::capture_error): waiting for them; waiting in them
// for events from outside or of another capture; copies that would pass through the host. Managed memory of
// phase-guarded devices (89=0) is noted: each launch of the graph attaches it to the launching stream and returns it
// behind its last use, as a kernel launch does (K6). The host cannot query or wait
// for an event of a capture, and no stream can wait for it after the capture, until it is recorded again outside. On
// the capturing thread, allocations other than Stream::allocate() are refused, too; other threads allocate, free and
// wait through the runtime without restriction. Memory freed anywhere while a capture is open is given back when the
// last capture has ended (K10). CUDA code beside the runtime can still end a capture: end() reports it.
// One thread begins and ends the capture; any thread may give it work. Movable. If destroyed without end(), the
// recorded work is discarded; if that happens on another thread than the one that began it, the streams stay captured
// until the beginning thread next uses one of them.
class [[nodiscard]] ISTHMUS_API Capture {
public:
    explicit Capture(std::shared_ptr<detail::Recording> recording) : recording_(std::move(recording)) {}
    Capture(Capture&&) noexcept = default;
    Capture& operator=(Capture&& other) noexcept;
    ~Capture();
    // As Stream::launch(), on the stream that the capture began on or on one that joined it. The arguments of the
    // returned node can be changed in instances of the graph. One more driver query.
    // Errors: as Stream::launch(); invalid_handle (the capture has ended), capture_error (a stream of another capture
    // or of none), invalid_argument (an empty index space, which makes no node).
    template <class Space, class... P, class... A>
    Result<KernelNode<void(Space, P...)>> launch(const Kernel<void(Space, P...)>& kernel,
                                                 typename KernelTraits<void(Space, P...)>::ExtentType extent,
                                                 A&&... arguments) {
        return launch_on(nullptr, kernel, extent, arguments...);
    }
    template <class Space, class... P, class... A>
    Result<KernelNode<void(Space, P...)>> launch(const Stream& stream, const Kernel<void(Space, P...)>& kernel,
                                                 typename KernelTraits<void(Space, P...)>::ExtentType extent,
                                                 A&&... arguments) {
        return launch_on(&stream, kernel, extent, arguments...);
    }
    template <class K, class... A>
    requires(detail::is_no_kernel<K>) Result<void> launch(const K&, detail::AnyExtent, A&&...) {
        return detail::refuse_kernel<Result<void>, K>();
    }
    // Makes a copy of a whole graph a part of this one, in the order of the stream and with the recorded arguments. The
    // new graph holds its buffers, too. (An instance cannot be launched on a captured stream.)
    // Errors: wrong_device, unsupported (a graph that allocates memory), invalid_handle, capture_error, device_lost.
    Result<void> append(const Graph& graph);
    Result<void> append(const Stream& stream, const Graph& graph);
    // loop_while() runs its body while the first element of `word` is not 0; run_if() runs it once if it is not 0. Both
    // are in the order of the stream that the capture began on. The device reads the word when it gets there, and a
    // loop reads it again after each turn: the body must change it, or the launch never ends. A body consists of
    // kernels, copies and fills of one device, for CUDA allows neither host functions nor allocations in it, and one
    // context (CUDA_CONDITIONAL_NODE_PARAMS). The recorded graph then has one instance at a time, cannot be a part of
    // another graph, and update() makes a new instance.
    // The body is a copy of a graph without loops and branches, or what record(inside) records, loops and branches
    // included, to any depth. `inside` is a capture of the body: its launch(), append(), loop_while() and run_if(), and
    // the calls of inside.stream(), which other streams of the device join as they join any capture. `record` returns
    // void or Result<void>; meanwhile the streams of this capture take nothing. Its kernels' nodes cannot be changed by
    // set_arguments().
    // Errors: as append(); unsupported also with a driver before CUDA 12.3, and for a body that calls host functions,
    // allocates, runs on several devices or, as a graph, has loops or branches; wrong_device, not_accessible (word).
    // If `record` fails or its capture cannot end, this capture makes no graph: end() reports that.
    Result<void> loop_while(const TypedBuffer<std::int32_t>& word, const Graph& body);
    Result<void> run_if(const TypedBuffer<std::int32_t>& word, const Graph& body);
    template <std::invocable<Capture&> Record>
    Result<void> loop_while(const TypedBuffer<std::int32_t>& word, Record&& record) {
        return record_body(word.state(), record, true);
    }
    template <std::invocable<Capture&> Record>
    Result<void> run_if(const TypedBuffer<std::int32_t>& word, Record&& record) {
        return record_body(word.state(), record, false);
    }
    // The stream that the capture began on. Errors: invalid_handle (the capture has ended).
    Result<Stream> stream() const;
    // Ends the capture. The graph can be launched on streams of any device that takes part in it.
    // Errors: capture_error (a stream that joined did not come back, and is named by its id; the capture was lost; or
    // this thread did not begin the capture, which then stays open), invalid_handle (ended or moved from).
    Result<Graph> end();

private:
    template <class Space, class... P, class... A>
    Result<KernelNode<void(Space, P...)>> launch_on(const Stream* stream, const Kernel<void(Space, P...)>& kernel,
                                                    typename KernelTraits<void(Space, P...)>::ExtentType extent,
                                                    A&... arguments) {
        using Check = detail::CheckArguments<void(Space, P...), A&...>;
        if constexpr (Check::value) {
            Result<detail::NodeName> name = detail::with_packed<P...>(
                [&](void* pack, const detail::LaunchArgument* described, std::size_t count) {
                    return launch_packed(stream, {}, kernel.info(), KernelTraits<void(Space, P...)>::extent(extent),
                                         pack, described, count);
                },
                arguments...);
            if (!name) return std::move(name).error();
            return KernelNode<void(Space, P...)>(*name);
        } else {
            return detail::refuse_launch<Result<KernelNode<void(Space, P...)>>, Check::found.mistake,
                                         Check::found.argument>();
        }
    }
    Result<detail::NodeName> launch_packed(const Stream* stream, const LaunchOptions& options, const KernelInfo& kernel,
                                           const Extent& extent, void* pack, const detail::LaunchArgument* arguments,
                                           std::size_t count);
    Result<void> append_conditional(const std::shared_ptr<detail::BufferState>& word, const Graph& body, bool loops);
    template <class Record>
    Result<void> record_body(const std::shared_ptr<detail::BufferState>& word, Record& record, bool loops) {
        Result<Capture> inside = begin_body(word, loops);
        if (!inside) return std::move(inside).error();
        if constexpr (std::is_void_v<std::invoke_result_t<Record&, Capture&>>) {
            record(*inside);
        } else if (Result<void> recorded = record(*inside); !recorded) {
            return recorded;  // the end of `inside` spoils this capture
        }
        return end_body(*inside, word);
    }
    Result<Capture> begin_body(const std::shared_ptr<detail::BufferState>& word, bool loops);
    Result<void> end_body(Capture& inside, const std::shared_ptr<detail::BufferState>& word);
    std::shared_ptr<detail::Recording> recording_;
};

}  // namespace v0
}  // namespace isthmus
