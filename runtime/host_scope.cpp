// Opening and closing a buffer for the CPU: whoever has it open, what must be waited for, what must be copied.
#include "buffer_state.hpp"
#include "access_rules.hpp"
#include "device_state.hpp"

#include <isthmus/host_view.hpp>

#include <string>

namespace isthmus::inline v0::detail {
namespace {

Result<void> mark_open(BufferState& buffer, bool writes) {
    const std::lock_guard lock(buffer.mutex);
    if (buffer.writer || (writes && buffer.readers > 0)) {
        return Error(
            Code::in_use,
            std::string("the buffer is already open on the host for ") + (buffer.writer ? "writing" : "reading"),
            "let the other view go out of scope first; any number of read views may be open together");
    }
    buffer.host_touched = true;
    if (writes) {
        buffer.writer = true;
    } else {
        ++buffer.readers;
    }
    return {};
}

Result<void> settle_sides(BufferState& buffer, ArgumentUse use, Wait wait) {
    bool stale = false;
    {
        const std::lock_guard lock(buffer.mutex);
        stale = buffer.device_newer;
    }
    if (stale && use != ArgumentUse::write) {
        if (!buffer.device->usable()) return buffer.device->unusable("reading what the device computed");
        if (Result<void> copied = buffer.download(wait); !copied) return copied;
    }
    if (use != ArgumentUse::read) {
        const std::lock_guard lock(buffer.mutex);
        buffer.device_newer = false;
        buffer.host_newer = true;
    }
    return {};
}

// What the driver allocated for the host went with a context that other code destroyed: touching it is SIGSEGV.
// Registered and pageable memory is the system's.
Result<void> refuse_gone(const BufferState& buffer) {
    const bool the_drivers = buffer.host_kind != MemoryKind::host && buffer.host_kind != MemoryKind::host_numa &&
                             buffer.host_kind != MemoryKind::registered;
    if (!the_drivers || !buffer.device->is_lost() || !buffer.device->driver->context_died()) return {};
    return Error(Code::device_lost, "the buffer's memory went with the device's context, which other code destroyed",
                 "keep what must survive in host or registered memory, and open a new runtime");
}

}  // namespace

Result<ViewScope> open_scope(const std::shared_ptr<BufferState>& state, ArgumentUse use, Wait wait) {
    BufferState& buffer = *state;
    const bool writes = use != ArgumentUse::read;
    if (buffer.device->barred()) return buffer.device->unusable("opening a host view");
    if (Result<void> gone = refuse_gone(buffer); !gone) return std::move(gone).error();
    if (buffer.host == nullptr && buffer.bytes > 0) {
        const AccessAnswer answer = rules::host_access(buffer.device->capabilities, buffer.kind);
        return Error(
            Code::not_accessible,
            "the CPU may not view " + std::string(name(buffer.kind)) + " memory: " + std::string(answer.reason),
            "allocate_shared gives memory that both sides may use");
    }
    if (Result<void> marked = mark_open(buffer, writes); !marked) return std::move(marked).error();
    ViewScope scope(state, writes);  // from here on conflicting launches are refused, until it closes
    if (Result<void> waited = buffer.wait_for_uses(writes, wait); !waited) return std::move(waited).error();
    if (buffer.staged()) {
        if (Result<void> settled = settle_sides(buffer, use, wait); !settled) return std::move(settled).error();
    }
    return scope;
}

Result<ViewScope> open_salvage(const std::shared_ptr<BufferState>& state) {
    BufferState& buffer = *state;
    if (!buffer.touched_by_loss()) return open_scope(state, ArgumentUse::read, Wait{});
    if (buffer.device->barred()) return buffer.device->unusable("salvaging a buffer");
    if (Result<void> gone = refuse_gone(buffer); !gone) return std::move(gone).error();
    if (buffer.host == nullptr && buffer.bytes > 0) {
        return Error(Code::device_lost, "the buffer's content was in device memory and is lost with the device",
                     "keep what must survive a fault in memory that the host can read");
    }
    if (Result<void> marked = mark_open(buffer, false); !marked) return std::move(marked).error();
    return ViewScope(state, false);
}

void close_view(BufferState& buffer, bool writes) noexcept {
    const std::lock_guard lock(buffer.mutex);
    if (writes) {
        buffer.writer = false;
    } else {
        --buffer.readers;
    }
}

}  // namespace isthmus::inline v0::detail
