// SPDX-License-Identifier: Apache-2.0
// Which nodes are requested from the system, on invented machines.
#include "placement_plan.hpp"

#include <machines/record.hpp>
#include <platform/detect.hpp>

#include <gtest/gtest.h>

namespace isthmus::platform::os {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

// Two sockets, two GPUs whose memory is a node, one node without memory: the ids of a real machine.
MachineFacts coherent_machine() {
    MachineFacts machine;
    machine.numa_nodes = {{0, 72, 240 * gib}, {1, 72, 240 * gib}, {2, 0, 185 * gib}, {10, 0, 185 * gib}, {18, 0, 0}};
    return machine;
}

HostPlacement on(Locality locality, int node = -1, bool strict = false) {
    HostPlacement placement;
    placement.locality = locality;
    placement.node = node;
    placement.strict = strict;
    return placement;
}

Result<PlacementPlan> plan(const HostPlacement& placement, int near = 0,
                           const std::optional<std::vector<int>>& allowed = std::nullopt) {
    return plan_placement(placement, near, coherent_machine(), allowed);
}

TEST(PlacementPlan, AnywhereAndLocalNameNoNode) {  // keeps H1
    MachineFacts two_sockets;
    two_sockets.numa_nodes = {{0, 72, 240 * gib}, {1, 72, 240 * gib}};
    const auto anywhere = plan_placement(on(Locality::anywhere), 0, two_sockets, std::nullopt);
    EXPECT_EQ(anywhere->policy, Policy::none);
    EXPECT_TRUE(anywhere->nodes.empty());
    EXPECT_FALSE(names_nodes(on(Locality::anywhere), two_sockets));
    EXPECT_EQ(plan(on(Locality::local))->policy, Policy::local);
    EXPECT_TRUE(plan(on(Locality::local))->nodes.empty());
}

TEST(PlacementPlan, AnywhereLeavesTheMemoryOfGpusAlone) {  // keeps H4
    const auto bound = plan(on(Locality::anywhere));
    EXPECT_EQ(bound->policy, Policy::bind);
    EXPECT_EQ(bound->nodes, (std::vector<int>{0, 1}));
    EXPECT_TRUE(names_nodes(on(Locality::anywhere), coherent_machine()));
    EXPECT_EQ(plan(on(Locality::anywhere), 0, std::vector<int>{1, 2})->nodes, std::vector<int>{1});
    // A cpuset with GPU nodes only is deliberate, and is respected.
    EXPECT_EQ(plan(on(Locality::anywhere), 0, std::vector<int>{2})->policy, Policy::none);
}

// keeps P8: the driver leaves pages where a policy binds them
TEST(PlacementPlan, UnboundMemoryHasNoPolicyOnAnyMachine) {
    for (const bool strict : {false, true}) {
        for (int near = -1; near <= 18; ++near) {
            const auto unbound = plan(on(Locality::unbound, -1, strict), near);
            EXPECT_EQ(unbound->policy, Policy::none);
            EXPECT_TRUE(unbound->nodes.empty());
            EXPECT_TRUE(unbound->reason.empty());
        }
    }
    EXPECT_FALSE(names_nodes(on(Locality::unbound), coherent_machine()));
    EXPECT_EQ(plan(on(Locality::anywhere))->policy, Policy::bind) << "beside it: what no use declares";
}

TEST(PlacementPlan, NearAndByNumberPreferOrBind) {  // keeps H1
    EXPECT_EQ(plan(on(Locality::near_device), 1)->nodes, std::vector<int>{1});
    EXPECT_EQ(plan(on(Locality::near_device), 1)->policy, Policy::prefer);
    EXPECT_EQ(plan(on(Locality::node, 0, true))->policy, Policy::bind);
}

TEST(PlacementPlan, InterleavingTakesNodesWithCpusAndMemoryThatAreAllowed) {  // keeps H1, H4
    EXPECT_EQ(plan(on(Locality::interleaved))->nodes, (std::vector<int>{0, 1}));
    EXPECT_EQ(plan(on(Locality::interleaved), 0, std::vector<int>{1, 2})->nodes, std::vector<int>{1});
}

TEST(PlacementPlan, InterleavingWithoutAnyOpenNodeIsRefusedOrFallsBack) {  // keeps H2
    EXPECT_EQ(plan(on(Locality::interleaved, -1, true), 0, std::vector<int>{2}).code(), Code::not_permitted);
    const auto fallback = plan(on(Locality::interleaved), 0, std::vector<int>{2});
    EXPECT_EQ(fallback->policy, Policy::none);
    EXPECT_FALSE(fallback->reason.empty());
}

TEST(PlacementPlan, GpuMemoryIsTakenByNumberOnly) {  // keeps H4
    EXPECT_EQ(plan(on(Locality::node, 2, true))->nodes, std::vector<int>{2});
    EXPECT_EQ(plan(on(Locality::near_device, -1, true), 2).code(), Code::unsupported);
    EXPECT_EQ(plan(on(Locality::near_device), 2)->policy, Policy::none);
}

// Two Grace CPUs and four GPUs whose memory is a node: no id between them is a node.
MachineFacts gb200() {
    MachineFacts machine;
    machine.numa_nodes = {{0, 72, 480 * gib}, {1, 72, 480 * gib}, {2, 0, 185 * gib},
                          {10, 0, 185 * gib}, {18, 0, 185 * gib}, {26, 0, 185 * gib}};
    return machine;
}

TEST(PlacementPlan, OnGb200NoWishButANumberLeadsToAGpuNode) {  // keeps H1, H4
    const std::vector<int> cpu_nodes = {0, 1};
    for (const bool strict : {false, true}) {
        for (const Locality locality :
             {Locality::anywhere, Locality::local, Locality::near_device, Locality::interleaved}) {
            for (int near = -1; near <= 30; ++near) {
                const auto planned = plan_placement(on(locality, -1, strict), near, gb200(), std::nullopt);
                if (!planned) continue;
                for (const int node : planned->nodes) {
                    EXPECT_TRUE(node == 0 || node == 1) << name(locality) << " near " << near << " gave " << node;
                }
            }
        }
        for (const int gpu : {2, 10, 18, 26}) {
            EXPECT_EQ(plan_placement(on(Locality::node, gpu, strict), 0, gb200(), std::nullopt)->nodes,
                      std::vector<int>{gpu})
                << "by number it is meant";
        }
        EXPECT_EQ(plan_placement(on(Locality::interleaved, -1, strict), 0, gb200(), std::nullopt)->nodes, cpu_nodes);
    }
}

TEST(PlacementPlan, NodeIdsAreNotCounted) {  // keeps H4
    for (const int absent : {3, 9, 11, 17, 19, 25, 27}) {
        const auto strict = plan_placement(on(Locality::node, absent, true), 0, gb200(), std::nullopt);
        ASSERT_EQ(strict.code(), Code::invalid_argument) << absent;
        EXPECT_NE(strict.error().message().find("0, 1, 2, 10, 18, 26"), std::string_view::npos);
    }
}

// The driver's attributes decide what the GPU's memory is; the existing nodes decide where host memory goes.
TEST(PlacementPlan, HiddenGpuMemoryIsNoNodeAndAsksForNothing) {  // keeps H4
    const machines::MachineRecord hidden = machines::find_record("gh200-cdmm").value();
    const machines::MachineRecord shown = machines::find_record("gh200-numa").value();
    ASSERT_EQ(hidden.facts.nvidia_param("CoherentGPUMemoryMode"), "driver");
    const Capabilities of_hidden = detect(hidden.facts, hidden.devices[0].facts);
    const Capabilities of_shown = detect(shown.facts, shown.devices[0].facts);
    EXPECT_EQ(of_hidden.memory, MemoryModel::coherent_hidden);
    EXPECT_EQ(of_hidden.gpu_numa_node, -1);
    EXPECT_EQ(of_shown.memory, MemoryModel::coherent_node);
    ASSERT_GE(of_shown.gpu_numa_node, 0);
    MachineFacts silent = hidden.facts;
    silent.nvidia_params.clear();
    EXPECT_EQ(detect(silent, hidden.devices[0].facts).memory, MemoryModel::coherent_hidden)
        << "newer drivers leave the parameter empty";

    const int near = of_hidden.host_numa_node;
    EXPECT_EQ(plan_placement(on(Locality::anywhere), near, hidden.facts, std::nullopt)->policy, Policy::none);
    EXPECT_EQ(plan_placement(on(Locality::near_device), near, hidden.facts, std::nullopt)->nodes,
              std::vector<int>{near});
    const auto gpu_node = on(Locality::node, of_shown.gpu_numa_node, true);
    EXPECT_EQ(plan_placement(gpu_node, near, hidden.facts, std::nullopt).code(), Code::invalid_argument);
    // For comparison, the same GPU as a node: memory without a request is kept away from it, and its node number
    // selects it.
    EXPECT_EQ(plan_placement(on(Locality::anywhere), near, shown.facts, std::nullopt)->policy, Policy::bind);
    EXPECT_EQ(plan_placement(gpu_node, near, shown.facts, std::nullopt)->nodes,
              std::vector<int>{of_shown.gpu_numa_node});
}

struct Refusal {
    const char* what;
    HostPlacement placement;
    int near;
    std::optional<std::vector<int>> allowed;
    Code code;
};

TEST(PlacementPlan, EveryStrictRefusalHasItsCodeAndItsPreferredFallback) {  // keeps H2
    const Refusal refusals[] = {
        {"no such node", on(Locality::node, 7), 0, std::nullopt, Code::invalid_argument},
        {"negative node", on(Locality::node, -1), 0, std::nullopt, Code::invalid_argument},
        {"node without memory", on(Locality::node, 18), 0, std::nullopt, Code::unsupported},
        {"cpuset", on(Locality::node, 1), 0, std::vector<int>{0}, Code::not_permitted},
        {"near node forbidden", on(Locality::near_device), 1, std::vector<int>{0}, Code::not_permitted},
        {"no near node", on(Locality::near_device), -1, std::nullopt, Code::unsupported},
    };
    for (const Refusal& refusal : refusals) {
        HostPlacement placement = refusal.placement;
        placement.strict = true;
        const auto strict = plan(placement, refusal.near, refusal.allowed);
        ASSERT_EQ(strict.code(), refusal.code) << refusal.what;
        EXPECT_FALSE(strict.error().remedy().empty()) << refusal.what;
        placement.strict = false;
        const auto preferred = plan(placement, refusal.near, refusal.allowed);
        ASSERT_TRUE(preferred.ok()) << refusal.what;
        EXPECT_EQ(preferred->policy, Policy::none) << refusal.what;
        EXPECT_EQ(preferred->reason, strict.error().message()) << refusal.what;
    }
}

TEST(PlacementPlan, ASystemThatStatesNoNodesRefusesStrictOnly) {  // keeps H3
    const MachineFacts plain;
    EXPECT_EQ(plan_placement(on(Locality::node, 0, true), 0, plain, std::nullopt).code(), Code::unsupported);
    EXPECT_EQ(plan_placement(on(Locality::interleaved, 0, true), 0, plain, std::nullopt).code(), Code::unsupported);
    EXPECT_TRUE(plan_placement(on(Locality::near_device), 0, plain, std::nullopt).ok());
}

TEST(PlacementPlan, ALocalityThatDoesNotExistIsRefused) {
    const auto refused = plan_placement(on(static_cast<Locality>(99)), 0, MachineFacts{}, std::nullopt);
    EXPECT_EQ(refused.code(), Code::invalid_argument);
}

}  // namespace
}  // namespace isthmus::platform::os
