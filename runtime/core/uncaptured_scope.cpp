// SPDX-License-Identifier: Apache-2.0
// UncapturedScope: counted up under the stream's lock, with which captures begin and streams join.
#include "uncaptured_scope.hpp"

#include "core_errors.hpp"
#include "stream_state.hpp"

#include <mutex>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

Result<UncapturedScope> UncapturedScope::enter(StreamState& stream, const char* what) {
    const std::lock_guard lock(stream.mutex);
    if (Result<void> refused = stream.refuse_captured(what); !refused) return std::move(refused).error();
    stream.in_parts.fetch_add(1, std::memory_order_relaxed);
    return UncapturedScope(stream);
}

UncapturedScope::UncapturedScope(UncapturedScope&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}

UncapturedScope::~UncapturedScope() {
    if (stream_ == nullptr) return;
    // Without the lock: its holder may be blocked in the driver, and cleanup does not wait for that. All work is given
    // by now.
    stream_->in_parts.fetch_sub(1, std::memory_order_release);
}

Result<void> refuse_in_parts(const StreamState& stream) {
    if (stream.in_parts.load(std::memory_order_acquire) == 0) return {};
    return make_error<errors::capture_between_parts_of_a_call>();
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
