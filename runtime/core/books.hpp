// SPDX-License-Identifier: Apache-2.0
// Books: a runtime's records of memory, and its changing state. Shared by its devices and buffers, because memory may
// outlive the Runtime object.
#pragma once

#include "address_map.hpp"
#include "far_buffers.hpp"
#include "hints.hpp"
#include "host_calls.hpp"
#include "kept_kernels.hpp"
#include "kernel_descriptions.hpp"
#include "launch_books.hpp"
#include "ledger.hpp"
#include "mapped_ranges.hpp"
#include "open_captures.hpp"
#include "order_check.hpp"
#include "peer_table.hpp"
#include "seal_book.hpp"

#include <atomic>
#include <cstdint>
#include <memory>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct Books {
    provenance::AddressMap addresses;  // live allocations by address; foreign ones once they were asked about
    MappedRanges mapped;               // of reserved addresses: where memory is mapped, and which devices have access
    OpenCaptures captures;
    AfterHostFunctions after_host_functions;
    PeerTable peers;
    HintCounters hints;
    LaunchBooks launches;
    KernelDescriptions module_kernels;
    FarBuffers far_buffers;

    KeptKernels kernels;

    std::unique_ptr<OrderChecker> order;  // nullptr: nothing is checked

    // A sealed scope of the whole runtime; devices name the book while one is open.
    struct {
        std::atomic<bool> taken{false};
        SealBook book;
    } sealed;

    Ledger ledger{addresses};  // what was handed out, and how it is given back

    // Ids are never reused in a process, so that a stale handle of another runtime is recognised, too.
    static std::uint64_t next_id() noexcept { return reserve_ids(1); }
};

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
