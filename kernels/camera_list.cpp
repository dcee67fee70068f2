// SPDX-License-Identifier: Apache-2.0
// From corner responses to the list of corners in two steps: each row finds its own, then all rows are joined. The rows
// must all be counted before the first is placed, which is why these are two kernels.
#include "neighbours.hpp"

#include <isthmus/atomic_ref.hpp>

namespace isthmus {
inline namespace v0 {
namespace kernels {

// Whether a corner at (x, y) may be beside the response at (u, v): of equal ones the first wins.
ISTHMUS_KERNEL_FUNCTION bool beats(std::int32_t other, std::int32_t own, bool earlier) noexcept {
    return earlier ? other >= own : other > own;
}

// A row's responses and what is around them.
struct RowOfResponses {
    View<const std::int32_t> response;
    Plane plane;
    std::int32_t y;

    ISTHMUS_KERNEL_FUNCTION std::int32_t at(std::int32_t u, std::int32_t v) const {
        return response[static_cast<std::uint64_t>(v) * plane.pitch + static_cast<std::uint32_t>(u)];
    }
    ISTHMUS_KERNEL_FUNCTION bool inside(std::int32_t u, std::int32_t v) const noexcept {
        return u >= 0 && v >= 0 && u < static_cast<std::int32_t>(plane.width) &&
               v < static_cast<std::int32_t>(plane.height);
    }
    // Loads in any case, so that loads of several comparisons are under way together.
    ISTHMUS_KERNEL_FUNCTION bool beaten(std::int32_t own, std::int32_t x, std::int32_t u, std::int32_t v) const {
        const bool there = inside(u, v);
        const std::int32_t other = at(there ? u : x, there ? v : y);
        return beats(other, own, v < y || (v == y && u < x)) & there;
    }
    // Whether (x, y) is beaten within `radius` pixels.
    ISTHMUS_KERNEL_FUNCTION bool beaten_within(std::int32_t radius, std::int32_t x) const {
        const std::int32_t own = at(x, y);
        const std::int32_t left = x < radius ? 0 : x - radius, up = y < radius ? 0 : y - radius;
        const std::int32_t right = x + radius < static_cast<std::int32_t>(plane.width)
                                       ? x + radius
                                       : static_cast<std::int32_t>(plane.width) - 1;
        const std::int32_t down = y + radius < static_cast<std::int32_t>(plane.height)
                                      ? y + radius
                                      : static_cast<std::int32_t>(plane.height) - 1;
        for (std::int32_t v = up; v <= down; ++v)
            for (std::int32_t u = left; u <= right; ++u)
                if (beats(at(u, v), own, v < y || (v == y && u < x))) return true;
        return false;
    }
};

// The columns that the rule lets be corners: [first, last), nothing in rows too near the edge.
struct Columns {
    std::uint32_t first, last;
};
ISTHMUS_KERNEL_FUNCTION Columns lawful_columns(const Plane& plane, const CornerRule& rule, std::uint64_t y) noexcept {
    const std::uint64_t border = rule.border;
    if (y < border || y + border >= plane.height || 2 * border >= plane.width) return {0, 0};
    return {rule.border, plane.width - rule.border};
}

constexpr std::uint32_t chunk = 1024;                 // columns that a block of the GPU does at a time
constexpr std::uint32_t most_candidates = chunk / 2;  // no two are neighbours
constexpr std::uint32_t at_once = 4;                  // comparisons of a thread whose loads are under way together

ISTHMUS_KERNEL_FUNCTION std::uint32_t ones(std::uint32_t four_flags) noexcept {
    return (four_flags * 0x01010101u) >> 24;
}

// The flags of `chunk` columns, four in a word, in order, and how many corners each group of words has.
constexpr std::uint32_t words = chunk / 4, groups = 16, words_in_group = words / groups;
static_assert(words == row_threads, "a thread has a word");
struct RowFlags {
    std::uint32_t* candidate;
    std::uint32_t* beaten;
    std::uint32_t* in_group;
    std::uint32_t* candidates;    // their number, and where each is in the chunk, in no order
    std::uint16_t* candidate_at;  // unused where the radius is less than 2: then each candidate is a corner
    ISTHMUS_KERNEL_FUNCTION std::uint32_t corners(std::uint32_t word) const { return candidate[word] & ~beaten[word]; }
};

// The threads look for candidates, which nothing next to them beats. There are few. All threads then share the
// comparisons of all candidates with the pixels within the radius. A corner's place is the number of corners before it.
ISTHMUS_KERNEL_FUNCTION std::uint32_t find_together(const Block& block, Out<std::uint16_t> columns,
                                                    const RowOfResponses& row, const CornerRule& rule,
                                                    const Columns& lawful, const RowFlags& flags) {
    const std::int32_t radius = radius_of(rule);
    auto* const candidate = reinterpret_cast<std::uint8_t*>(flags.candidate);
    auto* const beaten = reinterpret_cast<std::uint8_t*>(flags.beaten);
    const AtomicRef<std::uint32_t, AtomicSet::add, AtomicScope::gpu> count(flags.candidates[0]);
    std::uint32_t before = 0;
    block.for_each_thread([&](std::uint32_t t) {
        if (t == 0) flags.candidates[0] = 0;
    });
    for (std::uint32_t begin = lawful.first; begin < lawful.last; begin += chunk) {
        const std::uint32_t size = lawful.last - begin < chunk ? lawful.last - begin : chunk;
        block.for_each_cell(Cells<chunk, 1>{}, [&](std::uint32_t n, std::uint32_t) {
            const auto x = static_cast<std::int32_t>(begin + n);
            bool good = n < size;
            const std::int32_t own = good ? row.at(x, row.y) : 0;
            good = good && own > rule.threshold;
            if (good && radius > 0) {
                ISTHMUS_UNROLL
                for (std::int32_t dy = -1; dy <= 1; ++dy) {
                    ISTHMUS_UNROLL
                    for (std::int32_t dx = -1; dx <= 1; ++dx) good = !row.beaten(own, x, x + dx, row.y + dy) && good;
                }
            }
            candidate[n] = good ? 1 : 0;
            beaten[n] = 0;
            if (good && radius > 1) flags.candidate_at[count.add_relaxed(1)] = static_cast<std::uint16_t>(n);
        });
        block.for_each_thread([&](std::uint32_t t) {
            const std::uint32_t width = 2 * static_cast<std::uint32_t>(radius) + 1, cells = width * width;
            const std::uint32_t pairs = radius > 1 ? cells * flags.candidates[0] : 0;
            for (std::uint32_t pair = t; pair < pairs; pair += at_once * row_threads) {
                std::uint32_t of[at_once];
                bool lost[at_once];
                ISTHMUS_UNROLL
                for (std::uint32_t n = 0; n < at_once; ++n) {
                    const std::uint32_t next = pair + n * row_threads < pairs ? pair + n * row_threads : pair;
                    of[n] = flags.candidate_at[next / cells];
                    const std::uint32_t cell = next % cells;
                    const auto x = static_cast<std::int32_t>(begin + of[n]);
                    const auto dx = static_cast<std::int32_t>(cell % width) - radius;
                    const auto dy = static_cast<std::int32_t>(cell / width) - radius;
                    lost[n] = row.beaten(row.at(x, row.y), x, x + dx, row.y + dy);
                }
                ISTHMUS_UNROLL
                for (std::uint32_t n = 0; n < at_once; ++n)
                    if (lost[n]) beaten[of[n]] = 1;
            }
        });
        block.for_each_thread([&](std::uint32_t t) {
            if (t == groups) flags.candidates[0] = 0;
            if (t >= groups) return;
            std::uint32_t sum = 0;
            ISTHMUS_UNROLL
            for (std::uint32_t n = 0; n < words_in_group; ++n) sum += ones(flags.corners(t * words_in_group + n));
            flags.in_group[t] = sum;
        });
        block.for_each_thread([&](std::uint32_t t) {
            const std::uint32_t corners = flags.corners(t), group = t / words_in_group;
            if (corners == 0) return;
            std::uint32_t place = before;
            ISTHMUS_UNROLL
            for (std::uint32_t n = 0; n < groups; ++n) place += n < group ? flags.in_group[n] : 0;
            ISTHMUS_UNROLL
            for (std::uint32_t n = 0; n < words_in_group; ++n) {
                const std::uint32_t word = group * words_in_group + n;
                place += word < t ? ones(flags.corners(word)) : 0;
            }
            for (std::uint32_t n = 0; n < 4; ++n)
                if ((corners >> (8 * n) & 1) != 0)
                    columns[static_cast<std::uint64_t>(row.y) * row.plane.pitch + place++] =
                        static_cast<std::uint16_t>(begin + 4 * t + n);
        });
        ISTHMUS_UNROLL
        for (std::uint32_t n = 0; n < groups; ++n) before += flags.in_group[n];
    }
    return before;
}

// Marks the candidates among `count` columns from `x` on, which have neighbours on all sides: nothing branches, so that
// the compiler vectorises it.
ISTHMUS_KERNEL_FUNCTION void mark_candidates(std::uint8_t* mark, const RowOfResponses& row, std::uint32_t x,
                                             std::uint32_t count, std::int32_t threshold) {
    const std::uint64_t pitch = row.plane.pitch;
    const std::int32_t* const own = &row.response[static_cast<std::uint64_t>(row.y) * pitch + x];
    const std::int32_t *const up = own - pitch, *const down = own + pitch;
    for (std::int32_t n = 0; n < static_cast<std::int32_t>(count); ++n) {
        const std::int32_t at = own[n];
        mark[n] = static_cast<std::uint8_t>((at > threshold) & (at > own[n - 1]) & (at >= own[n + 1]) &
                                            (at > up[n - 1]) & (at > up[n]) & (at > up[n + 1]) & (at >= down[n - 1]) &
                                            (at >= down[n]) & (at >= down[n + 1]));
    }
}

// One thread goes along the row, over stretches without a candidate at the speed of the memory.
ISTHMUS_KERNEL_FUNCTION std::uint32_t find_alone(Out<std::uint16_t> columns, const RowOfResponses& row,
                                                 const CornerRule& rule, const Columns& lawful) {
    constexpr std::uint32_t stretch = 64;
    std::uint8_t mark[stretch];
    const std::int32_t radius = radius_of(rule);
    const std::uint64_t first = static_cast<std::uint64_t>(row.y) * row.plane.pitch;
    const bool rows_around = row.y > 0 && row.y + 1 < static_cast<std::int32_t>(row.plane.height);
    const std::int32_t threshold = rule.threshold;
    std::uint32_t found = 0;
    for (std::uint32_t begin = lawful.first; begin < lawful.last; begin += stretch) {
        const std::uint32_t count = lawful.last - begin < stretch ? lawful.last - begin : stretch;
        const std::int32_t* const own = &row.response[first + begin];
        std::uint32_t any = 0;
        for (std::uint32_t n = 0; n < count; ++n) any |= own[n] > threshold ? 1u : 0u;
        if (any == 0) continue;
        if (radius > 0 && rows_around && begin > 0 && begin + count < row.plane.width) {
            mark_candidates(mark, row, begin, count, threshold);
        } else {
            for (std::uint32_t n = 0; n < count; ++n)
                mark[n] =
                    own[n] > threshold && (radius == 0 || !row.beaten_within(1, static_cast<std::int32_t>(begin + n)));
        }
        for (std::uint32_t n = 0; n < count; ++n) {
            if (mark[n] == 0) continue;
            if (radius > 1 && row.beaten_within(radius, static_cast<std::int32_t>(begin + n))) continue;
            columns[first + found++] = static_cast<std::uint16_t>(begin + n);
        }
    }
    return found;
}

ISTHMUS_BLOCK_KERNEL(row_corners, row_threads, Block block, Out<std::uint32_t> rows, Out<std::uint16_t> columns,
                     View<const std::int32_t> response, Plane plane, CornerRule rule) {
    const std::uint64_t y = block.index();
    const RowOfResponses row{response, plane, static_cast<std::int32_t>(y)};
    const Columns lawful = lawful_columns(plane, rule, y);
    if constexpr (on_gpu) {
        ISTHMUS_SHARED(std::uint32_t, candidate, words);
        ISTHMUS_SHARED(std::uint32_t, beaten, words);
        ISTHMUS_SHARED(std::uint32_t, in_group, groups);
        ISTHMUS_SHARED(std::uint32_t, candidates, 1);
        ISTHMUS_SHARED(std::uint16_t, candidate_at, most_candidates);
        const std::uint32_t count =
            find_together(block, columns, row, rule, lawful, {candidate, beaten, in_group, candidates, candidate_at});
        block.for_each_thread([&](std::uint32_t t) {
            if (t == 0) rows[y] = count;
        });
    } else {
        rows[y] = find_alone(columns, row, rule, lawful);
    }
}

// In one store on a GPU: lists lie in host memory, and each store of a part would cross the link alone.
ISTHMUS_KERNEL_FUNCTION void put(Out<Corner> corners, std::uint64_t at, const Corner& corner) {
    if constexpr (on_gpu) {
        static_assert(sizeof(Corner) == sizeof(std::uint64_t));
        static_assert(alignof(Corner) == alignof(std::uint64_t));
        const std::uint64_t x = corner.x, y = corner.y, score = static_cast<std::uint32_t>(corner.score);
        *reinterpret_cast<std::uint64_t*>(&corners[at]) = x | y << 16 | score << 32;
    } else {
        corners[at] = corner;
    }
}

ISTHMUS_BLOCK_KERNEL(join_corners, row_threads, Block block, Out<Corner> corners, Out<CornerCount> count,
                     View<const std::uint32_t> rows, View<const std::uint16_t> columns,
                     View<const std::int32_t> response, Plane plane) {
    ISTHMUS_SHARED(std::uint32_t, sums, row_threads);
    ISTHMUS_SHARED(std::uint32_t, own, join_rows);
    const std::uint64_t first = block.index() * join_rows;
    const auto in_group =
        static_cast<std::uint32_t>(plane.height - first < join_rows ? plane.height - first : join_rows);
    block.for_each_thread([&](std::uint32_t t) {
        std::uint32_t sum = 0;
        for (std::uint64_t y = t; y < first; y += row_threads) sum += rows[y];
        sums[t] = sum;
        if (t < in_group) own[t] = rows[first + t];
    });
    for (std::uint32_t step = row_threads / 2; step > 0; step /= 2) {
        block.for_each_thread([&](std::uint32_t t) {
            if (t < step) sums[t] += sums[t + step];
        });
    }
    constexpr std::uint32_t per_row = row_threads / join_rows;
    block.for_each_thread([&](std::uint32_t t) {
        const std::uint32_t row = t / per_row;
        std::uint32_t next = sums[0];
        if (row >= in_group) return;
        for (std::uint32_t n = 0; n < row; ++n) next += own[n];
        const std::uint64_t begin = (first + row) * plane.pitch;
        for (std::uint32_t n = t % per_row; n < own[row] && next + n < corners.size(); n += per_row) {
            const std::uint16_t x = columns[begin + n];
            put(corners, next + n, {x, static_cast<std::uint16_t>(first + row), response[begin + x]});
        }
        if (t % per_row == 0 && first + row + 1 == plane.height) {
            const std::uint32_t found = next + own[row];
            count[0] = {found, found < corners.size() ? found : static_cast<std::uint32_t>(corners.size())};
        }
    });
}

}  // namespace kernels
}  // namespace v0
}  // namespace isthmus
