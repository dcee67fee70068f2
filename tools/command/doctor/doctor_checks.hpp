// SPDX-License-Identifier: Apache-2.0
// The doctor's judgement: facts → findings. Pure. docs/doctor.md explains every id.
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
    note,     // good to know
    warning,  // works, but less well than it could, or fails under load
    problem,  // something does not work: exit code 1
};
std::string_view name(Weight weight) noexcept;

struct Finding {
    std::string_view id;     // stable: "D001"
    std::string_view title;  // of the check, stable too
    Weight weight = Weight::note;
    std::string evidence;  // which facts say so
    std::string remedy;    // what mends it
};

// What a check found; the id and the title are the check's.
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

// "GPU 0 (NVIDIA H200)": a device as it is called in evidence.
std::string device_words(const DoctorFacts& facts, std::size_t number);

// Problems first, then warnings, then notes; within each ascending by id.
std::vector<Finding> diagnose(const DoctorFacts& facts);

}  // namespace isthmus::tools
