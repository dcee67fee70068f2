// SPDX-License-Identifier: Apache-2.0
// A shared ring's sizes, and their descriptor, any byte of which may be false.
#include "shared_ring_shape.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace isthmus::rules {
namespace {

constexpr std::uint64_t page = 4096;

RingShape shape_of(std::size_t slots = 4, std::uint64_t elements = 1000, std::uint32_t element_bytes = 4) {
    SharedRingOptions options;
    options.slots = slots;
    options.policy = SlowReaderPolicy::wait;
    RingShape shape = make_ring_shape(elements, element_bytes, options, page).value();
    shape.id.fill(std::byte{0x5a});
    return shape;
}

// keeps I1
TEST(SharedRingShape, FramesAndWordsLieApart) {
    for (const std::size_t slots : {2, 3, 29, 30, 64, 256}) {
        for (const std::uint64_t elements : {1u, 1023u, 1024u, 1025u, 1u << 20}) {
            const RingShape shape = shape_of(slots, elements);
            SCOPED_TRACE(slots);
            EXPECT_EQ(shape.frames_at % page, 0u);
            EXPECT_EQ(shape.stride_bytes % page, 0u);
            EXPECT_GE(shape.stride_bytes, shape.frame_bytes());
            EXPECT_LE(shape.stamp_at(slots - 1) + 8, shape.frames_at) << "the last stamp ends before the first frame";
            EXPECT_GT(shape.stamp_at(0), ring_producer_asleep_at);
            EXPECT_EQ(shape.frame_at(slots - 1) + shape.stride_bytes, shape.file_bytes);
            EXPECT_EQ(shape.frame_at(slots), shape.frame_at(0));
        }
    }
}

// keeps I1
TEST(SharedRingShape, SizesThatNoMemoryHasAreRefused) {
    const auto refused = [](std::uint64_t elements, std::uint32_t element_bytes, std::size_t slots) {
        SharedRingOptions options;
        options.slots = slots;
        const Result<RingShape> shape = make_ring_shape(elements, element_bytes, options, page);
        return !shape && shape.code() == Code::invalid_argument && !shape.error().remedy().empty();
    };
    EXPECT_TRUE(refused(0, 4, 4));
    EXPECT_TRUE(refused(4, 0, 4));
    EXPECT_TRUE(refused(4, 4, 0));
    EXPECT_TRUE(refused(4, 4, 1));
    EXPECT_TRUE(refused(4, 4, 257));
    EXPECT_TRUE(refused(~std::uint64_t{0}, 4, 4));
    EXPECT_TRUE(refused(~std::uint64_t{0} / 4 + 2, 4, 4)) << "the product would begin again at a small number";
    EXPECT_TRUE(refused(max_ring_bytes, 1, 4));
}

// keeps I1
TEST(SharedRingDescriptorBytes, ComeBackAsTheyWent) {
    const RingShape shape = shape_of();
    const RingPlaceOfReader place{7, 123456789012345};
    const RingDescriptorBytes bytes = encode_ring(shape, place);
    const DecodedRing decoded = decode_ring(bytes, page).value();
    EXPECT_EQ(decoded.shape, shape);
    EXPECT_EQ(decoded.place, place);
    EXPECT_EQ(std::memcmp(bytes.data(), "isthmrng", 8), 0) << "who finds it in a log knows what it is";
}

// Accepts a shape that make_ring_shape() would make; everything else is refused, and the refusal explains.
void judge(const RingDescriptorBytes& bytes) {
    const Result<DecodedRing> decoded = decode_ring(bytes, page);
    if (!decoded) {
        EXPECT_EQ(decoded.code(), Code::invalid_argument);
        EXPECT_FALSE(decoded.error().message().empty());
        return;
    }
    EXPECT_EQ(encode_ring(decoded->shape, decoded->place), bytes);
    SharedRingOptions options;
    options.slots = decoded->shape.slots;
    options.policy = decoded->shape.policy;
    options.rights = decoded->shape.rights;
    RingShape again = make_ring_shape(decoded->shape.elements, decoded->shape.element_bytes, options, page).value();
    again.id = decoded->shape.id;
    EXPECT_EQ(again, decoded->shape);
}

// keeps I4
TEST(SharedRingDescriptorBytes, EveryFlippedBitIsRefusedOrSaysSomethingElseThatIsWhole) {
    const RingDescriptorBytes bytes = encode_ring(shape_of(), {1, 2});
    int accepted = 0;
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        RingDescriptorBytes other = bytes;
        other[bit / 8] ^= std::byte{1} << (bit % 8);
        judge(other);
        accepted += decode_ring(other, page).ok() ? 1 : 0;
    }
    // The identity (checked against the file), the reader's number, its first frame, policy and rights, and fewer or
    // more elements in the same page.
    EXPECT_EQ(accepted, 16 * 8 + 32 + 60 + 2 + 10);
}

// keeps I4
TEST(SharedRingDescriptorBytes, OtherLengthsVersionsAndPagesAreRefused) {
    const RingDescriptorBytes bytes = encode_ring(shape_of(), {1, 2});
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        EXPECT_FALSE(decode_ring(std::span(bytes).first(length), page));
    }
    std::vector<std::byte> longer(bytes.begin(), bytes.end());
    longer.emplace_back();
    EXPECT_FALSE(decode_ring(longer, page));
    EXPECT_FALSE(decode_ring(bytes, 65536)) << "made for other pages";
    RingDescriptorBytes newer = bytes;
    newer[8] = std::byte{2};
    const Result<DecodedRing> refused = decode_ring(newer, page);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message().find("version"), std::string::npos);
}

// keeps I4
TEST(SharedRingDescriptorBytes, NoBytesAreTooMuch) {
    std::mt19937_64 random(20261122);
    const RingDescriptorBytes good = encode_ring(shape_of(), {1, 2});
    for (int round = 0; round < 20000; ++round) {
        RingDescriptorBytes bytes = good;
        for (std::uint64_t changes = 1 + random() % 8; changes > 0; --changes) {
            const std::size_t at = random() % bytes.size();
            static constexpr std::uint8_t nasty[] = {0, 1, 0x7f, 0x80, 0xff};
            bytes[at] = random() % 2 == 0 ? std::byte{nasty[random() % 5]} : static_cast<std::byte>(random());
        }
        judge(bytes);
    }
}

}  // namespace
}  // namespace isthmus::rules
