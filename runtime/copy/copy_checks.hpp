// What is refused before a copy or a fill: nothing has been asked of a driver then.
#pragma once

#include <isthmus/result.hpp>

#include "copy.hpp"

#include <memory>

namespace isthmus::inline v0::detail {

// width 0 in the shape: there is nothing to do.
Result<CopyJob> check_copy(StreamState& stream, const CopyRequest& request);
// The buffer is the job's destination; the source's side stays empty.
Result<CopyJob> check_fill(StreamState& stream, const FillRequest& request);
// Usable by this stream at all? `what` names it in messages: "the destination".
Result<void> check_buffer(StreamState& stream, const std::shared_ptr<BufferState>* buffer, const char* operation,
                          const char* what);

}  // namespace isthmus::inline v0::detail
