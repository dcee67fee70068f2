// SPDX-License-Identifier: Apache-2.0
// load_kernel(): asks the gate, and lets the session find the code.
#include "load_kernel.hpp"

#include "composed.hpp"
#include "device_session.hpp"

#include <string>

namespace isthmus {
inline namespace v0 {
namespace detail {

Result<void> load_kernel(DeviceSession& device, const KernelInfo& kernel) {
    const Words what = worded("loading kernel '{}'", kernel.name);
    if (device.bars(rules::PublicCall::load_kernel)) return device.refusal(rules::PublicCall::load_kernel, what);
    if (device.services.any()) device.services.forget_ended();
    platform::FunctionHandle function = platform::FunctionHandle::none;
    const platform::Status status = device.resolve(kernel, function);
    if (!status.ok()) return device.failure(status, what);
    return {};
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
