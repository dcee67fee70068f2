// SPDX-License-Identifier: Apache-2.0
// Titled tables as plain text or Markdown.
#pragma once

#include "terminal_text.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isthmus::tools {

struct Section {
    std::string title;                  // may be empty
    std::string text;                   // a paragraph before the table; may be empty
    std::vector<std::string> header{};  // of the table; empty: no table
    std::vector<std::vector<std::string>> rows{};
    std::size_t keys = 1;  // columns that name a row; every block of a table that is too wide repeats them
    // The colour of a cell on a terminal with colours; empty: no colours.
    std::function<Colour(std::size_t row, std::size_t column)> paint{};
};

struct TextStyle {
    std::size_t width = 100;  // columns of the terminal
    bool has_colour = false;
};

// Pads columns. A table that is too wide gets long cells broken at blanks; if that is not enough, it is printed in
// blocks that repeat the key columns. No line is longer than the width, for widths of 20 columns and more.
std::string as_text(const std::vector<Section>& sections, const TextStyle& style = {});
std::string as_markdown(const std::vector<Section>& sections, int heading_level = 2);

// Returns the page with its generated parts renewed, which stand between `<!-- generated: NAME -->` and `<!-- end -->`.
// The rest was written by hand and is not changed. A part that the page does not have is appended.
std::string with_generated(std::string_view page, const std::vector<std::pair<std::string_view, Section>>& parts,
                           int heading_level = 2);

}  // namespace isthmus::tools
