// SPDX-License-Identifier: Apache-2.0
// A kernel of a file that switches the check of bounds off, and what a file gets that says nothing.
#pragma once

#include <isthmus/kernel.hpp>

ISTHMUS_DECLARE_KERNEL(store_unchecked, isthmus::Index i, isthmus::View<int> data);
extern const bool unchecked_file_checks;
extern const bool unset_file_checks;
