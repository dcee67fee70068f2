// SPDX-License-Identifier: Apache-2.0
// Devices of a test's runtime over FakeDriver: they share records, as those of a real runtime do.
#pragma once

#include "fake_driver.hpp"

#include "device_state.hpp"
#include "process.hpp"

#include <isthmus/isthmus.hpp>

#include <chrono>
#include <memory>
#include <utility>

namespace isthmus::testing {

// A discrete GPU: unified addressing, managed, concurrent managed, host register, pools; no HMM.
inline DeviceFacts discrete_facts(int ordinal = 0) {
    DeviceFacts facts;
    facts.ordinal = ordinal;
    facts.name = "fake GPU";
    for (const auto& [id, value] : std::initializer_list<std::pair<int, int>>{
             {18, 0}, {41, 1}, {83, 1}, {86, 0}, {88, 0}, {89, 1}, {99, 1}, {100, 0}, {101, 0}, {115, 1}}) {
        facts.attributes.push_back({id, value, 0});
    }
    return facts;
}
inline DeviceFacts with(DeviceFacts facts, int id, int value) {
    for (AttributeFact& fact : facts.attributes) {
        if (fact.id == id) fact.value = value;
    }
    return facts;
}

struct FakeRuntime {
    std::shared_ptr<detail::RuntimeConfig> config = std::make_shared<detail::RuntimeConfig>();
    std::shared_ptr<detail::Books> books = std::make_shared<detail::Books>();
    FakeRuntime() {
        config->wait_timeout = std::chrono::milliseconds(200);
        config->generation = process::generation();
    }
    std::shared_ptr<detail::DeviceState> open(FakeWorld& world, DeviceFacts facts = discrete_facts()) {
        const auto index = static_cast<std::size_t>(facts.ordinal);
        return std::make_shared<detail::DeviceState>(config, books,
                                                     std::make_unique<FakeDriver>(world, std::move(facts)), index);
    }
};

}  // namespace isthmus::testing
