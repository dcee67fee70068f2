// SPDX-License-Identifier: Apache-2.0
// Memory shortage: the budget check before a call, and the retries after the driver reports none left.
#pragma once

#include <isthmus/memory_kind.hpp>
#include <isthmus/result.hpp>

#include "piece_release.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct DeviceState;

// Refuses what would swap, stall or kill the process instead of failing (K20): managed memory beyond the device's free
// memory; on machines with one DRAM, every kind beyond the system's available memory. `asked_bytes`: what the caller of
// the runtime asked for, which the error names; 0: as many as `bytes`.
Result<void> within_budget(DeviceState& device, MemoryKind kind, std::size_t bytes, std::size_t asked_bytes = 0);

// Gives back what the devices of the runtime keep of released memory, also what work still uses of dropped buffers: the
// host's memory serves all of them. `before`: freed_by_others() before the attempt that failed. False: nothing was
// kept, and nothing has gone since.
bool give_back_kept(DeviceState& device, std::uint64_t before);

using Attempt = std::function<Result<void>()>;
// Retries after each step that may free memory (K19): released memory that is kept, caches of slabs and pools, frees
// that wait for work, the user's handler. The final error states the amounts available, cached and pending.
// `before`: freed_by_others() before the first attempt.
Result<void> make_room(DeviceState& device, MemoryKind kind, std::size_t bytes, Result<void> first,
                       std::uint64_t before, const Attempt& attempt);

template <class A>
Result<void> with_room(DeviceState& device, MemoryKind kind, std::size_t bytes, A attempt) {
    const std::uint64_t before = freed_by_others();
    Result<void> made = attempt();
    if (made.code() != Code::out_of_memory) return made;
    return make_room(device, kind, bytes, std::move(made), before, attempt);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
