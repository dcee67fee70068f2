// SPDX-License-Identifier: Apache-2.0
// Writes the generated pages: write_machines_page MACHINES.md ACCESS.md
#include "caps_render.hpp"

#include <cstdio>
#include <string>

namespace {

bool write(const char* path, const std::string& page) {
    std::FILE* file = std::fopen(path, "wb");
    const bool written = file != nullptr && std::fwrite(page.data(), 1, page.size(), file) == page.size();
    if (file != nullptr && std::fclose(file) == 0 && written) return true;
    std::perror(path);
    return false;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) {
        std::fprintf(stderr, "usage: write_machines_page MACHINES.md ACCESS.md\n");
        return 2;
    }
    const bool machines = write(arguments[1], isthmus::tools::machines_page());
    return write(arguments[2], isthmus::tools::access_page()) && machines ? 0 : 1;
}
