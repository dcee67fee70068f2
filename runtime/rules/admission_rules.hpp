// SPDX-License-Identifier: Apache-2.0
// The gate: which public calls a runtime accepts after fork(), inside a host function, work of other code or another
// call, on a lost device, while a capture is open, while a service runs and in a sealed scope. Pure.
#pragma once

#include <isthmus/sealed_act.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace isthmus::rules {

// Public calls, and the steps of one call that are barred differently: `ask_known_event` needs no driver, `ask_event`
// does.
enum class PublicCall : std::uint8_t {
    admit_ring_reader,
    adopt,
    adopt_descriptor,
    advise,
    allocate,
    allocate_host,
    append_to_capture,
    ask_advice,
    ask_event,
    ask_known_event,
    ask_mapping_access,
    ask_memory_properties,
    ask_native_event,
    ask_native_stream,
    ask_peer_access,
    ask_stream,
    ask_stream_priority,
    begin_capture,
    begin_ring_frame,
    call_on_host,
    change_mapping,
    close_native_scope,
    copy,
    copy_pageable,
    create_event,
    create_pool,
    create_stream,
    discard,
    end_buffer,
    end_capture,
    enqueue_native,
    export_dma_buf,
    export_event,
    export_host_memory,
    export_legacy_memory,
    export_memory,
    export_physical_memory,
    fill,
    finish_ring_frame,
    free_memory,
    grow_host_memory,
    import_event,
    launch,
    launch_graph,
    load_kernel,
    load_module,
    make_current,
    create_growable,
    create_mirrored,
    mark_stream,
    open_native_scope,
    open_view,
    pool_access,
    prefetch,
    read_back,
    read_back_host_side,
    read_device_side,
    read_elapsed_time,
    read_known_elapsed_time,
    record_event,
    release_buffer,
    release_memory,
    release_module,
    salvage,
    set_graph_kernel,
    start_service,
    stop_service,
    switch_peer_access,
    synchronize,
    synchronize_device,
    take_pool,
    take_ring_frame,
    trim_host_memory,
    trim_mapped_memory,
    unbind,
    unmap,
    update_graph,
    use_graph,
    use_module,
    use_pool,
    wait_for_event,
    wait_for_known_event,
    wait_for_mailbox,
    wait_for_native_event,
    wait_for_stream,
    wrap_stream,
};
inline constexpr int public_call_count = 86;

// How a call is treated under a circumstance that many calls ignore, or that matters only for some of their arguments.
enum class Ruling : std::uint8_t {
    taken,
    refused,
    refused_on_gpu,    // taken on the CPU device, where no driver is called
    refused_anywhere,  // refused also because of other threads' captures
    judged,            // the call, or a step of it, decides: it depends on the stream, the event or the memory
};

// What a call needs that a sealed scope refuses (T2).
enum class Sealed : std::uint8_t {
    taken,   // nothing, once its loop runs steadily
    judged,  // a step of the call decides: what was prepared is there, or has to be made
    heap,
    memory,
    registration,
    mapping,
    code,
    object,
    system,
};
constexpr bool refused_sealed(Sealed needs) noexcept {
    return needs != Sealed::taken && needs != Sealed::judged;
}
// Of a need that is refused.
constexpr SealedAct act_of(Sealed needs) noexcept {
    switch (needs) {
        case Sealed::memory: return SealedAct::allocate_memory;
        case Sealed::registration: return SealedAct::register_memory;
        case Sealed::mapping: return SealedAct::map_memory;
        case Sealed::code: return SealedAct::load_code;
        case Sealed::object: return SealedAct::make_object;
        case Sealed::system: return SealedAct::enter_system;
        default: return SealedAct::use_heap;
    }
}

struct CallRule {
    PublicCall call;
    std::string_view subject;   // of a refusal: "recording an event was refused: …"
    bool on_lost_device;        // accepted although the device reported a fault (R2)
    bool in_host_function;      // accepted although the thread runs a host function (S20), or holds a stream;
                                // not in work of other code (W5)
    Ruling in_capture;          // while the thread has a capture open, which most driver calls would invalidate (K13)
    Ruling while_service_runs;  // while a service runs on the device: the call would wait for its end
    Sealed sealed;              // in a sealed scope: what it would do there
};

// All calls in the order of the enumeration. No call is accepted after fork() (R3).
inline constexpr std::array<CallRule, public_call_count> call_rules = [] {
    using C = PublicCall;
    using enum Ruling;
    return std::array<CallRule, public_call_count>{{
        // call, subject, on_lost_device, in_host_function, in_capture, while_service_runs, sealed
        {C::admit_ring_reader, "admitting a reader to a shared frame ring", true, true, taken, taken, Sealed::mapping},
        {C::adopt, "adopting memory", false, false, refused_on_gpu, judged, Sealed::registration},
        {C::adopt_descriptor, "adopting memory", false, false, refused_on_gpu, judged, Sealed::registration},
        {C::advise, "advice", false, false, taken, taken, Sealed::system},
        {C::allocate, "an allocation", false, false, judged, judged, Sealed::judged},
        {C::allocate_host, "an allocation", true, false, taken, taken, Sealed::judged},
        {C::append_to_capture, "appending to a capture", false, false, taken, judged, Sealed::object},
        {C::ask_advice, "asking for advice in force", false, false, taken, taken, Sealed::system},
        {C::ask_event, "asking an event", false, false, judged, taken, Sealed::taken},
        {C::ask_known_event, "asking an event", true, true, judged, taken, Sealed::taken},
        {C::ask_mapping_access, "asking who is let in", false, false, taken, taken, Sealed::system},
        {C::ask_memory_properties, "asking for properties of memory", false, false, taken, taken, Sealed::system},
        {C::ask_native_event, "asking for a driver's event", false, false, taken, taken, Sealed::judged},
        {C::ask_native_stream, "asking for a driver's stream", false, false, taken, taken, Sealed::judged},
        {C::ask_peer_access, "asking whether access can be enabled", false, false, taken, taken, Sealed::system},
        {C::ask_stream, "asking how far a stream has come", false, false, taken, taken, Sealed::taken},
        {C::ask_stream_priority, "asking for a stream's priority", false, false, taken, taken, Sealed::taken},
        {C::begin_capture, "beginning a capture", false, false, judged, taken, Sealed::object},
        {C::begin_ring_frame, "beginning a frame of a shared ring", true, true, taken, taken, Sealed::taken},
        {C::call_on_host, "calling a host function", false, false, judged, taken, Sealed::heap},
        {C::change_mapping, "changing mapped memory", false, false, refused, judged, Sealed::mapping},
        {C::close_native_scope, "closing a native scope", false, false, taken, taken, Sealed::taken},
        {C::copy, "a copy", false, false, judged, judged, Sealed::judged},
        {C::copy_pageable, "a copy of pageable memory", false, false, judged, judged, Sealed::judged},
        {C::create_event, "creating an event", false, false, taken, taken, Sealed::judged},
        {C::create_pool, "creating a pool", false, false, refused_on_gpu, taken, Sealed::object},
        {C::create_stream, "creating a stream", false, false, taken, taken, Sealed::object},
        {C::discard, "a discard", false, false, judged, taken, Sealed::taken},
        {C::end_buffer, "releasing a buffer", true, true, taken, taken, Sealed::taken},
        {C::end_capture, "ending a capture", true, true, taken, taken, Sealed::taken},
        {C::enqueue_native, "work of other code", false, false, taken, taken, Sealed::taken},
        {C::export_dma_buf, "exporting memory as a dma-buf", false, false, taken, taken, Sealed::system},
        {C::export_event, "exporting an event", false, false, taken, taken, Sealed::object},
        {C::export_host_memory, "exporting memory", true, false, taken, taken, Sealed::system},
        {C::export_legacy_memory, "exporting memory by an older handle", false, false, taken, taken, Sealed::system},
        {C::export_memory, "exporting memory", false, false, taken, taken, Sealed::system},
        {C::export_physical_memory, "exporting physical memory", false, false, taken, taken, Sealed::system},
        {C::fill, "a fill", false, false, judged, taken, Sealed::taken},
        {C::finish_ring_frame, "finishing a frame of a shared ring", true, true, taken, taken, Sealed::taken},
        {C::free_memory, "releasing memory", true, true, taken, taken, Sealed::taken},
        {C::grow_host_memory, "growing a buffer", true, false, taken, taken, Sealed::mapping},
        {C::import_event, "importing an event", false, false, taken, taken, Sealed::object},
        {C::launch, "launching a kernel", false, false, judged, judged, Sealed::judged},
        {C::launch_graph, "launching a graph", false, false, judged, taken, Sealed::taken},
        {C::load_kernel, "loading a kernel", false, false, taken, judged, Sealed::judged},
        {C::load_module, "loading a module", false, false, taken, judged, Sealed::code},
        {C::make_current, "making a stream the current one", false, false, taken, taken, Sealed::taken},
        {C::create_growable, "making a growable buffer", false, false, refused_on_gpu, judged, Sealed::mapping},
        {C::create_mirrored, "making a mirrored buffer", false, false, refused_on_gpu, judged, Sealed::mapping},
        {C::mark_stream, "marking a stream", false, false, judged, taken, Sealed::judged},
        {C::open_native_scope, "opening a native scope", false, false, judged, taken, Sealed::judged},
        {C::open_view, "opening a host view", true, false, taken, taken, Sealed::judged},
        {C::pool_access, "letting a device into a pool", false, false, taken, taken, Sealed::system},
        {C::prefetch, "a prefetch", false, false, judged, taken, Sealed::taken},
        {C::read_back, "reading a buffer back", false, false, taken, judged, Sealed::judged},
        {C::read_back_host_side, "reading a buffer back", true, true, refused, taken, Sealed::taken},
        {C::read_device_side, "reading what the device computed", false, false, taken, taken, Sealed::judged},
        {C::read_elapsed_time, "reading elapsed time", false, false, judged, taken, Sealed::taken},
        {C::read_known_elapsed_time, "reading elapsed time", true, true, judged, taken, Sealed::taken},
        {C::record_event, "recording an event", false, false, judged, taken, Sealed::judged},
        {C::release_buffer, "releasing a buffer", true, false, taken, judged, Sealed::taken},
        {C::release_memory, "releasing memory", true, false, taken, taken, Sealed::taken},
        {C::release_module, "releasing a module", true, false, refused_anywhere, judged, Sealed::code},
        {C::salvage, "salvaging a buffer", true, false, taken, taken, Sealed::taken},
        {C::set_graph_kernel, "setting the arguments of a graph's kernel", false, false, taken, judged, Sealed::judged},
        {C::start_service, "a service", false, false, taken, judged, Sealed::object},
        {C::stop_service, "stopping a service", true, true, taken, taken, Sealed::taken},
        {C::switch_peer_access, "switching access between devices", false, false, taken, judged, Sealed::mapping},
        {C::synchronize, "a synchronisation", false, false, judged, judged, Sealed::taken},
        {C::synchronize_device, "a synchronisation", false, false, taken, refused, Sealed::taken},
        {C::take_pool, "taking a device's pool", false, false, judged, taken, Sealed::object},
        {C::take_ring_frame, "taking a frame of a shared ring", true, true, taken, taken, Sealed::taken},
        {C::trim_host_memory, "trimming a buffer", true, false, refused_anywhere, taken, Sealed::system},
        {C::trim_mapped_memory, "trimming a buffer", false, false, refused_anywhere, judged, Sealed::mapping},
        {C::unbind, "unbinding memory of a multicast object", false, false, refused_anywhere, judged, Sealed::mapping},
        {C::unmap, "unmapping memory", false, false, refused_anywhere, judged, Sealed::mapping},
        {C::update_graph, "updating a graph instance", false, false, taken, taken, Sealed::object},
        {C::use_graph, "using a graph", false, false, taken, taken, Sealed::taken},
        {C::use_module, "finding a kernel or a variable of a module", false, false, taken, judged, Sealed::code},
        {C::use_pool, "using a pool", false, false, taken, taken, Sealed::system},
        {C::wait_for_event, "waiting for an event", false, false, judged, taken, Sealed::taken},
        {C::wait_for_known_event, "waiting for an event", true, true, judged, taken, Sealed::taken},
        {C::wait_for_mailbox, "waiting for a mailbox", false, false, taken, taken, Sealed::taken},
        {C::wait_for_native_event, "waiting for an event of other code", false, false, judged, taken, Sealed::taken},
        {C::wait_for_stream, "waiting for a stream", false, false, judged, judged, Sealed::judged},
        {C::wrap_stream, "wrapping a stream", false, false, taken, taken, Sealed::object},
    }};
}();
constexpr const CallRule& rule_of(PublicCall call) noexcept {
    return call_rules[static_cast<std::size_t>(call)];
}

// State of the device and of the calling thread at the time of the call.
struct Circumstances {
    bool after_fork = false;         // the runtime was opened before fork(), and this is the child
    bool in_host_function = false;   // the thread runs a host function of some stream
    bool device_lost = false;        // the device reported a fault after which the driver does not recover
    bool cpu_device = false;         // the call is for the CPU device
    bool capture_here = false;       // the thread has a capture open
    bool capture_elsewhere = false;  // another thread of this runtime has a capture open
    bool service_runs = false;       // a service runs on the device
    bool holds_stream = false;       // the thread holds a stream's lock: a signal handler, or a callback below a call
    bool in_native_work = false;     // the thread runs work of other code, which counts as a host function, too
    bool in_sealed_scope = false;    // of the thread or of the runtime, and it refuses

    constexpr bool forked() const noexcept { return after_fork; }
    constexpr bool host_function() const noexcept { return in_host_function || in_native_work; }
    constexpr bool native_work() const noexcept { return in_native_work; }
    constexpr bool taken_thread() const noexcept { return host_function() || holds_stream; }
    constexpr bool lost() const noexcept { return device_lost; }
    constexpr bool on_cpu() const noexcept { return cpu_device; }
    constexpr bool captured_here() const noexcept { return capture_here; }
    constexpr bool captured() const noexcept { return capture_here || capture_elsewhere; }
    constexpr bool serving() const noexcept { return service_runs; }
    constexpr bool sealed(const CallRule&) const noexcept { return in_sealed_scope; }
};

enum class Bar : std::uint8_t {
    none,
    forked,
    host_function,
    inside_call,
    lost,
    capture,
    capture_elsewhere,
    service,
    sealed,
};
// The first bar in this order: the earlier ones make the later questions meaningless. `now` answers as Circumstances
// does, and is asked only what the call's rule depends on. With a constant call the compiler folds the row, and a
// circumstance that the call ignores costs nothing.
template <class Now>
[[gnu::always_inline]] constexpr Bar bar_of(PublicCall call, const Now& now) {
    const CallRule& rule = rule_of(call);
    if (now.forked()) return Bar::forked;
    if (rule.in_host_function ? now.native_work() : now.taken_thread()) {
        return now.host_function() ? Bar::host_function : Bar::inside_call;
    }
    if (!rule.on_lost_device && now.lost()) return Bar::lost;
    const bool minds_captures = rule.in_capture != Ruling::taken && rule.in_capture != Ruling::judged &&
                                !(rule.in_capture == Ruling::refused_on_gpu && now.on_cpu());
    if (minds_captures && now.captured_here()) return Bar::capture;
    if (rule.in_capture == Ruling::refused_anywhere && now.captured()) return Bar::capture_elsewhere;
    if (rule.while_service_runs == Ruling::refused && now.serving()) return Bar::service;
    if (refused_sealed(rule.sealed) && now.sealed(rule)) return Bar::sealed;
    return Bar::none;
}

// Whether the same circumstances bar both calls: one question answers for both.
constexpr bool barred_alike(PublicCall one, PublicCall other) noexcept {
    const auto minds = [](Ruling ruling) { return ruling != Ruling::taken && ruling != Ruling::judged; };
    const auto same = [&](Ruling left, Ruling right) { return left == right || (!minds(left) && !minds(right)); };
    const CallRule& left = rule_of(one);
    const CallRule& right = rule_of(other);
    return left.on_lost_device == right.on_lost_device && left.in_host_function == right.in_host_function &&
           same(left.in_capture, right.in_capture) && same(left.while_service_runs, right.while_service_runs) &&
           refused_sealed(left.sealed) == refused_sealed(right.sealed);
}
// Stream::record() without an event asks once.
static_assert(barred_alike(PublicCall::create_event, PublicCall::record_event));

}  // namespace isthmus::rules
