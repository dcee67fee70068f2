// SPDX-License-Identifier: Apache-2.0
// Reads what identifies this computer and its user, so that a report can leave it out.
#pragma once

#include "scrub.hpp"

namespace isthmus::tools::report {

// From uname, /etc/hostname, the password file, the environment, the device tree and DMI. What cannot be read is
// absent.
Identity own_identity();

}  // namespace isthmus::tools::report
