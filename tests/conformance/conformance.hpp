// SPDX-License-Identifier: Apache-2.0
// The machine under test and the kernels of the conformance tests. Public headers only: the same suite runs on the CPU
// device, every simulated machine and real hardware.
#pragma once

#include "atomic_words.hpp"
#include "expectations.hpp"
#include "many_views.hpp"

#include <isthmus/isthmus.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace conformance {

ISTHMUS_DECLARE_KERNEL(no_argument, isthmus::Index i);
// Adds 1 to all of the first; more arguments than operations have room for at hand.
ISTHMUS_DECLARE_KERNEL(many_views, isthmus::Index i, CONFORMANCE_24_VIEWS);
ISTHMUS_DECLARE_KERNEL(add_one, isthmus::Index i, isthmus::View<std::int32_t> data);
ISTHMUS_DECLARE_KERNEL(scale_into, isthmus::Index i, isthmus::Out<std::int32_t> out,
                       isthmus::View<const std::int32_t> in, std::int32_t factor);
ISTHMUS_DECLARE_KERNEL(coordinates, isthmus::Index2 i, isthmus::Out<std::uint64_t> out, std::uint64_t width);
ISTHMUS_DECLARE_KERNEL(coordinates_3d, isthmus::Index3 i, isthmus::Out<std::uint64_t> out, std::uint64_t width,
                       std::uint64_t height);
ISTHMUS_DECLARE_KERNEL(block_sums, isthmus::Block block, isthmus::Out<std::int64_t> sums,
                       isthmus::View<const std::int32_t> in);
// Passes over the data `rounds` times, to take time.
ISTHMUS_DECLARE_KERNEL(churn, isthmus::Index i, isthmus::View<std::int32_t> data, std::int32_t rounds);
// Decrements the word, and counts that.
ISTHMUS_DECLARE_KERNEL(take_turn, isthmus::Index i, isthmus::View<std::int32_t> word,
                       isthmus::View<std::int32_t> turns);
// Raises flag number `self` and waits for the flags of all parties: met[0] is then 1, or 0 where flag number `parties`
// was raised, which ends all waits. The flags are meeting_stride apart, in memory that all parties see while they run.
inline constexpr int meeting_stride = 32;
ISTHMUS_DECLARE_KERNEL(meet, isthmus::Index i, isthmus::View<std::int32_t> met, isthmus::View<std::int32_t> flags,
                       std::int32_t self, std::int32_t parties);

// Updates words that the host updates too. Each item raises control[0] and adds 1 to words[0] until the host raises
// control[1]; then control[2 + i] holds how often it added.
ISTHMUS_DECLARE_KERNEL(add_until_told, isthmus::Index i, AddedWords words, ControlWords control);
// The same, but the launch does not declare the updates: they cannot be checked.
ISTHMUS_DECLARE_KERNEL(add_unguarded_until_told, isthmus::Index i, ControlWords words, ControlWords control);
// The same, on slot i % size of a sharded counter.
ISTHMUS_DECLARE_KERNEL(count_until_told, isthmus::Index i, isthmus::ShardedCounterView counter, ControlWords control);
// The same, but stores pairs of equal numbers to pairs[0].
ISTHMUS_DECLARE_KERNEL(store_pairs_until_told, isthmus::Index i, isthmus::AtomicView<isthmus::Pair64> pairs,
                       ControlWords control);
ISTHMUS_DECLARE_KERNEL(count_items, isthmus::Index i, isthmus::ShardedCounterView counter);
// Every operation once on words[0] and wide[0]; `old` receives the result of each (20 places).
ISTHMUS_DECLARE_KERNEL(every_update, isthmus::Index i, NarrowWords words, WideWords wide,
                       isthmus::View<std::int64_t> old);
ISTHMUS_DECLARE_KERNEL(add_floats, isthmus::Index i, FloatWords single, DoubleWords twice);
// Adds 1 to words[0], sets bit i % 32 of words[1], raises words[2] to i.
ISTHMUS_DECLARE_KERNEL(update_words, isthmus::Index i, UpdatedWords words);
// Waits until gate[0] is raised, adds `by` to all of `data`, and raises gate[gate_line]. One item. The host raises the
// gate through a concurrent view; where nothing runs beside the host (the CPU device, a seeded simulator), before the
// launch.
inline constexpr int gate_line = 32;
ISTHMUS_DECLARE_KERNEL(when_raised, isthmus::Index i, isthmus::AtomicView<std::int32_t> gate,
                       isthmus::View<std::int32_t> data, std::int32_t by);
// Writes i + 1 to ring[i] and stores what it reads from ring[capacity + i], the same memory, in seen[i].
ISTHMUS_DECLARE_KERNEL(write_and_read_alias, isthmus::Index i, isthmus::View<std::int32_t> ring, std::uint64_t capacity,
                       isthmus::Out<std::int32_t> seen);
// The same without the fence between write and read: on a GPU the read is undefined.
ISTHMUS_DECLARE_KERNEL(write_and_read_alias_unfenced, isthmus::Index i, isthmus::View<std::int32_t> ring,
                       std::uint64_t capacity, isthmus::Out<std::int32_t> seen);
// words[0] = 1.
ISTHMUS_DECLARE_KERNEL(leave_mark, isthmus::Index i, isthmus::AtomicView<std::int32_t> words);

// One runtime for the whole process, in checked mode.
isthmus::Runtime& runtime();
// Closes it. main() calls this, so that leftovers of the scenarios can be counted.
void close_runtime();

// Runs body(device), or body with one or two new streams: body(device, stream, other).
template <class Body>
void play_on(isthmus::Device& device, Body& body) {
    using isthmus::Device;
    using isthmus::Stream;
    if constexpr (std::is_invocable_v<Body&, Device&>) {
        body(device);
    } else {
        Stream stream = device.create_stream().value();
        if constexpr (std::is_invocable_v<Body&, Device&, Stream>) {
            body(device, std::move(stream));
        } else {
            Stream other = device.create_stream().value();
            body(device, std::move(stream), std::move(other));
        }
    }
}

// Runs the body for every device, the CPU included, and names the device where something fails.
template <class Body>
void on_every_device(Body body) {
    for (std::size_t at = 0; at < runtime().device_count(); ++at) {
        isthmus::Device& device = *runtime().device(at).value();
        SCOPED_TRACE(std::string(device.name()) + " (" + std::string(isthmus::name(device.capabilities().model)) + ")");
        play_on(device, body);
    }
}

// Declare after memory that is not a buffer and that a launch uses: a scenario that ends early must not free it while a
// kernel runs.
struct Settled {
    explicit Settled(isthmus::Device& used) : device(used) {}
    Settled(const Settled&) = delete;
    Settled& operator=(const Settled&) = delete;
    ~Settled() {
        for (int attempt = 0; attempt < 3 && !device.synchronize(); ++attempt) {
        }
    }
    isthmus::Device& device;
};

// The number of driver calls. The simulator counts them; on a real driver the tests that need the number are skipped.
// −1: unknown.
long driver_calls();
// As above, of one driver function, by its exported name ("cuEventQuery").
long driver_calls(const char* function);

// False in a seeded simulator, which progresses inside driver calls only: a kernel that spins on the host would never
// end there.
inline bool work_runs_by_itself() {
    const char* const mode = std::getenv("ISTHMUS_SIM_MODE");
    return mode == nullptr || std::string_view(mode) != "seeded";
}

}  // namespace conformance
