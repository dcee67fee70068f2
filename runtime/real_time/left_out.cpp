// SPDX-License-Identifier: Apache-2.0
// Public calls of this room in a build without it: each refuses before any other check.
#include <isthmus/real_time.hpp>

#include "left_out.hpp"

#include <utility>

namespace isthmus {
inline namespace v0 {
namespace {

Error refused() {
    return detail::left_out("real_time");
}

}  // namespace

// No scope can be made, so none has state.
namespace detail {
class PreparedThread {};
}  // namespace detail

RealTimeScope::RealTimeScope(std::unique_ptr<detail::PreparedThread> thread) noexcept : thread_(std::move(thread)) {}
RealTimeScope::RealTimeScope(RealTimeScope&&) noexcept = default;
RealTimeScope& RealTimeScope::operator=(RealTimeScope&&) noexcept = default;
RealTimeScope::~RealTimeScope() = default;
Result<void> RealTimeScope::restore() {
    return refused();
}

Result<RealTimeScope> prepare_thread(const RealTimeOptions& /*options*/) {
    return refused();
}

Result<LockedMemory> LockedMemory::lock(const void* /*data*/, std::size_t /*bytes*/) {
    return refused();
}
LockedMemory::LockedMemory(LockedMemory&&) noexcept = default;
LockedMemory& LockedMemory::operator=(LockedMemory&&) noexcept = default;
LockedMemory::~LockedMemory() = default;

Result<ThreadCounts> thread_counts() {
    return refused();
}
Result<NearCpus> cpus_near(const Device& /*device*/) {
    return refused();
}

}  // namespace v0
}  // namespace isthmus
