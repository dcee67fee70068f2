// SPDX-License-Identifier: Apache-2.0
// ViewLock: every state of its word, every order in which three of its users can meet, and threads.
#include "view_lock.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using isthmus::detail::ViewLock;
using isthmus::rules::ViewWord;

TEST(ViewWord, OpensAtOnceBesideReadersOnlyAndAWriterBesideNobody) {  // keeps G8
    constexpr std::array<ViewWord::Bits, 5> readers{0, 1, 2, ViewWord::max_readers - 1, ViewWord::max_readers};
    for (ViewWord::Bits flags = 0; flags < ViewWord::reader; ++flags) {
        for (const ViewWord::Bits count : readers) {
            const ViewWord word{flags | count * ViewWord::reader};
            EXPECT_EQ(word.readers(), count);
            EXPECT_EQ(word.any_open(), count > 0 || word.has(ViewWord::writer) || word.has(ViewWord::others));
            EXPECT_EQ(word.ends(), word.has(ViewWord::abandoned) && !word.any_open());
            EXPECT_EQ(word.at_rest(), count == 0 && (flags == 0 || flags == ViewWord::read_only));
            EXPECT_EQ(word.claimed_again(),
                      count == 0 && (flags == ViewWord::slow || flags == (ViewWord::slow | ViewWord::read_only)));
            EXPECT_EQ(word.opens_at_once(true), flags == 0 && count == 0);
            const bool alone = (flags & ~(ViewWord::contended | ViewWord::read_only)) == 0;
            EXPECT_EQ(word.opens_at_once(false), alone && count < ViewWord::max_readers);
        }
    }
}

// A buffer that follows the lock's rules as BufferState does, split into steps between which other actors can run.
struct Toy {
    ViewLock lock;
    bool running = false;                       // device work that writes it
    int others = 0;                             // concurrent views
    int reading = 0, writing = 0, sharing = 0;  // fully opened views
    int ended = 0;
    int coming = 0;  // actors that may still open a view, and so hold the buffer
    std::string wrong;

    void judge() {
        const int plain = reading + writing;
        if ((writing > 0 && plain + sharing > 1) || (plain > 0 && sharing > 0)) wrong = "views that conflict are open";
        if (running && plain + sharing > 0) wrong = "a view is open beside device work";
        if (ended > 1 || (ended == 1 && plain + sharing > 0)) wrong = "ended twice, or below a view";
    }
};

enum class Actor { reader, writer, sharer, device, owner };

// One actor's way through its steps. step(): false where it has to wait for others.
class Walk {
public:
    explicit Walk(Actor actor) : actor_(actor) {}
    bool over() const { return at_ == done; }
    bool step(Toy& toy) {
        switch (actor_) {
            case Actor::device: return device(toy);
            case Actor::owner: return owner(toy);
            default: return view(toy);
        }
    }

private:
    static constexpr int done = 100;
    int& open(Toy& toy) const {
        return actor_ == Actor::reader ? toy.reading : actor_ == Actor::writer ? toy.writing : toy.sharing;
    }
    bool view(Toy& toy) {
        const bool writes = actor_ == Actor::writer;
        switch (at_) {
            case 0:
                if (actor_ == Actor::sharer || !toy.lock.open_at_once(writes)) return go(1);
                return opened(toy);
            case 1: return toy.lock.try_lock() && go(2);
            case 2: {
                const ViewWord seen = toy.lock.seen();
                const bool refused = seen.has(ViewWord::writer) || (seen.readers() > 0 && actor_ != Actor::reader) ||
                                     (toy.others > 0 && actor_ != Actor::sharer);
                if (refused) return go(5);
                if (actor_ == Actor::sharer) {
                    ++toy.others;
                    toy.lock.opened_another();
                } else {
                    toy.lock.opened(writes);
                }
                return go(3);
            }
            case 3:
                if (!toy.running) toy.lock.allow_at_once(false);
                toy.lock.unlock();
                return go(4);
            case 4: return !toy.running && opened(toy);  // waits for the device
            case 5:
                toy.lock.unlock();
                --toy.coming;
                return go(done);
            case 6:
                if (actor_ == Actor::sharer) return toy.lock.try_lock() && go(7);
                --open(toy);
                if (toy.lock.close(writes)) ++toy.ended;
                return go(done);
            default:
                --open(toy);
                if (--toy.others > 0) {
                    toy.lock.unlock();
                } else if (toy.lock.unlock_without_others()) {
                    ++toy.ended;
                }
                return go(done);
        }
    }
    bool device(Toy& toy) {
        switch (at_) {
            case 0: return toy.lock.try_lock() && go(1);
            case 1: return go(toy.lock.seen().any_open() ? 4 : 2);
            case 2: toy.lock.open_slowly(); return go(3);
            case 3:
                toy.running = true;
                toy.lock.unlock();
                return go(5);
            case 4: toy.lock.unlock(); break;
            default: toy.running = false; break;
        }
        --toy.coming;
        return go(done);
    }
    bool owner(Toy& toy) {
        if (toy.coming > 0) return false;
        if (toy.lock.abandon()) ++toy.ended;
        return go(done);
    }
    bool opened(Toy& toy) {
        ++open(toy);
        --toy.coming;
        return go(6);
    }
    bool go(int next) {
        at_ = next;
        return true;
    }
    Actor actor_;
    int at_ = 0;
};

// Plays the order that begins with `choices`, and then the first actor that can run.
struct Played {
    std::vector<std::size_t> choices;
    std::string wrong;
};
Played play(const std::vector<Actor>& actors, const std::vector<std::size_t>& choices, bool slow) {
    Toy toy;
    if (!slow) {
        toy.lock.lock();
        toy.lock.allow_at_once(false);
        toy.lock.unlock();
    }
    std::vector<Walk> walks(actors.begin(), actors.end());
    for (const Actor actor : actors) toy.coming += actor == Actor::owner ? 0 : 1;
    Played played;
    for (;;) {
        const std::size_t place = played.choices.size();
        std::size_t choice = place < choices.size() ? choices[place] : 0;
        while (choice < walks.size() && (walks[choice].over() || !walks[choice].step(toy))) ++choice;
        // This actor cannot continue here: not a valid order.
        if (place < choices.size() && choice != choices[place]) return played;
        if (choice == walks.size()) break;  // no actor can continue
        played.choices.push_back(choice);
        toy.judge();
        if (!toy.wrong.empty()) break;
    }
    played.wrong = toy.wrong;
    bool all = true;
    for (const Walk& walk : walks) all &= walk.over();
    if (!all && toy.wrong.empty()) played.wrong = "somebody waits for ever";
    if (all && toy.ended != 1) played.wrong = "not ended";
    return played;
}

TEST(ViewLock, KeepsConflictingUsesApartInEveryOrder) {  // keeps G8, G9
    const std::vector<std::vector<Actor>> casts{{Actor::reader, Actor::reader, Actor::device},
                                                {Actor::reader, Actor::writer, Actor::device},
                                                {Actor::sharer, Actor::reader, Actor::device},
                                                {Actor::reader, Actor::reader},
                                                {Actor::writer, Actor::writer},
                                                {Actor::sharer, Actor::sharer},
                                                {Actor::sharer, Actor::writer}};
    std::size_t orders = 0;
    for (std::vector<Actor> cast : casts) {
        cast.push_back(Actor::owner);
        for (const bool slow : {false, true}) {
            Played played = play(cast, {}, slow);
            for (bool more = true; more;) {
                ++orders;
                ASSERT_EQ(played.wrong, "") << ::testing::PrintToString(played.choices);
                // The next order: change the last place where a later actor can continue.
                std::vector<std::size_t> choices = played.choices;
                more = false;
                while (!choices.empty() && !more) {
                    while (!more && ++choices.back() < cast.size()) {
                        played = play(cast, choices, slow);
                        more = played.choices.size() >= choices.size();
                    }
                    if (!more) choices.pop_back();
                }
            }
        }
    }
    EXPECT_GT(orders, 10000u);
}

TEST(ViewLock, CountsReadersUpToItsLimit) {  // keeps G8
    ViewLock lock;
    EXPECT_FALSE(lock.open_at_once(false)) << "until somebody has looked";
    lock.lock();
    lock.allow_at_once(true);
    EXPECT_FALSE(lock.open_at_once(false)) << "while the lock is held";
    EXPECT_FALSE(lock.try_lock());
    lock.unlock();
    EXPECT_FALSE(lock.open_at_once(true)) << "memory for reading only";
    for (ViewWord::Bits count = 0; count < ViewWord::max_readers; ++count) ASSERT_TRUE(lock.open_at_once(false));
    EXPECT_FALSE(lock.open_at_once(false));
    EXPECT_FALSE(lock.abandon());
    for (ViewWord::Bits count = 1; count < ViewWord::max_readers; ++count) ASSERT_FALSE(lock.close(false));
    EXPECT_TRUE(lock.close(false)) << "the last one ends it";
}

// All sleepers are woken, although one unlock wakes one.
TEST(ViewLock, WakesAllThatSleep) {  // keeps K12
    ViewLock lock;
    int passed = 0;
    lock.lock();
    std::vector<std::thread> sleepers;
    for (int at = 0; at < 4; ++at) {
        sleepers.emplace_back([&] {
            const std::lock_guard held(lock);
            ++passed;
        });
    }
    while (!lock.seen().has(ViewWord::contended)) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that the others fall asleep, too
    lock.unlock();
    for (std::thread& each : sleepers) each.join();
    EXPECT_EQ(passed, 4);
    EXPECT_FALSE(lock.seen().has(ViewWord::locked | ViewWord::contended));
}

// Data without atomics, so that a thread sanitizer detects overlapping access.
TEST(ViewLock, ExcludesAndWakesThreads) {  // keeps G8, K12
    constexpr int rounds = 3000;
    ViewLock lock;
    int guarded = 0;  // by the lock
    int seen = 0;     // by views
    const auto with_lock = [&](bool slowly) {
        const std::lock_guard held(lock);
        ++guarded;
        if (slowly) lock.open_slowly();
        if (!slowly) lock.allow_at_once(false);
    };
    const auto open = [&](bool writes) {
        if (lock.open_at_once(writes)) return true;
        const std::lock_guard held(lock);
        const ViewWord word = lock.seen();
        if (word.has(ViewWord::writer) || (writes && word.readers() > 0)) return false;
        lock.opened(writes);
        return true;
    };
    int sum = 0;
    std::array<int, 4> written{};
    std::vector<std::thread> threads;
    for (std::size_t id = 0; id < written.size(); ++id) {
        threads.emplace_back([&, id] {
            for (int round = 0; round < rounds; ++round) {
                with_lock(round % 3 == 0);
                const bool writes = round % 4 == 0;
                if (!open(writes)) continue;
                if (writes) {
                    ++seen;
                    ++written[id];
                } else {
                    EXPECT_GE(seen, written[id]);
                }
                EXPECT_FALSE(lock.close(writes));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const int each : written) sum += each;
    EXPECT_EQ(seen, sum);
    EXPECT_EQ(guarded, rounds * static_cast<int>(written.size()));
    EXPECT_FALSE(lock.seen().any_open());
    EXPECT_FALSE(lock.seen().has(ViewWord::locked | ViewWord::contended));
}

}  // namespace
