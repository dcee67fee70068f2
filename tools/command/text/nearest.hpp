// SPDX-License-Identifier: Apache-2.0
// Which known word was probably meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tools {

// Letters to insert, remove, replace or swap with their neighbour to make one word of the other.
std::size_t edit_distance(std::string_view left, std::string_view right);

// The known word with the smallest distance to `word`, where that is at most a third of the longer word's letters,
// and at least one; empty: none is that near. Of several, the first one.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace isthmus::tools
