// Giving memory back: what was handed out goes to the driver, to the system or to its owner, now or when it may.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/result.hpp>

#include "ledger.hpp"
#include "running_services.hpp"

#include <memory>
#include <string_view>

namespace isthmus::inline v0::detail {

struct DeviceState;
struct StreamState;

// Frees what was taken from the ledger, behind the work of `after` where it is pooled (nullptr: nothing uses it any
// more). Success says that the caller has released it: while a capture is open it is put off, and memory of the runtime
// that the driver does not take back now is kept and tried again (ADR 78). On an error nothing has changed and the
// piece is whole: the driver still has adopted memory registered, or work still runs that pooled memory cannot be freed
// behind.
Result<void> free_piece(DeviceState& device, Piece& piece, std::shared_ptr<StreamState> after);
// Now, whatever is open. `call`: what keeps a service from starting meanwhile.
Result<void> free_now(DeviceState& device, Piece& piece, StreamState* after, CallInFlight call = {});
// For a caller that nobody can tell of an error: what cannot be freed now is tried again later.
void free_or_keep(DeviceState& device, Piece piece, std::string_view when);
// … for a block of the ledger whose buffer is gone.
void release_later(DeviceState& device, const MemoryBlock& block);
// Tries again what the driver did not take back, oldest first, up to the first failure. Owners of adopted memory may be
// told. Expects no lock. One load where there is nothing.
void return_unreturned(DeviceState& device);
// As the device closes, for the last time. Adopted memory that is registered even then is kept until the process ends,
// and its owner is not told.
void free_at_end(DeviceState& device, Piece piece);

}  // namespace isthmus::inline v0::detail
