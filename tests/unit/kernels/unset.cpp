// SPDX-License-Identifier: Apache-2.0
// Says nothing about the check of bounds.
#include "unchecked.hpp"

const bool unset_file_checks = ISTHMUS_DETAIL_CHECKS_BOUNDS != 0;
