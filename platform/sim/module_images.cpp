// SPDX-License-Identifier: Apache-2.0
// Ready-made images: their length, whether a driver takes them, and their entries as functions.
#include "module.hpp"

#include <program.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

namespace isthmus::sim {
namespace {

// The parts of ELF64 that say where a file ends.
struct ElfHeader {
    unsigned char ident[16];
    std::uint16_t type, machine;
    std::uint32_t version;
    std::uint64_t entry, program_offset, section_offset;
    std::uint32_t flags;
    std::uint16_t header_bytes, program_bytes, program_count, section_bytes, section_count, names_section;
};
struct ElfSection {
    std::uint32_t name, type;
    std::uint64_t flags, address, offset, bytes;
    std::uint32_t link, info;
    std::uint64_t alignment, entry_bytes;
};

// The PTX version that came with each toolkit (PTX ISA, release notes), by the driver's version.
std::uint32_t newest_ptx(int driver_version) {
    constexpr struct {
        int driver;
        std::uint32_t ptx;
    } rows[] = {{13000, 90}, {12090, 88}, {12080, 87}, {12070, 86}, {12050, 85}, {12040, 84},
                {12030, 83}, {12020, 82}, {12010, 81}, {12000, 80}, {11080, 78}, {11000, 70}};
    for (const auto& row : rows) {
        if (driver_version >= row.driver) return row.ptx;
    }
    return 64;
}

}  // namespace

std::size_t image_bytes(const void* image) noexcept {
    const auto* const at = static_cast<const unsigned char*>(image);
    constexpr unsigned char elf[4] = {0x7f, 'E', 'L', 'F'}, fatbin[4] = {0x50, 0xed, 0x55, 0xba};
    // Byte by byte: what is no image may end anywhere.
    const auto begins = [&](const unsigned char(&magic)[4]) {
        for (int i = 0; i < 4; ++i) {
            if (at[i] != magic[i]) return false;
        }
        return true;
    };
    if (begins(elf)) {
        ElfHeader header;
        std::memcpy(&header, at, sizeof header);
        std::uint64_t end = header.section_offset + std::uint64_t{header.section_bytes} * header.section_count;
        end = std::max(end, header.program_offset + std::uint64_t{header.program_bytes} * header.program_count);
        constexpr std::uint32_t unused = 0, without_bytes = 8;
        for (std::uint32_t one = 0; one < header.section_count; ++one) {
            ElfSection section;
            std::memcpy(&section, at + header.section_offset + one * sizeof section, sizeof section);
            if (section.type != unused && section.type != without_bytes)
                end = std::max(end, section.offset + section.bytes);
        }
        return static_cast<std::size_t>(end);
    }
    if (begins(fatbin)) {
        std::uint16_t header_bytes = 0;
        std::uint64_t bytes = 0;
        std::memcpy(&header_bytes, at + 6, sizeof header_bytes);
        std::memcpy(&bytes, at + 8, sizeof bytes);
        return header_bytes + static_cast<std::size_t>(bytes);
    }
    // What does not begin as text may have no end.
    const bool text_like = *at == '.' || *at == '/' || *at == ' ' || (*at >= '\t' && *at <= '\r');
    if (!text_like) return 0;
    const std::size_t bytes = std::strlen(static_cast<const char*>(image));
    const images::ImageContents text = images::read_image({static_cast<const std::byte*>(image), bytes});
    return text.format == images::ImageFormat::ptx ? bytes : 0;
}

Result judge_image(const images::ImageContents& contents, int driver_version, std::uint32_t capability,
                   std::string& log) {
    if (contents.format == images::ImageFormat::ptx) {
        if (contents.ptx_version > newest_ptx(driver_version)) return result::ptx_too_new;
        if (!contents.damage.empty() || contents.ptx_targets.empty()) {
            const std::string_view why = contents.damage.empty() ? "Missing .target directive" : contents.damage;
            log = "ptxas application ptx input: error: " + std::string(why) + "\nptxas fatal: Ptx assembly aborted";
            return result::invalid_ptx;
        }
    } else if (!contents.damage.empty()) {
        return result::invalid_image;
    }
    if (capability == 0 || contents.suits(capability)) return result::ok;
    if (contents.format != images::ImageFormat::ptx) return result::no_binary;
    const std::uint32_t target = contents.ptx_targets.front();
    const char suffix = contents.ptx_suffixes.empty() ? '\0' : contents.ptx_suffixes.front();
    if (target > capability) {
        log = "ptxas fatal   : SM version specified by .target is higher than default SM version assumed";  // observed
    } else {
        // The words of ptxas 13.0; the code is assumed to be that of a newer target.
        log = "ptxas fatal   : Program with .target 'sm_" + std::to_string(target) + suffix +
              "' cannot be compiled to " + (suffix == 'a' ? "future" : "different SM-family") + " architecture";
    }
    return result::invalid_ptx;  // observed for a newer device
}

Result CompilerLogs::read(unsigned count, const int* options, void** values) {
    // CU_JIT_MAX_REGISTERS, CU_JIT_INFO_LOG_BUFFER, its size, CU_JIT_ERROR_LOG_BUFFER, its size, CU_JIT_NUM_OPTIONS
    constexpr int registers = 0, info_buffer = 3, info_bytes = 4, error_buffer = 5, error_bytes = 6, options_end = 35;
    if (count != 0 && (!options || !values)) return result::invalid_value;
    for (unsigned at = 0; at < count; ++at) {
        if (options[at] < 0 || options[at] >= options_end) return result::invalid_value;
        Log& log = options[at] == info_buffer || options[at] == info_bytes ? information : error;
        switch (options[at]) {
            case registers:
                most_registers = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(values[at]));
                break;
            case info_buffer:
            case error_buffer: log.buffer = static_cast<char*>(values[at]); break;
            case info_bytes:
            case error_bytes:
                log.bytes = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values[at]));
                log.length = values + at;
                break;
            default: break;
        }
    }
    return result::ok;
}

void CompilerLogs::write(const std::string& errors, const std::string& informations) const {
    const auto one = [](const Log& log, const std::string& text) {
        if (!log.buffer || log.bytes == 0) return;
        const std::size_t written = std::min(text.size(), log.bytes - 1);
        std::copy_n(text.data(), written, log.buffer);
        log.buffer[written] = '\0';
        if (log.length) *log.length = reinterpret_cast<void*>(written);
    };
    one(error, errors);
    one(information, informations);
}

// A pragma that an assembler ignores. It is the last statement of a linked text.
constexpr std::string_view limit_begins = "\n.pragma \"isthmus most registers ";

std::string register_limit_pragma(std::uint32_t most_registers) {
    if (most_registers == 0) return "";
    return std::string(limit_begins) + std::to_string(most_registers) + "\";\n";
}

std::uint32_t stated_register_limit(std::string_view text) {
    const std::size_t at = text.rfind(limit_begins);
    std::uint32_t out = 0;
    if (at == std::string_view::npos) return 0;
    const std::string_view number = text.substr(at + limit_begins.size());
    std::from_chars(number.data(), number.data() + number.size(), out);
    return out;
}

std::shared_ptr<Twin> twin_of_entry(const images::ImageEntry& entry, std::shared_ptr<const ptx::Program> program) {
    auto twin = std::make_shared<Twin>();
    twin->symbol = entry.name;
    if (program) {
        twin->entry = program->entry(entry.name);
        twin->program = std::move(program);
    }
    twin->ready_made = true;
    for (const images::ImageParameter& parameter : entry.parameters) {
        twin->block.push_back({parameter.offset_bytes, parameter.size_bytes});
        twin->pack_bytes = std::max(twin->pack_bytes, parameter.offset_bytes + parameter.size_bytes);
    }
    return twin;
}

}  // namespace isthmus::sim
