// SPDX-License-Identifier: Apache-2.0
// Fetches of textures as nvcc makes them: address modes, filters, read modes, layers; and queries.
#include "made_by_nvcc.hpp"

#include <texture_sampling.hpp>

#include <bit>
#include <cmath>

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
    EXPECT_EQ(found.number(0), 512);
    EXPECT_EQ(found.number(1), 256);
    EXPECT_EQ(found.number(2), 768);
    EXPECT_EQ(found.number(3), 1024);
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
    EXPECT_EQ(found.number(2), number(1, 2, 0));
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

TEST(PtxTextures, LinearMemoryIsFetchedByIndex) {  // keeps W8
    const std::vector<float> texels = {1, 2, 3};
    TextureBytes texture = texture_of(texels, singles, 3);
    texture.is_linear_memory = true;
    Fetched found = fetched("fetches", texture, std::vector<int>{0, 2});
    ASSERT_EQ(found.fault.kind, FaultKind::none) << found.fault.message;
    EXPECT_EQ(found.number(1), 3.0f);
    found = fetched("line", texture, std::vector<Point>{{1}});
    EXPECT_EQ(found.fault.kind, FaultKind::illegal_address);
    EXPECT_NE(found.fault.message.find("linear memory is read by integer coordinates alone"), std::string::npos);
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

TEST(PtxTextures, OtherFetchesAreRefusedByName) {  // keeps W8
    const Program made(made_by_nvcc("textures"));
    EXPECT_EQ(made.entry("cubes")->refusal.what, "tex.cube.v4.f32.f32 is not modelled");
    EXPECT_FALSE(made.entry("plane")->refusal.refused());
    for (const char* const instruction :
         {"tld4.r.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f0, %f1}];",
          "tex.grad.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%t, {%f0, %f1}], {%f0, %f1}, {%f0, %f1};",
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
