// SPDX-License-Identifier: Apache-2.0
// Finds the known word that was probably meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools {

// The count of letters to insert, remove, replace or swap with their neighbour to turn one word into the other.
std::size_t edit_distance(std::string_view left, std::string_view right);

// The known word with the smallest distance to `word`, if that is at most a third of the longer word's letters, and at
// least one letter is allowed; empty: no such word. The first one wins a tie.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace isthmus::tools
