// SPDX-License-Identifier: Apache-2.0
// Buffer: queries, host views and release.
#include <isthmus/buffer.hpp>

#include "access_rules.hpp"
#include "buffer_state.hpp"
#include "device_state.hpp"
#include "export_rules.hpp"
#include "memory_errors.hpp"

#include <array>

namespace isthmus {
inline namespace v0 {

BufferBase::BufferBase(std::shared_ptr<detail::BufferState> state)
    : state_(std::move(state)), bytes_(state_ ? state_->memory->bytes : 0) {}
MemoryKind BufferBase::kind() const noexcept {
    return state_ ? state_->memory->kind : MemoryKind::unknown;
}
MemoryKind BufferBase::host_kind() const noexcept {
    return state_ ? state_->memory->host_kind : MemoryKind::unknown;
}
LaunchPath BufferBase::path() const noexcept {
    return state_ ? state_->memory->path : LaunchPath::refuse;
}
std::string_view BufferBase::explain() const noexcept {
    return state_ ? state_->reason() : std::string_view();
}
std::uint64_t BufferBase::device_address() const noexcept {
    if (!state_) return 0;
    state_->memory.exposed.store(true, std::memory_order_relaxed);  // other code may use it behind the runtime's back
    return state_->memory->device_address;
}
PlacementReport BufferBase::placement() const {
    // In a forked child nothing is asked: another thread of the parent may have held the ledger's lock.
    const bool known = state_ && !state_->device->config->forked();
    return known ? state_->device->books->ledger.placement(state_->blocks().block().id) : PlacementReport{};
}
std::uint64_t BufferBase::staged_bytes() const noexcept {
    const detail::BufferSides* const sides = state_ ? state_->sides() : nullptr;
    return sides != nullptr ? sides->copied_bytes() : 0;
}

AccessAnswer BufferBase::can_export() const noexcept {
    if (!state_) return {Verdict::no, "the buffer is empty, moved from or released", "ask about a live buffer"};
    const bool foreign = state_->blocks().users_id() != 0 || state_->memory->adopted;
    return rules::exportable(state_->memory->kind, state_->memory->shared ? rules::ExportOrigin::shared
                                                   : foreign              ? rules::ExportOrigin::foreign
                                                                          : rules::ExportOrigin::own);
}
AccessAnswer detail::view_export() noexcept {
    return rules::exportable(MemoryKind::unknown, rules::ExportOrigin::view);
}

BufferBase& BufferBase::operator=(BufferBase&& other) noexcept {
    if (this != &other) {
        state_ = std::move(other.state_);
        bytes_ = other.bytes_;
    }
    return *this;
}
BufferBase::~BufferBase() = default;

void BufferBase::size_changed() noexcept {
    bytes_ = state_ ? state_->memory->bytes : 0;
}

namespace detail {
namespace {

// The driver calls that a release needs: [0] the device side, [1] the host side.
std::array<rules::DriverUse, 2> uses_of_release(const BufferState& buffer) {
    constexpr rules::DriverUse none = rules::DriverUse::free_host;
    const auto own = [](MemoryKind kind) { return kind == MemoryKind::unknown ? none : rules::freeing(kind); };
    if (!buffer.memory->adopted) return {own(buffer.memory->kind), own(buffer.memory->host_kind)};
    // Foreign memory is not freed.
    return {buffer.staged() ? own(buffer.memory->kind) : none,
            buffer.memory->registered_here ? rules::DriverUse::unregister_host : none};
}

// true: defer the release until the open captures have ended (K10). Called after begin_release(): no new use begins.
Result<bool> may_be_put_off(const BufferState& buffer) {
    if (buffer.in_graphs()) return make_error<errors::releasing_buffer_of_graph>();
    for (const rules::DriverUse use : uses_of_release(buffer)) {
        if (Result<void> fine = buffer.device->services.allow(use, "releasing a buffer"); !fine) return fine.error();
    }
    return buffer.device->books->captures.any();
}

}  // namespace
}  // namespace detail

Result<void> BufferBase::release(Wait wait) {
    if (!state_) return make_error<errors::call_on_empty_buffer>("release");
    detail::BufferState& buffer = *state_;
    if (buffer.device->bars(rules::PublicCall::release_buffer)) {
        return buffer.device->refusal(rules::PublicCall::release_buffer);
    }
    if (Result<void> begun = buffer.begin_release(); !begun) return begun;
    Result<bool> put_off = detail::may_be_put_off(buffer);
    Result<std::shared_ptr<detail::StreamState>> after = std::shared_ptr<detail::StreamState>();
    if (put_off && !*put_off && buffer.device->usable()) {
        after = buffer.part_with_uses(wait);
        if (!after && !buffer.device->is_lost()) put_off = after.error();  // the caller keeps the buffer and may retry
    }
    if (!put_off || *put_off) {
        buffer.views.release_failed();
        if (!put_off) return std::move(put_off).error();
        state_.reset();
        return {};
    }
    Result<void> freed = buffer.give_back(after ? *after : nullptr);
    if (freed) {
        state_.reset();
    } else {
        buffer.views.release_failed();  // the caller keeps the buffer and may retry
    }
    return freed;
}

Result<BufferBase::OpenedView> BufferBase::open_view(HostUse use, Wait wait) const {
    if (!state_) return make_error<errors::call_on_empty_buffer>("opening a host view");
    if (use == HostUse::salvage) {
        Result<detail::ViewScope> salvaged = detail::open_salvage(*state_);
        if (!salvaged) return std::move(salvaged).error();
        return OpenedView{std::move(salvaged).value(), state_->memory->host};
    }
    const ArgumentUse how = use == HostUse::read    ? ArgumentUse::read
                            : use == HostUse::write ? ArgumentUse::write
                                                    : ArgumentUse::read_write;
    Result<detail::ViewScope> scope = detail::open_with_care(*state_, how, wait);
    if (!scope) return std::move(scope).error();
    return OpenedView{std::move(scope).value(), state_->memory->host};
}

Result<detail::ConcurrentScope> BufferBase::open_concurrent(Wait wait) const {
    if (!state_) return make_error<errors::call_on_empty_buffer>("opening a concurrent view");
    return detail::open_concurrent(state_, wait);
}

}  // namespace v0
}  // namespace isthmus
