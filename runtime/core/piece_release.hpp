// SPDX-License-Identifier: Apache-2.0
// Giving memory back to the driver, the system or its owner, now or as soon as possible.
#pragma once

#include <isthmus/allocator.hpp>
#include <isthmus/result.hpp>

#include "ledger.hpp"
#include "piece_cache.hpp"
#include "running_services.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DeviceState;
struct StreamState;

// Releases any block of this device, from whichever of its sources (K9), `after`: behind the work of this stream. Its
// memory stays where it is for a later allocation where rules::keeping() allows that, and otherwise goes back as
// free_piece() says. On an error the block is not released.
Result<void> release_block(DeviceState& device, const MemoryBlock& block, Stream* after);
// Keeps a piece taken from the ledger for a later allocation where rules::keeping() allows that, and otherwise frees
// it; if pooled, behind the work of `after` (nullptr: nothing uses it any more). Success: the caller has released it.
// During a capture the free is deferred, and memory of the runtime that the driver does not take back now is kept and
// tried again (ADR 78). On an error the piece is unchanged: the driver still has adopted memory registered, or work
// still runs that pooled memory cannot be freed behind.
Result<void> free_piece(DeviceState& device, Piece& piece, std::shared_ptr<StreamState> after);
// Frees it now, even while a capture is open. `call` keeps a service from starting meanwhile.
Result<void> free_now(DeviceState& device, Piece& piece, StreamState* after, CallInFlight call = {});
// For a caller that cannot report an error: what cannot be freed now is tried again later.
void free_or_keep(DeviceState& device, Piece piece, std::string_view when);
// How many pieces other threads of this process have given to a driver. Read before an allocation: what went behind a
// refusal is room that the driver did not have yet.
std::uint64_t freed_by_others() noexcept;
// Gives kept pieces back, in the order of rules::goes_before(), until at most so many bytes are kept; answers how many
// bytes went. While a capture is open or a service runs, they go back after it. What the driver has not taken so far is
// offered to it again first, beside these bytes. Expects no lock.
std::uint64_t trim_cache(DeviceState& device, std::uint64_t keep_bytes);
std::uint64_t trim_cache_of(DeviceState& device, MemoryKind kind);
// A piece that lay in a lane is kept as any other. `behind`: the stream whose work may still use it; nullptr: none.
// `age`: so many releases ago. Answers how many bytes went back, because they are too much then. `frees`: false where
// the caller has a lock: free_surplus() follows.
std::uint64_t keep_from_lane(DeviceState& device, Piece& piece, StreamState* behind,
                             std::optional<std::uint64_t> age = {}, bool frees = true);
std::uint64_t free_surplus(DeviceState& device);
// PieceCache::exchange(), where `order` is the stream in whose order the request is made; frees what is too much then.
Piece* exchange_in_cache(DeviceState& device, const PieceCache::Left& left, std::size_t bytes, StreamState* order,
                         std::size_t place_bytes = 0);
// A piece that the cache handed out, and that is parked still, goes back to it.
void keep_closed_again(DeviceState& device, Piece& parked, StreamState* order);
// For the end of a stream. What is kept behind its work goes back in its order, or serves others if the work has ended.
void free_kept_behind(StreamState& stream);
// The same for what is too much beside an allocation of so many bytes that the cache does not serve.
void make_way(DeviceState& device, std::size_t bytes, std::size_t headroom = 0, PieceCache::Behind* behind = nullptr);
// The same before a block of the device's segment: kept pieces go back to it while it would grow beyond
// PieceCache::most_reserved().
void make_way_in_segment(DeviceState& device, std::size_t bytes);
// The same for a block of the ledger whose buffer is gone.
void release_later(DeviceState& device, const MemoryBlock& block);
// Tries again what the driver did not take back, oldest first, up to the first failure. May call release functions of
// adopted memory. Expects no lock. One load if there is nothing.
void return_unreturned(DeviceState& device);
// The last try, as the device closes. Adopted memory that is registered even then is kept until the process ends, and
// its release function is not called.
void free_at_end(DeviceState& device, Piece piece);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
