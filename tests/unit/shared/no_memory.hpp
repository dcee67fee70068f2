// SPDX-License-Identifier: Apache-2.0
// Memory of a driver that nothing may ask for anything.
#pragma once

#include <platform/driver.hpp>

#include <gtest/gtest.h>

namespace isthmus::testing {

struct NoMemory : platform::Memory {
    platform::Status allocate(MemoryKind, std::size_t, platform::Attachment, platform::StreamHandle,
                              platform::Allocation&) override {
        return refused();
    }
    platform::Status release(const platform::Allocation&, platform::StreamHandle) override { return refused(); }
    platform::Status register_host(void*, std::size_t, bool, std::uint64_t&) override { return refused(); }
    platform::Status unregister_host(void*) override { return refused(); }
    platform::Status copy(std::uint64_t, std::uint64_t, std::size_t, platform::CopyDirection,
                          platform::StreamHandle) override {
        return refused();
    }
    platform::Status fill(std::uint64_t, std::uint8_t, std::size_t, platform::StreamHandle) override {
        return refused();
    }
    platform::Status attach(const platform::Allocation&, platform::Attachment, platform::StreamHandle) override {
        return refused();
    }
    platform::Status pointer_facts(std::uint64_t, platform::PointerFacts&) override { return refused(); }
    platform::Status memory_info(std::uint64_t&, std::uint64_t&) override { return refused(); }
    bool lends() const noexcept override { return true; }
    void lend(std::uint64_t, std::size_t, platform::StreamHandle) noexcept override {}

    static platform::Status refused() {
        ADD_FAILURE() << "the driver was called";
        return {Code::unsupported, 0, "none"};
    }
};

}  // namespace isthmus::testing
