// SPDX-License-Identifier: Apache-2.0
// Kernels that the tests of the Python package load; registered_kernels.cpp registers them.
#include "kernels.hpp"

ISTHMUS_KERNEL(brighten, isthmus::Index i, isthmus::View<std::uint8_t> pixels, int by) {
    const int bright = pixels[i] + by;
    pixels[i] = static_cast<std::uint8_t>(bright > 255 ? 255 : bright);
}

ISTHMUS_KERNEL(scale, isthmus::Index2 at, isthmus::Out<float> out, isthmus::View<const float> in, float by,
               std::uint64_t width) {
    out[at.y * width + at.x] = in[at.y * width + at.x] * by;
}

// Takes about a second for 2^28 rounds, in which other threads can run.
ISTHMUS_KERNEL(churn, isthmus::Index i, isthmus::View<std::uint32_t> words, std::uint64_t rounds) {
    std::uint32_t word = words[i];
    for (std::uint64_t round = 0; round < rounds; ++round) word = word * 1664525u + 1013904223u;
    words[i] = word;
}

// Reads the word at the address `gate` until the host sets it, at most `rounds` times; then `words` hold it. One item.
// Simulated machines read each address of the process.
ISTHMUS_KERNEL(wait_for_gate, isthmus::Index, std::uint64_t gate, isthmus::View<std::uint32_t> words,
               std::uint64_t rounds) {
    const volatile std::uint32_t& word = *reinterpret_cast<const std::uint32_t*>(gate);
    std::uint32_t seen = word;
    for (std::uint64_t round = 0; seen == 0 && round < rounds; ++round) seen = word;
    words[0] = seen;
}
