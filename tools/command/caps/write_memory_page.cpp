// SPDX-License-Identifier: Apache-2.0
// Renews the generated parts of docs/memory.md or docs/sharing.md: write_memory_page memory|sharing PATH
#include "caps_render.hpp"

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string_view>

int main(int count, char** arguments) {
    const std::string_view which = count == 3 ? arguments[1] : "";
    if (which != "memory" && which != "sharing") {
        std::fprintf(stderr, "usage: write_memory_page memory|sharing PATH\n");
        return 2;
    }
    std::stringstream page;
    {
        std::ifstream file(arguments[2], std::ios::binary);
        if (!file || !(page << file.rdbuf())) {
            std::perror(arguments[2]);
            return 1;
        }
    }
    std::ofstream file(arguments[2], std::ios::binary);
    file << (which == "memory" ? isthmus::tools::memory_page(page.str()) : isthmus::tools::sharing_page(page.str()));
    file.close();
    if (file) return 0;
    std::perror(arguments[2]);
    return 1;
}
