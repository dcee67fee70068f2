// SPDX-License-Identifier: Apache-2.0
// What an observer is told of a span: its begin, its end, and one refusal for a call.
// keeps O1
#include "observed.hpp"

#include "process.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace isthmus;
using detail::ObservedSpan;
using detail::Observer;

struct Told {
    std::vector<std::string> lines;
    std::vector<bool> barred;  // whether the runtime refuses calls of the thread meanwhile

    static void add(void* context, const char* what, std::string_view which, std::string_view name,
                    const ObservedFacts& facts) {
        Told& told = *static_cast<Told*>(context);
        std::string line = std::string(what) + " " + std::string(which) + " " + std::string(name);
        if (facts.code != Code::ok) line += " " + std::string(isthmus::name(facts.code));
        told.lines.push_back(line);
        told.barred.push_back(process::here.taken());
    }
    ObserverCallbacks callbacks() {
        ObserverCallbacks calls;
        calls.context = this;
        calls.begin = [](void* to, Span span, std::string_view name, const ObservedFacts& facts) noexcept {
            add(to, "begin", isthmus::name(span), name, facts);
        };
        calls.end = [](void* to, Span span, std::string_view name, const ObservedFacts& facts) noexcept {
            add(to, "end", isthmus::name(span), name, facts);
        };
        calls.mark = [](void* to, Mark mark, std::string_view name, const ObservedFacts& facts) noexcept {
            add(to, "mark", isthmus::name(mark), name, facts);
        };
        return calls;
    }
};

using Lines = std::vector<std::string>;

Result<int> fails() {
    return Error(Code::in_use, "a test");
}

TEST(ObservedSpans, TellBeginAndEnd) {
    Told told;
    const ObserverCallbacks callbacks = told.callbacks();
    const Observer observer(&callbacks);
    {
        ObservedSpan outer(observer, Span::launch, "k", [] { return ObservedFacts(); });
        observer.mark(Mark::upload, "k", [] { return ObservedFacts(); });
        ObservedSpan inner(observer, Span::wait, "w", [] { return ObservedFacts(); });
        inner.over(Result<int>(3));
    }
    EXPECT_EQ(told.lines, (Lines{"begin launch k", "mark upload k", "begin wait w", "end wait w", "end launch k"}));
}

// A callback runs where calls of the runtime are refused, and leaves the thread as it was.
TEST(ObservedSpans, BarCallsOfTheRuntimeMeanwhile) {
    Told told;
    const ObserverCallbacks callbacks = told.callbacks();
    const Observer observer(&callbacks);
    {
        const ObservedSpan span(observer, Span::copy, "c", [] { return ObservedFacts(); });
        EXPECT_FALSE(process::here.taken());
        observer.mark(Mark::fence, "f", [] { return ObservedFacts(); });
    }
    EXPECT_EQ(told.barred, (std::vector<bool>{true, true, true}));
    EXPECT_FALSE(process::here.taken());
    const process::OnStream here;
    observer.mark(Mark::fence, "f", [] { return ObservedFacts(); });
    EXPECT_TRUE(process::here.taken());
}

// A callback that uses the runtime, and is refused, is not told of that: it would not end.
TEST(ObservedSpans, TellNobodyOfWhatACallbackDoes) {
    struct Curious {
        const Observer* observer = nullptr;
        int told = 0;
    } curious;
    ObserverCallbacks callbacks;
    callbacks.context = &curious;
    callbacks.begin = [](void* context, Span, std::string_view, const ObservedFacts&) noexcept {
        Curious& it = *static_cast<Curious*>(context);
        ++it.told;
        ObservedSpan inside(*it.observer, Span::launch, "inside", [] { return ObservedFacts(); });
        it.observer->mark(Mark::fence, "inside", [] { return ObservedFacts(); });
        inside.over(fails());
        EXPECT_TRUE(process::here.taken());
    };
    const Observer observer(&callbacks);
    curious.observer = &observer;
    const ObservedSpan span(observer, Span::copy, "c", [] { return ObservedFacts(); });
    EXPECT_EQ(curious.told, 1);
    EXPECT_FALSE(process::here.taken());
}

TEST(ObservedSpans, MarkARefusalOnceForACall) {
    Told told;
    const ObserverCallbacks callbacks = told.callbacks();
    const Observer observer(&callbacks);
    {
        ObservedSpan outer(observer, Span::adopt, "outer", [] { return ObservedFacts(); });
        ObservedSpan inner(observer, Span::allocate, "inner", [] { return ObservedFacts(); });
        const Result<int> refused = inner.over(Error(Code::in_use, "a test"));
        outer.over(refused);
        EXPECT_EQ(refused.code(), Code::in_use);
    }
    EXPECT_EQ(told.lines, (Lines{"begin adopt outer", "begin allocate inner", "end allocate inner in_use",
                                 "mark refused outer in_use", "end adopt outer in_use"}));
}

// "Not yet" and "no more" are what was asked for.
TEST(ObservedSpans, MarkNoRefusalOfAnAnswer) {
    Told told;
    const ObserverCallbacks callbacks = told.callbacks();
    const Observer observer(&callbacks);
    for (const Code code : {Code::not_ready, Code::ended, Code::timed_out}) {
        ObservedSpan span(observer, Span::ring_next, "r", [] { return ObservedFacts(); });
        span.over(Result<int>(Error(code, "a test")));
    }
    EXPECT_EQ(told.lines,
              (Lines{"begin ring_next r", "end ring_next r not_ready", "begin ring_next r", "end ring_next r ended",
                     "begin ring_next r", "mark refused r timed_out", "end ring_next r timed_out"}));
}

TEST(ObservedSpans, StayOpenUnlessRefused) {
    Told told;
    const ObserverCallbacks callbacks = told.callbacks();
    const Observer observer(&callbacks);
    {
        ObservedSpan opened(observer, Span::host_view, "v", [] { return ObservedFacts(); });
        opened.over_if_refused(Result<int>(1));
    }
    EXPECT_EQ(told.lines, Lines{"begin host_view v"});
    {
        ObservedSpan refused(observer, Span::host_view, "v", [] { return ObservedFacts(); });
        refused.over_if_refused(fails());
    }
    EXPECT_EQ(told.lines,
              (Lines{"begin host_view v", "begin host_view v", "mark refused v in_use", "end host_view v in_use"}));
    told.lines.clear();
    {
        ObservedSpan next(observer, Span::copy, "c", [] { return ObservedFacts(); });
        next.over(fails());
    }
    EXPECT_EQ(told.lines[1], "mark refused c in_use");  // the view that stays open does not count as around it
}

TEST(ObservedSpans, MakeNoFactsWhereNobodyIsTold) {
    const Observer nobody;
    EXPECT_FALSE(nobody);
    bool made = false;
    const auto facts = [&] { return made = true, ObservedFacts(); };
    ObservedSpan span(nobody, Span::launch, "k", facts);
    nobody.mark(Mark::fence, "f", facts);
    EXPECT_EQ(span.facts(), nullptr);
    EXPECT_EQ(span.over(Error(Code::in_use, "a test")).code(), Code::in_use);
    EXPECT_FALSE(made);
}

TEST(ObservedSpans, CallOnlyTheFunctionsThatAreThere) {
    const ObserverCallbacks none;
    const Observer observer(&none);
    EXPECT_TRUE(observer);
    ObservedSpan span(observer, Span::launch, "k", [] { return ObservedFacts(); });
    observer.mark(Mark::fence, "f", [] { return ObservedFacts(); });
    span.over(fails());
    observer.end(Span::copy, "c", ObservedFacts());
}

TEST(ObserverCallbacks, AreReadableFromThisVersionsSizeOn) {
    ObserverCallbacks callbacks;
    EXPECT_TRUE(Observer::readable(callbacks));
    callbacks.size += 8;
    EXPECT_TRUE(Observer::readable(callbacks));
    callbacks.size = sizeof(ObserverCallbacks) - 1;
    EXPECT_FALSE(Observer::readable(callbacks));
}

// Each span and each mark has a name of its own; a value beyond them has none.
TEST(ObservedNames, AreThereForEachValue) {
    std::vector<std::string_view> all;
    for (std::uint32_t value = 0; value < span_count; ++value) all.push_back(name(static_cast<Span>(value)));
    for (std::uint32_t value = 0; value < mark_count; ++value) all.push_back(name(static_cast<Mark>(value)));
    for (std::size_t at = 0; at < all.size(); ++at) {
        EXPECT_FALSE(all[at].empty());
        EXPECT_NE(all[at], "unknown");
        for (std::size_t before = 0; before < at; ++before) EXPECT_NE(all[at], all[before]);
    }
    EXPECT_EQ(name(static_cast<Span>(span_count)), "unknown");
    EXPECT_EQ(name(static_cast<Mark>(mark_count)), "unknown");
}

}  // namespace
