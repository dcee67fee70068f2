// SPDX-License-Identifier: Apache-2.0
// The counters of a runtime's books and devices.
#pragma once

#include <isthmus/counters.hpp>

#include "device_state.hpp"
#include "stream_state.hpp"

#include <memory>
#include <vector>

namespace isthmus {
inline namespace v0 {
namespace detail {

std::vector<Counter> list_counters(const Books& books, const std::vector<std::shared_ptr<DeviceState>>& devices);

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
