// SPDX-License-Identifier: Apache-2.0
// Fetches of textures as nvcc makes them: address modes, filters, read modes, layers; and queries.
#include "made_by_nvcc.hpp"

#include <texture_sampling.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <utility>

namespace isthmus::ptx::test {
namespace {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using u8 = std::uint8_t;
using Address = TextureBytes::Address;
using Kind = TexelFormat::Kind;

struct Point {
    float x = 0, y = 0, z = 0, layer = 0;
};

template <class T>
TextureBytes texture_of(const std::vector<T>& texels, TexelFormat format, u64 width, u64 height = 1, u64 depth = 1) {
    TextureBytes out;
    out.host = reinterpret_cast<const std::byte*>(texels.data());
    out.width = width;
    out.height = height;
    out.depth = depth;
    out.format = format;
    out.row_bytes = width * format.channel_bytes * format.channels;
    out.slice_bytes = out.row_bytes * height;
    out.dimensions = depth > 1 ? 3 : height > 1 ? 2 : 1;
    out.address.fill(Address::clamp);
    return out;
}
constexpr TexelFormat singles = {Kind::floating, 4, 1};

struct Fetched {
    Fault fault;
    std::vector<u32> words;
    std::vector<std::string> uninitialised;
    float number(std::size_t at) const { return std::bit_cast<float>(words[at]); }
};
template <class Coordinate>
Fetched fetched(const char* kernel, const TextureBytes& texture, std::vector<Coordinate> points, u32 words = 1,
                bool records = false) {
    Buffers buffers;
    Fetched out;
    const auto count = static_cast<u32>(points.size());
    out.words.resize(count * words, 0xdeadbeef);
    const u64 places = buffers.add(points), results = buffers.add(out.words);
    buffers.textures = {{}, texture};
    Loaded loaded(made_by_nvcc("textures"), buffers);
    ExecutionShape shape = blocks_of((count + 63) / 64, 64);
    shape.finds_uninitialised = records;
    out.fault = loaded.run(kernel, shape, u64{1}, places, results, count);
    out.uninitialised = buffers.uninitialised_reads;
    return out;
}

// Texels of an axis of 4, by address mode.
TEST(PtxTextures, AddressModesOfPointFetches) {  // keeps W8
    const std::vector<float> texels = {10, 20, 30, 40};
    const std::vector<Point> at = {{-9.5f}, {-4.5f}, {-1.5f}, {-0.5f}, {0.5f}, {1.0f}, {3.9f}, {4.5f}, {5.5f}, {9.5f}};
    struct Row {
        Address mode;
        std::vector<float> plain, normalised;
    };
    const Row rows[] = {
        {Address::clamp, {10, 10, 10, 10, 10, 20, 40, 40, 40, 40}, {10, 10, 10, 10, 10, 20, 40, 40, 40, 40}},
        // Without normalised coordinates these two are clamp.
        {Address::wrap, {10, 10, 10, 10, 10, 20, 40, 40, 40, 40}, {30, 40, 30, 40, 10, 20, 40, 10, 20, 20}},
        {Address::mirror, {10, 10, 10, 10, 10, 20, 40, 40, 40, 40}, {20, 40, 20, 10, 10, 20, 40, 40, 30, 20}},
        {Address::border, {7, 7, 7, 7, 10, 20, 40, 7, 7, 7}, {7, 7, 7, 7, 10, 20, 40, 7, 7, 7}}};
    for (const Row& row : rows) {
        for (const bool normalised : {false, true}) {
            TextureBytes texture = texture_of(texels, singles, 4);
            texture.address.fill(row.mode);
            texture.border[0] = 7;
            texture.normalised = normalised;
            std::vector<Point> points = at;
            for (Point& one : points) one.x /= normalised ? 4 : 1;
            const Fetched found = fetched("line", texture, points);
            ASSERT_EQ(found.fault.kind, FaultKind::none) << found.fault.message;
            for (std::size_t one = 0; one < at.size(); ++one) {
                EXPECT_EQ(found.number(one), (normalised ? row.normalised : row.plain)[one])
                    << at[one].x << " in mode " << static_cast<int>(row.mode) << ", normalised " << normalised;
            }
        }
    }
}

// The weight of the second texel is a multiple of 1/256.
TEST(PtxTextures, LinearFiltersWeighIn256ths) {  // keeps W8
    const std::vector<float> texels = {0, 256, 0, 512};
    TextureBytes texture = texture_of(texels, singles, 4);
    texture.linear_filter = true;
    std::vector<Point> points;
    for (int at = 0; at <= 256; ++at) points.push_back({0.5f + static_cast<float>(at) / 256});
    Fetched found = fetched("line", texture, points);
    ASSERT_EQ(found.fault.kind, FaultKind::none) << found.fault.message;
    for (int at = 0; at <= 256; ++at) EXPECT_EQ(found.number(static_cast<std::size_t>(at)), static_cast<float>(at));
    // Between two of them it is one or the other; before the first texel and behind the last one it is that texel.
    found =
        fetched("line", texture, std::vector<Point>{{0.5f + 1.0f / 1024}, {0.5f + 1023.0f / 1024}, {-5}, {9}, {3.2f}});
    EXPECT_EQ(found.number(0), std::floor(found.number(0)));
    EXPECT_EQ(found.number(1), std::floor(found.number(1)));
    EXPECT_EQ(found.number(2), 0);
    EXPECT_EQ(found.number(3), 512);
    EXPECT_EQ(found.number(4), std::floor(found.number(4)));
    texture.address.fill(Address::border);
    texture.border[0] = 1024;
    found = fetched("line", texture, std::vector<Point>{{0}, {0.25f}, {4}, {4.5f}});
    // Half of each is the border, above the line.
    EXPECT_EQ(found.number(0), 768);
    EXPECT_EQ(found.number(1), 640);
    EXPECT_EQ(found.number(2), 896);
    EXPECT_EQ(found.number(3), 1024);
    texture.address[1] = Address::clamp;
    EXPECT_EQ(fetched("line", texture, std::vector<Point>{{0.25f}}).number(0), 256);
    texture.normalised = true;
    texture.address.fill(Address::wrap);
    found = fetched("line", texture, std::vector<Point>{{0}, {1}, {0.125f}, {-0.125f}});
    EXPECT_EQ(found.number(0), 256);
    EXPECT_EQ(found.number(1), 256);
    EXPECT_EQ(found.number(2), 0);
    EXPECT_EQ(found.number(3), 512);
}

TEST(PtxTextures, PlanesVolumesAndLayers) {  // keeps W8
    std::vector<float> texels(4 * 3 * 5);
    for (std::size_t at = 0; at < texels.size(); ++at) texels[at] = static_cast<float>(at * 16);
    TextureBytes plane = texture_of(texels, singles, 4, 3);
    const auto number = [](int x, int y, int z) { return static_cast<float>(16 * (x + 4 * y + 12 * z)); };
    EXPECT_EQ(fetched("plane", plane, std::vector<Point>{{2.5f, 1.5f}}).number(0), number(2, 1, 0));
    EXPECT_EQ(fetched("levels", plane, std::vector<Point>{{2.5f, 1.5f, 3}}).number(0), number(2, 1, 0));
    plane.linear_filter = true;
    EXPECT_EQ(fetched("plane", plane, std::vector<Point>{{2, 1}}).number(0),
              (number(1, 0, 0) + number(2, 0, 0) + number(1, 1, 0) + number(2, 1, 0)) / 4);
    EXPECT_EQ(fetched("plane", plane, std::vector<Point>{{1.75f, 0.5f}}).number(0), number(1, 0, 0) + 4);
    TextureBytes volume = texture_of(texels, singles, 4, 3, 5);
    EXPECT_EQ(fetched("volume", volume, std::vector<Point>{{3.5f, 0.5f, 4.5f}}).number(0), number(3, 0, 4));
    volume.linear_filter = true;
    EXPECT_EQ(fetched("volume", volume, std::vector<Point>{{2.5f, 1.5f, 3}}).number(0),
              (number(2, 1, 2) + number(2, 1, 3)) / 2);
    TextureBytes layers = texture_of(texels, singles, 4, 3, 5);
    layers.layered = true;
    layers.dimensions = 2;
    const std::vector<Point> in_layers = {{1.5f, 2.5f, 0, 3}, {1.5f, 2.5f, 0, 9}, {1.5f, 2.5f, 0, -2}};
    const Fetched found = fetched("planes", layers, in_layers);
    EXPECT_EQ(found.number(0), number(1, 2, 3));
    EXPECT_EQ(found.number(1), number(1, 2, 4));
    EXPECT_EQ(found.number(2), number(1, 2, 4));
    TextureBytes lines = texture_of(texels, singles, 12, 1, 5);
    lines.layered = true;
    lines.dimensions = 1;
    EXPECT_EQ(fetched("lines", lines, std::vector<Point>{{7.5f, 0, 0, 2}}).number(0), number(3, 1, 2));
}

TEST(PtxTextures, IntegersAreReadAsTheyAreOrAsFractions) {  // keeps W8
    const std::vector<u8> bytes = {0, 255, 128, 1, 127, 129, 64, 32};
    TextureBytes texture = texture_of(bytes, {Kind::unsigned_, 1, 4}, 1, 2);
    const std::vector<Point> both = {{0.5f, 0.5f}, {0.5f, 1.5f}};
    Fetched found = fetched("vectors", texture, both, 4);
    ASSERT_EQ(found.fault.kind, FaultKind::none) << found.fault.message;
    for (std::size_t at = 0; at < 8; ++at) EXPECT_EQ(found.number(at), static_cast<float>(bytes[at]) / 255.0f) << at;
    texture.format.kind = Kind::signed_;
    found = fetched("vectors", texture, both, 4);
    for (std::size_t at = 0; at < 8; ++at) {
        EXPECT_EQ(found.number(at), std::max(static_cast<float>(static_cast<std::int8_t>(bytes[at])) / 127.0f, -1.0f));
    }
    texture.reads_integers = true;
    found = fetched("integers", texture, both, 4);
    for (std::size_t at = 0; at < 8; ++at) {
        EXPECT_EQ(static_cast<std::int32_t>(found.words[at]), static_cast<std::int8_t>(bytes[at]));
    }
    const std::vector<u16> shorts = {0xffff, 0x8000, 1, 0};
    TextureBytes wide = texture_of(shorts, {Kind::unsigned_, 2, 1}, 2, 2);
    found = fetched("vectors", wide, std::vector<Point>{{1.5f, 0.5f}}, 4);
    EXPECT_EQ(found.number(0), 32768.0f / 65535.0f);
    // Halves are numbers.
    const std::vector<u16> halves = {0x3c00, 0xc000, 0x0001, 0x7c00};
    TextureBytes half = texture_of(halves, {Kind::floating, 2, 1}, 4);
    found = fetched("line", half, std::vector<Point>{{0.5f}, {1.5f}, {2.5f}, {3.5f}});
    EXPECT_EQ(found.number(0), 1.0f);
    EXPECT_EQ(found.number(1), -2.0f);
    EXPECT_EQ(found.number(2), std::ldexp(1.0f, -24));
    EXPECT_TRUE(std::isinf(found.number(3)));
}

std::vector<float> floats_of(const std::vector<u32>& words) {
    std::vector<float> out;
    for (const u32 word : words) out.push_back(std::bit_cast<float>(word));
    return out;
}

// Each value is that of an H100 (docs/hardware.md); texels, coordinates and results are some of its random ones.
TEST(PtxTextures, FetchesGiveTheBitsOfAnH100) {  // keeps W8
    const std::vector<float> line4 = floats_of({0xc252d5ea, 0xc1d12ac0, 0x3f593100, 0x4223e814});
    const std::vector<float> line5 = floats_of({0xc2b71e90, 0x424d5da0, 0xc2214fb4, 0xc1f94a9c, 0x42af5fe8});
    const std::vector<float> line7 =
        floats_of({0xc1145588, 0x4243c060, 0xc1e38930, 0x42371d88, 0x427b72c8, 0xc1b95bd4, 0x429f8b66});
    const std::vector<float> layers = floats_of({0xc21af33c, 0x42856af4, 0x428c6a16, 0x42bde872, 0xc2261c6d,  //
                                                 0x426060d8, 0x42a92a90, 0xc1908c9c, 0xc2a54ae9, 0x415de010, 0xc24bdc38,
                                                 0x422996f0, 0xbdd1ac00, 0x4251b3b8, 0x41afe71c});
    const std::vector<float> special = {INFINITY, 1, NAN, 2, 3e38f, -3e38f, 1e-40f, 2e-40f, 1e-45f, 0};
    std::vector<float> dot2(25), dot3(125);
    dot2[12] = dot3[62] = 1;
    const std::vector<u8> bytes = {0xab, 0x07, 0xfa, 0xa6, 0xf5, 0x62, 0x47, 0xe2,
                                   0x7d, 0x65, 0xac, 0xda, 0x08, 0x06, 0x8d, 0xa1};
    const std::vector<u16> shorts = {0x11c9, 0xa361, 0x89f8, 0x51b0, 0xe4a6, 0x587b, 0x1d20, 0xd15d,
                                     0xc8e0, 0xc13f, 0x8025, 0x6074, 0x2d0b, 0x5390, 0x3f34, 0x68f2};
    const std::vector<u16> halves = {0xbc96, 0xacbc, 0x431c, 0x45e5, 0xb7ca, 0x2ea0, 0xcf04, 0xc8f2,
                                     0x396e, 0xb11e, 0xabed, 0xb9a8, 0x33a4, 0x3355, 0x49f7, 0x3128};
    const auto filtered = [](TextureBytes texture, Address mode, bool normalised) {
        texture.linear_filter = true;
        texture.normalised = normalised;
        texture.address.fill(mode);
        texture.border[0] = 7.5f;
        return texture;
    };
    const auto clamped = [&](const TextureBytes& texture) { return filtered(texture, Address::clamp, false); };
    TextureBytes points = filtered(texture_of(line5, singles, 5), Address::wrap, true);
    points.linear_filter = false;
    TextureBytes layered = filtered(texture_of(layers, singles, 5, 1, 3), Address::border, false);
    layered.layered = true;
    layered.dimensions = 1;
    layered.border[0] = 4;
    const TextureBytes border = filtered(texture_of(line4, singles, 4), Address::border, false);
    const TextureBytes mirror = filtered(texture_of(line7, singles, 7), Address::mirror, true);
    struct Row {
        const char* kernel;
        TextureBytes texture;
        Point at;
        u32 bits;
    };
    const Row rows[] = {
        {"line", clamped(texture_of(line4, singles, 4)), {0x1.4a5bep+1f}, 0x40847c4d},  // a tie
        {"line", border, {0x1.bf8b6p+0f}, 0xc0be5b5c},
        {"line", border, {0x1.6893p+1f}, 0x41299da7},
        {"lines", layered, {0x1.fa35bcp-1f}, 0x414bffea},
        {"line", points, {0x1.99999ap-3f}, 0xc2b71e90},
        {"line", points, {-INFINITY}, 0xc2b71e90},
        {"line", points, {-0x1p-149f}, 0xc2b71e90},
        {"line", mirror, {0x1.beb088p+1f}, 0x423beb87},
        {"line", mirror, {-INFINITY}, 0xc1145588},
        {"plane", clamped(texture_of(dot2, singles, 5, 5)), {0x1.06fc34p+1f, 0x1.8b8c04p+1f}, 0x3e680000},
        {"volume",
         clamped(texture_of(dot3, singles, 5, 5, 5)),
         {0x1.8a68fep+1f, 0x1.a1d52cp+1f, 0x1.5d0d5ap+1f},
         0x3d980000},
        {"line", clamped(texture_of(bytes, {Kind::unsigned_, 1, 1}, 16)), {0x1.024254p+2f}, 0x3f5117d1},
        {"line", clamped(texture_of(shorts, {Kind::signed_, 2, 1}, 16)), {0x1.a9a088p-1f}, 0xbe17012e},
        {"line", clamped(texture_of(halves, {Kind::floating, 2, 1}, 16)), {0x1.c55918p+1f}, 0x40b3e000},
        {"line", clamped(texture_of(halves, {Kind::floating, 2, 1}, 16)), {0x1.b4729ap+3f}, 0x3fefe000},
        {"line", clamped(texture_of(special, singles, 10)), {1.515625f}, 0x7fffffff},
        {"line", clamped(texture_of(special, singles, 10)), {7}, 0},
    };
    for (const Row& row : rows) {
        const Fetched found = fetched(row.kernel, row.texture, std::vector<Point>{row.at});
        ASSERT_EQ(found.fault.kind, FaultKind::none) << found.fault.message;
        EXPECT_EQ(found.words[0], row.bits) << "row " << &row - rows;
    }
    // CUDA allows linear filters for floats alone.
    const std::vector<u8> integers = {0x7b, 0xaa, 0xf3, 0x8e, 0xe5, 0x7b, 0xac, 0x24,
                                      0x59, 0x5f, 0xd2, 0xc6, 0xed, 0x59, 0x99, 0x19};
    TextureBytes plane = clamped(texture_of(integers, {Kind::unsigned_, 1, 1}, 16));
    plane.dimensions = 2;
    plane.reads_integers = true;
    const std::vector<Point> at = {{0x1.464866p+3f, 0.5f}, {0x1.8f9e4p+3f, 0.5f}, {0x1.76f598p+2f, 0.5f}};
    EXPECT_EQ(fetched("integers", plane, at, 4).words, (std::vector<u32>{175, 0, 0, 0, 237, 0, 0, 0, 141, 0, 0, 0}));
}

TEST(PtxTextures, ChannelsThatAreNotThereAreZeroAndBordersAreFractions) {  // keeps W8
    const std::vector<u8> bytes = {255, 255, 255, 255};
    TextureBytes texture = texture_of(bytes, {Kind::unsigned_, 1, 2}, 1, 2);
    const std::vector<Point> within = {{0.5f, 0.5f}}, outside = {{-2.0f, 0.5f}};
    EXPECT_EQ(fetched("vectors", texture, within, 4).words, (std::vector<u32>{0x3f800000, 0x3f800000, 0, 0}));
    texture = texture_of(bytes, {Kind::unsigned_, 1, 4}, 1, 1);
    texture.dimensions = 2;
    texture.address.fill(Address::border);
    texture.border = {1.5f, -2.5f, 300, 4};
    EXPECT_EQ(fetched("vectors", texture, outside, 4).words, (std::vector<u32>{0x3f800000, 0, 0x3f800000, 0x3f800000}));
    texture.reads_integers = true;
    EXPECT_EQ(fetched("integers", texture, outside, 4).words, (std::vector<u32>{0, 0, 0, 0}));
}

TEST(PtxTextures, LinearMemoryIsFetchedByIndex) {  // keeps W8
    const std::vector<float> texels = {1, 2, 3};
    TextureBytes texture = texture_of(texels, singles, 3);
    texture.is_linear_memory = true;
    Fetched found = fetched("fetches", texture, std::vector<int>{0, 2});
    ASSERT_EQ(found.fault.kind, FaultKind::none) << found.fault.message;
    EXPECT_EQ(found.number(1), 3.0f);
    // Nothing lies outside, whatever the address mode.
    for (const Address mode : {Address::clamp, Address::wrap, Address::border}) {
        texture.address.fill(mode);
        texture.border[0] = 5;
        found = fetched("fetches", texture, std::vector<int>{-1, 3, 1 << 30});
        EXPECT_EQ(found.words, (std::vector<u32>{0, 0, 0})) << static_cast<int>(mode);
    }
    found = fetched("line", texture, std::vector<Point>{{1}});
    EXPECT_EQ(found.fault.kind, FaultKind::illegal_address);
    EXPECT_NE(found.fault.message.find("linear memory is read by integer coordinates alone"), std::string::npos);
}

TEST(PtxTextures, OneRowIsFetchedAsALine) {  // keeps W8
    const std::vector<float> texels = {1, 2, 4};
    TextureBytes texture = texture_of(texels, singles, 3, 1);
    texture.dimensions = 2;
    texture.is_array = true;
    texture.address.fill(Address::clamp);
    const Fetched found = fetched("line", texture, std::vector<Point>{{0.5f}, {2.5f}});
    ASSERT_EQ(found.fault.kind, FaultKind::none) << found.fault.message;
    EXPECT_EQ(found.number(0), 1.0f);
    EXPECT_EQ(found.number(1), 4.0f);
}

TEST(PtxTextures, WrongObjectsAreFaultsAndUnwrittenTexelsAreReported) {  // keeps W8
    const std::vector<float> texels(8);
    const TextureBytes texture = texture_of(texels, singles, 4, 2);
    Fetched found = fetched("line", texture, std::vector<Point>{{1}});
    EXPECT_EQ(found.fault.kind, FaultKind::illegal_address);
    EXPECT_NE(found.fault.message.find("kernel line, PTX line "), std::string::npos) << found.fault.message;
    EXPECT_NE(found.fault.message.find("a fetch of texture 0x1: it has other dimensions"), std::string::npos);
    TextureBytes gone;
    gone.refusal = "it was destroyed";
    found = fetched("plane", gone, std::vector<Point>{{1}});
    EXPECT_EQ(found.fault.kind, FaultKind::illegal_address);
    EXPECT_NE(found.fault.message.find("it was destroyed"), std::string::npos);
    gone.is_modelled = false;
    EXPECT_EQ(fetched("plane", gone, std::vector<Point>{{1}}).fault.kind, FaultKind::illegal_instruction);

    std::vector<std::byte> written(32, std::byte{1});
    TextureBytes recorded = texture;
    recorded.written = written.data();
    EXPECT_TRUE(fetched("plane", recorded, std::vector<Point>{{1.5f, 1.5f}}, 1, true).uninitialised.empty());
    written[4 * 5] = std::byte{0};
    EXPECT_TRUE(fetched("plane", recorded, std::vector<Point>{{2.5f, 1.5f}}, 1, true).uninitialised.empty());
    EXPECT_EQ(fetched("plane", recorded, std::vector<Point>{{1.5f, 1.5f}}, 1, true).uninitialised.size(), 1u);
    recorded.linear_filter = true;
    EXPECT_EQ(fetched("plane", recorded, std::vector<Point>{{2.4f, 1.4f}}, 1, true).uninitialised.size(), 1u);
}

TEST(PtxTextures, ObjectsTellTheirShapeAndFormat) {  // keeps W8
    const std::vector<u16> texels(9 * 6 * 3 * 2);
    TextureBytes texture = texture_of(texels, {Kind::signed_, 2, 2}, 9, 6, 3);
    texture.normalised = true;
    SurfaceBytes surface;
    surface.host = const_cast<std::byte*>(texture.host);
    surface.row_bytes = 36;
    surface.rows = 6;
    surface.layers = 3;
    surface.format = {Kind::unsigned_, 4, 1};
    surface.dimensions = 2;
    surface.layered = true;
    Buffers buffers;
    std::vector<u32> out(14);
    const u64 place = buffers.add(out);
    buffers.textures = {{}, texture};
    buffers.surfaces = {{}, surface};
    Loaded loaded(made_by_nvcc("textures"), buffers);
    const Fault fault = loaded.run("facts", blocks_of(1, 1), u64{1}, u64{1}, place);
    ASSERT_EQ(fault.kind, FaultKind::none) << fault.message;
    EXPECT_EQ(out, (std::vector<u32>{9, 6, 3, 0x10d1, 0x10b2, 1, 0, 1, 9, 6, 0, 0x10dc, 0x10b0, 3}));
    const Fault wrong = loaded.run("facts", blocks_of(1, 1), u64{1}, u64{5}, place);
    EXPECT_EQ(wrong.kind, FaultKind::illegal_address);
    EXPECT_NE(wrong.message.find("a query of surface 0x5"), std::string::npos) << wrong.message;
}

// One fetch by an instruction that writes %q0 to %q3 from the coordinates %f0 to %f3 and their whole numbers %r0 to
// %r3.
Fetched asked(const std::string& instruction, const TextureBytes& texture, const std::array<float, 4>& at) {
    std::vector<float> place(at.begin(), at.end());
    Buffers buffers;
    Fetched out;
    out.words.resize(4, 0xdeadbeef);
    const u64 places = buffers.add(place), results = buffers.add(out.words);
    buffers.textures = {{}, texture};
    Loaded loaded(module_of(R"(
.visible .entry k(.param .u64 t, .param .u64 p, .param .u64 o) {
    .reg .b64 %t, %p, %o; .reg .f32 %f<4>; .reg .b32 %r<4>, %q<4>;
    ld.param.u64 %t, [t]; ld.param.u64 %p, [p]; ld.param.u64 %o, [o];
    ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%p];
    cvt.rzi.s32.f32 %r0, %f0; cvt.rzi.s32.f32 %r1, %f1; cvt.rzi.s32.f32 %r2, %f2; cvt.rzi.s32.f32 %r3, %f3;
)" + instruction + "\n    st.global.v4.u32 [%o], {%q0, %q1, %q2, %q3};\n    ret;\n}\n"),
                  buffers);
    const Entry* const entry = loaded.program.entry("k");
    EXPECT_TRUE(entry != nullptr && !entry->refusal.refused()) << (entry ? entry->refusal.what : "no entry");
    out.fault = loaded.run("k", blocks_of(1, 1), u64{1}, places, results);
    return out;
}
const std::string results = "{%q0, %q1, %q2, %q3}";

// The four texels of a linear filter: left below, right below, right above, left above; at the edges as the mode says.
TEST(PtxTextures, GathersGiveTheFourTexelsOfAFilter) {  // keeps W8
    std::vector<float> texels(5 * 4 * 3);
    for (std::size_t at = 0; at < texels.size(); ++at) texels[at] = static_cast<float>(at);
    const std::string gather = "tld4.r.2d.v4.f32.f32 " + results + ", [%t, {%f0, %f1}];";
    TextureBytes plane = texture_of(texels, singles, 5, 4);
    const auto numbers = [](const Fetched& found) {
        EXPECT_EQ(found.fault.kind, FaultKind::none) << found.fault.message;
        return std::array<float, 4>{found.number(0), found.number(1), found.number(2), found.number(3)};
    };
    EXPECT_EQ(numbers(asked(gather, plane, {2, 1})), (std::array<float, 4>{6, 7, 2, 1}));
    EXPECT_EQ(numbers(asked(gather, plane, {-3, 1})), (std::array<float, 4>{5, 5, 0, 0}));
    plane.address.fill(Address::border);
    plane.border[0] = -1;
    EXPECT_EQ(numbers(asked(gather, plane, {5, 1})), (std::array<float, 4>{9, -1, -1, 4}));
    plane.normalised = true;
    plane.address.fill(Address::wrap);
    EXPECT_EQ(numbers(asked(gather, plane, {1, 0.25f})), (std::array<float, 4>{9, 5, 0, 4}));
    TextureBytes layers = texture_of(texels, singles, 5, 4, 3);
    layers.layered = true;
    layers.dimensions = 2;
    EXPECT_EQ(
        numbers(asked("tld4.r.a2d.v4.f32.f32 " + results + ", [%t, {%r3, %f0, %f1, %f1}];", layers, {2, 1, 0, 2})),
        (std::array<float, 4>{46, 47, 42, 41}));
    // A channel that is not there is 0; fractions of 8 signed bits are rounded to 16 (580, H100).
    EXPECT_EQ(numbers(asked("tld4.g.2d.v4.f32.f32 " + results + ", [%t, {%f0, %f1}];", plane, {1, 1})),
              (std::array<float, 4>{0, 0, 0, 0}));
    const std::vector<u8> bytes = {0xb3, 0xb3, 0xb3, 0xb3};
    EXPECT_EQ(asked(gather, texture_of(bytes, {Kind::signed_, 1, 1}, 2, 2), {1, 1}).words[0], 0xbf1b3736u);
}

// Each value is an H100's (docs/hardware.md).
TEST(PtxTextures, SrgbIsConvertedAsByAnH100) {  // keeps W8
    const std::vector<u8> bytes = {1, 188, 252, 255, 29, 33, 245, 17};
    TextureBytes texture = texture_of(bytes, {Kind::unsigned_, 1, 1}, 8);
    texture.is_srgb = true;
    const std::string fetch = "tex.1d.v4.f32.f32 " + results + ", [%t, {%f0}];";
    const std::pair<float, float> points[] = {{0.5f, 20}, {1.5f, 33024}, {2.5f, 64000}, {3.5f, 65536}};
    for (const auto& [x, value] : points) EXPECT_EQ(asked(fetch, texture, {x}).number(0) * 65536, value) << x;
    texture.linear_filter = true;
    EXPECT_EQ(asked(fetch, texture, {4.5f + 43 / 256.0f}).number(0) * 65536, 833.5f);
    EXPECT_EQ(asked(fetch, texture, {6.5f + 175 / 256.0f}).number(0) * 65536, 19136.0f);
    // Of two channels the second one is no colour, of four the last one; borders are 8-bit numbers.
    texture = texture_of(bytes, {Kind::unsigned_, 1, 2}, 4);
    texture.is_srgb = true;
    EXPECT_EQ(asked(fetch, texture, {0.5f}).number(1), 188.0f / 255);
    texture = texture_of(bytes, {Kind::unsigned_, 1, 4}, 2);
    texture.is_srgb = true;
    EXPECT_EQ(asked(fetch, texture, {0.5f}).number(1) * 65536, 33024.0f);
    EXPECT_EQ(asked(fetch, texture, {0.5f}).number(3), 1.0f);
    texture.address.fill(Address::border);
    texture.border = {0.25f, 0.5f, 2, 0.75f};
    const Fetched outside = asked(fetch, texture, {-1});
    EXPECT_EQ(outside.number(0), 0.25f);
    EXPECT_EQ(outside.number(1), 0.50390625f);
    EXPECT_EQ(outside.number(2), 1.0f);
    EXPECT_EQ(outside.number(3), 191.0f / 255);
}

// Levels of 32, 16, … texels with 10, 20, … in each.
TEST(PtxTextures, LevelsAreChosenAsByAnH100) {  // keeps W8
    std::vector<float> texels;
    for (int level = 0; level < 6; ++level)
        texels.insert(texels.end(), 32u >> level, 10.0f * static_cast<float>(level + 1));
    TextureBytes mipmap = texture_of(texels, singles, 32);
    mipmap.normalised = true;
    mipmap.most_level = 100;
    std::size_t first = 32;
    for (u64 width = 16; width != 0; first += width, width /= 2) {
        TextureLevel level;
        level.host = mipmap.host + first * sizeof(float);
        level.width = width;
        level.row_bytes = level.slice_bytes = width * sizeof(float);
        mipmap.smaller.push_back(level);
    }
    struct Row {
        bool blends;
        float level, bias, least, most, value;
    };
    const Row rows[] = {{false, 0.5f, 0, 0, 100, 20},
                        {false, 0.490234375f, 0, 0, 100, 10},
                        {false, NAN, 0, 0, 100, 10},
                        {false, INFINITY, 0, 0, 100, 60},
                        {false, 3, 0, 0, 0, 10},
                        {false, 0, 0, 4, 1, 50},
                        {true, 0.0033333334f, 0, 0, 100, 10},
                        {true, 0.26171875f, 0, 0, 100, 12.6171875f},
                        {true, -0.685f, 0.7f, 0, 100, 10.15625f},
                        {true, 15.3f, -20, 0, 100, 12.96875f},
                        {true, 0, 0, 1.3f, 3.6f, 22.96875f},
                        {true, 6, 0.5f, 1.3f, 3.6f, 45.9765625f}};
    const std::string by_level = "tex.level.1d.v4.f32.f32 " + results + ", [%t, {%f0}], %f1;",
                      without = "tex.1d.v4.f32.f32 " + results + ", [%t, {%f0}];";
    for (const Row& row : rows) {
        mipmap.blends_levels = row.blends;
        mipmap.level_bias = row.bias;
        mipmap.least_level = row.least;
        mipmap.most_level = row.most;
        const Fetched found = asked(by_level, mipmap, {0.4f, row.level});
        ASSERT_EQ(found.fault.kind, FaultKind::none) << found.fault.message;
        EXPECT_EQ(found.number(0), row.value) << row.level << " with " << row.bias;
    }
    // Without a level there is no bias; the least level counts.
    mipmap.blends_levels = false;
    mipmap.level_bias = 1.2f;
    mipmap.least_level = 0;
    mipmap.most_level = 100;
    EXPECT_EQ(asked(without, mipmap, {0.4f}).number(0), 10);
    mipmap.least_level = 2;
    EXPECT_EQ(asked(without, mipmap, {0.4f}).number(0), 30);
    const std::pair<std::string, const char*> refused[] = {
        {"tex.grad.1d.v4.f32.f32 " + results + ", [%t, {%f0}], {%f1}, {%f2};", "the levels that gradients choose"},
        {"tex.level.1d.v4.f32.s32 " + results + ", [%t, {%r0}], %r1;", "integer coordinates in other levels"}};
    for (const auto& [instruction, what] : refused) {
        const Fault fault = asked(instruction, mipmap, {0.4f, 1}).fault;
        EXPECT_EQ(fault.kind, FaultKind::illegal_instruction);
        EXPECT_NE(fault.message.find(std::string(what) + " are not modelled"), std::string::npos) << fault.message;
    }
    mipmap.normalised = false;
    EXPECT_EQ(asked(by_level, mipmap, {0.4f}).fault.kind, FaultKind::illegal_instruction);
    // Halves of a level are cut off by themselves (580, H100): 1 and 1366/65536.
    const std::vector<u16> halves = {0x3c00, 0x2556};
    TextureBytes small = texture_of(halves, {Kind::floating, 2, 1}, 1);
    small.normalised = small.blends_levels = true;
    small.most_level = 1;
    small.smaller.push_back(static_cast<const TextureLevel&>(small));
    small.smaller[0].host += 2;
    EXPECT_EQ(asked(by_level, small, {0.5f, 3 / 256.0f}).number(0), 2025 / 2048.0f);
    // Gradients choose nothing where there are no levels.
    mipmap.smaller.clear();
    EXPECT_EQ(asked(refused[0].first, mipmap, {0.4f, 9, 9}).number(0), 10);
}

// The faces of the CUDA C++ Programming Guide; what lies between two of them is an H100's.
TEST(PtxTextures, CubesAreFetchedByDirections) {  // keeps W8
    std::vector<float> texels(2 * 2 * 12);
    for (std::size_t at = 0; at < texels.size(); ++at) texels[at] = static_cast<float>(at);
    TextureBytes cube = texture_of(texels, singles, 2, 2, 12);
    cube.dimensions = 2;
    cube.is_cube = cube.normalised = true;
    cube.depth = 6;
    const std::string fetch = "tex.cube.v4.f32.f32 " + results + ", [%t, {%f0, %f1, %f2, %f2}];";
    const std::pair<std::array<float, 4>, float> rows[] = {{{9, 1, -1}, 1},   {{-9, 1, -1}, 4}, {{1, 9, -1}, 9},
                                                           {{1, -9, -1}, 15}, {{1, -1, 9}, 19}, {{1, -1, -9}, 22},
                                                           {{0, 0, 0}, 19}};
    for (const auto& [at, value] : rows) {
        const Fetched found = asked(fetch, cube, at);
        ASSERT_EQ(found.fault.kind, FaultKind::none) << found.fault.message;
        EXPECT_EQ(found.number(0), value) << at[0] << ", " << at[1] << ", " << at[2];
    }
    cube.linear_filter = true;
    EXPECT_EQ(asked(fetch, cube, {0, 0, 1}).number(0), 17.5f);
    cube.is_seamless = true;
    EXPECT_EQ(asked(fetch, cube, {0, 0, 1}).fault.kind, FaultKind::illegal_instruction);
    cube.linear_filter = false;
    cube.layered = true;
    cube.depth = 12;
    const std::string layered = "tex.acube.v4.f32.f32 " + results + ", [%t, {%r3, %f0, %f1, %f2}];";
    EXPECT_EQ(asked(layered, cube, {9, 1, -1, 1}).number(0), 25);
    EXPECT_EQ(asked(layered, cube, {9, 1, -1, 5}).number(0), 25);  // the last one
    EXPECT_EQ(asked(fetch, cube, {9, 1, -1}).fault.kind, FaultKind::illegal_address);
}

// Arrays are fetched by fractions; a line is a plane of one row, and of a plane the first row is a line.
TEST(PtxTextures, LinesAndPlanesOfArraysAreAlike) {  // keeps W8
    const std::vector<float> texels = {1, 2, 3, 4, 5, 6};
    TextureBytes line = texture_of(texels, singles, 6), plane = texture_of(texels, singles, 3, 2);
    line.is_array = plane.is_array = true;
    const std::string as_line = "tex.1d.v4.f32.f32 " + results + ", [%t, {%f0}];",
                      as_plane = "tex.2d.v4.f32.f32 " + results + ", [%t, {%f0, %f1}];",
                      by_integer = "tex.1d.v4.f32.s32 " + results + ", [%t, {%r0}];",
                      by_integers = "tex.2d.v4.f32.s32 " + results + ", [%t, {%r0, %r1}];";
    EXPECT_EQ(asked(as_plane, line, {4.5f, 7}).number(0), 5);
    EXPECT_EQ(asked(as_line, plane, {1.5f}).number(0), 2);
    EXPECT_EQ(asked(by_integer, line, {2}).words, (std::vector<u32>{0, 0, 0, 0}));  // tex1Dfetch
    EXPECT_EQ(asked(by_integers, plane, {2, 1}).number(0), 6);
    EXPECT_EQ(asked(by_integers, line, {2, 0}).number(0), 3);
    EXPECT_EQ(asked(by_integers, line, {2, 1}).number(0), 0);
    EXPECT_EQ(asked("tex.3d.v4.f32.f32 " + results + ", [%t, {%f0, %f0, %f0, %f0}];", plane, {1}).fault.kind,
              FaultKind::illegal_address);
}

TEST(PtxTextures, OtherFetchesAreRefusedByName) {  // keeps W8
    const Program made(made_by_nvcc("textures"));
    EXPECT_FALSE(made.entry("cubes")->refusal.refused());
    EXPECT_FALSE(made.entry("plane")->refusal.refused());
    for (const char* const instruction :
         {"tld4.r.cube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f0, %f1, %f2, %f3}];",
          "tex.grad.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%r0, %r1}], {%f0, %f1}, {%f0, %f1};",
          "tex.2dms.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%r0, %r0, %r0, %r0}];", "txq.num_samples.b32 %r0, [%t];",
          "sust.p.2d.v4.b32.trap [%t, {%r0, %r0}], {%r0, %r0, %r0, %r0};"}) {
        const Program program(
            module_of(".visible .entry k(.param .u64 t) { .reg .b64 %t; .reg .f32 %f<4>; .reg .b32 "
                      "%r<4>; ld.param.u64 %t, [t];\n" +
                      std::string(instruction) + "\nret; }"));
        ASSERT_EQ(program.entries().size(), 1u) << instruction << program.refusal().what;
        const std::string name = std::string(instruction).substr(0, std::string(instruction).find(' '));
        EXPECT_TRUE(program.entries()[0].refusal.what.starts_with(name + " is not modelled"))
            << program.entries()[0].refusal.what;
    }
}

}  // namespace
}  // namespace isthmus::ptx::test
