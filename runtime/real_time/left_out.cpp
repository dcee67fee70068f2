// SPDX-License-Identifier: Apache-2.0
// Public calls of this room in a build without it: each refuses before any other check.
#include <isthmus/real_time.hpp>
#include <isthmus/seal.hpp>

#include "left_out.hpp"
#include "seal_state.hpp"

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
LockedMemory::~LockedMemory() {}

Result<ThreadCounts> thread_counts() {
    return refused();
}
Result<NearCpus> cpus_near(const Device& /*device*/) {
    return refused();
}

namespace detail {
// NOLINTBEGIN(performance-unnecessary-value-param): the signatures of the component
Result<Seal> begin_seal(const SealOptions& /*options*/, std::shared_ptr<Books> /*books*/,
                        std::vector<std::shared_ptr<DeviceState>> /*devices*/) {
    return refused();
}
// NOLINTEND(performance-unnecessary-value-param)
Result<Rehearsal> rehearse(Result<void> (* /*turn*/)(void*), void* /*data*/, const RehearsalOptions& /*options*/) {
    return refused();
}
}  // namespace detail

// No scope can be made, so none has state.
Seal::Seal(std::unique_ptr<detail::SealState> state) noexcept : state_(std::move(state)) {}
Seal::Seal(Seal&&) noexcept = default;
Seal& Seal::operator=(Seal&&) noexcept = default;
Seal::~Seal() = default;
Result<void> Seal::end() {
    return refused();
}
std::uint64_t Seal::count() const noexcept {
    return 0;
}
std::vector<SealedPlace> Seal::places() const {
    return {};
}
Result<void> prepare(Device& /*device*/, const Preparation& /*what*/) {
    return refused();
}

struct Watchdog::State {};
Watchdog::Watchdog(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Watchdog::Watchdog(Watchdog&&) noexcept = default;
Watchdog& Watchdog::operator=(Watchdog&&) noexcept = default;
Watchdog::~Watchdog() = default;
// NOLINTNEXTLINE(performance-unnecessary-value-param): the signature of the component
Result<Watchdog> Watchdog::start(std::chrono::nanoseconds /*limit*/, Late /*late*/) {
    return refused();
}
void Watchdog::feed() noexcept {}

}  // namespace v0
}  // namespace isthmus
