// UncapturedScope: counted under the stream's lock, which a capture begins and joins with.
#include "uncaptured_scope.hpp"

#include "stream_state.hpp"

#include <mutex>
#include <utility>

namespace isthmus::inline v0::detail {

Result<UncapturedScope> UncapturedScope::enter(StreamState& stream, const char* what) {
    const std::lock_guard lock(stream.mutex);
    if (Result<void> refused = stream.refuse_captured(what); !refused) return std::move(refused).error();
    ++stream.in_parts;
    return UncapturedScope(stream);
}

UncapturedScope::UncapturedScope(UncapturedScope&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}

UncapturedScope::~UncapturedScope() {
    if (stream_ == nullptr) return;
    const std::lock_guard lock(stream_->mutex);
    --stream_->in_parts;
}

Result<void> refuse_in_parts(const StreamState& stream) {
    if (stream.in_parts == 0) return {};
    return Error(Code::in_use,
                 "the stream cannot be captured now: a launch or a copy on it comes in several parts, and is under way "
                 "on another thread",
                 "let that call return first");
}

}  // namespace isthmus::inline v0::detail
