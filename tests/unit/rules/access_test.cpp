// SPDX-License-Identifier: Apache-2.0
// Which side may access which memory: the platform table's columns, the numbered promises, and every combination of
// attributes.
#include "some_devices.hpp"

#include <access_rules.hpp>
#include <launch_path.hpp>

#include <map>
#include <vector>

namespace {

using namespace isthmus;
using namespace isthmus::rules;
using namespace some_devices;
using K = MemoryKind;
using V = Verdict;

TEST(Access, FollowsTheTableOfWhoMayTouchWhat) {  // keeps A2, A3, A6, A7, A8
    // Columns: host memory by CPU and GPU, managed by CPU (at any time) and GPU, pinned by both, device by CPU and GPU.
    const std::map<std::string, std::string> table = {
        {"h200", "host:cpu managed:both pinned:both registered:both device:gpu"},
        {"rtx-wsl2", "host:cpu managed:gpu pinned:both registered:both device:gpu"},
        {"rtx-hmm", "host:both managed:both pinned:both registered:both device:gpu"},
        {"b300-hmm", "host:both managed:both pinned:both registered:both device:gpu"},
        {"orin", "host:cpu managed:gpu pinned:both registered:both device:gpu"},
        {"thor", "host:both managed:both pinned:both registered:both device:gpu"},
        {"gb10", "host:both managed:both pinned:both registered:both device:gpu"},
        {"gh200-numa", "host:both managed:both pinned:both registered:both device:gpu"},
        {"gh200-cdmm", "host:both managed:both pinned:both registered:both device:gpu"},
        {"gb200", "host:both managed:both pinned:both registered:both device:gpu"},
    };
    for (const auto& [machine, expected] : table) {
        const Capabilities c = of_machine(machine);
        std::string found;
        for (const K kind : {K::host, K::managed, K::pinned, K::registered, K::device}) {
            const bool host = static_cast<bool>(host_access(c, kind));
            const bool gpu = static_cast<bool>(device_access(c, kind));
            found += (found.empty() ? "" : " ") + std::string(name(kind)) + ":" +
                     (host && gpu ? "both"
                      : host      ? "cpu"
                      : gpu       ? "gpu"
                                  : "none");
        }
        EXPECT_EQ(found, expected) << machine;
    }
}

// The promises for the host, as documented; those for devices: promised_to_device().
V promised_to_host(unsigned bits, K kind) {
    switch (kind) {
        case K::device:
        case K::pool:
        case K::graph:
        case K::imported: return V::no;  // A6
        case K::managed:
        case K::managed_pool: return bit(bits, 83) && bit(bits, 89) ? V::yes : V::no;  // A8
        case K::unknown:
        case K::vmm: return V::not_verified;
        default: break;
    }
    return V::yes;
}

TEST(Access, KeepsItsPromisesForEveryKindAndCombination) {  // keeps A1, A2, A3, A6, A7, A8, A9, A16
    for (unsigned bits = 0; bits < combinations; ++bits) {
        const Capabilities c = of_bits(bits);
        std::uint32_t reachable = 0;
        for_every_kind([&](K kind) {
            EXPECT_EQ(device_access(c, kind).verdict, promised_to_device(bits, kind)) << name(kind) << " " << bits;
            EXPECT_EQ(host_access(c, kind).verdict, promised_to_host(bits, kind)) << name(kind) << " " << bits;
            if (promised_to_device(bits, kind) == V::yes) reachable |= 1u << static_cast<int>(kind);
        });
        EXPECT_EQ(reachable_kinds(c), reachable) << bits;
    }
}

void expect_taught(const AccessAnswer& answer) {
    EXPECT_FALSE(answer.reason.empty());
    EXPECT_EQ(answer.remedy.empty(), answer.verdict == V::yes) << answer.reason;
}

TEST(Access, EveryRefusalNamesAReasonAndARemedy) {
    for (unsigned bits = 0; bits < combinations; ++bits) {
        const Capabilities c = of_bits(bits);
        for_every_kind([&](K kind) {
            expect_taught(device_access(c, kind));
            expect_taught(host_access(c, kind));
            expect_taught(peer_access(c, c, kind, {}));
            EXPECT_FALSE(launch_path(c, kind).reason.empty());
        });
    }
    for_every_kind([&](K kind) { expect_taught(device_access(cpu(), kind)); });
}

TEST(Access, DeviceMemoryOfAnotherGpuFollowsPeerAccessOnly) {  // keeps A4, A5, A15
    const Capabilities a = of_machine("h200-x2", 0);
    const Capabilities b = of_machine("h200-x2", 1);
    // Memory imported by a legacy IPC handle is opened for its device, as that device's own memory.
    for (const K kind : {K::device, K::imported}) {
        EXPECT_FALSE(peer_access(a, b, kind, {false, true}));
        EXPECT_TRUE(peer_access(a, b, kind, {true, false}));
        EXPECT_EQ(foreign_access(a, b, kind, false, {}).verdict, V::not_verified);
    }
    EXPECT_EQ(device_access(cpu(), K::imported).verdict, V::no);
    EXPECT_FALSE(peer_access(a, b, K::pool, {true, false})) << "peer access does not open a pool";
    EXPECT_TRUE(peer_access(a, b, K::pool, {false, true}));
    EXPECT_EQ(peer_access(a, b, K::unknown, {true, true}).verdict, V::not_verified);  // keeps A9
    EXPECT_EQ(peer_access(a, b, K::vmm, {true, true}).verdict, V::not_verified);      // keeps A16
}

TEST(Access, ManagedMemoryOfAnotherGpuFollowsTheAskingDeviceOnly) {  // keeps A7
    for (const bool peer : {false, true}) {
        const PeerState state{peer, peer};
        EXPECT_TRUE(peer_access(of_machine("h200"), of_machine("orin"), K::managed, state));
        EXPECT_FALSE(peer_access(of_bits(0), of_machine("h200"), K::managed, state));
    }
}

TEST(Access, HostMemoryIsAskedOfTheDeviceWhoeverAllocatedIt) {  // keeps A3, D8
    const Capabilities coherent = of_machine("station", 0);
    const Capabilities pcie = of_machine("station", 1);
    EXPECT_TRUE(peer_access(coherent, pcie, K::host, {}));
    EXPECT_FALSE(peer_access(pcie, coherent, K::host, {}));
    EXPECT_TRUE(peer_access(pcie, coherent, K::pinned, {}));
}

TEST(Access, TheCpuDeviceAnswersAsTheHost) {  // keeps A6, A14 (the fine query)
    const Capabilities gpu = of_machine("gh200-numa");
    for_every_kind([&](K kind) {
        EXPECT_EQ(peer_access(cpu(), gpu, kind, {true, true}).verdict, host_access(gpu, kind).verdict) << name(kind);
    });
    EXPECT_TRUE(device_access(cpu(), K::device)) << "its own memory";
    EXPECT_FALSE(device_access(cpu(), K::managed));
    EXPECT_FALSE(peer_access(of_machine("h200"), cpu(), K::device, {true, true})) << "it is pageable host memory";
    EXPECT_TRUE(peer_access(of_machine("thor"), cpu(), K::pool, {}));
}

TEST(Access, AFailedProbeNeverOpensAccess) {  // keeps D10
    for (unsigned bits = 0; bits < combinations; ++bits) {
        const Capabilities before = of_bits(bits);
        for (const Feature feature : {Feature::pageable_access, Feature::host_page_tables, Feature::managed,
                                      Feature::concurrent_managed, Feature::integrated, Feature::unified_addressing}) {
            Capabilities after = before;
            platform::apply_probe(after, {feature, false, 0, "it failed"});
            for_every_kind([&](K kind) {
                EXPECT_LE(static_cast<bool>(device_access(after, kind)),
                          static_cast<bool>(device_access(before, kind)));
                EXPECT_LE(static_cast<bool>(host_access(after, kind)), static_cast<bool>(host_access(before, kind)));
            });
        }
    }
}

TEST(Access, ForeignMemoryAnswersByKindAndAnothersIsNeverAPlainNo) {  // keeps A9, A10, A11
    for (unsigned bits = 0; bits < combinations; ++bits) {
        const Capabilities c = of_bits(bits);
        for_every_kind([&](K kind) {
            const bool by_peer_access = kind == K::device || kind == K::imported;
            const bool on_device = by_peer_access || kind == K::pool || kind == K::graph;
            for (const PeerState state : {PeerState{false, false}, PeerState{true, false}, PeerState{true, true}}) {
                const AccessAnswer other = foreign_access(c, c, kind, false, state);
                const AccessAnswer own = foreign_access(c, c, kind, true, state);
                EXPECT_EQ(own.verdict, promised_to_device(bits, kind)) << name(kind) << " " << bits;
                const bool opened = by_peer_access && state.peer_access;
                const V unopened = opened ? V::yes : V::not_verified;
                EXPECT_EQ(other.verdict, on_device ? unopened : promised_to_device(bits, kind)) << name(kind);
                EXPECT_EQ(other.remedy.empty(), other.verdict == V::yes) << other.reason;
                EXPECT_EQ(foreign_access(cpu(), c, kind, false, state).verdict, promised_to_host(bits, kind));
            }
        });
    }
}

TEST(Access, AnAddressThatTheDeviceKnowsByAnotherNameIsNotAYes) {  // keeps A10
    const AccessAnswer yes{V::yes, "by kind", {}};
    const Capabilities wsl2 = of_machine("rtx-wsl2");  // 91=0
    const Capabilities h200 = of_machine("h200");      // 91=1
    EXPECT_EQ(by_address(wsl2, K::registered, {}, yes).verdict, V::no);
    EXPECT_EQ(by_address(wsl2, K::registered, {.device_address = true}, yes).verdict, V::yes);
    EXPECT_EQ(by_address(h200, K::registered, {}, yes).verdict, V::yes);
    EXPECT_EQ(by_address(h200, K::write_combined, {}, yes).verdict, V::not_verified);
    EXPECT_EQ(by_address(wsl2, K::pinned, {}, yes).verdict, V::yes);
    EXPECT_EQ(by_address(wsl2, K::pinned, {.foreign = true}, yes).verdict, V::not_verified);
    EXPECT_EQ(by_address(h200, K::pinned, {.foreign = true}, yes).verdict, V::yes);
    EXPECT_EQ(by_address(cpu(), K::registered, {.device_address = true}, yes).verdict, V::no);
    EXPECT_EQ(by_address(cpu(), K::registered, {}, yes).verdict, V::yes);
    const AccessAnswer no{V::no, "by kind", "not so"};
    EXPECT_EQ(by_address(wsl2, K::registered, {.device_address = true}, no).verdict, V::no) << "never widened";
}

TEST(Access, TheCoarseQueryDiffersFromTheFineOnes) {  // keeps A14
    const Capabilities h200 = of_machine("h200");
    EXPECT_FALSE(pair_access(cpu(), h200, false, K::device, {true, true}));
    EXPECT_TRUE(host_access(h200, K::pinned)) << "the pair says no, the buffer yes";
    EXPECT_FALSE(pair_access(h200, cpu(), false, K::device, {}));
    EXPECT_TRUE(device_access(h200, K::pinned)) << "the pair says no, the buffer yes";
    EXPECT_TRUE(pair_access(h200, h200, false, K::device, {true, false}));
    EXPECT_FALSE(peer_access(h200, h200, K::pool, {true, false})) << "the pair says yes, the pool's buffer no";
    EXPECT_FALSE(pair_access(h200, h200, false, K::pool, {true, false}));
    EXPECT_TRUE(pair_access(h200, h200, false, K::pool, {false, true}));
    EXPECT_TRUE(pair_access(h200, h200, true, K::device, {}));
    for (unsigned bits = 0; bits < combinations; ++bits) {
        EXPECT_EQ(pair_access(of_bits(bits), cpu(), false, K::device, {}).verdict, bit(bits, 88) ? V::yes : V::no);
    }
}

// keeps A18
TEST(Access, WhatCanBeEnabledIsDecidedByTheFirstFactThatForbidsIt) {
    using Link = GrantFacts::Link;
    using B = GrantBar;
    for (unsigned bits = 0; bits < 1u << 6; ++bits) {
        for (const Link link : {Link::unasked, Link::none, Link::direct}) {
            for (const Grant what : {Grant::peer, Grant::pool}) {
                const auto on = [bits](unsigned at) { return ((bits >> at) & 1u) != 0; };
                const GrantFacts facts{on(0), on(1), on(2), on(3), on(4), on(5), link};
                const bool pool = what == Grant::pool;
                const B expected = !on(0)                  ? B::runtime
                                   : on(1)                 ? (pool ? B::none : B::same_device)
                                   : on(2)                 ? B::cpu
                                   : !on(3)                ? B::no_calls
                                   : pool && !on(4)        ? B::no_pools
                                   : on(5)                 ? B::none
                                   : link == Link::unasked ? B::link_unasked
                                   : link == Link::none    ? B::no_link
                                                           : B::none;
                ASSERT_EQ(grant_bar(what, facts), expected) << bits;
                const AccessAnswer answer = grant_answer(what, facts);
                const V verdict = expected == B::none ? V::yes : expected == B::link_unasked ? V::not_verified : V::no;
                EXPECT_EQ(answer.verdict, verdict) << bits;
                EXPECT_FALSE(answer.reason.empty());
                EXPECT_EQ(answer.remedy.empty(), verdict == V::yes) << answer.reason;
            }
        }
    }
}

TEST(Access, SeveralPartsAreAccessibleOnlyTogetherAndTheFirstThatIsNotIsNamed) {  // keeps A13
    const AccessAnswer answers[] = {{V::no, "n", "r"}, {V::yes, "y", {}}, {V::not_verified, "u", "r"}};
    for (int mixture = 0; mixture < 81; ++mixture) {
        std::vector<AccessAnswer> parts;
        for (int at = 0, rest = mixture; at < 4; ++at, rest /= 3) parts.push_back(answers[rest % 3]);
        const auto first = [&](V verdict) {
            for (int at = 0; at < 4; ++at) {
                if (parts[static_cast<std::size_t>(at)].verdict == verdict) return at;
            }
            return -1;
        };
        const AccessAnswer all = combine(parts);
        const V expected = first(V::no) >= 0 ? V::no : first(V::not_verified) >= 0 ? V::not_verified : V::yes;
        EXPECT_EQ(all.verdict, expected) << mixture;
        EXPECT_EQ(all.part, expected == V::yes ? -1 : first(expected)) << mixture;
    }
    EXPECT_TRUE(combine({}));
}

}  // namespace
