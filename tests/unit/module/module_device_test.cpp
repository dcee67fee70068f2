// SPDX-License-Identifier: Apache-2.0
// Modules on a device whose driver cannot load them, and a release beside a launch. // keeps W8
#include "fake_device.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace {

using namespace isthmus;

constexpr std::string_view ptx = ".version 7.0\n.target sm_75\n.visible .entry wait(.param .u32 n) { ret; }\n";

std::span<const std::byte> image() {
    return std::as_bytes(std::span(ptx.data(), ptx.size()));
}

TEST(ModuleDevices, ADriverWithoutTheCallsIsSaidToLackThem) {
    isthmus::testing::FakeWorld world;
    isthmus::testing::FakeRuntime runtime;
    Device device(runtime.open(world));
    const Result<Module> refused = device.load_module(image());
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.code(), Code::unsupported);
    EXPECT_NE(refused.error().message().find("cuModuleLoadDataEx"), std::string_view::npos);
}

TEST(ModuleDevices, AReleaseBesideALaunchIsRefusedAtItsDeadline) {
    isthmus::testing::FakeWorld world;
    world.synchronous = true;
    isthmus::testing::FakeRuntime runtime;
    Device device(runtime.open(world));
    std::optional<Module> module;
    std::optional<Result<void>> released;
    ModuleOptions options;
    options.stand_ins = {stand_in<void(unsigned)>("wait", [](const StandInCall&, unsigned) {})};
    world.inside = [&](const std::string& call) {
        if (call != "launch wait" || released) return;
        std::thread([&] { released = module->release(std::chrono::milliseconds(1)); }).join();
    };
    module = device.load_module(image(), options).value();
    const auto kernel = module->kernel<void(unsigned)>("wait").value();
    ASSERT_TRUE(device.stream().launch(kernel, {}, 1u).ok());
    ASSERT_TRUE(released.has_value());
    EXPECT_EQ(released->code(), Code::timed_out);
    EXPECT_TRUE(device.stream().launch(kernel, {.grid = {0}}, 1u).ok()) << "the refusal changed nothing";
    EXPECT_TRUE(module->release().ok());
    EXPECT_EQ(device.stream().launch(kernel, {}, 1u).code(), Code::invalid_handle);
}

// A device or a pipe has no end, and nobody may ever write to a FIFO.
TEST(ModuleDevices, OnlyARegularFileOfASensibleSizeIsRead) {  // keeps W8
    isthmus::testing::FakeWorld world;
    world.synchronous = true;
    isthmus::testing::FakeRuntime runtime;
    Device device(runtime.open(world));
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("isthmus-module-files-" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
    const std::string pipe = folder / "pipe", large = folder / "large", text = folder / "text.ptx";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    std::ofstream(large).close();
    std::filesystem::resize_file(large, (std::uintmax_t{1} << 30) + 1);
    std::ofstream(text) << ptx;
    const auto said = [&](const std::string& path) {
        const Result<Module> refused = device.load_module(path);
        EXPECT_EQ(refused.code(), Code::system_error) << path;
        return refused.ok() ? std::string("loaded") : refused.error().text();
    };
    for (const std::string& path : {std::string("/dev/zero"), std::string("/dev/null"), pipe}) {
        EXPECT_NE(said(path).find("it is no regular file"), std::string::npos) << path;
    }
    EXPECT_NE(said(folder).find("directory"), std::string::npos);
    EXPECT_NE(said(large).find("too large"), std::string::npos);
    EXPECT_NE(said(folder / "nothing").find("No such file"), std::string::npos);
    EXPECT_NE(said(text + std::string(1, '\0') + ".bak").find("a NUL"), std::string::npos);
    EXPECT_TRUE(device.load_module(text).ok());
    std::filesystem::remove_all(folder);
}

}  // namespace
