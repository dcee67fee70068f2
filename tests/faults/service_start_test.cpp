// SPDX-License-Identifier: Apache-2.0
// A service starts while another thread is in a driver call that would wait for its kernel: the start waits, with a
// deadline, and such calls avoid the wait while a service runs.
#include "scenario.hpp"
#include "mailbox_kernels.hpp"
#include "simulator_control.hpp"

#include <isthmus/concurrent/service.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace conformance {
namespace {

using Answering = Service<Question, Answer>;

class ServiceStart : public testing::Test {
protected:
    void SetUp() override {
        RuntimeOptions options;
        options.wait_timeout = std::chrono::milliseconds(20);
        options.cache_bytes = 0;  // every release asks the driver
        runtime_.emplace(Runtime::open(options).value());
        if (device().is_cpu() || plan() == nullptr) GTEST_SKIP() << "only the simulator holds a call up";
        if (device().capabilities().has(Feature::kernel_timeout)) GTEST_SKIP() << "no kernel stays here";
    }
    void TearDown() override {
        if (plan() != nullptr) (void)plan()(nullptr);
        runtime_.reset();
    }
    static isthmus_sim_fault_plan_fn plan() { return control<isthmus_sim_fault_plan_fn>("isthmus_sim_fault_plan"); }
    Device& device() { return runtime_->default_device(); }
    // `call` runs on another thread and blocks in `function`: meanwhile no service starts, and the refusal names the
    // call that it would have waited for.
    template <class Call>
    void expect_not_beside(const std::string& function, std::string_view deed, Call call) {
        EXPECT_TRUE(prepare(device(), answer_until_stopped).ok());
        ASSERT_EQ(plan()(("call=" + function + ":nth=1:stands").c_str()), 0);
        Thread stands(call);
        const auto live = control<isthmus_sim_live_fn>("isthmus_sim_live");
        const auto begin = std::chrono::steady_clock::now();
        while (live("standing_calls") == 0 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)) {
            std::this_thread::yield();
        }
        EXPECT_NE(live("standing_calls"), 0u);
        const Result<Answering> refused = Answering::start(device(), answer_until_stopped);
        EXPECT_EQ(refused.code(), Code::timed_out);
        if (!refused) {
            EXPECT_NE(refused.error().message().find(deed), std::string_view::npos) << refused.error().text();
        }
        ASSERT_EQ(plan()(nullptr), 0);
        stands.join();
        Answering service = Answering::start(device(), answer_until_stopped).value();
        EXPECT_TRUE(service.stop(Wait::at_most(std::chrono::seconds(20))).ok());
    }

private:
    std::optional<Runtime> runtime_;
};

TEST_F(ServiceStart, WaitsForAFreeThatIsInTheDriver) {  // keeps G10
    auto memory = device().allocate<std::int32_t>(64, MemoryKind::device).value();
    expect_not_beside("cuMemFree", "releasing device memory", [&] { EXPECT_TRUE(memory.release().ok()); });
}

TEST_F(ServiceStart, WaitsForPinnedMemoryThatIsBeingFreed) {  // keeps G10
    auto memory = device().allocate<std::int32_t>(64, MemoryKind::pinned).value();
    expect_not_beside("cuMemFreeHost", "releasing pinned memory", [&] { EXPECT_TRUE(memory.release().ok()); });
}

TEST_F(ServiceStart, WaitsForADeviceThatIsBeingSynchronized) {  // keeps G10
    Stream stream = device().create_stream().value();
    auto data = device().allocate<std::int32_t>(4, MemoryKind::device).value();
    stream.launch(add_one, 4, data).value();
    // The device's own streams are polled; the call blocks on what other code gave to the context.
    expect_not_beside("cuCtxRecordEvent", "synchronizing the device",
                      [&] { EXPECT_TRUE(device().synchronize(Wait::at_most(std::chrono::seconds(20))).ok()); });
}

}  // namespace
}  // namespace conformance
