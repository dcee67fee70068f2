// SPDX-License-Identifier: Apache-2.0
// What stands between a GPU's memory and other processes: the pieces that fabric handles need, in the order in which
// one without the other is worth nothing. Pure; a part of doctor_checks.
#pragma once

#include "doctor_checks.hpp"

namespace isthmus::tools {

// The first piece that is missing. What a try showed outweighs everything that files say.
enum class FabricPiece {
    none,           // all is there, or nobody asks for it
    attribute,      // no GPU says that it exports fabric handles
    major,          // the kernel driver has no IMEX channels
    file,           // no channel file
    other_device,   // channel files, none of them the driver's
    permission,     // … none that this user may open
    daemon,         // handles fail, or would end at this machine, and no daemon is seen
    round_trip,     // handles fail, and all of the above is there
    other_channel,  // the other end has another channel than this one, or than this one surely takes
};
inline constexpr int fabric_piece_count = 9;
FabricPiece missing_piece(const DoctorFacts& facts);

// Each speaks where its piece is the first that is missing.
std::optional<Diagnosis> no_fabric_attribute(const DoctorFacts& facts);
std::optional<Diagnosis> no_imex_major(const DoctorFacts& facts);
std::optional<Diagnosis> no_imex_channel(const DoctorFacts& facts);
std::optional<Diagnosis> foreign_imex_channel(const DoctorFacts& facts);
std::optional<Diagnosis> forbidden_imex_channel(const DoctorFacts& facts);
std::optional<Diagnosis> no_imex_daemon(const DoctorFacts& facts);
std::optional<Diagnosis> fabric_fails(const DoctorFacts& facts);
std::optional<Diagnosis> other_imex_channel(const DoctorFacts& facts);
// A file descriptor of a GPU's memory that did not come back, though the attribute says that there are some.
std::optional<Diagnosis> posix_fd_fails(const DoctorFacts& facts);

}  // namespace isthmus::tools
