// SPDX-License-Identifier: Apache-2.0
// From a frame to its corner responses, tile by tile: what lies between stays in shared memory, on the CPU in its
// cache.
#include "neighbours.hpp"

namespace isthmus {
inline namespace v0 {
namespace kernels {

// A response needs 5 pixels on each side: 2 of the sums, 1 of Sobel, 2 of the filter. Each stage computes what the next
// one reads. A row of gray pixels begins 8 pixels before the tile, so that words of a frame are words of the row.
constexpr std::int32_t reach = 5, lead = 8;
using GrayCells = Cells<tile_width + 2 * lead, tile_height + 2 * reach>;
using AcrossCells = Cells<tile_width + 6, tile_height + 10>;
using SmoothCells = Cells<tile_width + 6, tile_height + 6>;
using GradientCells = Cells<tile_width + 4, tile_height + 4>;
using SumCells = Cells<tile_width + 4, tile_height>;
using ResponseCells = Cells<tile_width, tile_height>;

// The corner of the tile in the picture, which has width × height pixels.
struct TilePlace {
    std::int32_t x, y, width, height;

    // The columns of the cells, which begin `before` pixels left of the tile, that lie in the picture.
    template <class Tile>
    ISTHMUS_KERNEL_FUNCTION constexpr Tile columns(std::int32_t before) const noexcept {
        const std::int32_t first = before - x, last = width - x + before;
        constexpr auto all = static_cast<std::int32_t>(Tile::width);
        return {static_cast<std::uint32_t>(first > 0 ? first : 0), static_cast<std::uint32_t>(last < all ? last : all)};
    }
    // The row of the cells, which begin `before` pixels above the tile, that stands for row `cell`: its own or, outside
    // the picture, the nearest.
    ISTHMUS_KERNEL_FUNCTION constexpr std::uint32_t row(std::uint32_t cell, std::int32_t before) const noexcept {
        const std::int32_t at = y - before + static_cast<std::int32_t>(cell);
        const std::int32_t near = at < 0 ? 0 : at < height ? at : height - 1;
        return static_cast<std::uint32_t>(near - y + before);
    }
};

// Gives cells outside the picture the value of the nearest cell inside. Most tiles have none.
template <class Tile, class T>
ISTHMUS_KERNEL_FUNCTION void extend(const Block& block, Tile inside, T (&tile)[Tile::height][Tile::width]) {
    if (inside.first > 0)
        block.for_each_cell(Tile{0, inside.first},
                            [&](std::uint32_t x, std::uint32_t y) { tile[y][x] = tile[y][inside.first]; });
    if (inside.last < Tile::width)
        block.for_each_cell(Tile{inside.last, Tile::width},
                            [&](std::uint32_t x, std::uint32_t y) { tile[y][x] = tile[y][inside.last - 1]; });
}

using GrayTile = std::uint8_t[GrayCells::height][GrayCells::width];

// The element of the frame that the first cell of a row of gray pixels stands for. Left of the picture it wraps around,
// as the sum with a column inside does again.
ISTHMUS_KERNEL_FUNCTION constexpr std::uint64_t first_pixel(const TilePlace& at, const LumaLayout& layout,
                                                            std::uint32_t cell_row) noexcept {
    const auto row = static_cast<std::uint64_t>(std::int64_t{at.y} - reach + at.row(cell_row, reach));
    const auto column = static_cast<std::uint64_t>(std::int64_t{at.x} - lead);
    return layout.offset_bytes + row * layout.pitch_bytes + column * layout.step_bytes;
}

// On a GPU four pixels at a time: frames lie in host memory, and a load over the link costs the same for one.
ISTHMUS_KERNEL_FUNCTION void load_words(const Block& block, const GrayCells& inside, GrayTile& gray,
                                        const TilePlace& at, View<const std::uint8_t> frame, const LumaLayout& layout) {
    block.for_each_cell(Cells<GrayCells::width / 4, GrayCells::height>{}, [&](std::uint32_t word, std::uint32_t y) {
        const std::uint64_t first = first_pixel(at, layout, y);
        const std::uint32_t x = 4 * word;
        if (x >= inside.first && x + 4 <= inside.last) {
            *reinterpret_cast<std::uint32_t*>(&gray[y][x]) =
                *reinterpret_cast<const std::uint32_t*>(frame.data + (first + x));
        } else {
            for (std::uint32_t n = x; n < x + 4; ++n)
                if (n >= inside.first && n < inside.last) gray[y][n] = frame[first + n];
        }
    });
}

ISTHMUS_KERNEL_FUNCTION void load(const Block& block, GrayTile& gray, const TilePlace& at,
                                  View<const std::uint8_t> frame, const LumaLayout& layout) {
    const auto inside = at.columns<GrayCells>(lead);
    const auto address = reinterpret_cast<std::uintptr_t>(frame.data) + layout.offset_bytes;
    if (on_gpu && layout.step_bytes == 1 && ((address | layout.pitch_bytes) & 3) == 0) {
        load_words(block, inside, gray, at, frame, layout);
    } else if (layout.step_bytes == 1) {
        block.for_each_cell(
            inside, [&](std::uint32_t x, std::uint32_t y) { gray[y][x] = frame[first_pixel(at, layout, y) + x]; });
    } else if (layout.step_bytes == 2) {
        block.for_each_cell(inside, [&](std::uint32_t x, std::uint32_t y) {
            gray[y][x] = frame[first_pixel(at, layout, y) + 2 * std::uint64_t{x}];
        });
    } else {
        block.for_each_cell(inside, [&](std::uint32_t x, std::uint32_t y) {
            gray[y][x] = frame[first_pixel(at, layout, y) + std::uint64_t{x} * layout.step_bytes];
        });
    }
    extend(block, inside, gray);
}

// ⌊(25 det − trace²) / 2²³⌋ of the sums, in numbers without a sign where the CPU has fast instructions for them alone.
// The quotient fits 32 bits, so that shifting in zeros instead of the sign changes nothing.
ISTHMUS_KERNEL_FUNCTION std::int32_t harris(std::int32_t xx, std::int32_t yy, std::int32_t xy) noexcept {
    const auto a = static_cast<std::uint32_t>(xx), b = static_cast<std::uint32_t>(yy);
    const auto c = static_cast<std::uint32_t>(xy < 0 ? -xy : xy);
    const std::uint64_t det = std::uint64_t{a} * b - std::uint64_t{c} * c;
    const std::uint32_t trace = a + b;
    return static_cast<std::int32_t>(
        static_cast<std::uint32_t>(((det << 4) + (det << 3) + det - std::uint64_t{trace} * trace) >> 23));
}

ISTHMUS_BLOCK_KERNEL(frame_response, tile_threads, Block block, Out<std::int32_t> response, Plane plane,
                     View<const std::uint8_t> frame, LumaLayout layout) {
    ISTHMUS_SHARED_TILE(std::uint8_t, gray, GrayCells::width, GrayCells::height);
    ISTHMUS_SHARED_TILE(std::uint16_t, across, AcrossCells::width, AcrossCells::height);
    ISTHMUS_SHARED_TILE(std::uint8_t, filtered, SmoothCells::width, SmoothCells::height);
    ISTHMUS_SHARED_TILE(std::int16_t, gx, GradientCells::width, GradientCells::height);
    ISTHMUS_SHARED_TILE(std::int16_t, gy, GradientCells::width, GradientCells::height);
    ISTHMUS_SHARED_TILE(std::int32_t, xx, SumCells::width, SumCells::height);
    ISTHMUS_SHARED_TILE(std::int32_t, yy, SumCells::width, SumCells::height);
    ISTHMUS_SHARED_TILE(std::int32_t, xy, SumCells::width, SumCells::height);
    const TilePlace at{static_cast<std::int32_t>(block.position.x * tile_width),
                       static_cast<std::int32_t>(block.position.y * tile_height),
                       static_cast<std::int32_t>(plane.width), static_cast<std::int32_t>(plane.height)};
    load(block, gray, at, frame, layout);
    block.for_each_cell(AcrossCells{}, [&](std::uint32_t x, std::uint32_t y) {
        const std::uint8_t* const g = &gray[y][x + lead - reach];
        across[y][x] = static_cast<std::uint16_t>(g[0] + g[4] + 4 * (g[1] + g[3]) + 6 * g[2]);
    });
    const SmoothCells smooth_inside = at.columns<SmoothCells>(3);
    block.for_each_cell(smooth_inside, [&](std::uint32_t x, std::uint32_t y) {
        const std::uint32_t r = at.row(y, 3);
        filtered[y][x] = static_cast<std::uint8_t>(
            static_cast<std::uint16_t>(across[r][x] + across[r + 4][x] + 4 * (across[r + 1][x] + across[r + 3][x]) +
                                       6 * across[r + 2][x] + 128) >>
            8);
    });
    extend(block, smooth_inside, filtered);
    const GradientCells gradient_inside = at.columns<GradientCells>(2);
    block.for_each_cell(gradient_inside, [&](std::uint32_t x, std::uint32_t y) {
        const std::uint32_t r = at.row(y, 2);
        const std::uint8_t *const a = &filtered[r][x], *const b = &filtered[r + 1][x], *const c = &filtered[r + 2][x];
        gx[y][x] = static_cast<std::int16_t>(a[2] - a[0] + 2 * (b[2] - b[0]) + c[2] - c[0]);
        gy[y][x] = static_cast<std::int16_t>(c[0] - a[0] + 2 * (c[1] - a[1]) + c[2] - a[2]);
    });
    extend(block, gradient_inside, gx);
    extend(block, gradient_inside, gy);
    block.for_each_cell(SumCells{}, [&](std::uint32_t x, std::uint32_t y) {
        std::int32_t sum_xx = 0, sum_yy = 0, sum_xy = 0;
        ISTHMUS_UNROLL
        for (std::uint32_t n = 0; n < 5; ++n) {
            const std::int32_t u = gx[y + n][x], v = gy[y + n][x];
            sum_xx += u * u;
            sum_yy += v * v;
            sum_xy += u * v;
        }
        xx[y][x] = sum_xx;
        yy[y][x] = sum_yy;
        xy[y][x] = sum_xy;
    });
    auto inside = at.columns<ResponseCells>(0);
    if (at.height - at.y < static_cast<std::int32_t>(tile_height))
        inside.rows = static_cast<std::uint32_t>(at.height - at.y);
    const std::uint64_t first = block.position.y * tile_height * plane.pitch + block.position.x * tile_width;
    block.for_each_cell(inside, [&](std::uint32_t x, std::uint32_t y) {
        const auto sum = [](const std::int32_t* of) { return of[0] + of[1] + of[2] + of[3] + of[4]; };
        response[first + std::uint64_t{y} * plane.pitch + x] = harris(sum(&xx[y][x]), sum(&yy[y][x]), sum(&xy[y][x]));
    });
}

}  // namespace kernels
}  // namespace v0
}  // namespace isthmus
