// SPDX-License-Identifier: Apache-2.0
// The end of a buffer: put off behind services, work and captures; then its memory is given back behind its uses.
#include "buffer_state.hpp"

#include "buffer_lanes.hpp"
#include "device_state.hpp"
#include "error_entry.hpp"
#include "state_block.hpp"
#include "stream_state.hpp"
#include "timed_lock.hpp"
#include "told.hpp"
#include "wait_pause.hpp"

#include <isthmus/stream.hpp>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// Static objects may be destroyed after the driver has ended, which then answers every call with this code.
bool driver_ended(const DeviceState& device) {
    constexpr int deinitialized = 4;  // CUDA_ERROR_DEINITIALIZED
    return device.lost_code() == deinitialized;
}

// Defers the end of a buffer that a service uses, until the service is stopped, which may be after the buffer was
// dropped. Pool memory is freed in the order of the service's stream, without a wait.
bool put_off_behind_service(BufferState* buffer) {
    if (buffer->freed_in_order()) return false;
    (void)buffer->conflicting(ArgumentUse::write);  // enters what launches stored
    for (const BufferState::Use& use : buffer->uses()) {
        StreamState& stream = *use.stream;
        if (!stream.serves.load(std::memory_order_acquire) || stream.reached(use.last)) continue;
        if (stream.device->is_lost()) continue;
        const auto again = [buffer] { end_buffer(buffer); };
        if (stream.device->services.put_off(rules::DriverUse::wait_for_service, again)) return true;
    }
    return false;
}

rules::Dropped facts_of_drop(BufferState& buffer) {
    const DeviceState& device = *buffer.device;
    const HeldBlocks blocks = buffer.blocks();
    const bool of_others =
        blocks.of_user() || buffer.memory->adopted || buffer.memory.exposed.load(std::memory_order_relaxed);
    rules::Dropped how;
    how.own_memory = blocks.any() && !of_others && rules::kept_kind(blocks.block().kind) >= 0 &&
                     !buffer.freed_in_order() && device.cache.keeps_anything();
    how.attached = buffer.memory->path == LaunchPath::attach;
    how.device_usable = device.usable();
    how.bytes = buffer.memory->bytes * (buffer.staged() ? 2 : 1);
    return how;
}

// Puts the end off until the work has ended that uses the buffer. false: the caller ends it, and may have to wait.
bool put_off_behind_work(BufferState& buffer) {
    rules::Dropped how = facts_of_drop(buffer);
    if (!how.own_memory) return false;
    const BufferState::Running running = buffer.conflicting(ArgumentUse::write);
    if (running.empty()) return false;
    how.known_uses = std::all_of(running.begin(), running.end(), [&](const BufferState::Use& use) {
        const StreamState& stream = *use.stream;
        return stream.device == buffer.device && !stream.others() && !stream.serves.load(std::memory_order_acquire);
    });
    DeviceState& device = *buffer.device;
    while (true) {
        switch (device.dropped.add(buffer, how, device.cache.limit_bytes())) {
            case rules::Ending::now: return false;
            case rules::Ending::later: return true;
            case rules::Ending::later_after_asking: end_dropped_buffers(device, true); break;
            case rules::Ending::later_after_oldest:
                if (!end_oldest_dropped_buffer(device)) return false;
                break;
        }
    }
}

void destroy(BufferState* buffer) noexcept {
    StateBlock& block = StateBlock::of(*buffer);
    block.end_state();
    part_with(block, StateBlock::without_state);
}

void end_now(BufferState* buffer) {
    if (buffer->device->config->forked()) return destroy(buffer);
    if (rest_buffer(*buffer)) return;
    if (!buffer->unused() && (put_off_behind_service(buffer) || put_off_behind_work(*buffer))) return;
    end_dropped(buffer, Wait{});
}

}  // namespace

void end_dropped(BufferState* buffer, Wait wait) {
    const std::vector<std::shared_ptr<StreamState>> standing = buffer->end(wait);
    if (standing.empty()) return destroy(buffer);
    // Refers to the buffer by an owner of its own: the state's is gone, or about to be.
    const std::shared_ptr<void> owner(nullptr, [buffer](std::nullptr_t) { destroy(buffer); });
    const std::shared_ptr<BufferState> ended(owner, buffer);
    for (const std::shared_ptr<StreamState>& stream : standing) stream->keep_until_end(ended);
}

void end_buffer(BufferState* buffer) {
    if (process::here.in_host_function &&
        !buffer->device->config->forked()) {  // the driver refuses there what this needs
        // All of it is deferred: a capture may be open by then.
        buffer->device->books->after_host_functions.put_off([buffer] { end_buffer(buffer); });
        return;
    }
    OpenCaptures& captures = buffer->device->books->captures;
    // In a forked child nothing is deferred: there the end of a buffer does nothing, and takes no lock.
    if (!captures.any() || buffer->device->config->forked()) {
        end_now(buffer);
    } else {
        captures.when_none_is_open([buffer] { end_now(buffer); });
    }
}

std::vector<std::shared_ptr<StreamState>> BufferState::end(Wait wait) {
    const bool released = !blocks().any();  // released before, perhaps behind work that still runs
    // A failure that may pass (no event available, an interrupted call) is tried again here, because no caller can; a
    // timeout is not. A lost device runs nothing any more.
    constexpr int tries = 3;
    Result<std::shared_ptr<StreamState>> after = std::shared_ptr<StreamState>();
    for (int attempt = 0; !released && attempt < tries && device->usable(); ++attempt) {
        after = part_with_uses(wait);
        if (after || after.code() == Code::timed_out) break;
    }
    if (!after && after.code() != Code::timed_out && device->is_lost()) after = std::shared_ptr<StreamState>();
    std::vector<std::shared_ptr<StreamState>> standing;
    if (!unused()) {
        (void)conflicting(ArgumentUse::write);  // enters what launches stored: a stream's tail may name this buffer
    }
    for (const Use& use : take_uses()) {  // a stream that keeps this buffer must not be kept by it
        if (!use.stream->forget(this, use.last)) standing.push_back(use.stream);
    }
    if (released) return standing;
    if (!after) {
        // The device may still write to the memory, which would be handed out again if it were released (R5). The
        // ledger keeps it until the device closes.
        if (device->config->log) {
            device->config->say(Severity::error,
                                ErrorLine().append("memory was given up: ").append(text_in_words(after.error())));
        }
    } else if (Result<void> freed = give_back(*after); !freed) {
        if (device->config->log) {
            device->config->say(Severity::warning,
                                ErrorLine().append("releasing a buffer: ").append(text_in_words(freed.error())));
        }
        blocks().leave(*device, memory->adopted);
    }
    return standing;
}

Result<std::shared_ptr<StreamState>> BufferState::part_with_uses(Wait wait) {
    if (unused()) {  // there is nothing to wait for
        if (memory.exposed.load(std::memory_order_relaxed) || device->is_lost()) exclude_from_cache();
        return std::shared_ptr<StreamState>();
    }
    const Deadline deadline(wait, device->config->wait_timeout);
    if (freed_in_order()) {
        Result<std::shared_ptr<StreamState>> gathered = gather_uses(deadline);
        const bool stands = gathered.code() == Code::timed_out || gathered.code() == Code::not_ready;
        if (stands || (gathered && *gathered)) return gathered;
    }
    if (Result<void> waited = wait_until_unused(deadline); !waited) return std::move(waited).error();
    if (!only_known_uses_ended()) exclude_from_cache();
    return std::shared_ptr<StreamState>();
}

void BufferState::exclude_from_cache() {
    device->books->ledger.exclude_from_cache(blocks().block().id);
    if (const SecondSide* const side = blocks().second()) {
        device->books->ledger.exclude_from_cache(side->host_block.id);
    }
}

// Finds a stream of this device that still uses the memory, and makes it wait for all other uses. nullptr: no such
// stream.
Result<std::shared_ptr<StreamState>> BufferState::gather_uses(const Deadline& deadline) {
    const Running running = conflicting(ArgumentUse::write);
    std::shared_ptr<StreamState> last;
    const auto consider = [&](const Use& use) {
        if (use.stream->device == device && use.stream->takes_work()) last = use.stream;
    };
    if (running.empty()) {
        const std::span<const Use> all = uses();
        std::for_each(all.begin(), all.end(), consider);
    } else {
        std::for_each(running.begin(), running.end(), consider);
    }
    if (!last) return last;
    for (const Use& use : running) {
        if (use.stream == last || use.stream->device->is_lost()) continue;
        Result<FenceEvent*> fence = use.stream->fence_behind(use.last, deadline.left());
        if (!fence) return std::move(fence).error();
        if (*fence == nullptr) continue;
        Result<void> ordered = last->wait_behind((*fence)->handle, *use.stream, use.last, deadline.left());
        use.stream->device->drop_event(*fence);
        if (!ordered) return std::move(ordered).error();
    }
    if (!last) return last;
    // The release will be submitted to this stream, but not while another thread is blocked in the driver with it.
    Wait wait = deadline.left();
    const Result<StreamLock> lock = last->lock_within(wait, "releasing a buffer");
    return lock ? Result<std::shared_ptr<StreamState>>(last) : lock.error();
}

Result<void> BufferState::wait_until_unused(const Deadline& deadline) {
    // A fence behind the last use may have queued the return of managed memory to the host: it is waited for as well.
    const int rounds = memory->path == LaunchPath::attach ? 2 : 1;
    for (int round = 0; round < rounds; ++round) {
        for (const Use& use : conflicting(ArgumentUse::write)) {
            if (use.stream->device->is_lost()) continue;
            Result<void> waited = use.stream->wait_until(use.last, deadline.left());
            if (!waited && !use.stream->device->is_lost()) return waited;
        }
    }
    return {};
}

// Whether the memory can be handed to another owner at once: the driver, whose free waits for all work, is not asked.
bool BufferState::only_known_uses_ended() {
    if (memory.exposed.load(std::memory_order_relaxed) || touched_by_loss()) return false;
    if (memory->path != LaunchPath::attach) return true;
    const std::lock_guard lock(views);
    const BufferSides& side = *sides();
    if (side.attached_to() != nullptr) return false;
    return side.brought_by() == nullptr || side.brought_by()->reached(side.brought_at());
}

bool BufferState::touched_by_loss() {
    const std::lock_guard lock(views);
    const std::span<const Use> all = uses();
    return device->is_lost() ||
           std::any_of(all.begin(), all.end(), [](const Use& use) { return use.stream->device->is_lost(); });
}

Result<void> BufferState::give_back(const std::shared_ptr<StreamState>& after) {
    if (device->bars(rules::PublicCall::end_buffer)) return device->refusal(rules::PublicCall::end_buffer);
    // The process is ending, and nothing reports what still runs: a kernel might access host memory that is unmapped
    // here (R4).
    if (driver_ended(*device)) return {};
    if (device->observer()) [[unlikely]]
        tell_gone(*this);
    std::optional<Stream> behind;
    if (after) behind.emplace(after);
    // The addresses stay: a BufferPart may still read them; its next use is refused.
    return blocks().give_back(*device, behind ? &*behind : nullptr);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
