// SPDX-License-Identifier: Apache-2.0
// UncapturedScope: prevents captures of a stream while an operation in several parts is under way on it.
#pragma once

#include <isthmus/result.hpp>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct StreamState;

// Some operations give a stream several things, with host waits in between: a staged launch copies its results back
// after its kernel, a copy goes through bounce buffers. In a capture that began in between, the later ones would be
// recorded and not done. While this lives, begin_capture() and joining refuse (Code::in_use); a wait could take as long
// as any kernel of the other thread.
class UncapturedScope {
public:
    // Refuses if the stream is captured (the message begins with `what`). Expects the stream's mutex not to be held;
    // the destructor takes no lock. The stream must outlive it.
    static Result<UncapturedScope> enter(StreamState& stream, const char* what);
    UncapturedScope(UncapturedScope&& other) noexcept;
    UncapturedScope& operator=(UncapturedScope&&) = delete;
    ~UncapturedScope();

private:
    explicit UncapturedScope(StreamState& stream) noexcept : stream_(&stream) {}
    StreamState* stream_;
};

// Refuses while an UncapturedScope of the stream exists. Expects the stream's mutex to be held.
Result<void> refuse_in_parts(const StreamState& stream);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
