// Titled tables as plain text or Markdown.
#include "table_text.hpp"

#include <algorithm>

namespace isthmus::tools {

namespace {

constexpr std::size_t gap = 2;

std::vector<std::size_t> widths_of(const Section& section) {
    std::vector<std::size_t> widths(section.header.size());
    const auto widen = [&](const std::vector<std::string>& row) {
        for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i)
            widths[i] = std::max(widths[i], row[i].size());
    };
    widen(section.header);
    for (const auto& row : section.rows) widen(row);
    return widths;
}

std::string line(const std::vector<std::string>& row, const std::vector<std::size_t>& columns,
                 const std::vector<std::size_t>& widths) {
    std::string out = "  ";
    for (const std::size_t column : columns) {
        const std::string& cell = column < row.size() ? row[column] : std::string();
        out += cell;
        if (column != columns.back()) out.append(widths[column] - cell.size() + gap, ' ');
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out + "\n";
}

// Blocks of columns that fit, each beginning with column 0. The last column may run over where it stands alone.
std::vector<std::vector<std::size_t>> blocks_of(const std::vector<std::size_t>& widths, std::size_t width, bool prose) {
    std::vector<std::vector<std::size_t>> blocks = {{0}};
    std::size_t used = widths[0] + gap;
    for (std::size_t column = 1; column < widths.size(); ++column) {
        const bool last_prose = prose && column + 1 == widths.size();
        if (!last_prose && blocks.back().size() > 1 && used + widths[column] + gap > width) {
            blocks.push_back({0});
            used = widths[0] + gap;
        }
        blocks.back().push_back(column);
        used += widths[column] + gap;
    }
    return blocks;
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

std::string as_text(const std::vector<Section>& sections, std::size_t width) {
    std::string out;
    for (const Section& section : sections) {
        if (!out.empty()) out += "\n";
        out += section.title + "\n";
        if (!section.text.empty()) out += "  " + section.text + "\n";
        if (section.header.empty()) continue;
        const std::vector<std::size_t> widths = widths_of(section);
        const bool prose = widths.back() > 30;
        bool first = true;
        for (const auto& columns : blocks_of(widths, width, prose)) {
            if (!first) out += "\n";
            first = false;
            out += line(section.header, columns, widths);
            for (const auto& row : section.rows) out += line(row, columns, widths);
        }
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
