// SPDX-License-Identifier: Apache-2.0
// Memory that the policy would register, where the driver refuses to register it although its attribute says that it
// does (reported of GB10).
#include "scenario.hpp"
#include "simulator_control.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace conformance {
namespace {

constexpr std::size_t count = 5000;

class RefusedRegistering : public testing::Test {
protected:
    void SetUp() override {
        RuntimeOptions options;
        options.cache_bytes = 0;  // every allocation asks the driver
        runtime_.emplace(Runtime::open(options).value());
        if (device().is_cpu() || control<isthmus_sim_fault_plan_fn>("isthmus_sim_fault_plan") == nullptr) {
            GTEST_SKIP() << "only the simulator fails a call";
        }
        SharedUse quick;
        quick.prefer = Prefer::latency;
        registers_ = device().allocate_shared<std::int32_t>(count, quick).value().kind() == MemoryKind::registered;
    }
    void TearDown() override {
        if (control<isthmus_sim_fault_plan_fn>("isthmus_sim_fault_plan") != nullptr) plan("");
        runtime_.reset();
    }
    static void plan(const std::string& text) {
        ASSERT_EQ(control<isthmus_sim_fault_plan_fn>("isthmus_sim_fault_plan")(text.c_str()), 0);
    }
    static void refuses(int code) { plan("call=cuMemHostRegister_v2:code=" + std::to_string(code)); }
    static std::int64_t live(const char* what) { return control<isthmus_sim_live_fn>("isthmus_sim_live")(what); }
    Device& device() { return runtime_->default_device(); }
    bool registers() const { return registers_; }  // what matters for latency is registered on this machine

private:
    std::optional<Runtime> runtime_;
    bool registers_ = false;
};

// keeps G11, R6
TEST_F(RefusedRegistering, OrdinaryMemoryIsUsedWithAReasonWhereTheDeviceReachesIt) {
    if (!registers()) GTEST_SKIP() << "nothing is registered for latency here";
    SharedUse quick;
    quick.prefer = Prefer::latency;
    const std::int64_t registered = live("registered");
    for (const int code : {1, 304, 801, 999}) {
        SCOPED_TRACE(code);
        refuses(code);
        Buffer<std::int32_t> buffer = device().allocate_shared<std::int32_t>(count, quick).value();
        plan("");
        EXPECT_EQ(buffer.kind(), MemoryKind::host);
        EXPECT_EQ(buffer.path(), LaunchPath::pass);
        EXPECT_NE(buffer.explain().find("refused to register"), std::string_view::npos) << buffer.explain();
        for (std::int32_t& value : buffer.write_on_host().value()) value = 6;
        device().stream().launch(add_one, count, buffer).value();
        EXPECT_EQ(buffer.read_on_host().value()[count - 1], 7);
        EXPECT_EQ(live("registered"), registered);
    }
    EXPECT_EQ(device().allocate_shared<std::int32_t>(count, quick).value().kind(), MemoryKind::registered)
        << "each allocation tries";
}

// keeps G11, R6: what was asked for by kind, memory that is short, and a lost device are errors
TEST_F(RefusedRegistering, OtherErrorsAndAKindThatWasAskedForAreNotReplaced) {
    if (!device().capabilities().has(Feature::host_register)) GTEST_SKIP() << "no memory is registered here";
    SharedUse asked;
    asked.kind = MemoryKind::registered;
    refuses(801);
    EXPECT_EQ(device().allocate_shared<std::int32_t>(count, asked).code(), Code::unsupported);
    if (registers()) {
        SharedUse quick;
        quick.prefer = Prefer::latency;
        refuses(2);
        EXPECT_EQ(device().allocate_shared<std::int32_t>(count, quick).code(), Code::out_of_memory);
    }
    plan("");
}

}  // namespace
}  // namespace conformance
