// Titled tables as plain text or Markdown.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isthmus::tools {

struct Section {
    std::string title;
    std::string text;                   // a paragraph before the table; may be empty
    std::vector<std::string> header{};  // of the table; empty: no table
    std::vector<std::vector<std::string>> rows{};
};

// Columns padded; a table too wide for `width` is printed in blocks that repeat its first column. The last column is
// never padded, and may run over.
std::string as_text(const std::vector<Section>& sections, std::size_t width = 110);
std::string as_markdown(const std::vector<Section>& sections, int heading_level = 2);

// A page with its generated parts renewed, those between `<!-- generated: NAME -->` and `<!-- end -->`; what stands
// elsewhere was written by hand and stays as it is. A part that the page does not have is put at its end.
std::string with_generated(std::string_view page, const std::vector<std::pair<std::string_view, Section>>& parts,
                           int heading_level = 2);

}  // namespace isthmus::tools
