// SPDX-License-Identifier: Apache-2.0
// Images made by hand: cubins with entries and variables but without machine code, and fatbins of them. What readers of
// images see is as nvcc 13.0 writes it; no GPU runs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace made_images {

using Image = std::vector<std::byte>;

template <class T>
void put(Image& image, const T& value) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    image.insert(image.end(), bytes, bytes + sizeof value);
}
inline void put_text(Image& image, std::string_view text) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
    image.insert(image.end(), bytes, bytes + text.size());
}

struct MadeEntry {
    std::string name;
    std::vector<std::pair<std::uint16_t, std::uint16_t>> parameters;  // offset and size
    bool with_size = false;                                           // in the newer attribute
};
struct MadeGlobal {
    std::string name;
    std::uint64_t bytes;
};

// Attributes of one entry: its parameters, the last one first as nvcc writes them, and the size of the block.
inline Image entry_info(const MadeEntry& entry) {
    Image info;
    std::uint16_t end = 0;
    for (std::size_t at = entry.parameters.size(); at-- > 0;) {
        const auto [offset, size] = entry.parameters[at];
        put(info, std::uint8_t{4});
        put(info, entry.with_size ? std::uint8_t{0x45} : std::uint8_t{0x17});
        put(info, std::uint16_t{12});
        put(info, std::uint32_t{0});
        put(info, static_cast<std::uint16_t>(at));
        put(info, offset);
        put(info, entry.with_size ? std::uint32_t{size} : std::uint32_t{size} << 18 | 0x1f000);
        end = std::max<std::uint16_t>(end, static_cast<std::uint16_t>(offset + size));
    }
    put(info, std::uint8_t{3});
    put(info, std::uint8_t{0x19});
    put(info, end);
    return info;
}

// `capability`: × 10. `old_flags`: as toolkits before CUDA 13 mark it.
inline Image cubin(std::uint32_t capability, const std::vector<MadeEntry>& entries,
                   const std::vector<MadeGlobal>& globals = {}, bool old_flags = false) {
    struct Section {
        std::string name;
        std::uint32_t type;
        Image content;
        std::uint32_t link;
    };
    struct Symbol {
        std::uint32_t name;
        std::uint8_t info, other;
        std::uint16_t section;
        std::uint64_t value, bytes;
    };
    std::string strings(1, '\0');
    const auto string = [&](const std::string& text) {
        const std::size_t at = strings.size();
        strings += text;
        strings += '\0';
        return static_cast<std::uint32_t>(at);
    };
    std::vector<Section> sections{
        {"", 0, {}, 0}, {".shstrtab", 3, {}, 0}, {".strtab", 3, {}, 0}, {".symtab", 2, {}, 2}};
    Image symbols(sizeof(Symbol));
    for (const MadeGlobal& global : globals) {
        sections.push_back({".nv.global", 8, {}, 0});
        put(symbols,
            Symbol{string(global.name), 1, 0, static_cast<std::uint16_t>(sections.size() - 1), 0, global.bytes});
    }
    for (const MadeEntry& entry : entries) {
        sections.push_back({".nv.info." + entry.name, 0x70000000, entry_info(entry), 3});
        sections.push_back({".text." + entry.name, 1, Image(128), 3});
        put(symbols, Symbol{string(entry.name), 0x12, 0x10, static_cast<std::uint16_t>(sections.size() - 1), 0, 128});
    }
    sections[3].content = symbols;
    put_text(sections[2].content, strings);
    Image names;
    std::vector<std::uint32_t> name_at;
    for (const Section& section : sections) {
        name_at.push_back(static_cast<std::uint32_t>(names.size()));
        put_text(names, section.name);
        names.push_back(std::byte{0});
    }
    sections[1].content = names;

    Image image;
    put_text(image, std::string_view("\x7f"
                                     "ELF\x02\x01\x01",
                                     7));
    put(image, old_flags ? std::uint8_t{0x33} : std::uint8_t{0x41});
    image.resize(16);
    put(image, std::uint16_t{2});
    put(image, std::uint16_t{190});
    put(image, std::uint32_t{1});
    put(image, std::uint64_t{0});
    put(image, std::uint64_t{0});  // no program headers
    std::uint64_t offset = 64;
    for (const Section& section : sections) offset += section.type == 8 ? 0 : (section.content.size() + 7) / 8 * 8;
    put(image, offset);  // of the section headers
    put(image, old_flags ? 0x500000 | capability : 0x6000004 | capability << 8);
    put(image, std::uint16_t{64});
    put(image, std::uint16_t{56});
    put(image, std::uint16_t{0});
    put(image, std::uint16_t{64});
    put(image, static_cast<std::uint16_t>(sections.size()));
    put(image, std::uint16_t{1});
    std::vector<std::uint64_t> at;
    for (const Section& section : sections) {
        at.push_back(image.size());
        if (section.type == 8) continue;
        image.insert(image.end(), section.content.begin(), section.content.end());
        image.resize((image.size() + 7) / 8 * 8);
    }
    for (std::size_t one = 0; one < sections.size(); ++one) {
        const Section& section = sections[one];
        put(image, name_at[one]);
        put(image, section.type);
        put(image, std::uint64_t{0});
        put(image, std::uint64_t{0});
        put(image, at[one]);
        put(image, section.type == 8 ? std::uint64_t{64} : std::uint64_t{section.content.size()});
        put(image, section.link);
        put(image, std::uint32_t{0});
        put(image, std::uint64_t{8});
        put(image, section.type == 2 ? std::uint64_t{sizeof(Symbol)} : std::uint64_t{0});
    }
    return image;
}

struct Member {
    std::uint16_t kind;  // 1: PTX, 2: a cubin
    std::uint32_t capability;
    Image content;
    bool compressed = false;
};

inline Image fatbin(const std::vector<Member>& members) {
    Image body;
    for (const Member& member : members) {
        const Image before = body;
        put(body, member.kind);
        put(body, std::uint16_t{0x101});
        put(body, std::uint32_t{64});
        put(body, std::uint64_t{member.content.size()});
        put(body, member.compressed ? static_cast<std::uint32_t>(member.content.size()) : std::uint32_t{0});
        put(body, std::uint32_t{0});
        put(body, std::uint16_t{0});
        put(body, std::uint16_t{9});
        put(body, member.capability);
        body.resize(before.size() + 64);
        body.insert(body.end(), member.content.begin(), member.content.end());
    }
    Image image;
    put(image, std::uint32_t{0xba55ed50});
    put(image, std::uint16_t{1});
    put(image, std::uint16_t{16});
    put(image, std::uint64_t{body.size()});
    image.insert(image.end(), body.begin(), body.end());
    return image;
}

inline Image text(std::string_view ptx) {
    Image image;
    put_text(image, ptx);
    return image;
}

}  // namespace made_images
