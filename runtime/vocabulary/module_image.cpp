// SPDX-License-Identifier: Apache-2.0
// Tells images apart, and reads cubins and fatbins. The formats have no public description: what is read here was seen
// in the output of nvcc 11.8 to 13.0, and the numbers are those of binutils and of the tools that print such files.
#include "module_image.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace isthmus::images {
namespace {

using Bytes = std::span<const std::byte>;

// A plain value at an offset; nullopt: it does not lie within the bytes.
template <class T>
std::optional<T> value_at(Bytes bytes, std::uint64_t offset) {
    if (offset > bytes.size() || sizeof(T) > bytes.size() - offset) return std::nullopt;
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
}

std::optional<Bytes> part(Bytes bytes, std::uint64_t offset, std::uint64_t count) {
    if (offset > bytes.size() || count > bytes.size() - offset) return std::nullopt;
    return bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(count));
}

// The text up to its NUL; empty: there is none within the bytes.
std::string_view text_at(Bytes strings, std::uint64_t offset) {
    if (offset >= strings.size()) return {};
    const auto* const begin = reinterpret_cast<const char*>(strings.data() + offset);
    const std::size_t most = strings.size() - static_cast<std::size_t>(offset);
    const void* const end = std::memchr(begin, 0, most);
    return end == nullptr ? std::string_view()
                          : std::string_view(begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin));
}

// ELF64, little endian.
struct ElfHeader {
    unsigned char ident[16];
    std::uint16_t type, machine;
    std::uint32_t version;
    std::uint64_t entry, program_offset, section_offset;
    std::uint32_t flags;
    std::uint16_t header_bytes, program_bytes, program_count, section_bytes, section_count, names_section;
};
static_assert(sizeof(ElfHeader) == 64);
struct ElfSection {
    std::uint32_t name, type;
    std::uint64_t flags, address, offset, bytes;
    std::uint32_t link, info;
    std::uint64_t alignment, entry_bytes;
};
static_assert(sizeof(ElfSection) == 64);
struct ElfSymbol {
    std::uint32_t name;
    unsigned char info, other;
    std::uint16_t section;
    std::uint64_t value, bytes;
};
static_assert(sizeof(ElfSymbol) == 24);

constexpr std::uint16_t machine_cuda = 190;  // EM_CUDA
constexpr std::uint32_t section_symbols = 2, section_without_bytes = 8;
constexpr unsigned char symbol_object = 1, symbol_function = 2, is_entry = 0x10;  // STO_CUDA_ENTRY
constexpr unsigned char new_flags = 0x41;  // EI_OSABI since CUDA 13: the architecture lies in bits 8 to 15 of e_flags

constexpr char elf_magic[4] = {0x7f, 'E', 'L', 'F'};
constexpr std::uint32_t fatbin_magic = 0xba55ed50;

struct FatbinHeader {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t bytes;  // of what follows the header
};
static_assert(sizeof(FatbinHeader) == 16);
// The beginning of one member.
struct FatbinMember {
    std::uint16_t kind, version;  // 1: PTX, 2: a cubin
    std::uint32_t header_bytes;
    std::uint64_t bytes;  // of what follows its header
    std::uint32_t compressed_bytes, options_offset;
    std::uint16_t minor, major;
    std::uint32_t architecture;
};
static_assert(sizeof(FatbinMember) == 32);

bool begins(Bytes bytes, const void* magic, std::size_t count) {
    return bytes.size() >= count && std::memcmp(bytes.data(), magic, count) == 0;
}

// Comments and blanks may stand before the first directive.
bool begins_as_ptx(std::string_view text) {
    while (!text.empty()) {
        if (text.front() == ' ' || (text.front() >= '\t' && text.front() <= '\r')) {
            text.remove_prefix(1);
        } else if (text.starts_with("//")) {
            text.remove_prefix(std::min(text.find('\n'), text.size()));
        } else if (text.starts_with("/*")) {
            const std::size_t end = text.find("*/", 2);
            if (end == std::string_view::npos) return false;
            text.remove_prefix(end + 2);
        } else {
            break;
        }
    }
    return text.starts_with(".version");
}

void add_entry(ImageContents& out, ImageEntry entry) {
    if (out.entry(entry.name) == nullptr) out.entries.push_back(std::move(entry));
}

// The parameters of one entry, from its section .nv.info.NAME: attributes of a form, a number and a size or value.
void read_parameters(Bytes info, ImageEntry& entry) {
    constexpr std::byte sized{4}, with_packed_size{0x17}, with_size{0x45}, block_bytes{0x19};
    std::vector<std::pair<std::uint16_t, ImageParameter>> found;
    std::uint32_t block = 0;
    for (std::size_t at = 0; at + 4 <= info.size();) {
        const std::byte attribute = info[at + 1];
        const std::uint16_t bytes = *value_at<std::uint16_t>(info, at + 2);
        const bool has_bytes = info[at] == sized;
        if (!has_bytes && attribute == block_bytes) block = bytes;  // EIATTR_CBANK_PARAM_SIZE: a value, not a size
        if (has_bytes && (attribute == with_packed_size || attribute == with_size) && bytes >= 12) {
            const auto ordinal = value_at<std::uint16_t>(info, at + 8);
            const auto offset = value_at<std::uint16_t>(info, at + 10);
            const auto size = value_at<std::uint32_t>(info, at + 12);
            if (ordinal && offset && size) {
                found.push_back({*ordinal, {*offset, attribute == with_size ? *size & 0xffff : *size >> 18}});
            }
        }
        at += 4u + (has_bytes ? bytes : 0u);
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::uint32_t end = 0;
    for (const auto& [ordinal, parameter] : found) {
        entry.parameters.push_back(parameter);
        end = std::max(end, parameter.offset_bytes + parameter.size_bytes);
    }
    entry.parameters_read = end == block;
}

class Cubin {
public:
    // `damage` stays empty if all that the header names lies within the bytes.
    explicit Cubin(Bytes bytes) : bytes_(bytes) {
        const std::optional<ElfHeader> header = value_at<ElfHeader>(bytes, 0);
        if (!header || !begins(bytes, elf_magic, sizeof elf_magic) || header->ident[4] != 2 || header->ident[5] != 1) {
            stop("its ELF header is not whole");
            return;
        }
        header_ = *header;
        if (header_.machine != machine_cuda) stop("it is machine code, but not for GPUs");
        end(header_.program_offset, std::uint64_t{header_.program_bytes} * header_.program_count);
        end(header_.section_offset, std::uint64_t{header_.section_bytes} * header_.section_count);
        if (header_.section_count > 0 && header_.section_bytes != sizeof(ElfSection)) {
            stop("its sections have an unknown form");
        }
        if (!damage.empty()) return;
        for (std::uint32_t at = 0; at < header_.section_count; ++at) {
            const auto section = value_at<ElfSection>(bytes, header_.section_offset + at * sizeof(ElfSection));
            sections_.push_back(*section);
            if (section->type != section_without_bytes && section->type != 0) end(section->offset, section->bytes);
        }
    }
    std::uint32_t capability() const {
        return header_.ident[7] == new_flags ? (header_.flags >> 8) & 0xff : header_.flags & 0xff;
    }
    std::size_t size_bytes() const { return end_; }
    void tell(ImageContents& out) const {
        for (const ElfSection& table : sections_) {
            if (table.type != section_symbols || table.link >= sections_.size()) continue;
            const Bytes strings = content(sections_[table.link]);
            for (std::uint64_t at = 0; at + sizeof(ElfSymbol) <= table.bytes; at += sizeof(ElfSymbol)) {
                const auto symbol = value_at<ElfSymbol>(content(table), at);
                if (symbol) tell(*symbol, text_at(strings, symbol->name), out);
            }
        }
    }

    std::string_view damage;

private:
    void stop(std::string_view why) { damage = why; }
    void end(std::uint64_t offset, std::uint64_t count) {
        if (offset > bytes_.size() || count > bytes_.size() - offset) return stop("it ends before its last section");
        end_ = std::max(end_, static_cast<std::size_t>(offset + count));
    }
    Bytes content(const ElfSection& section) const {
        return section.type == section_without_bytes ? Bytes()
                                                     : part(bytes_, section.offset, section.bytes).value_or(Bytes());
    }
    std::string_view name_of(const ElfSection& section) const {
        if (header_.names_section >= sections_.size()) return {};
        return text_at(content(sections_[header_.names_section]), section.name);
    }
    void tell(const ElfSymbol& symbol, std::string_view name, ImageContents& out) const {
        if (name.empty() || symbol.section == 0 || symbol.section >= sections_.size()) return;
        const unsigned char type = symbol.info & 0xf;
        if (type == symbol_function && (symbol.other & is_entry) != 0) {
            ImageEntry entry{std::string(name), {}, true};
            const std::string section = ".nv.info." + entry.name;
            for (const ElfSection& one : sections_) {
                if (name_of(one) == section) read_parameters(content(one), entry);
            }
            add_entry(out, std::move(entry));
        } else if (type == symbol_object) {
            const std::string_view where = name_of(sections_[symbol.section]);
            const bool holds = where.starts_with(".nv.global") || where == ".nv.constant3";
            if (holds && out.global(name) == nullptr) out.globals.push_back({std::string(name), symbol.bytes});
        }
    }

    Bytes bytes_;
    ElfHeader header_{};
    std::vector<ElfSection> sections_;
    std::size_t end_ = sizeof(ElfHeader);
};

}  // namespace

const ImageEntry* ImageContents::entry(std::string_view name) const noexcept {
    const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& one) { return one.name == name; });
    return found == entries.end() ? nullptr : &*found;
}

const ImageGlobal* ImageContents::global(std::string_view name) const noexcept {
    const auto found = std::find_if(globals.begin(), globals.end(), [&](const auto& one) { return one.name == name; });
    return found == globals.end() ? nullptr : &*found;
}

// Machine code runs within its major version, from its minor one on.
bool ImageContents::suits(std::uint32_t capability) const noexcept {
    const auto runs = [&](std::uint32_t binary) { return binary / 10 == capability / 10 && binary <= capability; };
    for (std::size_t at = 0; at < ptx_targets.size(); ++at) {
        const char suffix = at < ptx_suffixes.size() ? ptx_suffixes[at] : '\0';
        if (ptx_runs_on(ptx_targets[at], suffix, capability)) return true;
    }
    return std::any_of(binaries.begin(), binaries.end(), runs);
}

bool ptx_runs_on(std::uint32_t target, char suffix, std::uint32_t capability) noexcept {
    if (suffix == 'a') return target == capability;
    return target <= capability && (suffix != 'f' || target / 10 == capability / 10);
}

void read_cubin(std::span<const std::byte> bytes, ImageContents& out) {
    const Cubin cubin(bytes);
    if (!cubin.damage.empty()) {
        out.damage = cubin.damage;
        return;
    }
    out.size_bytes = cubin.size_bytes();
    out.binaries.push_back(cubin.capability());
    cubin.tell(out);
}

void read_fatbin(std::span<const std::byte> bytes, ImageContents& out) {
    const auto header = value_at<FatbinHeader>(bytes, 0);
    if (!header || header->header_bytes < sizeof(FatbinHeader) || header->header_bytes > bytes.size() ||
        header->bytes > bytes.size() - header->header_bytes) {
        out.damage = "it ends before its last member";
        return;
    }
    const std::size_t size_bytes = header->header_bytes + static_cast<std::size_t>(header->bytes);
    const Bytes whole = bytes.first(size_bytes);
    for (std::uint64_t at = header->header_bytes; at < whole.size();) {
        const auto member = value_at<FatbinMember>(whole, at);
        if (!member || member->header_bytes < sizeof(FatbinMember)) {
            out.damage = "one of its members is not whole";
            break;
        }
        const std::optional<Bytes> content = member->header_bytes > whole.size() - at
                                                 ? std::nullopt
                                                 : part(whole, at + member->header_bytes, member->bytes);
        if (!content) {
            out.damage = "one of its members is not whole";
            break;
        }
        if (member->kind == 2) {
            ImageContents inner;
            if (begins(*content, elf_magic, sizeof elf_magic)) read_cubin(*content, inner);
            out.readable = out.readable && !inner.binaries.empty();
            out.binaries.push_back(member->architecture);
            for (ImageEntry& entry : inner.entries) add_entry(out, std::move(entry));
            for (ImageGlobal& global : inner.globals) {
                if (out.global(global.name) == nullptr) out.globals.push_back(std::move(global));
            }
        } else if (member->kind == 1) {
            const std::string_view text(reinterpret_cast<const char*>(content->data()), content->size());
            out.ptx_targets.push_back(member->architecture);
            out.ptx_suffixes.push_back('\0');
            if (member->compressed_bytes == 0 && begins_as_ptx(text)) {
                ImageContents inner;
                read_ptx(text, inner);
                if (!inner.ptx_suffixes.empty()) out.ptx_suffixes.back() = inner.ptx_suffixes.front();
                out.ptx_version = std::max(out.ptx_version, inner.ptx_version);
                for (ImageEntry& entry : inner.entries) add_entry(out, std::move(entry));
                for (ImageGlobal& global : inner.globals) {
                    if (out.global(global.name) == nullptr) out.globals.push_back(std::move(global));
                }
            } else {
                out.readable = false;
            }
        }
        at += std::uint64_t{member->header_bytes} + member->bytes;
    }
    out.size_bytes = size_bytes;
}

std::string_view ptx_text(std::span<const std::byte> bytes, std::uint32_t capability) {
    const auto text_of = [](Bytes part_of_image) {
        const std::string_view text(reinterpret_cast<const char*>(part_of_image.data()), part_of_image.size());
        const std::string_view whole = text.substr(0, text.find('\0'));
        return begins_as_ptx(whole) ? whole : std::string_view();
    };
    if (!begins(bytes, &fatbin_magic, sizeof fatbin_magic)) return text_of(bytes);
    const auto header = value_at<FatbinHeader>(bytes, 0);
    std::string_view best;
    std::uint32_t best_target = 0;
    for (std::uint64_t at = header ? header->header_bytes : bytes.size(); at < bytes.size();) {
        const auto member = value_at<FatbinMember>(bytes, at);
        if (!member || member->header_bytes < sizeof(FatbinMember)) break;
        const std::optional<Bytes> content = part(bytes, at + member->header_bytes, member->bytes);
        if (!content) break;
        if (member->kind == 1 && member->compressed_bytes == 0 && member->architecture >= best_target) {
            const std::string_view text = text_of(*content);
            ImageContents inner;
            if (capability != 0) read_ptx(text, inner);
            const char suffix = inner.ptx_suffixes.empty() ? '\0' : inner.ptx_suffixes.front();
            const bool suits = capability == 0 || ptx_runs_on(member->architecture, suffix, capability);
            if (!text.empty() && suits) {
                best = text;
                best_target = member->architecture;
            }
        }
        at += std::uint64_t{member->header_bytes} + member->bytes;
    }
    return best;
}

ImageContents read_image(std::span<const std::byte> bytes) {
    ImageContents out;
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (begins(bytes, elf_magic, sizeof elf_magic)) {
        out.format = ImageFormat::cubin;
        read_cubin(bytes, out);
    } else if (begins(bytes, &fatbin_magic, sizeof fatbin_magic)) {
        out.format = ImageFormat::fatbin;
        read_fatbin(bytes, out);
    } else if (begins_as_ptx(text.substr(0, text.find('\0')))) {
        out.format = ImageFormat::ptx;
        read_ptx(text.substr(0, text.find('\0')), out);
    } else {
        out.damage = "it begins as neither PTX (.version), nor a cubin (ELF), nor a fatbin";
    }
    return out;
}

}  // namespace isthmus::images
