// SPDX-License-Identifier: Apache-2.0
#include "call_origin.hpp"

#include <link.h>

#include <cstring>

extern "C" {
extern const char __start_conformance_hooks[] __attribute__((weak, visibility("hidden")));
extern const char __stop_conformance_hooks[] __attribute__((weak, visibility("hidden")));
}

namespace conformance {
namespace {

struct Search {
    CodeMap map;
    bool first = true;  // the program is the first object
};

int look(dl_phdr_info* info, std::size_t, void* data) {
    auto& search = *static_cast<Search*>(data);
    CodeRange code;
    for (int at = 0; at < info->dlpi_phnum; ++at) {
        const auto& part = info->dlpi_phdr[at];
        if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
        const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
        if (code.end == 0 || begin < code.begin) code.begin = begin;
        if (begin + part.p_memsz > code.end) code.end = begin + part.p_memsz;
    }
    if (search.first) search.map.program = code;
    search.first = false;
    if (std::strstr(info->dlpi_name, "libisthmus.so") != nullptr) search.map.library = code;
    if (std::strstr(info->dlpi_name, "libcuda.so") != nullptr) search.map.driver = code;
    return 0;
}

}  // namespace

const char* name(Origin origin) noexcept {
    switch (origin) {
        case Origin::library: return "the library";
        case Origin::driver: return "the driver";
        case Origin::program: return "the program";
        case Origin::system: break;
    }
    return "the system";
}

Origin CodeMap::of(std::uintptr_t address) const noexcept {
    if (library.has(address)) return Origin::library;
    if (driver.has(address)) return Origin::driver;
    return program.has(address) && !hooks.has(address) ? Origin::program : Origin::system;
}

Origin CodeMap::of(void* const* frames, int count) const noexcept {
    for (int at = 0; at < count; ++at) {
        const Origin origin = of(reinterpret_cast<std::uintptr_t>(frames[at]));
        if (origin != Origin::system) return origin;
    }
    return Origin::system;
}

CodeMap find_code() noexcept {
    Search search;
    dl_iterate_phdr(look, &search);
    search.map.hooks = {reinterpret_cast<std::uintptr_t>(__start_conformance_hooks),
                        reinterpret_cast<std::uintptr_t>(__stop_conformance_hooks)};
    return search.map;
}

}  // namespace conformance
