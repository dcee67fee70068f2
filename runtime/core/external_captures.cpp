// SPDX-License-Identifier: Apache-2.0
// StreamState, for external streams: captures of other code, and operations that have no fence behind them.
#include "core_errors.hpp"
#include "device_state.hpp"
#include "recording.hpp"
#include "stream_state.hpp"

#include <mutex>

namespace isthmus {
inline namespace v0 {
namespace detail {
namespace {

// Marks the driver's capture ids, which are separate from those of Recording.
constexpr std::uint64_t not_ours = std::uint64_t{1} << 63;

}  // namespace

Result<std::uint64_t> StreamState::foreign_capture() {
    platform::Captures* const captures = device->driver->captures();
    if (!external || captures == nullptr) return std::uint64_t{0};
    platform::CaptureState state = platform::CaptureState::none;
    std::uint64_t capture = 0;
    const platform::Status status = captures->info(handle, state, capture);
    if (!status.ok()) return device->failure(status, "asking whether an external stream is captured");
    if (state == platform::CaptureState::lost) {
        return make_error<errors::external_capture_was_lost>();
    }
    return state == platform::CaptureState::open ? capture | not_ours : 0;
}

// A failure is not reported: the next operation tries again, and so does a wait while a wrapper exists.
void StreamState::fence_external() noexcept {
    if (!external || recording != nullptr || reached(issued)) return;
    if (!return_attached()) return;
    if (fenced_ < issued) (void)record_fence();
}

bool StreamState::takes_work() {
    if (!external) return true;
    Wait wait = Wait::never();
    const Result<StreamLock> lock = lock_within(wait, "asking whether a stream takes work");
    if (!lock) return false;
    return handle != platform::StreamHandle::none && !captured_elsewhere();
}

Result<void> StreamState::refuse_captured_elsewhere(const char* what) {
    if (!external) return {};
    const std::lock_guard lock(mutex);
    if (const Result<HeldCapture> own = capture(); own && *own) return {};
    return refuse_captured(what);
}

bool StreamState::captured_elsewhere() {
    if (!external) return false;
    const Result<std::uint64_t> capture = foreign_capture();
    return !capture || *capture != 0;  // a lost capture is an error, and counts as captured
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
