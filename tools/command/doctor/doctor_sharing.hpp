// SPDX-License-Identifier: Apache-2.0
// Checks whether other processes can share a GPU's memory: the pieces that fabric handles need, each after those that
// it depends on. Pure; a part of doctor_checks.
#pragma once

#include "doctor_checks.hpp"

namespace isthmus::tools {

// The first missing piece. The result of a try takes precedence over files.
enum class FabricPiece {
    none,           // nothing is missing, or fabric handles were not asked for
    attribute,      // no GPU has the attribute for exporting fabric handles
    major,          // the kernel driver has no IMEX channels
    file,           // no channel file
    other_device,   // channel files exist, but none belongs to the driver
    permission,     // channel files of the driver exist, but this user may open none
    daemon,         // no daemon is seen, and handles fail or would not leave this machine
    round_trip,     // handles fail although all of the above is present
    other_channel,  // the other end has another channel than this one, or this user may open several
};
inline constexpr int fabric_piece_count = 9;
FabricPiece missing_piece(const DoctorFacts& facts);

// Each returns a finding where its piece is the first that is missing.
std::optional<Diagnosis> no_fabric_attribute(const DoctorFacts& facts);
std::optional<Diagnosis> no_imex_major(const DoctorFacts& facts);
std::optional<Diagnosis> no_imex_channel(const DoctorFacts& facts);
std::optional<Diagnosis> foreign_imex_channel(const DoctorFacts& facts);
std::optional<Diagnosis> forbidden_imex_channel(const DoctorFacts& facts);
std::optional<Diagnosis> no_imex_daemon(const DoctorFacts& facts);
std::optional<Diagnosis> fabric_fails(const DoctorFacts& facts);
std::optional<Diagnosis> other_imex_channel(const DoctorFacts& facts);
// A file descriptor of a GPU's memory failed the round trip, although the attribute says that there are such handles.
std::optional<Diagnosis> posix_fd_fails(const DoctorFacts& facts);

}  // namespace isthmus::tools
