// SPDX-License-Identifier: Apache-2.0
// The search. A state is each thread's answers so far, the cells' histories and the views.
#include "explorer.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <unordered_set>
#include <utility>

namespace protocols {
namespace {

struct NextStep {
    Step step;
};

constexpr std::size_t max_cells = 24;
using View = std::array<std::uint8_t, max_cells>;

void join(View& view, const View& other) {
    for (std::size_t cell = 0; cell < max_cells; ++cell) view[cell] = std::max(view[cell], other[cell]);
}

struct Entry {  // one store in a cell's history
    std::uint64_t value = 0;
    View carries{};
    Scope scope = Scope::system;
    Side side = Side::host;
    bool modifies = false;  // what a read-modify-write stored, which read the entry before it
};

struct LateLoad {  // its value was guessed; an entry from `from` on must turn out to hold it
    std::uint32_t cell;
    std::uint64_t value;
    std::uint8_t from;
};

struct ThreadState {
    std::size_t node = 0;
    View now{};       // the oldest entries that it may still read
    View acquired{};  // merged by the next acquire fence
    View released{};  // what relaxed stores carry: the view at the last release fence
    std::vector<LateLoad> late;
};

struct State {
    std::vector<ThreadState> threads;
    std::vector<std::vector<Entry>> cells;
    View sequential{};
};

// A thread's next step depends only on its answers so far. They form a tree, and each node of it is run once.
struct Node {
    std::vector<std::uint64_t> answers;
    Step next;
    std::vector<std::uint64_t> notes;
    std::map<std::uint64_t, std::size_t> children;
};

struct Hash {
    std::size_t operator()(const std::pair<std::uint64_t, std::uint64_t>& key) const noexcept { return key.first; }
};

}  // namespace

std::uint64_t Memory::ask(const Step& step) {
    if (at_ < answers_.size()) return answers_[at_++];
    throw NextStep{step};
}
std::uint64_t Memory::load(std::uint32_t cell, Order order, Scope scope) {
    if (cell >= cells_) throw NextStep{{Step::Kind::wild}};
    return ask({Step::Kind::load, cell, 0, order, scope});
}
void Memory::store(std::uint32_t cell, std::uint64_t value, Order order, Scope scope) {
    if (cell >= cells_) throw NextStep{{Step::Kind::wild}};
    (void)ask({Step::Kind::store, cell, value, order, scope});
}
std::uint64_t Memory::exchange(std::uint32_t cell, std::uint64_t value, Ordered ordered, Scope scope) {
    return modify({Step::Kind::modify, cell, value, Order::relaxed, scope, {}, Modify::exchange, ordered});
}
std::uint64_t Memory::bit_or(std::uint32_t cell, std::uint64_t bits, Ordered ordered, Scope scope) {
    return modify({Step::Kind::modify, cell, bits, Order::relaxed, scope, {}, Modify::bit_or, ordered});
}
std::uint64_t Memory::add(std::uint32_t cell, std::uint64_t value, Ordered ordered, Scope scope) {
    return modify({Step::Kind::modify, cell, value, Order::relaxed, scope, {}, Modify::add, ordered});
}
std::uint64_t Memory::compare_exchange(std::uint32_t cell, std::uint64_t expected, std::uint64_t value, Ordered ordered,
                                       Scope scope) {
    return modify(
        {Step::Kind::modify, cell, value, Order::relaxed, scope, {}, Modify::compare_exchange, ordered, expected});
}
std::uint64_t Memory::modify(const Step& step) {
    if (step.cell >= cells_) throw NextStep{{Step::Kind::wild}};
    return ask(step);
}
void Memory::fence(Fence kind) {
    (void)ask({Step::Kind::fence, 0, 0, Order::ordered, Scope::system, kind});
}
void Memory::give_up() {
    throw NextStep{{Step::Kind::hopeless}};
}

class Explorer {
public:
    Explorer(std::uint32_t cells, const std::vector<Thread>& threads, std::size_t max_states)
        : cell_count_(cells), threads_(threads), max_states_(max_states), values_(cells), trees_(threads.size()) {
        for (std::size_t thread = 0; thread < threads.size(); ++thread) make_node(thread, {});
    }

    Exploration run() {
        // A late load guesses among the values that some execution stores: repeated until no new value is found.
        std::size_t known = 0;
        do {
            known = count_values();
            found_ = {};
            seen_.clear();
            search();
        } while (count_values() != known && found_.whole);
        return std::move(found_);
    }

private:
    std::size_t count_values() const {
        std::size_t count = 0;
        for (const std::set<std::uint64_t>& values : values_) count += values.size();
        return count;
    }

    std::size_t make_node(std::size_t thread, std::vector<std::uint64_t> answers) {
        Node node;
        node.answers = std::move(answers);
        Memory memory(node.answers, cell_count_);
        try {
            threads_[thread].body(memory);
            node.next = {Step::Kind::end};
        } catch (const NextStep& next) {
            node.next = next.step;
        }
        node.notes = std::move(memory.notes_);
        trees_[thread].push_back(std::move(node));
        return trees_[thread].size() - 1;
    }
    const Node& node(const State& state, std::size_t thread) const {
        return trees_[thread][state.threads[thread].node];
    }
    void answer(State& state, std::size_t thread, std::uint64_t value) {
        const std::size_t at = state.threads[thread].node;
        const auto known = trees_[thread][at].children.find(value);
        if (known != trees_[thread][at].children.end()) {
            state.threads[thread].node = known->second;
            return;
        }
        std::vector<std::uint64_t> answers = trees_[thread][at].answers;
        answers.push_back(value);
        const std::size_t made = make_node(thread, std::move(answers));
        trees_[thread][at].children.emplace(value, made);
        state.threads[thread].node = made;
    }

    void search() {
        State first;
        first.threads.resize(threads_.size());
        first.cells.assign(cell_count_, {Entry{}});
        push(std::move(first));
        while (!stack_.empty()) {
            const State state = std::move(stack_.back());
            stack_.pop_back();
            expand(state);
        }
    }
    void expand(const State& state) {
        bool all_ended = true;
        for (std::size_t thread = 0; thread < threads_.size(); ++thread) {
            const Step step = node(state, thread).next;  // a copy, because the tree grows meanwhile
            if (step.kind == Step::Kind::end && state.threads[thread].late.empty()) continue;
            all_ended = false;
            advance(state, thread, step);
            // No other thread observes these steps, so no other order has to be tried.
            const bool alone =
                step.kind == Step::Kind::end || (step.kind == Step::Kind::fence && step.fence != Fence::sequential);
            if (alone) return;
        }
        if (!all_ended) return;
        Outcome outcome;
        for (std::size_t thread = 0; thread < threads_.size(); ++thread) outcome.push_back(node(state, thread).notes);
        found_.outcomes.insert(std::move(outcome));
    }

    void advance(const State& before, std::size_t thread, const Step& step) {
        State state = before;
        // A release of device scope orders nothing for the other side.
        const bool stores_ordered = step.kind == Step::Kind::store
                                        ? step.order == Order::ordered
                                        : step.kind == Step::Kind::modify && releases(step.ordered);
        const bool releases = stores_ordered && step.scope == Scope::system;
        const bool settles =
            step.kind == Step::Kind::end || step.kind == Step::Kind::wild || step.kind == Step::Kind::fence || releases;
        if (!settle(state, thread, settles ? nullptr : &step.cell)) return;
        switch (step.kind) {
            case Step::Kind::end: push(std::move(state)); return;
            case Step::Kind::load: load(state, thread, step); return;
            case Step::Kind::store: store(state, thread, step); return;
            case Step::Kind::modify: modify(state, thread, step); return;
            case Step::Kind::fence: fence(std::move(state), thread, step.fence); return;
            case Step::Kind::wild: found_.wild = true; return;
            case Step::Kind::hopeless: return;
        }
    }

    // Carries out the thread's late loads now (cell nullptr: all, else those of that cell). false: a guess was wrong.
    bool settle(State& state, std::size_t thread, const std::uint32_t* cell) {
        ThreadState& own = state.threads[thread];
        bool right = true;
        std::erase_if(own.late, [&](const LateLoad& load) {
            if (cell != nullptr && load.cell != *cell) return false;
            const std::vector<Entry>& history = state.cells[load.cell];
            for (std::size_t at = load.from; at < history.size(); ++at) {
                if (history[at].value != load.value) continue;
                note_read(state, thread, load.cell, at, Order::relaxed, Scope::system);
                return true;
            }
            right = false;
            return true;
        });
        return right;
    }

    void note_read(State& state, std::size_t thread, std::uint32_t cell, std::size_t at, Order order, Scope scope) {
        ThreadState& own = state.threads[thread];
        const Entry& entry = state.cells[cell][at];
        own.now[cell] = std::max(own.now[cell], static_cast<std::uint8_t>(at));
        own.acquired[cell] = std::max(own.acquired[cell], own.now[cell]);
        const bool meets =
            entry.side == threads_[thread].side || (entry.scope == Scope::system && scope == Scope::system);
        if (!meets) return;
        join(own.acquired, entry.carries);
        if (order == Order::ordered) join(own.now, entry.carries);
    }

    void load(const State& before, std::size_t thread, const Step& step) {
        const std::vector<Entry>& history = before.cells[step.cell];
        const std::uint8_t from = before.threads[thread].now[step.cell];
        std::set<std::uint64_t> readable;
        for (std::size_t at = from; at < history.size(); ++at) {
            State state = before;
            readable.insert(history[at].value);
            note_read(state, thread, step.cell, at, step.order, step.scope);
            answer(state, thread, history[at].value);
            push(std::move(state));
        }
        if (step.order == Order::ordered) return;
        for (const std::uint64_t value : values_[step.cell]) {
            if (readable.count(value) != 0) continue;
            State state = before;
            state.threads[thread].late.push_back({step.cell, value, from});
            answer(state, thread, value);
            push(std::move(state));
        }
    }

    static bool acquires(Ordered ordered) { return ordered == Ordered::acquire || ordered == Ordered::both; }
    static bool releases(Ordered ordered) { return ordered == Ordered::release || ordered == Ordered::both; }

    void store(const State& before, std::size_t thread, const Step& step) {
        values_[step.cell].insert(step.value);
        const std::size_t size = before.cells[step.cell].size();
        for (std::size_t at = before.threads[thread].now[step.cell] + std::size_t{1}; at <= size; ++at) {
            // Not between a read-modify-write and what it read.
            if (at < size && before.cells[step.cell][at].modifies) continue;
            State state = before;
            enter(state, thread, step, at, step.value, step.order == Order::ordered);
            answer(state, thread, 0);
            push(std::move(state));
        }
    }

    void modify(const State& before, std::size_t thread, const Step& step) {
        const std::vector<Entry>& history = before.cells[step.cell];
        for (std::size_t at = before.threads[thread].now[step.cell]; at < history.size(); ++at) {
            const Entry read = history[at];
            const bool fails = step.modify == Modify::compare_exchange && read.value != step.expected;
            if (!fails && at + 1 < history.size() && history[at + 1].modifies) continue;  // another one has read it
            State state = before;
            const bool acquiring = !fails && acquires(step.ordered);
            note_read(state, thread, step.cell, at, acquiring ? Order::ordered : Order::relaxed, step.scope);
            if (!fails) {
                const std::uint64_t made = modified(step, read.value);
                values_[step.cell].insert(made);
                enter(state, thread, step, at + 1, made, releases(step.ordered));
                Entry& entry = state.cells[step.cell][at + 1];
                entry.modifies = true;
                join(entry.carries, read.carries);
            }
            answer(state, thread, read.value);
            push(std::move(state));
        }
    }
    static std::uint64_t modified(const Step& step, std::uint64_t value) {
        switch (step.modify) {
            case Modify::bit_or: return value | step.value;
            case Modify::add: return value + step.value;
            case Modify::exchange:
            case Modify::compare_exchange: break;
        }
        return step.value;
    }

    // The thread's store becomes entry `at` of its cell; those from there on move up.
    void enter(State& state, std::size_t thread, const Step& step, std::size_t at, std::uint64_t value, bool ordered) {
        std::vector<Entry>& history = state.cells[step.cell];
        if (at < history.size()) move_up(state, step.cell, static_cast<std::uint8_t>(at));
        ThreadState& own = state.threads[thread];
        const auto place = static_cast<std::uint8_t>(at);
        own.now[step.cell] = place;
        own.acquired[step.cell] = std::max(own.acquired[step.cell], place);
        Entry entry{value, ordered ? own.now : own.released, step.scope, threads_[thread].side};
        entry.carries[step.cell] = place;
        history.insert(history.begin() + static_cast<std::ptrdiff_t>(at), entry);
    }
    static void move_up(State& state, std::uint32_t cell, std::uint8_t from) {
        const auto move = [&](View& view) { view[cell] += view[cell] >= from ? std::uint8_t{1} : std::uint8_t{0}; };
        for (ThreadState& thread : state.threads) {
            move(thread.now);
            move(thread.acquired);
            move(thread.released);
            for (LateLoad& load : thread.late) {
                if (load.cell == cell && load.from >= from) ++load.from;
            }
        }
        for (std::vector<Entry>& history : state.cells) {
            for (Entry& entry : history) move(entry.carries);
        }
        move(state.sequential);
    }

    void fence(State state, std::size_t thread, Fence kind) {
        ThreadState& own = state.threads[thread];
        if (kind != Fence::release) own.now = own.acquired;
        if (kind == Fence::sequential) {
            join(own.now, state.sequential);
            state.sequential = own.now;
            own.acquired = own.now;
        }
        if (kind != Fence::acquire) own.released = own.now;
        answer(state, thread, 0);
        push(std::move(state));
    }

    // Drops entries that no thread can read any more, so that states which differ only in them become one.
    void forget(State& state) const {
        for (std::uint32_t cell = 0; cell < cell_count_; ++cell) {
            std::size_t oldest = state.cells[cell].size() - 1;
            for (const ThreadState& thread : state.threads) {
                oldest = std::min<std::size_t>(oldest, thread.now[cell]);
                for (const LateLoad& load : thread.late) {
                    if (load.cell == cell) oldest = std::min<std::size_t>(oldest, load.from);
                }
            }
            if (oldest == 0) continue;
            const auto less = static_cast<std::uint8_t>(oldest);
            const auto lower = [&](std::uint8_t& at) { at = at > less ? static_cast<std::uint8_t>(at - less) : 0; };
            state.cells[cell].erase(state.cells[cell].begin(),
                                    state.cells[cell].begin() + static_cast<std::ptrdiff_t>(oldest));
            for (std::vector<Entry>& history : state.cells) {
                for (Entry& entry : history) lower(entry.carries[cell]);
            }
            lower(state.sequential[cell]);
            for (ThreadState& thread : state.threads) {
                lower(thread.now[cell]);
                lower(thread.acquired[cell]);
                lower(thread.released[cell]);
                for (LateLoad& load : thread.late) {
                    if (load.cell == cell) lower(load.from);
                }
            }
        }
    }

    std::pair<std::uint64_t, std::uint64_t> key_of(const State& state) const {
        std::uint64_t first = 0xcbf29ce484222325u;
        std::uint64_t second = 0x9e3779b97f4a7c15u;
        const auto mix = [&](std::uint64_t value) {
            first = (first ^ value) * 0x100000001b3u;
            second = (second + value) * 0xff51afd7ed558ccdu;
            second ^= second >> 29;
        };
        const auto mix_view = [&](const View& view) {
            for (std::uint32_t cell = 0; cell < cell_count_; ++cell) mix(view[cell]);
        };
        for (const ThreadState& thread : state.threads) {
            mix(thread.node);
            mix_view(thread.now);
            mix_view(thread.acquired);
            mix_view(thread.released);
            mix(thread.late.size());
            for (const LateLoad& load : thread.late) {
                mix((std::uint64_t{load.cell} << 8) + load.from);
                mix(load.value);
            }
        }
        for (const std::vector<Entry>& history : state.cells) {
            mix(history.size());
            for (const Entry& entry : history) {
                mix(entry.value);
                mix((std::uint64_t{entry.modifies} << 2) + (static_cast<std::uint64_t>(entry.scope) << 1) +
                    static_cast<std::uint64_t>(entry.side));
                mix_view(entry.carries);
            }
        }
        mix_view(state.sequential);
        return {first, second};
    }

    void push(State state) {
        forget(state);
        if (!seen_.insert(key_of(state)).second) return;
        if (seen_.size() > max_states_) {
            found_.whole = false;
            stack_.clear();
            return;
        }
        found_.states = seen_.size();
        stack_.push_back(std::move(state));
    }

    const std::uint32_t cell_count_;
    const std::vector<Thread>& threads_;
    const std::size_t max_states_;
    std::vector<std::set<std::uint64_t>> values_;
    std::vector<std::vector<Node>> trees_;
    std::vector<State> stack_;
    std::unordered_set<std::pair<std::uint64_t, std::uint64_t>, Hash> seen_;
    Exploration found_;
};

Exploration explore(std::uint32_t cells, const std::vector<Thread>& threads, std::size_t max_states) {
    Exploration none;
    none.whole = false;
    if (cells > max_cells) return none;
    return Explorer(cells, threads, max_states).run();
}

}  // namespace protocols
