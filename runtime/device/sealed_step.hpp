// SPDX-License-Identifier: Apache-2.0
// Steps of admitted calls that a sealed scope refuses, as a Status.
#pragma once

#include <platform/status.hpp>

#include "seal_book.hpp"

#include <optional>

namespace isthmus {
inline namespace v0 {
namespace detail {

// Status::driver_code of a refused step: this, less the act. No driver answers so.
inline constexpr int sealed_code = -1000;

// Before a step: ok, or, in a scope that refuses, a Status that DeviceSession::failure() explains. `seal`: nullptr:
// none. `call`: what the step calls, static: "cuEventCreate".
inline platform::Status sealed_step(SealBook* seal, SealedAct act, const char* call) noexcept {
    if (seal == nullptr || !seal->stops(act, call)) return {};
    const int code = sealed_code - static_cast<int>(act);
    return {Code::not_permitted, code, call};
}
// What sealed_step() refused; nullopt: the Status comes from elsewhere.
inline std::optional<SealedAct> sealed_act_of(const platform::Status& status) noexcept {
    const int act = sealed_code - status.driver_code;
    if (status.code != Code::not_permitted || act < 0 || act >= sealed_act_count) return std::nullopt;
    return static_cast<SealedAct>(act);
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
