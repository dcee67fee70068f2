// SPDX-License-Identifier: Apache-2.0
// Sealed scopes, and the rehearsal of a loop's turns.
#include <isthmus/seal.hpp>

#include "device_state.hpp"
#include "out_of_line.hpp"
#include "error_places.hpp"
#include "process.hpp"
#include "real_time_errors.hpp"
#include "seal_state.hpp"

#include <utility>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

Result<std::unique_ptr<SealState>> seal_thread(SealMode mode) {
    if (sealed_here != nullptr) return make_error<errors::sealed_already>("this thread");
    auto state = std::make_unique<SealState>();
    state->own.begin(mode == SealMode::refuse);
    state->thread = &sealed_here;
    sealed_here = &state->own;
    return state;
}

namespace {

// What the first use of a buffer by a stream, a graph or a concurrent view takes: a sealed scope has it for each.
void prepare_first_uses(const std::vector<std::shared_ptr<DeviceState>>& devices) {
    for (const std::shared_ptr<DeviceState>& device : devices) {
        device->buffer_books->keep_for_each_of(*device->buffer_states, sizeof(BufferBook));
    }
}

}  // namespace

Result<Seal> begin_seal(const SealOptions& options, std::shared_ptr<Books> books,
                        std::vector<std::shared_ptr<DeviceState>> devices) {
    if (options.scope == SealScope::thread) {
        prepare_first_uses(devices);
        Result<std::unique_ptr<SealState>> made = seal_thread(options.mode);
        if (!made) return std::move(made).error();
        touch_places_of_errors();
        return Seal(std::move(made).value());
    }
    if (books->sealed.taken.exchange(true, std::memory_order_acquire)) {
        return make_error<errors::sealed_already>("this runtime");
    }
    touch_places_of_errors();
    prepare_first_uses(devices);
    auto state = std::make_unique<SealState>();
    state->book = &books->sealed.book;
    state->book->begin(options.mode == SealMode::refuse);
    state->books = std::move(books);
    state->devices = std::move(devices);
    for (const std::shared_ptr<DeviceState>& device : state->devices) {
        device->sealed.store(state->book, std::memory_order_release);
    }
    return Seal(std::move(state));
}

Result<Rehearsal> rehearse(Result<void> (*turn)(void*), void* data, const RehearsalOptions& options) {
    if (options.quiet_turns == 0 || options.most_turns < options.quiet_turns) {
        return make_error<errors::no_such_rehearsal>(options.quiet_turns, options.most_turns);
    }
    Result<std::unique_ptr<SealState>> made = seal_thread(SealMode::report);
    if (!made) return std::move(made).error();
    SealBook& book = (*made)->own;
    const Seal ends(std::move(made).value());
    Rehearsal done;
    std::uint32_t quiet = 0;
    std::vector<SealedPlace> before;
    while (quiet < options.quiet_turns) {
        if (done.turns == options.most_turns) {
            // The place that the last loud turn came to; places() are in the order of their first time.
            for (const SealedPlace& place : book.places()) {
                bool grew = true;
                for (const SealedPlace& known : before) {
                    if (known.call == place.call && known.act == place.act) grew = known.times != place.times;
                }
                if (grew) return make_error<errors::turns_not_steady>(done.turns, place.call);
            }
            return make_error<errors::turns_not_steady>(done.turns, "a call");
        }
        const std::uint64_t count = book.count();
        if (options.most_turns - done.turns <= options.quiet_turns) before = book.places();
        if (Result<void> worked = turn(data); !worked) return std::move(worked).error();
        ++done.turns;
        quiet = book.count() == count ? quiet + 1 : 0;
    }
    done.places = book.places();
    return done;
}

}  // namespace detail

Seal::Seal(std::unique_ptr<detail::SealState> state) noexcept : state_(std::move(state)) {}
Seal::Seal(Seal&&) noexcept = default;
Seal& Seal::operator=(Seal&& other) noexcept {
    if (this == &other) return *this;
    Seal ended(std::move(*this));
    state_ = std::move(other.state_);
    return *this;
}

Seal::~Seal() {
    // The other thread's calls still count in the state.
    if (state_ && !end()) process::keep_until_exit(std::shared_ptr<detail::SealState>(std::move(state_)));
}

Result<void> Seal::end() {
    if (!state_ || !state_->open) return {};
    if (state_->thread != nullptr) {
        if (state_->thread != &detail::sealed_here) return make_error<errors::seal_of_another_thread>();
        detail::sealed_here = nullptr;
    } else {
        for (const std::shared_ptr<detail::DeviceState>& device : state_->devices) {
            device->sealed.store(nullptr, std::memory_order_release);
        }
        state_->ended_count = state_->book->count();
        state_->ended_places = state_->book->places();
        state_->books->sealed.taken.store(false, std::memory_order_release);
    }
    state_->open = false;
    return {};
}

std::uint64_t Seal::count() const noexcept {
    if (!state_) return 0;
    return state_->open || state_->thread != nullptr ? state_->book->count() : state_->ended_count;
}
std::vector<SealedPlace> Seal::places() const {
    if (!state_) return {};
    return state_->open || state_->thread != nullptr ? state_->book->places() : state_->ended_places;
}

}  // namespace v0
}  // namespace isthmus
