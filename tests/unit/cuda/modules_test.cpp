// SPDX-License-Identifier: Apache-2.0
// Ready-made modules over a fake driver: which calls are made, in which order, and what a lacking function means.
#include "cuda_calls.hpp"

#include <isthmus/module_launch.hpp>

namespace isthmus::platform::cuda {
namespace {

using isthmus::detail::ModuleLaunch;

struct Packed {
    ModuleLaunch launch;
    std::uint64_t address, count;
    int value;
};

KernelInfo described() {
    static const ParameterInfo parameters[] = {
        {offsetof(Packed, address), 16, 4, ArgumentUse::read_write},
        {offsetof(Packed, value), 4, 0, ArgumentUse::value},
    };
    KernelInfo kernel{};
    kernel.name = "add";
    kernel.parameter = parameters;
    kernel.parameter_count = 2;
    kernel.pack_bytes = sizeof(Packed);
    kernel.rank = isthmus::detail::module_rank;
    return kernel;
}

TEST_F(CudaCalls, AModuleIsLoadedAndUnloadedInItsContext) {
    ModuleHandle module{};
    std::string log;
    ASSERT_TRUE(device().modules()->load("image", log, module).ok());
    EXPECT_EQ(log, "");
    fake().clear();
    ASSERT_TRUE(device().modules()->unload(module).ok());
    EXPECT_STREQ(fake().calls(), "cuCtxPushCurrent_v2 cuCtxGetId cuModuleUnload cuCtxPopCurrent_v2 ");
    fake().fail("cuModuleLoadDataEx", 222);
    const Status refused = device().modules()->load("image", log, module);
    EXPECT_EQ(refused.code, Code::no_gpu_code);
    EXPECT_EQ(refused.driver_code, 222);
}

TEST_F(CudaCalls, ALaunchOfAModulesKernelIsOneCallAndKeepsNothingByAddress) {
    const StreamHandle stream = make_stream();
    const KernelInfo kernel = described();
    EXPECT_TRUE(execution().is_resolved(kernel));
    FunctionHandle function{};
    ASSERT_TRUE(execution().resolve(kernel, function).ok());
    EXPECT_NE(function, FunctionHandle::none);
    Packed pack{};
    pack.launch.function = 5;
    ASSERT_TRUE(execution().launch({&kernel, function, {3, 1, 1}, &pack, stream}).ok());
    EXPECT_STREQ(fake().calls(), "cuLaunchKernel ");
    fake().clear();
    pack.launch.cluster[0] = pack.launch.cluster[1] = pack.launch.cluster[2] = 1;
    ASSERT_TRUE(execution().launch({&kernel, function, {3, 1, 1}, &pack, stream}).ok());
    EXPECT_STREQ(fake().calls(), "cuLaunchKernelEx ");
    fake().clear();
    pack.launch.own_layout = true;
    ASSERT_TRUE(execution().launch({&kernel, function, {0, 1, 1}, &pack, stream}).ok());
    EXPECT_STREQ(fake().calls(), "") << "an empty index space runs nothing";
}

TEST_F(CudaCalls, AFailedCompilationEndsItsLinker) {
    std::string log;
    std::vector<std::byte> code;
    fake().fail("cuLinkAddData_v2", 218);
    EXPECT_EQ(device().modules()->compile("ptx", 3, log, code).driver_code, 218);
    EXPECT_NE(std::string(fake().calls()).find("cuLinkDestroy"), std::string::npos);
    EXPECT_EQ(std::string(fake().calls()).find("cuLinkComplete"), std::string::npos);
}

TEST_F(CudaCalls, AnOlderDriverDoesNotTellParameters) {
    open("lacks_parameter_info");
    std::size_t offset = 0, bytes = 0;
    EXPECT_EQ(device().modules()->parameter(FunctionHandle{1}, 0, offset, bytes).code, Code::unsupported);
    EXPECT_FALSE(device().modules()->simulated());
    EXPECT_EQ(device().modules()->stand_in(FunctionHandle{1}, {}).code, Code::unsupported);
}

}  // namespace
}  // namespace isthmus::platform::cuda
