// SPDX-License-Identifier: Apache-2.0
// The text of a CUDA version number.
#pragma once

#include "composed.hpp"

#include <string>

namespace isthmus {
inline namespace v0 {

// "12.6" for 12060.
inline std::string version_text(int cuda_version) {
    return composed("{}.{}", cuda_version / 1000, cuda_version % 1000 / 10);
}

}  // namespace v0
}  // namespace isthmus
