// SPDX-License-Identifier: Apache-2.0
// Opening and closing a buffer for the CPU: conflicting views, waits and copies.
#include "buffer_state.hpp"
#include "access_rules.hpp"
#include "core_errors.hpp"
#include "cpu_use.hpp"
#include "device_state.hpp"
#include "told.hpp"
#include "wait_pause.hpp"

#include <isthmus/concurrent_view.hpp>
#include <isthmus/host_view.hpp>

#include <optional>
#include <string>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

Error already_open(const OpenUse& open, const OpenUse& wanted) {
    const Words is_open = rules::text(open.span, "the buffer").append(open.span.whole() ? " is" : " are");
    const Words was_wanted = rules::text(wanted.span, "it").append(wanted.span.whole() ? " was" : " were");
    const std::string_view purpose = rules::purpose(open.use);
    const std::string_view wanted_purpose = rules::purpose(wanted.use);
    if (open.native != nullptr) {
        return make_error<errors::view_beside_native_scope>(was_wanted, wanted_purpose, open.native, purpose);
    }
    if (open.use == ArgumentUse::concurrent || wanted.use == ArgumentUse::concurrent) {
        return make_error<errors::view_beside_concurrent_view>(is_open, purpose, was_wanted, wanted_purpose);
    }
    return make_error<errors::view_beside_another_view>(is_open, purpose, was_wanted, wanted_purpose);
}

// From here on conflicting launches are refused until the scope closes. Expects the buffer's lock.
Result<ViewScope> mark_open(BufferState& buffer, const OpenUse& wanted) {
    if (buffer.views.released()) return buffer.refuse_released("opening a host view");
    if (const OpenUse open = buffer.views.open_against(wanted.use, wanted.span)) return already_open(open, wanted);
    if (buffer.views.full()) return make_error<errors::too_many_views_are_open>(rules::ViewWord::max_readers);
    if (wanted.use == ArgumentUse::concurrent) (void)buffer.make_book();
    buffer.views.open(wanted);
    return ViewScope(buffer, {wanted.use, wanted.span.begin, wanted.span.end});
}

// A concurrent view needs memory that both sides may access at the same time.
Result<void> refuse_unshared(const BufferState& buffer) {
    const AccessAnswer answer = buffer.concurrent_access();
    if (answer) return {};
    return make_error<errors::concurrent_view_of_unshared_memory>(name(buffer.memory->kind), named(*buffer.device),
                                                                  answer.reason, answer.remedy);
}

// Brings the host's side up to date where its content is used.
Result<void> settle_sides(BufferState& buffer, ArgumentUse use, Wait wait) {
    bool stale = false;
    {
        const std::lock_guard lock(buffer.views);
        stale = buffer.sides()->device_newer();
    }
    if (stale && use != ArgumentUse::write) {
        if (buffer.device->bars(rules::PublicCall::read_device_side))
            return buffer.device->refusal(rules::PublicCall::read_device_side);
        if (Result<void> copied = buffer.download(wait); !copied) return copied;
    }
    return {};
}

// Host memory that the driver allocated is gone with a context that other code destroyed: touching it is SIGSEGV.
// Registered and pageable memory belongs to the system.
Result<void> refuse_gone(const BufferState& buffer) {
    const bool the_drivers = buffer.memory->host_kind != MemoryKind::host &&
                             buffer.memory->host_kind != MemoryKind::host_numa &&
                             buffer.memory->host_kind != MemoryKind::registered;
    if (!the_drivers || !buffer.device->is_lost() || !buffer.device->driver->context_died()) return {};
    return make_error<errors::memory_gone_with_context>();
}

std::string_view name_of_view(ArgumentUse claimed) noexcept {
    if (claimed == ArgumentUse::concurrent) return "a concurrent view";
    return rules::writes(claimed) ? "a view for writing" : "a view for reading";
}

ObservedFacts observed(const BufferState& buffer, const rules::ByteSpan& part) noexcept {
    ObservedFacts facts = buffer.observed();
    if (!part.whole()) facts.bytes = part.end - part.begin;
    return facts;
}

void close_untold(BufferState& buffer, const HostClaim& claim) noexcept {
    if (buffer.views.close(claim.use, {claim.begin, claim.end})) end_buffer(&buffer);
}

// Tells of the close before it: the buffer and its device may be gone behind it. All views of an observed runtime and
// of dma-bufs are slow. Out of line and with close_view()'s arguments, so that close_view() needs no stack.
[[gnu::noinline]] void close_slowly(BufferState& buffer, ArgumentUse use, std::size_t begin, std::size_t end) noexcept {
    if (buffer.views.seen().has(rules::ViewWord::slow)) {
        end_cpu_use(buffer, cpu_use_of(use));  // before a launch can find no open view
        if (const Observer& observer = buffer.device->observer()) {
            observer.end(Span::host_view, name_of_view(use), observed(buffer, {begin, end}));
        }
    }
    close_untold(buffer, {use, begin, end});
}

// `running` receives the uses that the view has to wait for.
Result<ViewScope> begin_view(BufferState& buffer, const OpenUse& wanted, BufferState::Running& running) {
    const std::lock_guard lock(buffer.views);
    running = buffer.conflicting_locked(wanted.use, wanted.span);
    Result<ViewScope> scope = mark_open(buffer, wanted);
    if (scope && running.empty() && buffer.opens_at_once()) buffer.views.allow_at_once(buffer.memory->read_only);
    return scope;
}

// open_with_care() without the observer.
Result<ViewScope> open_untold(BufferState& buffer, ArgumentUse asked, ArgumentUse use, Wait wait,
                              const rules::ByteSpan& part) {
    if (asked == ArgumentUse::concurrent) {
        if (Result<void> shared = refuse_unshared(buffer); !shared) return std::move(shared).error();
    }
    const OpenUse wanted{use == ArgumentUse::write ? ArgumentUse::read_write : use,
                         buffer.views.parted() ? part : rules::ByteSpan{}};
    if (buffer.device->bars(rules::PublicCall::open_view)) return buffer.device->refusal(rules::PublicCall::open_view);
    if (Result<void> gone = refuse_gone(buffer); !gone) return std::move(gone).error();
    const bool of_nothing = part.whole() ? buffer.memory->bytes == 0 : part.begin == part.end;
    if (buffer.memory->host == nullptr && !of_nothing) {
        const AccessAnswer answer = rules::host_access(buffer.device->capabilities, buffer.memory->kind);
        return make_error<errors::host_view_of_device_memory>(name(buffer.memory->kind), answer.reason);
    }
    if (rules::writes(use) && buffer.memory->read_only) {
        return make_error<errors::host_write_view_of_read_only_memory>();
    }
    BufferState::Running running;
    Result<ViewScope> scope = begin_view(buffer, wanted, running);
    if (!scope) return scope;
    std::optional<Deadline> deadline;  // only a staged buffer waits several times
    if (buffer.staged()) deadline.emplace(wait, buffer.device->config->wait_timeout);
    Result<void> ready = buffer.wait_for_uses(running, use, wait);
    if (ready && deadline) ready = settle_sides(buffer, use, deadline->left());
    if (ready) ready = begin_cpu_use(buffer, cpu_use_of(wanted.use));
    if (!ready) {
        close_untold(buffer, scope->leave());
        return std::move(ready).error();
    }
    if (deadline && use != ArgumentUse::read) {
        const std::lock_guard lock(buffer.views);
        buffer.sides()->host_writes();
    }
    return scope;
}

Result<ViewScope> salvage_untold(BufferState& buffer) {
    if (buffer.device->bars(rules::PublicCall::salvage)) return buffer.device->refusal(rules::PublicCall::salvage);
    if (Result<void> gone = refuse_gone(buffer); !gone) return std::move(gone).error();
    if (buffer.memory->host == nullptr && buffer.memory->bytes > 0) {
        return make_error<errors::content_lost_with_device>();
    }
    Result<ViewScope> scope = [&] {
        const std::lock_guard lock(buffer.views);
        return mark_open(buffer, {ArgumentUse::read, {}});
    }();
    if (!scope) return scope;
    if (Result<void> begun = begin_cpu_use(buffer, cpu_use_of(ArgumentUse::read)); !begun) {
        close_untold(buffer, scope->leave());
        return std::move(begun).error();
    }
    return scope;
}

}  // namespace

void* open_at_once(BufferState& buffer, bool writes) noexcept {
    const DeviceState& device = *buffer.device;
    if (!device.usable()) return nullptr;  // open_with_care() reports what was lost with the device
    return buffer.views.open_at_once(writes) ? buffer.memory->host : nullptr;
}

Result<ViewScope> open_scope(BufferState& buffer, ArgumentUse asked, Wait wait, const rules::ByteSpan& part) {
    if (part.whole() && asked != ArgumentUse::concurrent) {
        const bool writes = rules::writes(asked);
        if (open_at_once(buffer, writes) != nullptr) {
            return ViewScope(buffer, {writes ? ArgumentUse::read_write : ArgumentUse::read});
        }
    }
    return open_with_care(buffer, asked, wait, part);
}

Result<ViewScope> open_with_care(BufferState& buffer, ArgumentUse asked, Wait wait, const rules::ByteSpan& part) {
    const ArgumentUse use = rules::claimed_use(asked, buffer.memory->path, part);
    ObservedSpan span(buffer.device->observer(), Span::host_view, name_of_view(use),
                      [&] { return observed(buffer, part); });
    if (span.facts() != nullptr) tell_view(buffer, asked, part);
    Result<ViewScope> opened = open_untold(buffer, asked, use, wait, part);
    if (!opened) LaunchBooks::count(buffer.device->books->launches.refused_views);
    span.over_if_refused(opened);
    return opened;
}

Result<ViewScope> open_salvage(BufferState& buffer) {
    if (!buffer.touched_by_loss()) return open_scope(buffer, ArgumentUse::read, Wait{});
    ObservedSpan span(buffer.device->observer(), Span::host_view, name_of_view(ArgumentUse::read),
                      [&] { return observed(buffer, {}); });
    Result<ViewScope> opened = salvage_untold(buffer);
    span.over_if_refused(opened);
    return opened;
}

Result<ViewScope> open_for_launch(BufferState& buffer, ArgumentUse use, const rules::ByteSpan& span) {
    const bool shared = use != ArgumentUse::concurrent || buffer.concurrent_access();
    return open_scope(buffer, shared ? use : ArgumentUse::read_write, Wait{}, span);
}

Result<ConcurrentScope> open_concurrent(const std::shared_ptr<BufferState>& state, Wait wait) {
    Result<ViewScope> scope = open_scope(*state, ArgumentUse::concurrent, wait);
    if (!scope) return std::move(scope).error();
    return ConcurrentScope(std::move(scope).value(), state->memory->host, state->memory->bytes);
}

void close_view(BufferState& buffer, ArgumentUse use, std::size_t begin, std::size_t end) noexcept {
    if (buffer.views.seen().has(rules::ViewWord::slow) || !OpenViews::counted(use, {begin, end})) [[unlikely]]
        return close_slowly(buffer, use, begin, end);
    if (buffer.views.close_counted(rules::writes(use))) [[unlikely]]
        end_buffer(&buffer);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
