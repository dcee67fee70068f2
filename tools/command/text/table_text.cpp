// SPDX-License-Identifier: Apache-2.0
// Titled tables as plain text or Markdown.
#include "table_text.hpp"

#include <algorithm>

namespace isthmus::tools {

namespace {

constexpr std::size_t indent = 2;
constexpr std::size_t gap = 2;
// Cells of at most this many columns are broken only as the last resort.
constexpr std::size_t short_cell = 14;
// Words of at most this many columns likewise.
constexpr std::size_t longest_kept = 32;

// The preferred and the smallest width of a column.
struct Measure {
    std::size_t natural = 0;
    std::size_t least = 0;
};

std::size_t longest_word(std::string_view text) {
    std::size_t longest = 0;
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t end = std::min(text.find(' ', begin), text.size());
        longest = std::max(longest, display_columns(text.substr(begin, end - begin)));
        begin = end + 1;
    }
    return longest;
}

std::vector<Measure> measures_of(const Section& section) {
    std::vector<Measure> measures(section.header.size());
    for (std::size_t column = 0; column < measures.size(); ++column) {
        Measure& measure = measures[column];
        measure.natural = display_columns(section.header[column]);
        measure.least = longest_word(section.header[column]);
        for (const auto& row : section.rows) {
            if (column >= row.size()) continue;
            const std::size_t columns = display_columns(row[column]);
            measure.natural = std::max(measure.natural, columns);
            const std::size_t word = std::min(longest_word(row[column]), longest_kept);
            measure.least = std::max(measure.least, std::max(word, std::min(columns, short_cell)));
        }
    }
    return measures;
}

// A part of a table: its columns and their printed widths.
struct Block {
    std::vector<std::size_t> columns;
    std::vector<std::size_t> widths;  // indexed by the table's column
};

std::size_t sum_of(const std::vector<std::size_t>& columns, const std::vector<std::size_t>& widths) {
    std::size_t sum = columns.empty() ? 0 : gap * (columns.size() - 1);
    for (const std::size_t column : columns) sum += widths[column];
    return sum;
}

// Narrows the widest column repeatedly until the block fits; goes below `least` only as the last resort.
void shrink(Block& block, const std::vector<Measure>& measures, std::size_t available) {
    for (const bool beyond_least : {false, true}) {
        while (sum_of(block.columns, block.widths) > available) {
            std::size_t* widest = nullptr;
            for (const std::size_t column : block.columns) {
                std::size_t& width = block.widths[column];
                if (width <= (beyond_least ? 1 : measures[column].least)) continue;
                if (widest == nullptr || width > *widest) widest = &width;
            }
            if (widest == nullptr) break;
            --*widest;
        }
    }
}

// Groups columns that fit at their least widths; each group begins with the key columns and has at least one other
// column.
std::vector<std::vector<std::size_t>> groups_of(const std::vector<Measure>& measures, std::size_t keys,
                                                std::size_t available) {
    std::vector<std::size_t> least;
    for (const Measure& measure : measures) least.push_back(measure.least);
    std::vector<std::size_t> key_columns;
    for (std::size_t column = 0; column < std::min(keys, measures.size()); ++column) key_columns.push_back(column);
    std::vector<std::vector<std::size_t>> groups = {key_columns};
    for (std::size_t column = key_columns.size(); column < measures.size(); ++column) {
        std::vector<std::size_t> longer = groups.back();
        longer.push_back(column);
        if (groups.back().size() > key_columns.size() && sum_of(longer, least) > available) {
            longer = key_columns;
            longer.push_back(column);
            groups.emplace_back();
        }
        groups.back() = std::move(longer);
    }
    return groups;
}

// The smallest number of blocks that fit, with about equal widths.
std::vector<Block> blocks_of(const std::vector<Measure>& measures, std::size_t keys, std::size_t available) {
    std::vector<std::vector<std::size_t>> groups = groups_of(measures, keys, available);
    for (std::size_t narrower = available; narrower-- > 0;) {
        std::vector<std::vector<std::size_t>> others = groups_of(measures, keys, narrower);
        if (others.size() != groups.size()) break;
        groups = std::move(others);
    }
    std::vector<std::size_t> natural;
    for (const Measure& measure : measures) natural.push_back(measure.natural);
    std::vector<Block> blocks;
    for (std::vector<std::size_t>& columns : groups) {
        blocks.push_back({std::move(columns), natural});
        shrink(blocks.back(), measures, available);
    }
    return blocks;
}

// Prints a row of cells, in as many lines as its tallest cell needs.
template <class ColourOf>
std::string row_text(const std::vector<std::string>& row, const Block& block, bool has_colour, ColourOf colour_of) {
    std::vector<std::vector<std::string>> cells;
    std::size_t lines = 1;
    for (const std::size_t column : block.columns) {
        cells.push_back(lines_of(column < row.size() ? row[column] : std::string(), block.widths[column]));
        lines = std::max(lines, cells.back().size());
    }
    std::string out;
    for (std::size_t line = 0; line < lines; ++line) {
        std::size_t blanks = indent;  // printed before the next text only, so that no line ends with blanks
        for (std::size_t i = 0; i < cells.size(); ++i) {
            const std::size_t column = block.columns[i];
            const std::string text = line < cells[i].size() ? cells[i][line] : std::string();
            if (!text.empty()) {
                out.append(blanks, ' ').append(coloured(text, colour_of(column), has_colour));
                blanks = 0;
            }
            blanks += block.widths[column] - display_columns(text) + gap;
        }
        out += '\n';
    }
    return out;
}

std::string table_text(const Section& section, const TextStyle& style) {
    std::string out;
    const std::size_t available = style.width > indent ? style.width - indent : 1;
    for (const Block& block : blocks_of(measures_of(section), section.keys, available)) {
        if (!out.empty()) out += "\n";
        out += row_text(section.header, block, style.has_colour, [](std::size_t) { return Colour::dim; });
        for (std::size_t row = 0; row < section.rows.size(); ++row) {
            out += row_text(section.rows[row], block, style.has_colour, [&](std::size_t column) {
                return section.paint ? section.paint(row, column) : Colour::plain;
            });
        }
    }
    return out;
}

std::string escaped(const std::string& cell) {
    std::string out;
    for (const char c : cell) {
        if (c == '|') out += '\\';
        out += c == '\n' ? ' ' : c;
    }
    return out;
}

std::string markdown_row(const std::vector<std::string>& row) {
    std::string out = "|";
    for (const std::string& cell : row) out += " " + escaped(cell) + " |";
    return out + "\n";
}

}  // namespace

std::string as_text(const std::vector<Section>& sections, const TextStyle& style) {
    std::string out;
    for (const Section& section : sections) {
        if (!out.empty()) out += "\n";
        if (!section.title.empty()) {
            for (const std::string& line : lines_of(section.title, style.width)) {
                out += coloured(line, Colour::bold, style.has_colour) + "\n";
            }
        }
        if (!section.text.empty()) {
            for (const std::string& line : lines_of(section.text, std::max(style.width, indent + 1) - indent)) {
                out.append(indent, ' ').append(line).append("\n");
            }
        }
        if (!section.header.empty()) out += table_text(section, style);
    }
    return out;
}

std::string as_markdown(const std::vector<Section>& sections, int heading_level) {
    std::string out;
    for (const Section& section : sections) {
        if (!out.empty()) out += "\n";
        out += std::string(static_cast<std::size_t>(heading_level), '#') + " " + section.title + "\n";
        if (!section.text.empty()) out += "\n" + section.text + "\n";
        if (section.header.empty()) continue;
        out += "\n" + markdown_row(section.header) + "|";
        for (std::size_t i = 0; i < section.header.size(); ++i) out += " --- |";
        out += "\n";
        for (const auto& row : section.rows) out += markdown_row(row);
    }
    return out;
}

std::string with_generated(std::string_view page, const std::vector<std::pair<std::string_view, Section>>& parts,
                           int heading_level) {
    std::string out(page);
    for (const auto& [part, section] : parts) {
        const std::string opening = "<!-- generated: " + std::string(part) + " -->\n";
        const std::string closing = "<!-- end -->\n";
        std::size_t begin = out.find(opening);
        if (begin == std::string::npos) {
            out.append("\n").append(opening).append(closing);
            begin = out.find(opening);
        }
        begin += opening.size();
        const std::size_t end = out.find(closing, begin);
        const std::size_t length = end == std::string::npos ? end : end + closing.size() - begin;
        out.replace(begin, length, as_markdown({section}, heading_level) + "\n" + closing);
    }
    return out;
}

}  // namespace isthmus::tools
