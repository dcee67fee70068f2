// SPDX-License-Identifier: Apache-2.0
// The text of a CUDA version number.
#pragma once

#include <string>

namespace isthmus::tools {

// "12.6" for 12060, which is how the driver counts: 1000 * major + 10 * minor.
std::string version_text(int cuda_version);

}  // namespace isthmus::tools
