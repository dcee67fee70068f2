// SPDX-License-Identifier: Apache-2.0
// The backend over a fake driver that records every call: the fixture of the tests that count calls.
#pragma once

#include "cuda_driver.hpp"
#include "fake_driver.hpp"

#include <gtest/gtest.h>

namespace isthmus::platform::cuda {

using namespace isthmus::cuda_abi;  // the driver's types and constants

class CudaCalls : public ::testing::Test {
protected:
    void open(const std::string& name) {
        fake_ = std::make_unique<FakeDriver>(name);
        MachineFacts machine;
        Result<OpenedDevices> opened = open_devices(fake_library(name), machine);
        ASSERT_TRUE(opened.ok()) << opened.error().text();
        drivers_ = std::move(opened->drivers);
        fake_->set_current(nullptr);
        fake_->streams_need_context(0);
        fake_->set_capture_status(0);
        fake_->set_capture_dependencies(1);
        fake_->clear();
    }
    void SetUp() override { open("good"); }
    Driver& device() { return *drivers_[0]; }
    Memory& memory() { return device().memory(); }
    Execution& execution() { return device().execution(); }
    FakeDriver& fake() { return *fake_; }
    StreamHandle make_stream() {
        StreamHandle stream{};
        EXPECT_TRUE(execution().create_stream(0, stream).ok());
        fake().clear();
        return stream;
    }

    std::unique_ptr<FakeDriver> fake_;
    std::vector<std::unique_ptr<Driver>> drivers_;
};

}  // namespace isthmus::platform::cuda
