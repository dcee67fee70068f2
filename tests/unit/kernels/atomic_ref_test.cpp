// SPDX-License-Identifier: Apache-2.0
// AtomicRef on the host, and as played by a simulated GPU whose updates are not atomic for the CPU. Compiled as a
// kernel file.
#include "shared_update.hpp"

#include <gtest/gtest.h>

#include <driver_abi/sim_registration.h>
#include <isthmus/atomic_pair.hpp>
#include <isthmus/atomic_ref.hpp>
#include <isthmus/facts.hpp>
#include <isthmus/mapping/alias_fence.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <thread>
#include <vector>

namespace {

using namespace isthmus;

template <class T>
class Words : public testing::Test {};
using WordTypes = testing::Types<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(Words, WordTypes);

// Every operation of an integer in turn; the same for every player.
template <class T>
void every_operation_gives_the_old_value_and_leaves_the_new_one() {
    T word = 12;
    const AtomicRef<T> ref(word);
    EXPECT_EQ(ref.load_acquire(), T{12});
    EXPECT_EQ(ref.add_relaxed(5), T{12});
    EXPECT_EQ(ref.sub_acq_rel(7), T{17});
    EXPECT_EQ(ref.min_relaxed(30), T{10});
    EXPECT_EQ(ref.min_relaxed(9), T{10});
    EXPECT_EQ(ref.max_acq_rel(4), T{9});
    EXPECT_EQ(ref.max_acq_rel(11), T{9});
    EXPECT_EQ(ref.and_relaxed(6), T{11});
    EXPECT_EQ(ref.or_relaxed(9), T{2});
    EXPECT_EQ(ref.xor_acq_rel(3), T{11});
    EXPECT_EQ(ref.exchange_acq_rel(20), T{8});
    T expected = 21;
    EXPECT_FALSE(ref.compare_exchange_relaxed(expected, 1));
    EXPECT_EQ(expected, T{20}) << "says what is there";
    EXPECT_TRUE(ref.compare_exchange_acq_rel(expected, 1));
    EXPECT_EQ(word, T{1});
    ref.store_release(std::numeric_limits<T>::max());
    EXPECT_EQ(ref.add_relaxed(1), std::numeric_limits<T>::max());
    EXPECT_EQ(word, std::numeric_limits<T>::min()) << "it wraps";
    if constexpr (std::numeric_limits<T>::is_signed) {
        EXPECT_EQ(ref.max_relaxed(-3), std::numeric_limits<T>::min());
        EXPECT_EQ(ref.min_relaxed(2), T{-3}) << "signed words compare as such";
        EXPECT_EQ(word, T{-3});
    }
}

TYPED_TEST(Words, GiveTheOldValueAndKeepTheNewOne) {
    every_operation_gives_the_old_value_and_leaves_the_new_one<TypeParam>();
}

// The words that updates by 1, 2, 4, 7 and 12 leave, in any order.
template <class Update>
std::set<std::uint32_t> outcomes_of(Update update) {
    std::array<std::uint32_t, 5> operands = {1, 2, 4, 7, 12};
    std::set<std::uint32_t> outcomes;
    do {
        std::uint32_t word = 5;
        for (const std::uint32_t operand : operands) update(AtomicRef<std::uint32_t>(word), operand);
        outcomes.insert(word);
    } while (std::next_permutation(operands.begin(), operands.end()));
    return outcomes;
}

// keeps G6: what order_free_updates holds, and no more, has one outcome in every order
TEST(Order, IsOfNoAccountForTheUpdatesThatSaySo) {
    using enum AtomicSet;
    using Ref = AtomicRef<std::uint32_t>;
    AtomicSet tried = load_store;
    const auto expect_said = [&](AtomicSet operation, auto update) {
        EXPECT_EQ(outcomes_of(update).size() == 1, contains(order_free_updates, operation))
            << static_cast<std::uint32_t>(operation);
        tried = tried | operation;
    };
    expect_said(add, [](Ref word, std::uint32_t by) { word.add_relaxed(by); });
    expect_said(add, [](Ref word, std::uint32_t by) { word.sub_relaxed(by); });
    expect_said(min, [](Ref word, std::uint32_t by) { word.min_relaxed(by); });
    expect_said(max, [](Ref word, std::uint32_t by) { word.max_relaxed(by); });
    expect_said(bit_and, [](Ref word, std::uint32_t by) { word.and_relaxed(by); });
    expect_said(bit_or, [](Ref word, std::uint32_t by) { word.or_relaxed(by); });
    expect_said(bit_xor, [](Ref word, std::uint32_t by) { word.xor_relaxed(by); });
    expect_said(exchange, [](Ref word, std::uint32_t by) { word.exchange_relaxed(by); });
    expect_said(compare_exchange, [](Ref word, std::uint32_t by) {
        std::uint32_t odd = word.load_relaxed();
        if (odd % 2 == 1) word.compare_exchange_relaxed(odd, by);
    });
    EXPECT_EQ(tried, of_words(all, false)) << "an operation of integers was not tried";
    // Floating-point words have addition only, and its order is not promised.
    EXPECT_EQ(of_words(all, true), float_add);
    EXPECT_EQ(of_words(order_free_updates, true), load_store);
    float large_first = 0, small_first = 0;
    for (const float term : {1e30F, -1e30F, 1.0F}) AtomicRef<float>(large_first).add_relaxed(term);
    for (const float term : {1.0F, 1e30F, -1e30F}) AtomicRef<float>(small_first).add_relaxed(term);
    EXPECT_EQ(large_first, 1.0F);
    EXPECT_EQ(small_first, 0.0F);
}

// What the CPU does in the middle of a non-atomic update of the GPU.
struct Middle {
    static inline int begun = 0, ended = 0;
    static inline void (*meanwhile)() = [] {};
    static constexpr SimulatedGpu gpu{[](const UpdateInfo*) { return ++begun; }, [] { meanwhile(); }, [] { ++ended; }};
};
struct Playing {
    explicit Playing(const SimulatedGpu& gpu) { detail::play_gpu(&gpu); }
    ~Playing() { detail::play_gpu(nullptr); }
};

TYPED_TEST(Words, AreTheSameForAGpuThatTakesUpdatesApartWhileNobodyElseWrites) {
    const Playing playing(Middle::gpu);
    Middle::begun = Middle::ended = 0;
    every_operation_gives_the_old_value_and_leaves_the_new_one<TypeParam>();
    EXPECT_GT(Middle::begun, 12);
    EXPECT_EQ(Middle::begun, Middle::ended);
}

// The simulator and the kernel files of a program are two binaries: they agree on the layouts. keeps G4
static_assert(sizeof(isthmus_sim_updates) == sizeof(SimulatedGpu) &&
              offsetof(isthmus_sim_updates, between) == offsetof(SimulatedGpu, between) &&
              offsetof(isthmus_sim_updates, end) == offsetof(SimulatedGpu, end));
static_assert(int{isthmus_sim_multimem_access} == int{multimem_access} &&
              sizeof(isthmus_sim_multimem) == sizeof(MultimemRequest) &&
              offsetof(isthmus_sim_multimem, addresses) == offsetof(MultimemRequest, addresses) &&
              offsetof(isthmus_sim_multimem, bytes) == offsetof(MultimemRequest, bytes) &&
              offsetof(isthmus_sim_multimem, writes) == offsetof(MultimemRequest, writes) &&
              offsetof(isthmus_sim_multimem, most) == offsetof(MultimemRequest, most) &&
              offsetof(isthmus_sim_multimem, count) == offsetof(MultimemRequest, count));
static_assert(sizeof(isthmus_sim_update) == sizeof(UpdateInfo) &&
              offsetof(isthmus_sim_update, operation) == offsetof(UpdateInfo, operation) &&
              offsetof(isthmus_sim_update, bytes) == offsetof(UpdateInfo, bytes) &&
              offsetof(isthmus_sim_update, is_signed) == offsetof(UpdateInfo, is_signed));

// keeps G4: the kernel file's functions ask the GPU that is played; those of host files ask nothing, although some
// have the same names.
TEST(TakenApart, HostFilesAskNoSimulator) {
    const Playing playing(Middle::gpu);
    Middle::begun = Middle::ended = 0;
    std::uint32_t word = 5;
    EXPECT_EQ(add_in_shared_function(word), 5u);
    EXPECT_EQ(Middle::begun, 1) << "a kernel's function asks, also where a host file has one of the same name";
    EXPECT_EQ(add_in_host_file(word), 6u);
    EXPECT_EQ(update_in_host_file(word), 7u);
    fence_in_host_file();
    EXPECT_EQ(word, 1u);
    EXPECT_EQ(Middle::begun, 1);
    alias_fence();
    EXPECT_EQ(Middle::begun, 2);
    EXPECT_EQ(Middle::ended, 1) << "a fence has no end";
}

std::uint32_t shared_word;

TEST(TakenApart, AnUpdateOfTheCpuInBetweenIsLost) {
    Middle::meanwhile = [] { std::atomic_ref<std::uint32_t>(shared_word).fetch_add(100); };
    const AtomicRef<std::uint32_t> ref(shared_word);
    {
        const Playing playing(Middle::gpu);
        shared_word = 1;
        EXPECT_EQ(ref.add_relaxed(1), 1u);
        EXPECT_EQ(shared_word, 2u) << "the CPU's 100 are gone";
        std::uint32_t expected = 2;
        EXPECT_TRUE(ref.compare_exchange_acq_rel(expected, 7));
        EXPECT_EQ(shared_word, 7u) << "a loop of compare and exchange does not help";
    }
    EXPECT_EQ(ref.add_relaxed(1), 7u);
    EXPECT_EQ(shared_word, 8u) << "the CPU's own update is in one piece";
    Middle::meanwhile = [] {};
}

TEST(TakenApart, WhereTheMemorysUpdatesAreAtomicNothingIs) {
    static constexpr SimulatedGpu gpu{[](const UpdateInfo*) { return 0; }, [] { ADD_FAILURE(); },
                                      [] { ADD_FAILURE(); }};
    const Playing playing(gpu);
    every_operation_gives_the_old_value_and_leaves_the_new_one<std::int32_t>();
}

UpdateInfo told;

TEST(TakenApart, WhoPlaysTheGpuIsToldOperationWidthAndSign) {
    static constexpr SimulatedGpu gpu{[](const UpdateInfo* update) {
                                          told = *update;
                                          return 0;
                                      },
                                      [] {}, [] {}};
    const Playing playing(gpu);
    const auto says = [](AtomicOperation operation, const void* word, std::uint32_t bytes, bool is_signed) {
        EXPECT_EQ(told.word, word);
        EXPECT_EQ(told.operation, static_cast<std::uint32_t>(operation));
        EXPECT_EQ(told.bytes, bytes);
        EXPECT_EQ(told.is_signed != 0, is_signed);
    };
    std::int64_t wide = 0;
    std::uint32_t narrow = 0;
    double number = 0;
    AtomicRef<std::int64_t>(wide).sub_relaxed(1);
    says(AtomicOperation::add, &wide, 8, true);
    AtomicRef<std::uint32_t>(narrow).max_relaxed(1);
    says(AtomicOperation::max, &narrow, 4, false);
    AtomicRef<std::uint32_t>(narrow).xor_relaxed(1);
    says(AtomicOperation::bit_xor, &narrow, 4, false);
    AtomicRef<std::uint32_t>(narrow).exchange_relaxed(1);
    says(AtomicOperation::exchange, &narrow, 4, false);
    std::int64_t expected = 0;
    AtomicRef<std::int64_t>(wide).compare_exchange_relaxed(expected, 1);
    says(AtomicOperation::compare_exchange, &wide, 8, true);
    AtomicRef<double>(number).add_relaxed(1);
    says(AtomicOperation::float_add, &number, 8, true);
}

template <class Number>
void adds_floats() {
    Number word = 1.5;
    const AtomicRef<Number, AtomicSet::float_add> ref(word);
    EXPECT_EQ(ref.add_relaxed(2), Number(1.5));
    EXPECT_EQ(ref.sub_acq_rel(1), Number(3.5));
    EXPECT_EQ(ref.load_relaxed(), Number(2.5));
    const Playing playing(Middle::gpu);
    EXPECT_EQ(ref.add_relaxed(2), Number(2.5));
    EXPECT_EQ(word, Number(4.5));
}
TEST(Words, FloatingPointNumbersAreAddedAndSubtracted) {
    adds_floats<float>();
    adds_floats<double>();
}

TEST(Words, OfSeveralThreadsLoseNothing) {
    std::uint64_t word = 0;
    std::uint32_t most = 0;
    std::vector<std::thread> threads;
    for (std::uint32_t thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            for (std::uint32_t i = 0; i < 10000; ++i) {
                AtomicRef<std::uint64_t>(word).add_relaxed(1);
                AtomicRef<std::uint32_t>(most).max_relaxed(i * 4 + thread);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(word, 40000u);
    EXPECT_EQ(most, 39999u);
}

TEST(Pairs, AreLoadedAndStoredWhole) {
    alignas(16) Pair64 pair{1, 2};
    const AtomicRef<Pair64, AtomicSet::load_store> ref(pair);
    EXPECT_EQ(ref.load_relaxed(), (Pair64{1, 2}));
    ref.store_relaxed({~std::uint64_t{0}, 4});
    EXPECT_EQ(ref.load_acquire(), (Pair64{~std::uint64_t{0}, 4}));
    ref.store_release({5, 6});
    EXPECT_EQ(pair, (Pair64{5, 6}));
}

template <class Ref, class V>
concept Adds = requires(Ref ref, V value) {
    ref.add_relaxed(value);
};
template <class Ref, class V>
concept Exchanges = requires(Ref ref, V value) {
    ref.exchange_acq_rel(value);
};
template <class Ref, class V>
concept TakesMaxima = requires(Ref ref, V value) {
    ref.max_relaxed(value);
};

TEST(Words, AllowWhatWasAskedForAndNothingElse) {  // keeps G3
    using enum AtomicSet;
    static_assert(Adds<AtomicRef<int, add>, int> && !Exchanges<AtomicRef<int, add>, int>);
    static_assert(!Adds<AtomicRef<int, load_store>, int> && !Adds<AtomicRef<const int>, int>);
    static_assert(Exchanges<AtomicRef<int, add | exchange>, int> && Adds<AtomicRef<int, add | exchange>, int>);
    static_assert(Adds<AtomicRef<float, float_add>, float> && !Adds<AtomicRef<float, add>, float>);
    static_assert(!Adds<AtomicRef<int, float_add>, int> && !TakesMaxima<AtomicRef<float>, float>);
    static_assert(contains(add | max, max) && !contains(add | max, max | min) && contains(add, load_store));
    const std::int32_t constant = 4;
    EXPECT_EQ(AtomicRef<const std::int32_t>(constant).load_acquire(), 4);
}

}  // namespace
