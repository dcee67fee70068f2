// Renews the generated parts of docs/memory.md: write_memory_page PATH
#include "caps_render.hpp"

#include <cstdio>
#include <fstream>
#include <sstream>

int main(int count, char** arguments) {
    if (count != 2) {
        std::fprintf(stderr, "usage: write_memory_page PATH\n");
        return 2;
    }
    std::stringstream page;
    {
        std::ifstream file(arguments[1], std::ios::binary);
        if (!file || !(page << file.rdbuf())) {
            std::perror(arguments[1]);
            return 1;
        }
    }
    std::ofstream file(arguments[1], std::ios::binary);
    file << isthmus::tools::memory_page(page.str());
    file.close();
    if (file) return 0;
    std::perror(arguments[1]);
    return 1;
}
