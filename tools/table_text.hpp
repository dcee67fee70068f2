// Titled tables as plain text or Markdown.
#pragma once

#include <string>
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

}  // namespace isthmus::tools
