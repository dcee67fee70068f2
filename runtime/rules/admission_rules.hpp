// The gate: which public calls a runtime takes after fork(), inside a host function and on a lost device. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace isthmus::rules {

// Public calls, and the steps of one that are barred differently: `ask_known_event` needs no driver, `ask_event` does.
enum class PublicCall : std::uint8_t {
    admit_ring_reader,
    adopt,
    advise,
    allocate,
    allocate_host,
    append_to_capture,
    ask_event,
    ask_known_event,
    ask_mapping_access,
    ask_memory_properties,
    ask_native_stream,
    ask_stream,
    ask_stream_priority,
    begin_capture,
    begin_ring_frame,
    call_on_host,
    change_mapping,
    copy,
    copy_pageable,
    create_event,
    create_pool,
    create_stream,
    end_buffer,
    end_capture,
    export_event,
    export_host_memory,
    export_legacy_memory,
    export_memory,
    export_physical_memory,
    fill,
    finish_ring_frame,
    free_memory,
    import_event,
    launch,
    launch_graph,
    load_kernel,
    make_current,
    make_growable,
    make_mirrored,
    mark_stream,
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
    salvage,
    set_graph_kernel,
    start_service,
    stop_service,
    switch_peer_access,
    synchronize,
    take_pool,
    take_ring_frame,
    update_graph,
    use_graph,
    use_pool,
    wait_for_event,
    wait_for_known_event,
    wait_for_mailbox,
    wait_for_stream,
    wrap_stream,
};
inline constexpr int public_call_count = 67;

struct CallRule {
    PublicCall call;
    std::string_view subject;  // of a refusal: "recording an event was refused: …"
    bool on_lost_device;       // taken although the device reported a fault (R2)
    bool in_host_function;     // taken although the thread runs a host function (S20)
};

// Each call in the order of the enumeration. No call is taken after fork() (R3).
inline constexpr std::array<CallRule, public_call_count> call_rules{{
    {PublicCall::admit_ring_reader, "admitting a reader to a shared frame ring", true, true},
    {PublicCall::adopt, "adopting memory", false, false},
    {PublicCall::advise, "advice", false, false},
    {PublicCall::allocate, "an allocation", false, false},
    {PublicCall::allocate_host, "an allocation", true, false},
    {PublicCall::append_to_capture, "appending to a capture", false, false},
    {PublicCall::ask_event, "asking an event", false, false},
    {PublicCall::ask_known_event, "asking an event", true, true},
    {PublicCall::ask_mapping_access, "asking who is let in", false, false},
    {PublicCall::ask_memory_properties, "asking for properties of memory", false, false},
    {PublicCall::ask_native_stream, "asking for a driver's stream", false, false},
    {PublicCall::ask_stream, "asking how far a stream has come", false, false},
    {PublicCall::ask_stream_priority, "asking for a stream's priority", false, false},
    {PublicCall::begin_capture, "beginning a capture", false, false},
    {PublicCall::begin_ring_frame, "beginning a frame of a shared ring", true, true},
    {PublicCall::call_on_host, "calling a host function", false, false},
    {PublicCall::change_mapping, "changing mapped memory", false, false},
    {PublicCall::copy, "a copy", false, false},
    {PublicCall::copy_pageable, "a copy of pageable memory", false, false},
    {PublicCall::create_event, "creating an event", false, false},
    {PublicCall::create_pool, "creating a pool", false, false},
    {PublicCall::create_stream, "creating a stream", false, false},
    {PublicCall::end_buffer, "releasing a buffer", true, true},
    {PublicCall::end_capture, "ending a capture", true, true},
    {PublicCall::export_event, "exporting an event", false, false},
    {PublicCall::export_host_memory, "exporting memory", true, false},
    {PublicCall::export_legacy_memory, "exporting memory by an older handle", false, false},
    {PublicCall::export_memory, "exporting memory", false, false},
    {PublicCall::export_physical_memory, "exporting physical memory", false, false},
    {PublicCall::fill, "a fill", false, false},
    {PublicCall::finish_ring_frame, "finishing a frame of a shared ring", true, true},
    {PublicCall::free_memory, "releasing memory", true, true},
    {PublicCall::import_event, "importing an event", false, false},
    {PublicCall::launch, "launching a kernel", false, false},
    {PublicCall::launch_graph, "launching a graph", false, false},
    {PublicCall::load_kernel, "loading a kernel", false, false},
    {PublicCall::make_current, "making a stream the current one", false, false},
    {PublicCall::make_growable, "making a growable buffer", true, false},
    {PublicCall::make_mirrored, "making a mirrored ring", true, false},
    {PublicCall::mark_stream, "marking a stream", false, false},
    {PublicCall::open_view, "opening a host view", true, false},
    {PublicCall::pool_access, "letting a device into a pool", false, false},
    {PublicCall::prefetch, "a prefetch", false, false},
    {PublicCall::read_back, "reading a buffer back", false, false},
    {PublicCall::read_back_host_side, "reading a buffer back", true, true},
    {PublicCall::read_device_side, "reading what the device computed", false, false},
    {PublicCall::read_elapsed_time, "reading elapsed time", false, false},
    {PublicCall::read_known_elapsed_time, "reading elapsed time", true, true},
    {PublicCall::record_event, "recording an event", false, false},
    {PublicCall::release_buffer, "releasing a buffer", true, false},
    {PublicCall::release_memory, "releasing memory", true, false},
    {PublicCall::salvage, "salvaging a buffer", true, false},
    {PublicCall::set_graph_kernel, "setting the arguments of a graph's kernel", false, false},
    {PublicCall::start_service, "a service", false, false},
    {PublicCall::stop_service, "stopping a service", true, true},
    {PublicCall::switch_peer_access, "switching access between devices", false, false},
    {PublicCall::synchronize, "a synchronisation", false, false},
    {PublicCall::take_pool, "taking a device's pool", false, false},
    {PublicCall::take_ring_frame, "taking a frame of a shared ring", true, true},
    {PublicCall::update_graph, "updating a graph instance", false, false},
    {PublicCall::use_graph, "using a graph", false, false},
    {PublicCall::use_pool, "using a pool", false, false},
    {PublicCall::wait_for_event, "waiting for an event", false, false},
    {PublicCall::wait_for_known_event, "waiting for an event", true, true},
    {PublicCall::wait_for_mailbox, "waiting for a mailbox", false, false},
    {PublicCall::wait_for_stream, "waiting for a stream", false, false},
    {PublicCall::wrap_stream, "wrapping a stream", false, false},
}};
constexpr const CallRule& rule_of(PublicCall call) noexcept {
    return call_rules[static_cast<std::size_t>(call)];
}

// Of the device and the calling thread, at the moment of the call.
struct Circumstances {
    bool forked = false;         // the runtime was opened before fork(), and this is the child
    bool host_function = false;  // the thread runs a host function of some stream
    bool lost = false;           // the device reported a fault from which the driver does not recover
};

enum class Bar : std::uint8_t { none, forked, host_function, lost };
// The first reason in this order, because the ones before it make the later questions meaningless.
constexpr Bar bar_of(PublicCall call, Circumstances now) noexcept {
    const CallRule& rule = rule_of(call);
    if (now.forked) return Bar::forked;
    if (now.host_function && !rule.in_host_function) return Bar::host_function;
    if (now.lost && !rule.on_lost_device) return Bar::lost;
    return Bar::none;
}

}  // namespace isthmus::rules
