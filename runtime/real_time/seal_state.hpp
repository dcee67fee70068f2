// SPDX-License-Identifier: Apache-2.0
// SealState: an open sealed scope, and how it begins.
#pragma once

#include <isthmus/seal.hpp>

#include "seal_book.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

struct Books;
struct DeviceState;

struct SealState {
    SealBook own;                                       // of a thread's scope
    SealBook* book = &own;                              // `own`, or the runtime's
    SealBook** thread = nullptr;                        // sealed_here of the scope's thread; nullptr: of the runtime
    std::shared_ptr<Books> books;                       // of the runtime
    std::vector<std::shared_ptr<DeviceState>> devices;  // of the runtime
    bool open = true;
    // Of a runtime's scope that ended: the book then serves the next one.
    std::uint64_t ended_count = 0;
    std::vector<SealedPlace> ended_places;
};

// Errors: in_use (the thread has a scope).
Result<std::unique_ptr<SealState>> seal_thread(SealMode mode);
// Of the runtime with these devices. Errors: in_use (the thread, or the runtime, has a scope).
Result<Seal> begin_seal(const SealOptions& options, std::shared_ptr<Books> books,
                        std::vector<std::shared_ptr<DeviceState>> devices);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
