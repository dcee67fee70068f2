// SPDX-License-Identifier: Apache-2.0
// NvtxObserver with a tool that NVTX itself loads.
// keeps O2
#include <isthmus/nvtx.hpp>

#include "nvtx_tool.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace isthmus;

using nvtx_tool::told;

TEST(NvtxObservers, TellOfRangesAndMarks) {
    int next_told = 0;
    ObserverCallbacks next;
    next.context = &next_told;
    next.begin = [](void* to, Span, std::string_view, const ObservedFacts&) noexcept { ++*static_cast<int*>(to); };
    next.end = next.begin;
    next.mark = [](void* to, Mark, std::string_view, const ObservedFacts&) noexcept { ++*static_cast<int*>(to); };
    NvtxObserver observer(&next);
    const std::string names = told();
    EXPECT_EQ(names.substr(0, names.find('\n')), "domain isthmus");
    EXPECT_NE(names.find("category 1 launch\n"), std::string::npos) << names;
    EXPECT_NE(names.find("category 18 upload\n"), std::string::npos) << names;
    const ObserverCallbacks& to = *observer.callbacks();
    ObservedFacts facts;
    facts.bytes = 42;
    to.begin(to.context, Span::host_view, "a view for reading", facts);
    to.begin(to.context, Span::wait, "brighten", facts);
    to.mark(to.context, Mark::fence, "an event", facts);
    to.mark(to.context, Mark::argument, "read", facts);  // for the next observer alone
    to.end(to.context, Span::wait, "brighten", facts);
    to.end(to.context, Span::host_view, "a view for reading", facts);
    facts.code = Code::in_use;
    facts.error = "C012";
    to.mark(to.context, Mark::refused, "k", facts);
    EXPECT_EQ(told(),
              "mark opened: a view for reading 8\npush wait: brighten 9 42\nmark fence: an event 20\npop\n"
              "mark closed: a view for reading 8\nmark refused: C012 24\n");
    EXPECT_EQ(next_told, 7);
    const std::string longer(500, 'x');
    to.begin(to.context, Span::launch, longer, facts);
    EXPECT_EQ(told().size(), std::string("push  1 42\n").size() + 159);  // cut, and ended with 0
}

}  // namespace
