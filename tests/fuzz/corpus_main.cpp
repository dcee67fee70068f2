// SPDX-License-Identifier: Apache-2.0
// Gives a fuzz target every file of a corpus, then changed ones, the same in every run. For compilers without
// libFuzzer, and for runs that must be identical everywhere.
#include "numbers.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

std::vector<Bytes> read_corpus(const char* folder) {
    std::set<std::filesystem::path> names;  // in order: every run is the same
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path());
    std::vector<Bytes> corpus;
    for (const auto& name : names) {
        std::ifstream file(name, std::ios::binary);
        corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return corpus;
}

constexpr std::size_t max_bytes = 512;

void change(Bytes& bytes, const std::vector<Bytes>& corpus, Numbers& numbers) {
    if (bytes.empty()) bytes.push_back(0);
    const std::size_t at = numbers.below(bytes.size());
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (numbers.below(7)) {
        case 0: bytes[at] = static_cast<std::uint8_t>(numbers.below(256)); break;
        case 1: bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ (1u << numbers.below(8))); break;
        case 2: bytes[at] = static_cast<std::uint8_t>(numbers.below(8)); break;
        case 3: bytes.insert(place, static_cast<std::uint8_t>(numbers.below(8))); break;
        case 4: bytes.erase(place); break;
        case 5: bytes.resize(at); break;
        default: {  // continues as another file does
            const Bytes& other = corpus[numbers.below(corpus.size())];
            if (other.empty()) break;
            const std::size_t from = numbers.below(other.size());
            bytes.insert(bytes.end(), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
        }
    }
    if (bytes.size() > max_bytes) bytes.resize(max_bytes);
}

}  // namespace

// PROGRAM CORPUS [COUNT [SEED]]
int main(int argc, char** argv) {
    if (argc < 2) return 2;
    const std::vector<Bytes> corpus = read_corpus(argv[1]);
    const std::uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100000;
    const std::uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
    if (corpus.empty()) {
        std::fprintf(stderr, "%s holds no corpus\n", argv[1]);
        return 1;
    }
    for (const Bytes& bytes : corpus) LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    Numbers numbers(seed);
    Bytes bytes;
    for (std::uint64_t at = 0; at < count; ++at) {
        bytes = corpus[numbers.below(corpus.size())];
        for (std::uint64_t changes = numbers.below(6); changes > 0; --changes) change(bytes, corpus, numbers);
        const Bytes exact(bytes);  // so that a sanitizer detects a read beyond its end
        LLVMFuzzerTestOneInput(exact.data(), exact.size());
    }
    std::printf("%llu executions: %zu of the corpus, %llu from seed %llu\n",
                static_cast<unsigned long long>(count) + corpus.size(), corpus.size(),
                static_cast<unsigned long long>(count), static_cast<unsigned long long>(seed));
    return 0;
}
