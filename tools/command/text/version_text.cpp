// SPDX-License-Identifier: Apache-2.0
// The text of a CUDA version number.
#include "version_text.hpp"

namespace isthmus::tools {

std::string version_text(int cuda_version) {
    return std::to_string(cuda_version / 1000) + "." + std::to_string(cuda_version % 1000 / 10);
}

}  // namespace isthmus::tools
