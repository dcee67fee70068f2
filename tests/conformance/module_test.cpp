// SPDX-License-Identifier: Apache-2.0
// Ready-made modules: loading, declared signatures, launches, variables, and the end. // keeps W8
#include "gate.hpp"
#include "module_code.hpp"
#include "scenario.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace conformance {
namespace {

using namespace modules;

constexpr std::size_t count = 1000;
constexpr LaunchShape blocks_of_64{.grid = {(count + 63) / 64}, .block = {64}};

Module load(Device& device) {
    return device.load_module(bytes(ptx), with_stand_ins()).value();
}
// No GPU runs the entries: stand-ins do.
bool stands_in(const Device& device) {
    return device.is_cpu() || driver_calls() >= 0;
}

struct Folder {
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "isthmus-module-XXXXXX").string();
        path = ::mkdtemp(name.data());
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    std::size_t files() const {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
    }
    std::string path;
};
void write_file(const std::string& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
}

TEST(Modules, AKernelRunsWithItsDeclaredSignature) {
    on_every_device([](Device& device, Stream stream) {
        const Module module = load(device);
        const auto scale = module.kernel<ScaleInto>("scale_into").value();
        Buffer<std::int32_t> in = pinned(device, count, 7);
        Buffer<std::int32_t> out = pinned(device, count, 1);
        (void)stream.launch(scale, blocks_of_64, out, in, 3, count).value();
        expect_all(out, 21);
        (void)stream.launch(scale, blocks_of_64, out, in, -2, 10).value();
        const auto seen = out.read_on_host().value();
        EXPECT_EQ(seen[9], -14);
        EXPECT_EQ(seen[10], 21) << "count is passed";
        EXPECT_EQ(module.entries().size(), 5u);
    });
}

TEST(Modules, FromAFileAsFromMemory) {
    on_every_device([](Device& device, Stream stream) {
        const Folder folder;
        const std::string path = folder.path + "/kernels.ptx";
        write_file(path, ptx);
        const Module module = device.load_module(path, with_stand_ins()).value();
        Buffer<std::int32_t> data = pinned(device, count, 1);
        const auto churn = module.kernel<Churn>("churn").value();
        (void)stream.launch(churn, blocks_of_64, data, count, 5).value();
        expect_all(data, 6);
        EXPECT_TRUE(refused_as(device.load_module(folder.path + "/nothing.ptx"), Code::system_error));
        EXPECT_TRUE(refused_as(device.load_module(ptx), Code::system_error)) << "text is given as bytes";
    });
}

TEST(Modules, DeclarationsThatTheEntryContradictsAreRefused) {
    on_every_device([](Device& device) {
        const Module module = load(device);
        const auto missing = module.kernel<ScaleInto>("scale_unto");
        EXPECT_TRUE(refused_as(missing, Code::invalid_argument));
        if (!missing && !fault_happened()) {
            EXPECT_NE(missing.error().message().find("'scale_into'"), std::string::npos) << missing.error().message();
        }
        using TooFew = void(Out<std::int32_t>, View<const std::int32_t>, std::int32_t);
        using OtherSize = void(Out<std::int32_t>, View<const std::int32_t>, double, std::uint32_t);
        using ByValue = void(Out<std::int32_t>, std::int32_t, std::int32_t, std::uint32_t);
        EXPECT_TRUE(refused_as(module.kernel<TooFew>("scale_into"), Code::invalid_argument));
        EXPECT_TRUE(refused_as(module.kernel<OtherSize>("scale_into"), Code::invalid_argument));
        using OtherSizeOfTheLast = void(Out<std::int32_t>, View<const std::int32_t>, std::int32_t, std::uint16_t);
        const auto other_size = module.kernel<OtherSizeOfTheLast>("scale_into");  // all lie where the entry has them
        EXPECT_TRUE(refused_as(other_size, Code::invalid_argument));
        if (!other_size && !fault_happened()) {
            EXPECT_NE(other_size.error().message().find("parameter 3 has 4 bytes instead of 2"), std::string::npos)
                << other_size.error().message();
        }
        EXPECT_TRUE(refused_as(module.kernel<ByValue>("scale_into"), Code::invalid_argument));
        EXPECT_TRUE(refused_as(module.kernel<OwnScaleInto>("scale_into"), Code::invalid_argument));
        EXPECT_TRUE(refused_as(module.kernel<ScaleInto>("isthmus_scale_into"), Code::invalid_argument));
        const auto right = module.kernel<ScaleInto>("scale_into").value();
        EXPECT_TRUE(unless_fault(right.parameter_check() != ParameterCheck::none));
    });
}

TEST(Modules, WhatIsNoCodeForTheDeviceIsRefusedWithItsReason) {
    on_every_device([](Device& device) {
        EXPECT_TRUE(refused_as(device.load_module(bytes("no code")), Code::no_gpu_code));
        EXPECT_TRUE(refused_as(device.load_module(std::span<const std::byte>()), Code::no_gpu_code));
        EXPECT_TRUE(refused_as(device.load_module(bytes("\x7f"
                                                        "ELF is cut")),
                               Code::no_gpu_code));
        const std::string broken(
            ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry a(.param .u64)\n{ ret; }\n");
        const auto damaged = device.load_module(bytes(broken));
        EXPECT_TRUE(refused_as(damaged, Code::no_gpu_code));
        if (!damaged && !fault_happened() && !device.is_cpu()) {  // the compiler's own words
            EXPECT_NE(damaged.error().message().find("ptxas"), std::string::npos) << damaged.error().message();
            EXPECT_EQ(damaged.error().driver_code(), 218);
        }
        std::string late(ptx);
        late.replace(late.find("7.0"), 3, "99.0");
        if (device.is_cpu()) return;  // stand-ins need no compiler
        const auto too_new = device.load_module(bytes(late));
        EXPECT_TRUE(refused_as(too_new, Code::no_gpu_code));
        if (!too_new && !fault_happened()) {
            EXPECT_EQ(too_new.error().driver_code(), 222);
        }
    });
}

// keeps W8
TEST(Modules, PtxRunsWithoutAStandInOnGpusAndSimulatedMachines) {
    on_every_device([](Device& device, Stream stream) {
        if (device.is_cpu()) return;
        const Module module = device.load_module(bytes(ptx)).value();
        const auto scale = module.kernel<ScaleInto>("scale_into").value();
        const auto own = module.kernel<OwnScaleInto>("isthmus_scale_into").value();
        Buffer<std::int32_t> in = pinned(device, count, 7);
        Buffer<std::int32_t> out = pinned(device, count, 1);
        (void)stream.launch(scale, blocks_of_64, out, in, 3, count).value();
        EXPECT_EQ(out.read_on_host().value()[count - 1], 21);
        (void)stream.launch(own, count, out, in, 4).value();
        EXPECT_EQ(out.read_on_host().value()[count - 1], 28);
    });
}

TEST(Modules, WithoutAStandInTheRefusalSaysHowToGiveOne) {
    on_every_device([](Device& device) {
        if (!stands_in(device)) return;
        if (device.is_cpu()) {
            const Module module = device.load_module(bytes(ptx)).value();
            const auto none = module.kernel<ScaleInto>("scale_into");
            EXPECT_TRUE(refused_as(none, Code::unsupported));
            if (!none && !fault_happened()) {
                EXPECT_NE(none.error().remedy().find("isthmus::stand_in<SIGNATURE>(\"scale_into\""), std::string::npos)
                    << none.error().remedy();
            }
        }
        ModuleOptions other = with_stand_ins();
        other.stand_ins.front() =
            stand_in<Churn>("scale_into", [](const StandInCall&, std::int32_t*, std::uint32_t, std::uint32_t) {});
        const Module with_other = device.load_module(bytes(ptx), other).value();
        EXPECT_TRUE(refused_as(with_other.kernel<ScaleInto>("scale_into"), Code::invalid_argument));
    });
}

TEST(Modules, ShapesBeyondTheLimitsAreRefusedBeforeTheDriver) {
    on_every_device([](Device& device, Stream stream) {
        const Module module = load(device);
        const auto churn = module.kernel<Churn>("churn").value();
        Buffer<std::int32_t> data = pinned(device, count, 1);
        const long before = counts_calls(device) ? driver_calls("cuLaunchKernel") : 0;
        const LaunchShape refused[] = {{.grid = {1}, .block = {0}},
                                       {.grid = {1}, .block = {4096}},
                                       {.grid = {1}, .block = {64, 64, 1}},
                                       {.grid = {1}, .block = {1, 1, 128}},
                                       {.grid = {std::uint64_t{1} << 31}, .block = {1}},
                                       {.grid = {1, 65536}, .block = {1}},
                                       {.grid = {std::numeric_limits<std::uint64_t>::max()}, .block = {1}}};
        for (const LaunchShape& shape : refused) {
            EXPECT_TRUE(refused_as(stream.launch(churn, shape, data, count, 1), Code::invalid_argument));
            EXPECT_TRUE(unless_fault(stream.explain({}, churn, shape, data, count, 1).refusal.has_value()));
        }
        if (!device.is_cpu()) {
            const LaunchShape shared{.grid = {1}, .block = {64}, .shared_bytes = std::uint64_t{1} << 20};
            EXPECT_TRUE(refused_as(stream.launch(churn, shared, data, count, 1), Code::invalid_argument));
        }
        if (counts_calls(device)) {
            EXPECT_TRUE(unless_fault(driver_calls("cuLaunchKernel") == before));
        }
        const LaunchShape nothing{.grid = {0}, .block = {64}};
        EXPECT_TRUE(worked(stream.launch(churn, nothing, data, count, 1)));
        expect_all(data, 1);
    });
}

TEST(Modules, BlocksGetTheSharedMemoryThatTheyAskFor) {
    on_every_device([](Device& device, Stream stream) {
        const Module module = load(device);
        const auto sums = module.kernel<BlockSums>("block_sums").value();
        Buffer<std::int32_t> in = pinned(device, 1024, 2);
        Buffer<std::int32_t> out = pinned(device, 4, 0);
        const LaunchShape shape{.grid = {4}, .block = {256}, .shared_bytes = 256 * sizeof(std::int32_t)};
        (void)stream.launch(sums, shape, out, in).value();
        expect_all(out, 512);
        // Beyond 48 KiB a function has to be told; a device with less refuses.
        constexpr int most_shared_of_a_block = 97;
        constexpr int large_bytes = 60 << 10;
        const std::optional<int> most = device.facts().attribute(most_shared_of_a_block);
        if (!most && fault_happened()) return;
        LaunchShape large = shape;
        large.shared_bytes = large_bytes;
        set_all(out, 0);
        const auto launched = stream.launch(sums, large, out, in);
        if (!device.is_cpu() && most.value_or(0) < large_bytes) {
            EXPECT_TRUE(refused_as(launched, Code::invalid_argument));
            return;
        }
        EXPECT_TRUE(worked(launched));
        expect_all(out, 512);
    });
}

// A function has one limit for all declarations of its entry, which a smaller request must not lower.
TEST(Modules, ASecondDeclarationLeavesTheFirstItsSharedMemory) {
    on_every_device([](Device& device, Stream stream) {
        constexpr int most_shared_of_a_block = 97;
        const std::optional<int> most = device.facts().attribute(most_shared_of_a_block);
        if (!device.is_cpu() && most.value_or(0) < (60 << 10)) return;
        const Module module = load(device);
        const auto first = module.kernel<BlockSums>("block_sums").value();
        const auto second = module.kernel<void(View<std::int32_t>, View<const std::int32_t>)>("block_sums").value();
        Buffer<std::int32_t> in = pinned(device, 1024, 2);
        Buffer<std::int32_t> out = pinned(device, 4, 0);
        const LaunchShape large{.grid = {4}, .block = {256}, .shared_bytes = 60 << 10};
        const LaunchShape smaller{.grid = {4}, .block = {256}, .shared_bytes = 52 << 10};
        EXPECT_TRUE(worked(stream.launch(first, large, out, in)));
        EXPECT_TRUE(worked(stream.launch(second, smaller, out, in)));
        set_all(out, 0);
        EXPECT_TRUE(worked(stream.launch(first, large, out, in)));
        expect_all(out, 512);
    });
}

TEST(Modules, ClustersRunWhereTheDeviceHasThem) {
    on_every_device([](Device& device, Stream stream) {
        constexpr int cluster_launch = 120;
        const Module module = load(device);
        const auto churn = module.kernel<Churn>("churn").value();
        Buffer<std::int32_t> data = pinned(device, 512, 1);
        LaunchShape shape{.grid = {8}, .block = {64}, .cluster = {2, 1, 1}};
        const std::optional<int> told = device.facts().attribute(cluster_launch);
        if (!told && fault_happened()) return;
        if (device.is_cpu() || told.value_or(0) != 0) {
            (void)stream.launch(churn, shape, data, 512, 2).value();
            expect_all(data, 3);
            shape.cluster = {3, 1, 1};
            EXPECT_TRUE(refused_as(stream.launch(churn, shape, data, 512, 1), Code::invalid_argument));
        } else {
            EXPECT_TRUE(refused_as(stream.launch(churn, shape, data, 512, 1), Code::unsupported));
        }
    });
}

TEST(Modules, ArgumentsAreJudgedAsThoseOfOtherKernels) {
    on_every_device([](Device& device, Stream stream) {
        const Module module = load(device);
        const auto scale = module.kernel<ScaleInto>("scale_into").value();
        Buffer<std::int32_t> in = pinned(device, count, 7);
        Buffer<std::int32_t> out = pinned(device, count, 1);
        {
            const auto reading = in.read_on_host().value();
            EXPECT_TRUE(worked(stream.launch(scale, blocks_of_64, out, in, 2, count))) << "both only read";
        }
        {
            const auto writing = in.write_on_host().value();
            EXPECT_TRUE(refused_as(stream.launch(scale, blocks_of_64, out, in, 3, count), Code::in_use));
            const LaunchExplanation explained = stream.explain({}, scale, blocks_of_64, out, in, 3, count);
            EXPECT_TRUE(unless_fault(explained.refusal && explained.refusal->code() == Code::in_use));
            ASSERT_EQ(explained.arguments.size(), 4u);
            EXPECT_EQ(explained.arguments[0].use, ArgumentUse::write);
            EXPECT_EQ(explained.arguments[1].use, ArgumentUse::read);
            EXPECT_EQ(explained.arguments[2].use, ArgumentUse::value);
            for (std::int32_t& one : writing) one = 7;
        }
        expect_all(out, 14);
        Buffer<std::int32_t> gone = pinned(device, count, 1);
        gone.release().value();
        EXPECT_TRUE(refused_as(stream.launch(scale, blocks_of_64, gone, in, 2, count), Code::invalid_handle));
        EXPECT_TRUE(
            refused_as(stream.launch(scale, blocks_of_64, out, in, 2, std::int64_t{-1}), Code::invalid_argument))
            << "a number that the parameter cannot hold";
        expect_all(out, 14);
    });
}

TEST(Modules, SharedBuffersOfEveryPathAreBroughtAndReturned) {
    on_every_device([](Device& device, Stream stream) {
        const Module module = load(device);
        const auto scale = module.kernel<ScaleInto>("scale_into").value();
        constexpr std::size_t large = 1 << 20;  // copied on a discrete GPU
        Buffer<std::int32_t> in = device.allocate_shared<std::int32_t>(large).value();
        Buffer<std::int32_t> out = device.allocate_shared<std::int32_t>(large).value();
        for (int value = 1; value < 3; ++value) {
            set_all(in, value);
            (void)stream.launch(scale, {.grid = {large / 256}, .block = {256}}, out, in, 5, large).value();
            expect_all(out, 5 * value);
        }
    });
}

TEST(Modules, HostMemoryIsStagedWhereAsked) {
    on_every_device([](Device& device, Stream stream) {
        const Module module = load(device);
        const auto churn = module.kernel<Churn>("churn").value();
        std::vector<std::int32_t> data(count, 4);
        const Settled settled(device);
        const LaunchOptions staged{.mode = LaunchMode::staged};
        (void)stream.launch(staged, churn, blocks_of_64, std::span(data), count, 3).value();
        stream.synchronize().value();  // where the memory is used in place, the launch does not wait
        for (const std::int32_t one : data) ASSERT_EQ(one, 7);
    });
}

TEST(Modules, AnEntryOfTheLibrarysOwnKernelsTakesItsViews) {
    on_every_device([](Device& device, Stream stream) {
        const Module module = load(device);
        const auto scale = module.kernel<OwnScaleInto>("isthmus_scale_into").value();
        Buffer<std::int32_t> in = pinned(device, count, 7);
        Buffer<std::int32_t> out = pinned(device, count, 1);
        (void)stream.launch(scale, count, out, in, 4).value();
        expect_all(out, 28);
        (void)stream.launch(scale, 0, out, in, 9).value();
        expect_all(out, 28);
    });
}

TEST(Modules, TwoModulesWithOneNameEachRunTheirOwnCode) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> in = pinned(device, count, 7);
        Buffer<std::int32_t> out = pinned(device, count, 1);
        const Module first = load(device);
        const auto scale = first.kernel<ScaleInto>("scale_into").value();
        for (int round = 0; round < 3; ++round) {
            // Loaded and unloaded in turn: nothing of the last one is used by the next.
            Module second = device.load_module(bytes(other_ptx), with_other_stand_in()).value();
            const auto other = second.kernel<ScaleInto>("scale_into").value();
            (void)stream.launch(other, blocks_of_64, out, in, 2, count).value();
            expect_all(out, 2000);
            (void)stream.launch(scale, blocks_of_64, out, in, 2, count).value();
            expect_all(out, 14);
            EXPECT_TRUE(worked(second.release()));
        }
    });
}

struct Range {
    std::int16_t first;
    double by;
};

TEST(Modules, WhatNvccMadeRuns) {
    std::error_code none;
    const auto here = std::filesystem::read_symlink("/proc/self/exe", none).parent_path() / "module_kernels.fatbin";
    if (!std::filesystem::exists(here, none)) GTEST_SKIP() << "built without nvcc";
    using AddInRange = void(char, Range, View<std::int32_t>, std::uint32_t);
    ModuleOptions options = with_stand_ins();
    options.stand_ins.push_back(stand_in<AddInRange>(
        "add_in_range", [](const StandInCall&, char mark, Range range, std::int32_t* data, std::uint32_t size) {
            for (std::uint32_t i = static_cast<std::uint32_t>(range.first); i < size; ++i) {
                data[i] += static_cast<std::int32_t>(range.by) + mark;
            }
        }));
    on_every_device([&](Device& device, Stream stream) {
        const Module module = device.load_module(here.string(), options).value();
        const auto scale = module.kernel<ScaleInto>("scale_into").value();
        const auto add = module.kernel<AddInRange>("add_in_range").value();
        Buffer<std::int32_t> in = pinned(device, count, 7);
        Buffer<std::int32_t> out = pinned(device, count, 1);
        (void)stream.launch(scale, blocks_of_64, out, in, 3, count).value();
        (void)stream.launch(add, blocks_of_64, char{1}, Range{999, 4.0}, out, count).value();
        const auto seen = out.read_on_host().value();
        EXPECT_EQ(seen[998], 21);
        EXPECT_EQ(seen[999], 26);
        using Other = void(char, double, View<std::int32_t>, std::uint32_t);
        EXPECT_TRUE(refused_as(module.kernel<Other>("add_in_range"), Code::invalid_argument));
    });
}

TEST(Modules, VariablesAreWrittenAndRead) {
    on_every_device([](Device& device, Stream stream) {
        const Module module = load(device);
        auto bias = module.global<std::int32_t>("bias").value();
        auto table = module.global<std::int32_t>("table").value();
        ASSERT_EQ(bias.size(), 1u);
        ASSERT_EQ(table.size(), 4u);
        const std::vector<std::int32_t> one{100}, four{1, 2, 3, 4};
        bias.write(stream, one).value();
        table.write(stream, four).value();
        const std::vector<std::int32_t> last{9};
        table.write(stream, last, 3).value();
        const auto add = module.kernel<AddBias>("add_bias").value();
        Buffer<std::int32_t> data = pinned(device, 8, 0);
        (void)stream.launch(add, {.grid = {1}, .block = {64}}, data, 8).value();
        {
            const auto seen = data.read_on_host().value();
            const std::int32_t expected[] = {101, 102, 103, 109, 101, 102, 103, 109};
            for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(seen[i], expected[i]);
        }
        std::vector<std::int32_t> back(2);
        table.read(stream, back, 2).value();
        stream.synchronize().value();
        EXPECT_EQ(back, (std::vector<std::int32_t>{3, 9}));
        EXPECT_TRUE(refused_as(module.global<std::int32_t>("nothing"), Code::invalid_argument));
        EXPECT_TRUE(refused_as(module.global<std::int64_t>("bias"), Code::invalid_argument));
        EXPECT_TRUE(refused_as(table.write(stream, four, 1), Code::invalid_argument)) << "beyond its end";
    });
}

TEST(Modules, ReleasingWaitsForTheLaunchesAndEndsTheKernels) {
    on_every_device([](Device& device, Stream stream, Stream other) {
        Buffer<std::int32_t> first = pinned(device, count, 1);
        Buffer<std::int32_t> second = pinned(device, count, 1);
        Module module = load(device);
        const auto churn = module.kernel<Churn>("churn").value();
        const auto bias = module.global<std::int32_t>("bias").value();
        (void)stream.launch(churn, blocks_of_64, first, count, 200).value();
        (void)other.launch(churn, blocks_of_64, second, count, 100).value();
        EXPECT_TRUE(worked(module.release()));
        EXPECT_TRUE(unless_fault(stream.finished().value_or(true)));
        expect_all(first, 201);
        expect_all(second, 101);
        EXPECT_TRUE(refused_as(stream.launch(churn, blocks_of_64, first, count, 1), Code::invalid_handle));
        EXPECT_TRUE(unless_fault(stream.explain({}, churn, blocks_of_64, first, count, 1).refusal.has_value()));
        EXPECT_TRUE(refused_as(module.kernel<ScaleInto>("scale_into"), Code::invalid_handle));
        EXPECT_TRUE(refused_as(module.global<std::int32_t>("bias"), Code::invalid_handle));
        std::vector<std::int32_t> one(1);
        EXPECT_FALSE(bias.read(stream, one).ok()) << "its memory is gone";
        EXPECT_TRUE(refused_as(module.release(), Code::invalid_handle));
        expect_all(first, 201);
    });
}

TEST(Modules, AReleaseThatTimesOutLeavesTheModuleAsItWas) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> ahead = pinned(device, 1, 0);
        Buffer<std::int32_t> data = pinned(device, count, 1);
        Module module = load(device);
        const auto churn = module.kernel<Churn>("churn").value();
        (void)stream.launch(churn, blocks_of_64, data, count, 1).value();
        stream.synchronize().value();
        Gate gate(device);
        (void)stream.launch(when_raised, 1, gate.words(), ahead, 1).value();
        (void)stream.launch(churn, blocks_of_64, data, count, 2).value();
        if (gate.holds()) {
            const Wait briefly = Wait::at_most(std::chrono::milliseconds(1));
            EXPECT_TRUE(refused_while_it_lasts(module.release(briefly), Code::timed_out));  // a lost device is no error
        }
        (void)stream.launch(churn, blocks_of_64, data, count, 3).value();
        gate.raise();
        EXPECT_TRUE(worked(module.release()));
        expect_all(data, 7);
        EXPECT_TRUE(refused_as(stream.launch(churn, blocks_of_64, data, count, 1), Code::invalid_handle));
    });
}

TEST(Modules, AKernelKeepsItsModuleAndTheLastOneWaits) {
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        {
            const auto churn = [&] {
                const Module module = load(device);
                return module.kernel<Churn>("churn").value();
            }();
            (void)stream.launch(churn, blocks_of_64, data, count, 300).value();
        }
        expect_all(data, 301);
    });
}

TEST(Modules, AGraphKeepsWhatItLaunches) {
    NEEDS(graph);
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        std::optional<Graph> graph;
        Module module = load(device);
        {
            const auto churn = module.kernel<Churn>("churn").value();
            Capture capture = stream.begin_capture().value();
            (void)stream.launch(churn, blocks_of_64, data, count, 2).value();
            EXPECT_TRUE(refused_as(module.release(), Code::capture_error));
            (void)stream.launch(churn, blocks_of_64, data, count, 3).value();
            graph.emplace(capture.end().value());
        }
        expect_all(data, 1);
        EXPECT_TRUE(refused_as(module.release(), Code::in_use));
        {
            GraphInstance instance = graph->instantiate().value();
            graph.reset();
            stream.launch(instance).value();
            stream.launch(instance).value();
            expect_all(data, 11);
            set_all(data, 5);
            stream.launch(instance).value();
            expect_all(data, 10);
            EXPECT_TRUE(refused_as(module.release(), Code::in_use));
        }
        EXPECT_TRUE(worked(module.release()));
        expect_all(data, 10);
    });
}

TEST(Modules, AGraphThatGoesWhileItRunsIsWaitedForBeforeItsCodeGoes) {
    NEEDS(graph);
    on_every_device([](Device& device, Stream stream) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        Module module = load(device);
        {
            const auto churn = module.kernel<Churn>("churn").value();
            Capture inner = stream.begin_capture().value();
            (void)stream.launch(churn, blocks_of_64, data, count, 150).value();
            const Graph part = inner.end().value();
            Capture outer = stream.begin_capture().value();
            outer.append(part).value();
            const Graph whole = outer.end().value();
            GraphInstance instance = whole.instantiate().value();
            stream.launch(instance).value();
        }
        EXPECT_TRUE(worked(module.release()));
        EXPECT_TRUE(unless_fault(stream.finished().value_or(true)));
        expect_all(data, 151);
    });
}

TEST(Modules, AModuleThatGoesDuringACaptureIsUnloadedAfterIt) {
    NEEDS(graph);
    on_every_device([](Device& device, Stream stream, Stream other) {
        Buffer<std::int32_t> data = pinned(device, count, 1);
        std::optional<Module> module(load(device));
        std::optional<ModuleKernel<Churn>> churn(module->kernel<Churn>("churn").value());
        (void)other.launch(*churn, blocks_of_64, data, count, 3).value();
        other.synchronize().value();
        Capture capture = stream.begin_capture().value();
        (void)stream.launch(*churn, blocks_of_64, data, count, 2).value();
        churn.reset();
        module.reset();
        {  // and one that the graph does not launch
            const Module unused = load(device);
        }
        const Graph graph = capture.end().value();
        GraphInstance instance = graph.instantiate().value();
        stream.launch(instance).value();
        expect_all(data, 6);
    });
}

TEST(Modules, AStreamOfAnotherDeviceIsRefused) {
    Buffer<std::int32_t> data = pinned(runtime().default_device(), count, 1);
    for (Device& loaded : all_devices()) {
        const Module module = load(loaded);
        const auto churn = module.kernel<Churn>("churn").value();
        for (Device& other : all_devices()) {
            if (&other == &loaded) continue;
            EXPECT_TRUE(refused_as(other.stream().launch(churn, blocks_of_64, data, count, 1), Code::wrong_device));
        }
    }
    expect_all(data, 1);
}

TEST(Modules, ACacheFolderKeepsWhatTheCompilerMade) {
    on_every_device([](Device& device, Stream stream) {
        const Folder folder;
        ModuleOptions options = with_stand_ins();
        options.cache_folder = folder.path;
        Buffer<std::int32_t> data = pinned(device, count, 1);
        const auto play = [&](std::int32_t expected) {
            const Module module = device.load_module(bytes(ptx), options).value();
            const auto churn = module.kernel<Churn>("churn").value();
            (void)stream.launch(churn, blocks_of_64, data, count, 1).value();
            expect_all(data, expected);
        };
        const auto compiled = [&] { return counts_calls(device) ? driver_calls("cuLinkComplete") : 0; };
        const long before = compiled();
        play(2);
        if (device.is_cpu()) {
            EXPECT_EQ(folder.files(), 0u) << "nothing is compiled";
            return;
        }
        EXPECT_TRUE(unless_fault(folder.files() == 1));
        const long once = compiled();
        play(3);
        EXPECT_TRUE(unless_fault(compiled() == once)) << "read from the folder";
        for (const auto& file : std::filesystem::directory_iterator(folder.path)) {
            std::filesystem::resize_file(file, 100);
        }
        play(4);
        if (counts_calls(device)) {
            EXPECT_TRUE(unless_fault(compiled() == 2 * once - before)) << "compiled again";
        }
        EXPECT_TRUE(unless_fault(folder.files() == 1));
        std::filesystem::remove_all(folder.path);
        play(5);  // a folder that is not there keeps nothing
    });
}

TEST(Modules, SeveralThreadsLaunchOneKernel) {
    on_every_device([](Device& device, Stream stream, const Stream& other) {
        Buffer<std::int32_t> first = pinned(device, count, 0);
        Buffer<std::int32_t> second = pinned(device, count, 0);
        const Module module = load(device);
        const int times = rounds(20);
        const auto play = [&](Stream on, Buffer<std::int32_t>& data) {
            const auto churn = module.kernel<Churn>("churn").value();
            for (int round = 0; round < times; ++round) {
                (void)on.launch(churn, blocks_of_64, data, count, 1).value();
            }
        };
        Thread thread([&] { play(stream, first); });
        play(other, second);
        thread.join();
        expect_all(first, times);
        expect_all(second, times);
    });
}

}  // namespace
}  // namespace conformance
