// SPDX-License-Identifier: Apache-2.0
// Attributes of streams, launches and kernel nodes; clusters that a device holds.
#include "sim_capture_scene.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace isthmus::sim::test {
namespace {

constexpr int access_window = 1, cooperative = 2, synchronization = 3, cluster = 4, scheduling = 5, overlap = 6,
              priority = 8, domain_map = 9, domain = 10, preferred_cluster = 11, carveout = 14, link_use = 16;

LaunchAttributeValue number(int value) {
    LaunchAttributeValue made = {};
    made.number = value;
    return made;
}
LaunchAttributeValue size(unsigned x, unsigned y = 1, unsigned z = 1) {
    LaunchAttributeValue made = {};
    made.cluster = {x, y, z};
    return made;
}
bool clusters() {
    return fact(attribute::cluster_launch) != 0;
}

int number_of(Stream* stream, int id) {
    LaunchAttributeValue value = {};
    REQUIRE_CODE(cuStreamGetAttribute(stream, id, &value), 0);
    return value.number;
}

TEST(SimStreamAttributes, AreKeptByEachStream) {
    in_own_process([] {
        open_device();
        Stream *const stream = new_stream(), *const other = new_stream();
        for (Stream* one : {static_cast<Stream*>(nullptr), stream, other}) {
            // -1: as a driver 580 on an H200.
            REQUIRE_THAT(number_of(one, synchronization) == -1 && number_of(one, priority) == 0 &&
                         number_of(one, domain) == 0);
            for (int policy = 1; policy <= 4; ++policy) {
                const LaunchAttributeValue value = number(policy);
                REQUIRE_CODE(cuStreamSetAttribute(one, synchronization, &value), 0);
                REQUIRE_THAT(number_of(one, synchronization) == policy);
            }
        }
        const LaunchAttributeValue remote = number(1);
        REQUIRE_CODE(cuStreamSetAttribute(stream, domain, &remote), 0);
        REQUIRE_THAT(number_of(stream, domain) == 1 && number_of(other, domain) == 0 &&
                     number_of(nullptr, domain) == 0);
        const bool has_priorities = fact(attribute::stream_priorities) != 0;
        const LaunchAttributeValue urgent = number(-3), beyond = number(-100);
        REQUIRE_CODE(cuStreamSetAttribute(stream, priority, &urgent), 0);
        int told = 0;
        REQUIRE_CODE(cuStreamGetPriority(stream, &told), 0);
        REQUIRE_THAT(told == (has_priorities ? -3 : 0) && number_of(stream, priority) == told);
        REQUIRE_CODE(cuStreamSetAttribute(stream, priority, &beyond), 0);
        REQUIRE_THAT(number_of(stream, priority) == (has_priorities ? -5 : 0));
        REQUIRE_CODE(cuStreamSetAttribute(nullptr, priority, &urgent), 0);  // 580, H200: the legacy stream's, too
        REQUIRE_THAT(number_of(nullptr, priority) == (has_priorities ? -3 : 0));
        REQUIRE_CODE(cuStreamCopyAttributes(other, stream), 0);
        REQUIRE_THAT(number_of(other, domain) == 1 && number_of(other, priority) == number_of(stream, priority));
        REQUIRE_CODE(cuStreamGetPriority(other, &told), 0);
        REQUIRE_THAT(told == number_of(stream, priority));
    });
}

TEST(SimStreamAttributes, ADomainIsOneOfTheDevices) {
    in_own_process([] {
        open_device();
        const int domains = std::max(1, fact(attribute::memory_domains));
        LaunchAttributeValue map = {};
        REQUIRE_CODE(cuStreamGetAttribute(nullptr, domain_map, &map), 0);
        REQUIRE_THAT(map.domains.standard == 0 && map.domains.remote == (domains > 1 ? 1 : 0));
        map.domains = {static_cast<unsigned char>(domains - 1), 0};
        REQUIRE_CODE(cuStreamSetAttribute(nullptr, domain_map, &map), 0);
        map.domains = {0, static_cast<unsigned char>(domains)};
        REQUIRE_CODE(cuStreamSetAttribute(nullptr, domain_map, &map), 1);
        REQUIRE_CODE(cuStreamGetAttribute(nullptr, domain_map, &map), 0);
        REQUIRE_THAT(map.domains.standard == domains - 1 && map.domains.remote == 0);
    });
}

TEST(SimStreamAttributes, AnAccessWindowFitsTheCache) {
    in_own_process([] {
        open_device();
        Stream* const stream = new_stream();
        const auto largest = static_cast<std::size_t>(std::max(0, fact(attribute::largest_access_window)));
        LaunchAttributeValue value = {};
        value.window = {nullptr, largest, 0.5f, 2, 1};
        REQUIRE_CODE(cuStreamSetAttribute(stream, access_window, &value), 0);
        const AccessWindow wrong[] = {{nullptr, largest + 1, 0.5f, 2, 1}, {nullptr, 0, 1.5f, 2, 1},
                                      {nullptr, 0, -0.1f, 2, 1},          {nullptr, 0, 0.5f, 3, 1},
                                      {nullptr, 0, 0.5f, 2, 2},           {nullptr, 0, 0.5f, -1, 0}};
        for (const AccessWindow& one : wrong) {
            value.window = one;
            REQUIRE_CODE(cuStreamSetAttribute(stream, access_window, &value), 1);
        }
        REQUIRE_CODE(cuStreamGetAttribute(stream, access_window, &value), 0);
        REQUIRE_THAT(value.window.bytes == largest && value.window.on_hit == 2 && value.window.on_miss == 1);
    });
}

TEST(SimStreamAttributes, OfKernelsAndOthersAreRefused) {
    in_own_process([] {
        open_device();
        Stream* const stream = new_stream();
        LaunchAttributeValue value = number(1);
        // link_use: as a driver 580 on an H200.
        for (const int id :
             {0, cooperative, cluster, scheduling, overlap, 7, preferred_cluster, carveout, link_use, 99, -1}) {
            REQUIRE_CODE(cuStreamSetAttribute(stream, id, &value), 1);
            REQUIRE_CODE(cuStreamGetAttribute(stream, id, &value), 1);
        }
        for (const int policy : {0, -1}) {
            value = number(policy);
            REQUIRE_CODE(cuStreamSetAttribute(stream, synchronization, &value), 1);
        }
        value = number(5);
        REQUIRE_CODE(cuStreamSetAttribute(stream, synchronization, &value), 1);
        value = number(2);
        REQUIRE_CODE(cuStreamSetAttribute(stream, domain, &value), 1);
        REQUIRE_CODE(cuStreamSetAttribute(stream, domain, nullptr), 1);
        REQUIRE_CODE(cuStreamGetAttribute(stream, domain, nullptr), 1);
        Context* another = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&another, 0, 0), 0);
        REQUIRE_CODE(cuStreamCopyAttributes(new_stream(), stream), 1);  // of another context
        REQUIRE_CODE(cuStreamDestroy_v2(stream), 0);
        REQUIRE_CODE(cuStreamGetAttribute(stream, domain, &value), 400);
        REQUIRE_CODE(cuStreamSetAttribute(stream, domain, &value), 400);
        REQUIRE_CODE(cuStreamCopyAttributes(nullptr, stream), 400);
    });
}

TEST(SimStreamAttributes, PlannedFaultsAnswer) {
    in_own_process([] {
        open_device();
        LaunchAttributeValue value = number(1);
        REQUIRE_CODE(isthmus_sim_fault_plan("call=cuStreamSetAttribute:n=1:code=2"), 0);
        REQUIRE_CODE(cuStreamSetAttribute(nullptr, domain, &value), 2);
        REQUIRE_THAT(number_of(nullptr, domain) == 0);
        REQUIRE_CODE(cuStreamSetAttribute(nullptr, domain, &value), 0);
    });
}

struct KernelNode {
    CaptureScene scene = open_scene();
    GraphObject* graph = nullptr;
    NodeObject* node = nullptr;
    isthmus_sim_extent extent = {1, 1, 1};
    MultiplyPack pack = {{scene.memory, 4}, 3};
    void* parameters[2] = {&extent, &pack};
    KernelNodeParameters p = {multiply_kernel(), 4, 1, 1, 32, 1, 1, 0, parameters, nullptr};
    KernelNode() {
        REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
        REQUIRE_CODE(cuGraphAddKernelNode(&node, graph, nullptr, 0, &p), 0);
    }
    int number_of(int id) {
        LaunchAttributeValue value = {};
        REQUIRE_CODE(cuGraphKernelNodeGetAttribute(node, id, &value), 0);
        return value.number;
    }
};

TEST(SimKernelNodeAttributes, AreSetReadAndCopied) {
    in_own_process([] {
        KernelNode s;
        for (const int id : {cooperative, priority, domain, scheduling, carveout}) REQUIRE_THAT(s.number_of(id) == 0);
        // As a driver 580 on an H200: a stream's memory domains; link_use is set and cannot be read.
        LaunchAttributeValue value = {};
        REQUIRE_CODE(cuGraphKernelNodeGetAttribute(s.node, domain_map, &value), 0);
        REQUIRE_THAT(value.domains.standard == 0 && value.domains.remote == (fact(attribute::memory_domains) > 1));
        value = number(1);
        REQUIRE_CODE(cuGraphKernelNodeSetAttribute(s.node, link_use, &value), 0);
        REQUIRE_CODE(cuGraphKernelNodeGetAttribute(s.node, link_use, &value), 1);
        const LaunchAttributeValue urgent = number(-2), remote = number(1), spread = number(1), half = number(50);
        REQUIRE_CODE(cuGraphKernelNodeSetAttribute(s.node, priority, &urgent), 0);
        REQUIRE_CODE(cuGraphKernelNodeSetAttribute(s.node, domain, &remote), 0);
        REQUIRE_CODE(cuGraphKernelNodeSetAttribute(s.node, scheduling, &spread), 0);
        REQUIRE_CODE(cuGraphKernelNodeSetAttribute(s.node, carveout, &half), 0);
        const int set = fact(attribute::stream_priorities) != 0 ? -2 : 0;
        REQUIRE_THAT(s.number_of(priority) == set && s.number_of(domain) == 1 && s.number_of(scheduling) == 1 &&
                     s.number_of(carveout) == 50);
        // New parameters of the node leave its attributes.
        REQUIRE_CODE(cuGraphKernelNodeSetParams(s.node, &s.p), 0);
        REQUIRE_THAT(s.number_of(domain) == 1);
        NodeObject *const first = s.node, *second = nullptr;
        REQUIRE_CODE(cuGraphAddKernelNode(&second, s.graph, nullptr, 0, &s.p), 0);
        REQUIRE_CODE(cuGraphKernelNodeCopyAttributes(second, first), 0);
        s.node = second;
        REQUIRE_THAT(s.number_of(priority) == set && s.number_of(domain) == 1 && s.number_of(carveout) == 50);
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuGraphInstantiate_v2(&instance, s.graph, nullptr, nullptr, 0), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, s.scene.stream), 0);
        REQUIRE_CODE(cuStreamSynchronize(s.scene.stream), 0);
    });
}

TEST(SimKernelNodeAttributes, WrongOnesAreRefused) {
    in_own_process(
        [] {
            KernelNode s;
            LaunchAttributeValue value = number(1);
            for (const int id : {0, synchronization, overlap, 7, 99}) {
                REQUIRE_CODE(cuGraphKernelNodeSetAttribute(s.node, id, &value), 1);
                REQUIRE_CODE(cuGraphKernelNodeGetAttribute(s.node, id, &value), 1);
            }
            for (const int id : {scheduling, carveout}) {
                value = number(id == scheduling ? 3 : 101);
                REQUIRE_CODE(cuGraphKernelNodeSetAttribute(s.node, id, &value), 1);
            }
            REQUIRE_CODE(cuGraphKernelNodeSetAttribute(s.node, priority, nullptr), 1);
            REQUIRE_CODE(cuGraphKernelNodeGetAttribute(s.node, priority, nullptr), 1);
            NodeObject* empty = nullptr;
            REQUIRE_CODE(cuGraphAddEmptyNode(&empty, s.graph, nullptr, 0), 0);
            value = number(0);
            REQUIRE_CODE(cuGraphKernelNodeSetAttribute(empty, priority, &value), 1);
            REQUIRE_CODE(cuGraphKernelNodeGetAttribute(empty, priority, &value), 1);
            REQUIRE_CODE(cuGraphKernelNodeCopyAttributes(empty, s.node), 1);
            REQUIRE_CODE(cuGraphKernelNodeCopyAttributes(s.node, empty), 1);
            // A twin, whose blocks cannot wait for each other.
            value = number(1);
            REQUIRE_CODE(cuGraphKernelNodeSetAttribute(s.node, cooperative, &value), 801);
            REQUIRE_THAT(s.number_of(cooperative) == 0);
        },
        "cooperative launches are modelled for kernels from PTX alone");
}

TEST(SimKernelNodeAttributes, AClusterDividesTheGrid) {
    in_own_process([] {
        KernelNode s;
        const LaunchAttributeValue two = size(2), three = size(3), none = size(0), four = size(4);
        if (!clusters()) {
            REQUIRE_CODE(cuGraphKernelNodeSetAttribute(s.node, cluster, &two), 801);
            return;
        }
        REQUIRE_CODE(cuGraphKernelNodeSetAttribute(s.node, preferred_cluster, &four), 1);  // without a cluster
        LaunchAttributeValue told = {}, flat = size(0);
        flat.cluster.y = 0;
        flat.cluster.z = 0;
        // As a driver 580 on an H200: 0 in all dimensions is none, 912 where the grid is no multiple, and a preferred
        // cluster that nobody set cannot be read.
        REQUIRE_CODE(cuGraphKernelNodeSetAttribute(s.node, cluster, &flat), 0);
        REQUIRE_CODE(cuGraphKernelNodeGetAttribute(s.node, preferred_cluster, &told), 1);
        REQUIRE_CODE(cuGraphKernelNodeSetAttribute(s.node, cluster, &three), 912);
        REQUIRE_CODE(cuGraphKernelNodeSetAttribute(s.node, cluster, &two), 0);
        REQUIRE_CODE(cuGraphKernelNodeSetAttribute(s.node, cluster, &none), 1);
        REQUIRE_CODE(cuGraphKernelNodeSetAttribute(s.node, preferred_cluster, &three), 1);
        REQUIRE_CODE(cuGraphKernelNodeSetAttribute(s.node, preferred_cluster, &four), 0);
        REQUIRE_CODE(cuGraphKernelNodeGetAttribute(s.node, preferred_cluster, &told), 0);
        REQUIRE_CODE(cuGraphKernelNodeGetAttribute(s.node, cluster, &told), 0);
        REQUIRE_THAT(told.cluster.x == 2 && told.cluster.y == 1 && told.cluster.z == 1);
        s.p.grid_x = 3;  // no multiple of the cluster that the node keeps
        REQUIRE_CODE(cuGraphKernelNodeSetParams(s.node, &s.p), 912);
    });
}

TEST(SimKernelNodeAttributes, ACapturedKernelHasItsStreams) {
    in_own_process([] {
        CaptureScene scene = open_scene();
        const LaunchAttributeValue urgent = number(-1), remote = number(1);
        REQUIRE_CODE(cuStreamSetAttribute(scene.stream, priority, &urgent), 0);
        REQUIRE_CODE(cuStreamSetAttribute(scene.stream, domain, &remote), 0);
        REQUIRE_CODE(cuStreamBeginCapture_v2(scene.stream, relaxed), 0);
        REQUIRE_CODE(launch_multiply(scene.stream, scene.memory, 4, 2), 0);
        GraphObject* graph = nullptr;
        REQUIRE_CODE(cuStreamEndCapture(scene.stream, &graph), 0);
        NodeObject* node = nullptr;
        std::size_t count = 1;
        REQUIRE_CODE(cuGraphGetNodes(graph, &node, &count), 0);
        LaunchAttributeValue told = {};
        REQUIRE_CODE(cuGraphKernelNodeGetAttribute(node, priority, &told), 0);
        REQUIRE_THAT(told.number == (fact(attribute::stream_priorities) != 0 ? -1 : 0));
        REQUIRE_CODE(cuGraphKernelNodeGetAttribute(node, domain, &told), 0);
        REQUIRE_THAT(told.number == 1);
    });
}

Result launch_with(int id, LaunchAttributeValue value, Address memory) {
    isthmus_sim_extent extent = {1, 1, 1};
    MultiplyPack pack = {{memory, 4}, 3};
    void* parameters[2] = {&extent, &pack};
    LaunchAttribute one = {};
    one.id = id;
    one.value = value;
    LaunchConfig config = {4, 1, 1, 32, 1, 1, 0, nullptr, &one, 1};
    return cuLaunchKernelEx(&config, multiply_kernel(), parameters, nullptr);
}

TEST(SimLaunchAttributes, HintsAreTakenAndOthersRefused) {
    in_own_process(
        [] {
            open_device();
            const Address memory = device_memory(64);
            for (const int id : {0, overlap, priority, domain, scheduling, carveout}) {
                REQUIRE_CODE(launch_with(id, number(0), memory), 0);
            }
            REQUIRE_CODE(launch_with(domain, number(2), memory), 1);
            REQUIRE_CODE(launch_with(synchronization, number(1), memory), 1);
            for (const int id : {7, 12, 13, 99}) REQUIRE_CODE(launch_with(id, number(0), memory), 801);
            REQUIRE_CODE(launch_with(cluster, size(2), memory), clusters() ? 0 : 801);
            REQUIRE_CODE(launch_with(cluster, size(3), memory), clusters() ? 912 : 801);
            REQUIRE_CODE(cuCtxSynchronize(), 0);
        },
        "launch attribute 12 is not modelled");
}

constexpr int dynamic_shared = 8, cluster_required = 10, cluster_width = 11, any_cluster = 14;

TEST(SimClusters, AreCountedByTheirSize) {
    in_own_process([] {
        open_device();
        Function* const kernel = multiply_kernel();
        LaunchAttribute one = {};
        one.id = cluster;
        one.value = size(2);
        LaunchConfig config = {64, 1, 1, 128, 1, 1, 0, nullptr, &one, 1};
        int found = -1;
        if (!clusters()) {
            REQUIRE_CODE(cuOccupancyMaxPotentialClusterSize(&found, kernel, &config), 801);
            REQUIRE_CODE(cuOccupancyMaxActiveClusters(&found, kernel, &config), 801);
            return;
        }
        REQUIRE_CODE(cuOccupancyMaxPotentialClusterSize(&found, kernel, &config), 0);
        REQUIRE_THAT(found == 8);
        int of_two = 0, of_eight = 0;
        REQUIRE_CODE(cuOccupancyMaxActiveClusters(&of_two, kernel, &config), 0);
        one.value = size(8);
        REQUIRE_CODE(cuOccupancyMaxActiveClusters(&of_eight, kernel, &config), 0);
        REQUIRE_THAT(of_eight > 0 && of_two >= 4 * of_eight);
        one.value = size(1);
        REQUIRE_CODE(cuOccupancyMaxActiveClusters(&found, kernel, &config), 0);
        REQUIRE_THAT(found == 2 * of_two);
        if (std::getenv("ISTHMUS_SIM") == std::string("h200")) {  // as its driver 580 answered
            REQUIRE_THAT(found == 1056 && of_two == 528 && of_eight == 124);
            one.value = size(4);
            REQUIRE_CODE(cuOccupancyMaxActiveClusters(&found, kernel, &config), 0);
            REQUIRE_THAT(found == 248);
            // Threads, bytes of dynamic shared memory, blocks of a cluster, clusters: as a driver 580 answered.
            const int rows[][4] = {{32, 22528, 1, 1056}, {32, 33792, 1, 792},  {32, 33792, 2, 396},
                                   {64, 33792, 4, 186},  {64, 33792, 8, 92},   {128, 45056, 4, 154},
                                   {256, 45056, 8, 77},  {512, 45056, 1, 528}, {1024, 0, 8, 30}};
            for (const auto& [threads, bytes, blocks, clusters_held] : rows) {
                config.block_x = static_cast<unsigned>(threads);
                config.shared_bytes = static_cast<unsigned>(bytes);
                one.value = size(static_cast<unsigned>(blocks));
                REQUIRE_CODE(cuOccupancyMaxActiveClusters(&found, kernel, &config), 0);
                REQUIRE_THAT(found == clusters_held);
            }
            // Assumed: as for blocks without clusters, none is held beyond what the function may have.
            config.shared_bytes = 64 << 10;
            one.value = size(1);
            REQUIRE_CODE(cuOccupancyMaxActiveClusters(&found, kernel, &config), 0);
            REQUIRE_THAT(found == 0);
            REQUIRE_CODE(cuFuncSetAttribute(kernel, dynamic_shared, 64 << 10), 0);
            config.block_x = 128;
            REQUIRE_CODE(cuOccupancyMaxActiveClusters(&found, kernel, &config), 0);
            REQUIRE_THAT(found == 3 * 132);
            config.block_x = 128;
            config.shared_bytes = 0;
        }
        one.value = size(16);
        REQUIRE_CODE(cuOccupancyMaxActiveClusters(&found, kernel, &config), 912);
        REQUIRE_CODE(cuFuncSetAttribute(kernel, any_cluster, 1), 0);
        REQUIRE_CODE(cuOccupancyMaxActiveClusters(&found, kernel, &config), 0);
        REQUIRE_CODE(cuOccupancyMaxPotentialClusterSize(&found, kernel, &config), 0);
        REQUIRE_THAT(found == 16);
        config.attribute_count = 0;
        REQUIRE_CODE(cuOccupancyMaxActiveClusters(&found, kernel, &config), 0);  // 580: no size
        REQUIRE_THAT(found == 0);
        for (int axis = 0; axis < 3; ++axis) REQUIRE_CODE(cuFuncSetAttribute(kernel, cluster_width + axis, 1), 0);
        REQUIRE_CODE(cuFuncSetAttribute(kernel, cluster_width, 4), 0);
        REQUIRE_CODE(cuOccupancyMaxActiveClusters(&found, kernel, &config), 0);
        REQUIRE_THAT(found == 2 * of_eight);
        config.attribute_count = 1;
        REQUIRE_CODE(cuOccupancyMaxActiveClusters(&found, kernel, &config), 912);  // not the required size
        REQUIRE_CODE(cuOccupancyMaxPotentialClusterSize(&found, kernel, &config), 0);
        REQUIRE_THAT(found == 16);
        REQUIRE_CODE(cuOccupancyMaxPotentialClusterSize(nullptr, kernel, &config), 1);
        REQUIRE_CODE(cuOccupancyMaxPotentialClusterSize(&found, kernel, nullptr), 1);
        REQUIRE_CODE(cuOccupancyMaxActiveClusters(&found, nullptr, &config), 400);
    });
}

TEST(SimClusters, AttributesOfFunctionsAreKeptAndChecked) {
    in_own_process([] {
        open_device();
        Function* const kernel = multiply_kernel();
        int value = -1;
        REQUIRE_CODE(cuFuncGetAttribute(&value, cluster_required, kernel), 0);
        REQUIRE_THAT(value == 0);
        REQUIRE_CODE(cuFuncSetAttribute(kernel, cluster_required, 1), 1);  // it can be read only
        REQUIRE_CODE(cuFuncSetAttribute(kernel, cluster_width, -1), 1);
        REQUIRE_CODE(cuFuncSetAttribute(kernel, any_cluster, 2), 1);
        REQUIRE_CODE(cuFuncSetAttribute(kernel, 15, 3), 1);
        REQUIRE_CODE(cuFuncSetAttribute(kernel, 15, 2), 0);
        REQUIRE_CODE(cuFuncGetAttribute(&value, 15, kernel), 0);
        REQUIRE_THAT(value == 2);
        REQUIRE_CODE(cuKernelSetAttribute(any_cluster, 1, kernel, 0), 0);
        REQUIRE_CODE(cuKernelGetAttribute(&value, any_cluster, kernel, 0), 0);
        REQUIRE_THAT(value == 1);
        REQUIRE_CODE(cuFuncGetAttribute(&value, 16, kernel), 1);
        REQUIRE_CODE(cuFuncSetAttribute(kernel, 9, 101), 1);  // percent
        REQUIRE_CODE(cuFuncSetAttribute(kernel, 9, -1), 0);
    });
}

// A size that a function requires is one of the launch: not on a device without clusters, and it divides the grid.
TEST(SimClusters, ASizeThatAFunctionRequiresIsChecked) {
    in_own_process([] {
        open_device();
        const Address memory = device_memory(64);
        Function* const kernel = multiply_kernel();
        const auto launch = [&] {
            isthmus_sim_extent extent = {1, 1, 1};
            MultiplyPack pack = {{memory, 4}, 3};
            void* parameters[2] = {&extent, &pack};
            return cuLaunchKernel(kernel, 4, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr);
        };
        REQUIRE_CODE(launch(), 0);
        for (const auto& [width, code] : {std::pair{2, 0}, {3, 912}, {16, 912}}) {
            for (int axis = 0; axis < 3; ++axis) {
                REQUIRE_CODE(cuFuncSetAttribute(kernel, cluster_width + axis, axis == 0 ? width : 1), 0);
            }
            REQUIRE_CODE(launch(), clusters() ? code : 801);
        }
        REQUIRE_CODE(cuCtxSynchronize(), 0);
    });
}

TEST(SimOccupancy, SharedMemoryIsDividedAmongBlocks) {
    in_own_process([] {
        open_device();
        Function* const kernel = multiply_kernel();
        std::size_t one = 0, four = 0;
        REQUIRE_CODE(cuOccupancyAvailableDynamicSMemPerBlock(&one, kernel, 1, 128), 0);
        REQUIRE_CODE(cuOccupancyAvailableDynamicSMemPerBlock(&four, kernel, 4, 128), 0);
        REQUIRE_THAT(one <= static_cast<std::size_t>(std::max(0, fact(attribute::max_shared_optin))));
        REQUIRE_THAT(four <= one && 4 * four <= static_cast<std::size_t>(fact(attribute::shared_per_multiprocessor)));
        // An H200's, as its driver 580 answered.
        if (fact(attribute::shared_per_multiprocessor) == 233472 &&
            fact(attribute::max_threads_per_multiprocessor) == 2048) {
            const std::pair<int, std::size_t> rows[] = {{1, 49152}, {2, 49152}, {4, 49152}, {8, 29184}, {16, 14592}};
            for (const auto& [blocks, bytes] : rows) {
                REQUIRE_CODE(cuOccupancyAvailableDynamicSMemPerBlock(&one, kernel, blocks, 128), 0);
                REQUIRE_THAT(one == bytes);
            }
            REQUIRE_CODE(cuOccupancyAvailableDynamicSMemPerBlock(&one, kernel, 32, 128), 1);
        }
        REQUIRE_CODE(cuOccupancyAvailableDynamicSMemPerBlock(nullptr, kernel, 1, 128), 1);
        REQUIRE_CODE(cuOccupancyAvailableDynamicSMemPerBlock(&one, kernel, 0, 128), 1);
        REQUIRE_CODE(cuOccupancyAvailableDynamicSMemPerBlock(&one, kernel, 1, 1 << 20), 1);
        REQUIRE_CODE(cuOccupancyAvailableDynamicSMemPerBlock(&one, kernel, 1 << 20, 128), 1);
        REQUIRE_CODE(cuOccupancyAvailableDynamicSMemPerBlock(&one, nullptr, 1, 128), 400);
    });
}

}  // namespace
}  // namespace isthmus::sim::test
