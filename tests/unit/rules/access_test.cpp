// Who may touch what: the platform table's columns, the numbered promises, and every combination of attributes.
#include "some_devices.hpp"

#include <access_rules.hpp>
#include <launch_path.hpp>

#include <map>

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

// The promises, from their own text.
V promised_to_device(unsigned bits, K kind) {
    switch (kind) {
        case K::host:
        case K::host_numa: return bit(bits, 88) ? V::yes : V::no;  // A3
        case K::pinned:
        case K::write_combined: return bit(bits, 41) ? V::yes : V::no;  // A2
        case K::registered: return bit(bits, 41) && bit(bits, 99) ? V::yes : V::no;
        case K::managed:
        case K::managed_pool: return bit(bits, 83) ? V::yes : V::no;  // A7
        case K::device:
        case K::pool:
        case K::graph: return V::yes;  // A1
        case K::unknown:
        case K::vmm:
        case K::imported: break;  // A9, A16
    }
    return V::not_verified;
}
V promised_to_host(unsigned bits, K kind) {
    switch (kind) {
        case K::device:
        case K::pool:
        case K::graph: return V::no;  // A6
        case K::managed:
        case K::managed_pool: return bit(bits, 83) && bit(bits, 89) ? V::yes : V::no;  // A8
        case K::unknown:
        case K::vmm:
        case K::imported: return V::not_verified;
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
    EXPECT_FALSE(peer_access(a, b, K::device, {false, true}));
    EXPECT_TRUE(peer_access(a, b, K::device, {true, false}));
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

TEST(LaunchPath, FollowsAccessAndAttachesWherePhasesAreGuarded) {  // keeps K6, L4
    for (unsigned bits = 0; bits < combinations; ++bits) {
        const Capabilities c = of_bits(bits);
        for_every_kind([&](K kind) {
            const LaunchPath path = launch_path(c, kind).path;
            const bool managed = kind == K::managed || kind == K::managed_pool;
            if (managed && !bit(bits, 83)) {
                EXPECT_EQ(path, LaunchPath::refuse);
            } else if (managed && !bit(bits, 89)) {
                EXPECT_EQ(path, kind == K::managed ? LaunchPath::attach : LaunchPath::refuse);
            } else {
                const bool no = promised_to_device(bits, kind) == V::no;
                EXPECT_EQ(path, no ? LaunchPath::stage : LaunchPath::pass) << name(kind) << " " << bits;
            }
        });
    }
    EXPECT_EQ(launch_path(cpu(), K::host).path, LaunchPath::pass);
}

}  // namespace
