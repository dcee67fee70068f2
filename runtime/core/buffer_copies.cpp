// SPDX-License-Identifier: Apache-2.0
// The copies that keep both sides of a buffer alike: to the host's side, and of foreign memory to its relay.
#include "buffer_state.hpp"

#include "core_errors.hpp"
#include "cpu_use.hpp"
#include "device_state.hpp"
#include "error_entry.hpp"
#include "stream_state.hpp"
#include "timed_lock.hpp"
#include "wait_pause.hpp"

#include <cstring>
#include <mutex>

namespace isthmus {
inline namespace v0 {
namespace detail {

Result<void> BufferState::fill_relay() {
    if (relay() == nullptr) return {};
    {
        const std::lock_guard lock(views);
        if (!sides()->relay_stale()) return {};
    }
    if (Result<void> begun = begin_cpu_use(*this, platform::os::CpuUse::read); !begun) return begun;
    std::memcpy(relay(), memory->host, memory->bytes);
    end_cpu_use(*this, platform::os::CpuUse::read);
    const std::lock_guard lock(views);
    sides()->relay_filled();
    return {};
}

Result<void> BufferState::download(Wait whole) {
    const Deadline deadline(whole, device->config->wait_timeout);
    Wait wait = whole;
    // A second view waits for the first one's copy, within its own deadline.
    const std::unique_lock one_at_a_time =
        lock_within(blocks().downloading(), wait, device->config->wait_timeout, device->config->wait_policy);
    if (!one_at_a_time.owns_lock()) {
        return make_error_as<errors::content_copied_for_another_view>(wait.refuse ? Code::not_ready : Code::timed_out);
    }
    {
        const std::lock_guard lock(views);
        if (!sides()->device_newer()) return {};
    }
    if (wait.refuse) {
        return make_error<errors::content_on_device_side>();
    }
    // First waits for all writers, on any stream; the one copy then needs no order with them.
    if (Result<void> written = wait_for_uses(ArgumentUse::read, wait); !written) return written;
    wait = deadline.left();
    const std::shared_ptr<StreamState> stream = device->download_stream();
    std::uint64_t position = 0;
    {
        const Result<StreamLock> stream_lock = stream->lock_within(wait, "copying a staged buffer to the host's side");
        if (!stream_lock) return stream_lock.error();
        if (Result<void> opened = stream->open_handle(); !opened) return opened;
        {
            const std::lock_guard lock(views);
            if (!sides()->device_newer()) return {};
            // If the wait for this copy runs out, later views and the release wait for the copy.
            touch(*stream, stream->issued + 1, ArgumentUse::write);
        }
        const auto host_address = reinterpret_cast<std::uintptr_t>(copied_side());
        stream->gives("the copy to the host's side");
        const platform::Status status =
            device->driver->memory().copy(host_address, memory->device_address, memory->bytes,
                                          platform::CopyDirection::device_to_host, stream->handle);
        position = stream->advance("the copy to the host's side");
        if (!status.ok()) return device->failure(status, "copying a staged buffer to the host's side");
    }
    device->observer().mark(Mark::download, "the copy to the host's side", [&] { return observed(*stream, position); });
    if (Result<void> copied = stream->wait_until(position, deadline.left()); !copied) return copied;
    sides()->count_copied(memory->bytes);
    device->books->launches.count_download(memory->bytes);
    if (relay() != nullptr) {
        // Also for reading: the first and the last line of caches may hold bytes of others.
        constexpr platform::os::CpuUse use = platform::os::CpuUse::read_write;
        if (Result<void> begun = begin_cpu_use(*this, use); !begun) return begun;
        std::memcpy(memory->host, relay(), memory->bytes);
        end_cpu_use(*this, use);
    }
    const std::lock_guard lock(views);
    sides()->copied_to_host();
    return {};
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
