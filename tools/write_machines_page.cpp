// Writes docs/machines.md: write_machines_page PATH
#include "caps_render.hpp"

#include <cstdio>

int main(int count, char** arguments) {
    if (count != 2) {
        std::fprintf(stderr, "usage: write_machines_page PATH\n");
        return 2;
    }
    const std::string page = isthmus::tools::machines_page();
    std::FILE* file = std::fopen(arguments[1], "wb");
    const bool written = file != nullptr && std::fwrite(page.data(), 1, page.size(), file) == page.size();
    if (file == nullptr || std::fclose(file) != 0 || !written) {
        std::perror(arguments[1]);
        return 1;
    }
    return 0;
}
