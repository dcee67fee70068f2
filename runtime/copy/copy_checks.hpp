// SPDX-License-Identifier: Apache-2.0
// Checks before a copy or a fill; a refusal makes no driver call.
#pragma once

#include <isthmus/result.hpp>

#include "copy.hpp"

#include <memory>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Returns a shape of width 0 if there is nothing to do.
Result<CopyJob> check_copy(StreamState& stream, const CopyRequest& request);
// The buffer becomes the job's destination; the source stays empty.
Result<CopyJob> check_fill(StreamState& stream, const FillRequest& request);
// Refuses a buffer that this stream cannot use. `what` names the buffer in messages: "the destination".
Result<void> check_buffer(StreamState& stream, const std::shared_ptr<BufferState>* buffer, const char* operation,
                          const char* what);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
