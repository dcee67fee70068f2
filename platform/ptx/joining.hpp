// SPDX-License-Identifier: Apache-2.0
// Joins PTX texts into one, as a linker does: functions and variables that one text declares with .extern are found in
// the others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace isthmus::ptx {

struct NamedText {
    std::string name;  // for messages
    std::string text;
};

struct Joined {
    std::string text;
    std::string error;  // not empty: the texts cannot be joined
};

// Names without .visible, .extern, .weak or .common are their text's own. Of several .weak definitions, and of one
// beside an ordinary one, one stays; of several .common ones the largest. Lines of the result are counted through all
// texts.
Joined join(const std::vector<NamedText>& texts);

}  // namespace isthmus::ptx
