// SPDX-License-Identifier: Apache-2.0
// What older programs use: parameters in one buffer, launches and contexts as before CUDA 4, banks of shared memory.
#include "sim_test.hpp"

#include <cstring>
#include <string>

namespace isthmus::sim::test {
namespace {

// store: *out = value + 1000 * half. sizes: uses local and constant memory.
const char* const text = R"(.version 6.0
.target sm_50
.address_size 64
.const .align 4 .u32 base = 3;
.const .align 8 .b8 table[40];
.visible .entry store(.param .u64 out, .param .u32 value, .param .u16 half)
{
    .reg .b64 %d;
    .reg .b32 %v, %h;
    .reg .b16 %s;
    ld.param.u64 %d, [out];
    ld.param.u32 %v, [value];
    ld.param.u16 %s, [half];
    cvt.u32.u16 %h, %s;
    mad.lo.u32 %v, %h, 1000, %v;
    st.global.u32 [%d], %v;
    ret;
}
.visible .entry nothing() { ret; }
.visible .entry blocks(.param .u64 out)
{
    .reg .b64 %d;
    .reg .b32 %v;
    ld.param.u64 %d, [out];
    atom.global.add.u32 %v, [%d], 1;
    ret;
}
.func inner()
{
    .local .align 4 .b8 room[24];
    .reg .b64 %a;
    mov.u64 %a, room;
    st.local.u32 [%a], 0;
    ret;
}
.visible .entry sizes()
{
    .local .align 4 .b8 room[100];
    .reg .b64 %a;
    mov.u64 %a, room;
    st.local.u32 [%a], 0;
    call.uni inner;
    ret;
}
)";

struct Scene {
    Module* module = nullptr;
    Address out = 0;
    Scene() {
        open_device();
        REQUIRE_CODE(cuModuleLoadData(&module, text), 0);
        out = device_memory(64);
    }
    Function* operator[](const char* name) const {
        Function* function = nullptr;
        REQUIRE_CODE(cuModuleGetFunction(&function, module, name), 0);
        return function;
    }
    int value() const {
        int found = 0;
        REQUIRE_CODE(cuMemcpyDtoH_v2(&found, out, 4), 0);
        return found;
    }
};

void* key(std::uintptr_t number) {
    return reinterpret_cast<void*>(number);
}

struct Packed {
    Address out;
    unsigned value;
    unsigned short half;
};

Result launch(Function* function, void** parameters, void** extra) {
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, extra);
}

TEST(SimPackedParameters, AreTakenFromTheBuffer) {  // keeps W8's ground
    in_own_process([] {
        const Scene scene;
        Packed packed = {scene.out, 7, 2};
        std::size_t bytes = 14;
        void* extra[] = {key(1), &packed, key(2), &bytes, key(0)};
        REQUIRE_CODE(launch(scene["store"], nullptr, extra), 0);
        packed.value = 9;  // copied at the launch
        REQUIRE_THAT(scene.value() == 2007);
        void* size_first[] = {key(2), &bytes, key(1), &packed, key(0)};
        REQUIRE_CODE(launch(scene["store"], nullptr, size_first), 0);
        REQUIRE_THAT(scene.value() == 2009);
        void* none[] = {key(0)};
        REQUIRE_CODE(launch(scene["nothing"], nullptr, none), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
    });
}

TEST(SimPackedParameters, WhatIsNoBufferOfTheKernelIsRefused) {  // keeps W8's ground
    in_own_process([] {
        const Scene scene;
        Packed packed = {scene.out, 7, 2};
        std::size_t bytes = 14;
        void* extra[] = {key(1), &packed, key(2), &bytes, key(0)};
        void* unknown[] = {key(3), &packed, key(1), &packed, key(2), &bytes, key(0)};
        REQUIRE_CODE(launch(scene["store"], nullptr, unknown), 1);
        void* without_size[] = {key(1), &packed, key(0)};
        REQUIRE_CODE(launch(scene["store"], nullptr, without_size), 1);
        void* without_buffer[] = {key(2), &bytes, key(0)};
        REQUIRE_CODE(launch(scene["store"], nullptr, without_buffer), 1);
        void* null_buffer[] = {key(1), nullptr, key(2), &bytes, key(0)};
        REQUIRE_CODE(launch(scene["store"], nullptr, null_buffer), 1);
        void* none[] = {key(0)};
        REQUIRE_CODE(launch(scene["store"], nullptr, none), 1);
        void* parameters[] = {&packed.out, &packed.value, &packed.half};
        REQUIRE_CODE(launch(scene["store"], parameters, extra), 1);
        REQUIRE_CODE(launch(scene["store"], nullptr, nullptr), 1);
        REQUIRE_CODE(launch(scene["nothing"], nullptr, extra), 701);
        bytes = 0;
        REQUIRE_CODE(launch(scene["store"], nullptr, extra), 1);
        bytes = 15;
        REQUIRE_CODE(launch(scene["store"], nullptr, extra), 701);
        bytes = 5000;
        REQUIRE_CODE(launch(scene["store"], nullptr, extra), 701);
        REQUIRE_CODE(launch(scene["store"], parameters, none), 0);
        REQUIRE_THAT(scene.value() == 2007);
        bytes = 12;  // what is not given is 0
        REQUIRE_CODE(launch(scene["store"], nullptr, extra), 0);
        REQUIRE_THAT(scene.value() == 7);
    });
}

TEST(SimPackedParameters, OfANodeAreItsOwn) {
    in_own_process([] {
        const Scene scene;
        Packed packed = {scene.out, 5, 1};
        std::size_t bytes = 14;
        void* extra[] = {key(1), &packed, key(2), &bytes, key(0)};
        KernelNodeParameters2 node = {};
        node.launch = {scene["store"], 1, 1, 1, 1, 1, 1, 0, nullptr, extra};
        GraphObject* graph = nullptr;
        NodeObject* made = nullptr;
        GraphExec* instance = nullptr;
        REQUIRE_CODE(cuGraphCreate(&graph, 0), 0);
        REQUIRE_CODE(cuGraphAddKernelNode_v2(&made, graph, nullptr, 0, &node), 0);
        packed.value = 6;
        KernelNodeParameters told = {};
        REQUIRE_CODE(cuGraphKernelNodeGetParams(made, &told), 0);
        REQUIRE_THAT(!told.parameters && told.extra && told.extra[0] == key(2) && told.extra[2] == key(1));
        REQUIRE_THAT(*static_cast<std::size_t*>(told.extra[1]) == 14 && told.extra[4] == nullptr);
        REQUIRE_THAT(static_cast<Packed*>(told.extra[3])->value == 5);
        void* parameters[] = {&packed.out, &packed.value, &packed.half};
        node.launch.parameters = parameters;
        REQUIRE_CODE(cuGraphAddKernelNode_v2(&made, graph, nullptr, 0, &node), 1);
        REQUIRE_CODE(cuGraphInstantiateWithFlags(&instance, graph, 0), 0);
        REQUIRE_CODE(cuGraphLaunch(instance, nullptr), 0);
        REQUIRE_THAT(scene.value() == 1005);
    });
}

TEST(SimOldLaunch, BlockAndParametersAreSetInTheFunction) {  // keeps W8's ground
    in_own_process([] {
        const Scene scene;
        Function* const store = scene["store"];
        Address out = scene.out;
        REQUIRE_CODE(cuLaunch(scene["nothing"]), 0);  // one thread
        REQUIRE_CODE(cuParamSetv(store, 0, &out, 8), 0);
        REQUIRE_CODE(cuParamSeti(store, 8, 40), 0);
        unsigned short half = 1;
        REQUIRE_CODE(cuParamSetv(store, 12, &half, 2), 0);
        REQUIRE_CODE(cuParamSetSize(store, 12), 0);  // what lies behind it is 0
        REQUIRE_CODE(cuLaunch(store), 0);
        REQUIRE_THAT(scene.value() == 40);
        REQUIRE_CODE(cuParamSetSize(store, 14), 0);
        REQUIRE_CODE(cuLaunch(store), 0);
        REQUIRE_THAT(scene.value() == 1040);
        REQUIRE_CODE(cuParamSetf(store, 8, 1.0f), 0);
        half = 0;
        REQUIRE_CODE(cuParamSetv(store, 12, &half, 2), 0);
        REQUIRE_CODE(cuLaunchGridAsync(store, 1, 1, new_stream()), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_THAT(scene.value() == 0x3f800000);
        Function* const blocks = scene["blocks"];
        REQUIRE_CODE(cuMemsetD32_v2(scene.out, 0, 1), 0);
        REQUIRE_CODE(cuFuncSetBlockShape(blocks, 4, 2, 1), 0);
        REQUIRE_CODE(cuFuncSetSharedSize(blocks, 256), 0);
        REQUIRE_CODE(cuParamSetv(blocks, 0, &out, 8), 0);
        REQUIRE_CODE(cuParamSetSize(blocks, 8), 0);
        REQUIRE_CODE(cuLaunchGrid(blocks, 3, 5), 0);
        REQUIRE_THAT(scene.value() == 3 * 5 * 4 * 2);
    });
}

TEST(SimOldLaunch, WhatNoLaunchCanHaveIsRefused) {  // keeps W8's ground
    in_own_process([] {
        const Scene scene;
        Function* const nothing = scene["nothing"];
        int word = 0;
        REQUIRE_CODE(cuFuncSetSharedSize(nothing, 1000000), 1);
        REQUIRE_CODE(cuFuncSetBlockShape(nothing, 0, 1, 1), 1);
        REQUIRE_CODE(cuFuncSetBlockShape(nothing, 1, -1, 1), 1);
        REQUIRE_CODE(cuFuncSetBlockShape(nothing, 4096, 1, 1), 1);
        REQUIRE_CODE(cuParamSetv(nothing, -1, &word, 4), 1);
        REQUIRE_CODE(cuParamSetv(nothing, 32764, &word, 4), 1);
        REQUIRE_CODE(cuParamSetv(nothing, 0, nullptr, 4), 1);
        REQUIRE_CODE(cuParamSetSize(nothing, 32765), 1);
        REQUIRE_CODE(cuFuncSetBlockShape(nothing, 1, 1, 1), 0);
        REQUIRE_CODE(cuLaunchGrid(nothing, 0, 1), 1);
        REQUIRE_CODE(cuLaunchGrid(nothing, 1, -1), 1);
        REQUIRE_CODE(cuLaunch(nothing), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_CODE(cuFuncSetBlockShape(nullptr, 1, 1, 1), 400);
        REQUIRE_CODE(cuLaunch(nullptr), 400);
    });
}

TEST(SimOldLaunch, PlannedFaultsMeetEachFunction) {
    for (const char* const name :
         {"cuFuncSetBlockShape", "cuFuncSetSharedSize", "cuParamSetSize", "cuParamSeti", "cuParamSetf", "cuParamSetv",
          "cuLaunch", "cuLaunchGrid", "cuLaunchGridAsync", "cuCtxAttach", "cuCtxDetach", "cuCtxCreate_v3",
          "cuCtxGetSharedMemConfig", "cuCtxSetSharedMemConfig", "cuFuncSetSharedMemConfig",
          "cuCtxResetPersistingL2Cache", "cuCtxGetExecAffinity", "cuDeviceGetExecAffinitySupport"}) {
        in_own_process([name] {
            const Scene scene;
            Function* const f = scene["nothing"];
            Context *own = nullptr, *other = nullptr;
            int word = 0;
            ExecAffinity affinity = {};
            REQUIRE_CODE(cuCtxCreate_v2(&own, 0, 0), 0);
            REQUIRE_CODE(isthmus_sim_fault_plan(("call=" + std::string(name) + ":code=999").c_str()), 0);
            int failed = 0;
            for (const int answer :
                 {cuFuncSetBlockShape(f, 1, 1, 1), cuFuncSetSharedSize(f, 0), cuParamSetSize(f, 0),
                  cuParamSeti(f, 0, 1), cuParamSetf(f, 0, 1), cuParamSetv(f, 0, &word, 4), cuLaunch(f),
                  cuLaunchGrid(f, 1, 1), cuLaunchGridAsync(f, 1, 1, nullptr), cuCtxAttach(&other, 0), cuCtxDetach(own),
                  cuCtxCreate_v3(&other, nullptr, 0, 0, 0), cuCtxGetSharedMemConfig(&word), cuCtxSetSharedMemConfig(0),
                  cuFuncSetSharedMemConfig(f, 0), cuCtxResetPersistingL2Cache(), cuCtxGetExecAffinity(&affinity, 0),
                  cuDeviceGetExecAffinitySupport(&word, 0, 0)}) {
                failed += answer == 999;
            }
            REQUIRE_THAT(failed == 1);
        });
    }
}

TEST(SimOldContext, ItEndsWithItsLastUse) {
    in_own_process([] {
        Context* const primary = open_device();
        Context *own = nullptr, *found = nullptr;
        REQUIRE_CODE(cuCtxCreate_v2(&own, 0, 0), 0);
        REQUIRE_CODE(cuCtxAttach(&found, 0), 0);
        REQUIRE_THAT(found == own);
        REQUIRE_CODE(cuCtxAttach(&found, 1), 1);
        REQUIRE_CODE(cuCtxAttach(nullptr, 0), 1);
        REQUIRE_CODE(cuCtxDetach(own), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_CODE(cuCtxDetach(primary), 201);  // not current
        REQUIRE_CODE(cuCtxDetach(own), 0);
        REQUIRE_CODE(cuCtxGetCurrent(&found), 0);
        REQUIRE_THAT(found == primary);
        REQUIRE_CODE(cuCtxDetach(own), 201);
        REQUIRE_CODE(cuCtxDetach(nullptr), 201);
        REQUIRE_CODE(cuCtxCreate_v3(&own, nullptr, 1, 0, 0), 1);
    });
}

// cuCtxCreate of CUDA 13, as an H100 answers (580): OpenMM gives parameters that state nothing.
TEST(SimContexts, ParametersThatStateNothingAreThoseOfAnOrdinaryOne) {  // keeps W8
    in_own_process(
        [] {
            open_device();
            struct {
                void* affinities = nullptr;
                int affinity_count = 0;
                void* graphics = nullptr;
            } parameters;
            Context *own = nullptr, *found = nullptr;
            const auto is_made = [&](void* given) {
                REQUIRE_CODE(cuCtxCreate_v4(&own, given, 0, 0), 0);
                REQUIRE_CODE(cuCtxGetCurrent(&found), 0);
                REQUIRE_THAT(found == own);
            };
            is_made(nullptr);
            is_made(&parameters);
            struct {
                int type = 0;  // CU_EXEC_AFFINITY_TYPE_SM_COUNT
                unsigned multiprocessors = 8;
            } affinity;
            parameters.affinities = &affinity;
            is_made(&parameters);  // of none
            own = nullptr;
            parameters.affinity_count = 1;
            REQUIRE_CODE(cuCtxCreate_v4(&own, &parameters, 0, 0), 224);
            REQUIRE_CODE(cuCtxCreate_v3(&own, &affinity, 1, 0, 0), 224);
            parameters.affinities = nullptr;
            REQUIRE_CODE(cuCtxCreate_v4(&own, &parameters, 0, 0), 1);
            struct {
                int type = 1;  // CIG_DATA_TYPE_D3D12_COMMAND_QUEUE
                void* queue = nullptr;
            } graphics;
            parameters.affinity_count = 0;
            parameters.graphics = &graphics;
            REQUIRE_CODE(cuCtxCreate_v4(&own, &parameters, 0, 0), 801);
            parameters.affinities = &affinity;
            parameters.affinity_count = 1;
            REQUIRE_CODE(cuCtxCreate_v4(&own, &parameters, 0, 0), 801);
            REQUIRE_THAT(own == nullptr);
        },
        "graphics contexts are not modelled");
}

TEST(SimOldContext, APrimaryOneIsRetainedAndReleased) {
    in_own_process([] {
        Context* const primary = open_device();
        Context* found = nullptr;
        unsigned flags = 0;
        int active = 0;
        REQUIRE_CODE(cuCtxAttach(&found, 0), 0);
        REQUIRE_THAT(found == primary);
        REQUIRE_CODE(cuCtxDetach(primary), 0);
        REQUIRE_CODE(cuCtxSynchronize(), 0);
        REQUIRE_CODE(cuCtxDetach(primary), 0);
        REQUIRE_CODE(cuCtxGetCurrent(&found), 0);
        REQUIRE_THAT(found == primary);
        REQUIRE_CODE(cuDevicePrimaryCtxGetState(0, &flags, &active), 0);
        REQUIRE_THAT(active == 0);
    });
}

TEST(SimOldContext, ItHasAllMultiprocessors) {
    in_own_process([] {
        open_device();
        ExecAffinity affinity = {9, 0};
        REQUIRE_CODE(cuCtxGetExecAffinity(&affinity, 0), 0);
        REQUIRE_THAT(affinity.type == 0 &&
                     static_cast<int>(affinity.multiprocessors) == fact(attribute::multiprocessors));
        REQUIRE_CODE(cuCtxGetExecAffinity(&affinity, 1), 1);
        int supported = 9;
        REQUIRE_CODE(cuDeviceGetExecAffinitySupport(&supported, 0, 0), 0);
        REQUIRE_THAT(supported == 0);
        REQUIRE_CODE(cuDeviceGetExecAffinitySupport(&supported, 0, 77), 101);
    });
}

TEST(SimOldContext, BanksHaveFourBytesWhateverIsSet) {
    in_own_process([] {
        const Scene scene;
        int size = 0;
        REQUIRE_CODE(cuCtxSetSharedMemConfig(2), 0);
        REQUIRE_CODE(cuCtxGetSharedMemConfig(&size), 0);
        REQUIRE_THAT(size == 1);
        REQUIRE_CODE(cuCtxSetSharedMemConfig(3), 1);
        REQUIRE_CODE(cuFuncSetSharedMemConfig(scene["nothing"], 2), 0);
        REQUIRE_CODE(cuFuncSetSharedMemConfig(scene["nothing"], -1), 1);
        REQUIRE_CODE(cuCtxGetSharedMemConfig(nullptr), 1);
        REQUIRE_CODE(cuCtxResetPersistingL2Cache(), 0);
    });
}

TEST(SimFunctionSizes, LocalAndConstantMemoryAreThoseOfTheText) {  // keeps W8's ground
    in_own_process([] {
        const Scene scene;
        int bytes = 0;
        REQUIRE_CODE(cuFuncGetAttribute(&bytes, 3, scene["sizes"]), 0);
        REQUIRE_THAT(bytes == 124);  // with what it calls
        REQUIRE_CODE(cuFuncGetAttribute(&bytes, 3, scene["store"]), 0);
        REQUIRE_THAT(bytes == 0);
        REQUIRE_CODE(cuFuncGetAttribute(&bytes, 2, scene["store"]), 0);
        REQUIRE_THAT(bytes == 48);  // a word, what aligns the table, the table
        REQUIRE_CODE(cuFuncGetAttribute(&bytes, 5, scene["store"]), 0);
        REQUIRE_THAT(bytes == 50);  // of .target
    });
}

}  // namespace
}  // namespace isthmus::sim::test
