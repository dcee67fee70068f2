// SPDX-License-Identifier: Apache-2.0
#include "sealed.hpp"

namespace isthmus::tools::latency {

Result<std::unique_ptr<SealedRun>> begin_sealed(Runtime&) {
    return Error(Code::unsupported, "this version of the library cannot be sealed", "");
}

}  // namespace isthmus::tools::latency
