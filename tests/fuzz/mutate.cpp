// SPDX-License-Identifier: Apache-2.0
// Gives a fuzz target small files of each format with changes, the same in every run. For compilers without libFuzzer,
// and for the suite.
#include "numbers.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

const std::vector<std::string> seeds = {
    "YUV4MPEG2 W3 H2 F30:1 Ip A0:0 Cmono\nFRAME\nabcdefFRAME\nghijkl",
    "YUV4MPEG2 W3 H3 C420jpeg\nFRAME Ip\nabcdefghijklmnopq",
    "P5\n# gray\n3 2\n255\nabcdef",
    "P5 2 2 15 abcdP5 2 2 15 efgh",
    "P6\n2 2\n255\nabcdefghijkl",
    "abcdefghijklmnopqrstuvwxyz0123456789",
};
const std::vector<std::string> words = {
    "YUV4MPEG2",
    "FRAME\n",
    " W",
    " H",
    " C420",
    " Cmono",
    " F0:0",
    "P5\n",
    "P6\n",
    "#",
    "\n",
    " ",
    "0",
    "255",
    "65535",
    "4294967296",
    "18446744073709551615",
    "99999999999999999999",
    "-1",
    std::string(1, '\0'),
    std::string(300, '7'),
};

std::string changed(Numbers& numbers) {
    std::string bytes(1, static_cast<char>(numbers.below(256)));
    bytes += seeds[numbers.below(seeds.size())];
    for (std::uint64_t change = numbers.below(5); change > 0; --change) {
        const std::size_t at = numbers.below(bytes.size());
        switch (numbers.below(6)) {
            case 0: bytes[at] = static_cast<char>(numbers.below(256)); break;
            case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << numbers.below(8))); break;
            case 2: bytes.insert(at, words[numbers.below(words.size())]); break;
            case 3: bytes.erase(at, 1 + numbers.below(8)); break;
            case 4: bytes.resize(at + 1); break;
            default: bytes += bytes.substr(at); break;
        }
        if (bytes.empty()) bytes = "x";
    }
    return bytes;
}

}  // namespace

// mutate [COUNT [SEED]]
int main(int argc, char** argv) {
    const std::uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20000;
    const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    std::printf("%llu inputs from seed %llu\n", static_cast<unsigned long long>(count),
                static_cast<unsigned long long>(seed));
    for (const std::string& bytes : seeds) {
        for (unsigned choice = 0; choice < 256; ++choice) {
            const std::string input = static_cast<char>(choice) + bytes;
            LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
        }
    }
    Numbers numbers(seed);
    for (std::uint64_t at = 0; at < count; ++at) {
        const std::string input = changed(numbers);
        // Exactly the input's size, so that a sanitizer detects a read beyond its end.
        const std::vector<std::uint8_t> exact(input.begin(), input.end());
        LLVMFuzzerTestOneInput(exact.data(), exact.size());
    }
    return 0;
}
