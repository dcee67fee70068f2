// SPDX-License-Identifier: Apache-2.0
// The doctor's checks: facts → findings. Pure. docs/doctor.md explains every id.
#pragma once

#include "doctor_facts.hpp"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools {

enum class Weight {
    note,     // for information
    warning,  // works, but not as well as possible, or fails under load
    problem,  // something does not work: exit code 1
};
std::string_view name(Weight weight) noexcept;

struct Finding {
    std::string_view id;     // stable: "D001"
    std::string_view title;  // of the check; stable
    Weight weight = Weight::note;
    std::string evidence;  // the facts behind the finding
    std::string remedy;    // how to correct it
};

// The result of a check; the id and the title are the check's.
struct Diagnosis {
    Weight weight;
    std::string evidence;
    std::string remedy;
};
struct Check {
    std::string_view id;
    std::string_view title;
    std::optional<Diagnosis> (*look)(const DoctorFacts&);
};
std::span<const Check> all_checks() noexcept;  // ascending by id

// "GPU 0 (NVIDIA H200)": the name of a device in evidence.
std::string device_words(const DoctorFacts& facts, std::size_t number);

// Sorted by weight: problems, warnings, notes; within each ascending by id.
std::vector<Finding> diagnose(const DoctorFacts& facts);

}  // namespace isthmus::tools
