// SPDX-License-Identifier: Apache-2.0
// Checks of `isthmus doctor --real-time`: what makes a loop with a deadline late.
#pragma once

#include "doctor_checks.hpp"

#include <optional>
#include <string>

namespace isthmus::tools {

// Silent without facts.real_time.wanted, and where the fact is not known.
std::optional<Diagnosis> no_preempt_rt(const DoctorFacts& facts);
std::optional<Diagnosis> no_isolated_cpus(const DoctorFacts& facts);
std::optional<Diagnosis> realtime_throttling(const DoctorFacts& facts);
std::optional<Diagnosis> gpu_interrupts(const DoctorFacts& facts);
std::optional<Diagnosis> deep_idle_states(const DoctorFacts& facts);
std::optional<Diagnosis> huge_pages_always(const DoctorFacts& facts);

// Reads the facts from /proc and /sys below `root` (empty: this machine's).
RealTimeFacts gather_real_time(const std::string& root);

}  // namespace isthmus::tools
