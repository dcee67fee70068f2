// UncapturedScope: keeps captures off a stream while work that comes in parts is under way on it.
#pragma once

#include <isthmus/result.hpp>

namespace isthmus::inline v0::detail {

struct StreamState;

// Some operations give a stream several things, with waits of the host between them: a staged launch brings its
// results back behind its kernel, a copy goes through pinned pieces. Were the stream captured between two parts, the
// later ones would be recorded and not done. While this lives, begin_capture() and joining refuse (Code::in_use): the
// call that needs it is on its way on another thread, so that waiting here could take as long as any kernel.
class UncapturedScope {
public:
    // Refuses where the stream is captured (the message begins with `what`). Expects the stream's mutex not to be held;
    // its end takes none. The stream outlives it.
    static Result<UncapturedScope> enter(StreamState& stream, const char* what);
    UncapturedScope(UncapturedScope&& other) noexcept;
    UncapturedScope& operator=(UncapturedScope&&) = delete;
    ~UncapturedScope();

private:
    explicit UncapturedScope(StreamState& stream) noexcept : stream_(&stream) {}
    StreamState* stream_;
};

// Expects the stream's mutex to be held.
Result<void> refuse_in_parts(const StreamState& stream);

}  // namespace isthmus::inline v0::detail
