// SPDX-License-Identifier: Apache-2.0
// Device: access queries, and switching peer access.
#include <isthmus/device.hpp>

#include "access_rules.hpp"
#include "buffer_state.hpp"
#include "device_state.hpp"
#include "launch_access.hpp"
#include "memory_errors.hpp"

#include <mutex>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace {

AccessAnswer empty_buffer() {
    return {Verdict::not_verified, "the buffer is empty, moved from or released", "ask about a live buffer"};
}

template <const auto& Entry>
Error not_switched(const Device& device, const Device& owner) {
    return make_error<Entry>(named(*device.state()), named(*owner.state()));
}

// What the runtime knows of the pair; makes no driver call.
rules::GrantFacts grant_facts(const Device& device, const Device& owner, rules::Grant what) {
    rules::GrantFacts facts;
    facts.same_runtime = device.state()->books == owner.state()->books;
    facts.same_device = device.state() == owner.state();
    facts.with_cpu = device.is_cpu() || owner.is_cpu();
    facts.can_switch = device.state()->driver->transfers() != nullptr;
    facts.owner_has_pools = owner.capabilities().has(Feature::pools);
    if (facts.same_runtime) {
        const rules::PeerState state = device.state()->books->peers.state(device.index(), owner.index());
        facts.enabled = what == rules::Grant::pool ? state.pool_access : state.peer_access;
    }
    return facts;
}

// Refuses device pairs without switchable peer access; makes no driver call.
Result<void> switchable(const Device& device, const Device& owner) {
    switch (rules::grant_bar(rules::Grant::peer, grant_facts(device, owner, rules::Grant::peer))) {
        case rules::GrantBar::runtime: return not_switched<errors::peer_access_between_runtimes>(device, owner);
        case rules::GrantBar::same_device: return not_switched<errors::peer_access_to_itself>(device, owner);
        case rules::GrantBar::cpu: return not_switched<errors::peer_access_with_cpu>(device, owner);
        case rules::GrantBar::no_calls: return not_switched<errors::peer_access_without_driver_calls>(device, owner);
        default: return {};
    }
}

AccessAnswer grantable(const Device& device, const Device& owner, rules::Grant what) {
    rules::GrantFacts facts = grant_facts(device, owner, what);
    detail::DeviceState& asked = *device.state();
    if (rules::grant_bar(what, facts) == rules::GrantBar::link_unasked &&
        !asked.bars(rules::PublicCall::ask_peer_access)) {
        bool reaches = false;
        const platform::Status status =
            asked.driver->transfers()->can_reach(owner.state()->driver->facts().ordinal, reaches);
        if (status.ok()) facts.link = reaches ? rules::GrantFacts::Link::direct : rules::GrantFacts::Link::none;
        if (!status.ok()) (void)asked.failure(status, "asking whether one device reaches another");  // may latch a loss
    }
    return rules::grant_answer(what, facts);
}

}  // namespace

bool Device::owns(const BufferBase& buffer) const noexcept {
    return buffer && buffer.state()->device == state_;
}

AccessAnswer Device::can_access(const BufferBase& buffer) const {
    return buffer ? detail::buffer_access(*state_, *buffer.state()) : empty_buffer();
}

AccessAnswer Device::can_access(const void* address, std::size_t bytes) const {
    return detail::range_access(*state_, reinterpret_cast<std::uintptr_t>(address), bytes);
}

AccessAnswer Device::can_access(const Device& other) const {
    if (other.state_->books != state_->books) {
        return {Verdict::not_verified, "the devices belong to two runtimes, which know nothing of each other",
                "open one Runtime and take both devices from it"};
    }
    const bool from_pool = other.current_allocator() == other.allocator(MemoryKind::pool);
    return rules::pair_access(capabilities(), other.capabilities(), other.state_ == state_,
                              from_pool ? MemoryKind::pool : MemoryKind::device,
                              state_->books->peers.state(index(), other.index()));
}

AccessAnswer Device::view_access(const detail::ViewScope& scope) const {
    const detail::BufferState* const buffer = scope.buffer();
    return buffer != nullptr ? detail::buffer_access(*state_, *buffer) : empty_buffer();
}

AccessAnswer Device::combined(const AccessAnswer* parts, std::size_t count) const {
    return rules::combine({parts, count});
}

Result<void> Device::switch_peer(const Device& owner, bool allowed) {
    if (Result<void> possible = switchable(*this, owner); !possible) return possible;
    if (state_->bars(rules::PublicCall::switch_peer_access))
        return state_->refusal(rules::PublicCall::switch_peer_access);
    detail::Books& books = *state_->books;
    const auto is_so = [&] { return books.peers.state(index(), owner.index()).peer_access == allowed; };
    if (is_so()) return {};
    // Keeps services from starting on either device. Before the lock: code that waited for an ended service may switch
    // access too.
    const Result<std::vector<detail::CallInFlight>> calls =
        detail::enter_all({&state_->services, &owner.state_->services}, rules::DriverUse::switch_peer_access,
                          "switching access between devices");
    if (!calls) return calls.error();
    const std::lock_guard lock(books.launches.switching_peers);
    if (is_so()) return {};
    platform::Transfers& transfers = *state_->driver->transfers();
    const int ordinal = owner.state_->driver->facts().ordinal;
    bool reachable = false;
    if (allowed) {
        const platform::Status status = transfers.can_reach(ordinal, reachable);
        if (!status.ok()) return state_->failure(status, "asking whether one device reaches another");
        if (!reachable) return not_switched<errors::peer_access_without_link>(*this, owner);
    }
    const platform::Status status = transfers.set_peer_access(ordinal, allowed);
    if (!status.ok()) return state_->failure(status, "switching access between devices");
    books.peers.record_peer(index(), owner.index(), allowed);
    return {};
}

AccessAnswer Device::can_enable_peer_access(const Device& owner) const {
    return grantable(*this, owner, rules::Grant::peer);
}
AccessAnswer Device::can_enable_pool_access(const Device& owner) const {
    return grantable(*this, owner, rules::Grant::pool);
}

Result<void> Device::enable_peer_access(const Device& owner) {
    return switch_peer(owner, true);
}
Result<void> Device::disable_peer_access(const Device& owner) {
    return switch_peer(owner, false);
}

}  // namespace v0
}  // namespace isthmus
