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
    std::size_t keys = 1;  // columns that name a row: each block of a table too wide repeats them
    // The colour of a cell, where the terminal has colours; empty: all plain.
    std::function<Colour(std::size_t row, std::size_t column)> paint{};
};

struct TextStyle {
    std::size_t width = 100;  // columns of the terminal
    bool has_colour = false;
};

// Columns padded. A table too wide breaks long cells at blanks; where that is not enough, it is printed in blocks that
// repeat the key columns. No line is longer than the width, from 20 columns on.
std::string as_text(const std::vector<Section>& sections, const TextStyle& style = {});
std::string as_markdown(const std::vector<Section>& sections, int heading_level = 2);

// A page with its generated parts renewed, those between `<!-- generated: NAME -->` and `<!-- end -->`; what stands
// elsewhere was written by hand and stays as it is. A part that the page does not have is put at its end.
std::string with_generated(std::string_view page, const std::vector<std::pair<std::string_view, Section>>& parts,
                           int heading_level = 2);

}  // namespace isthmus::tools
