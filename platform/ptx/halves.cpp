// SPDX-License-Identifier: Apache-2.0
// Operations on halves and bfloats, alone and in pairs.
#include "numbers.hpp"
#include "warp.hpp"

#include <cmath>
#include <utility>

namespace isthmus::ptx {
namespace {

enum class Do : std::uint8_t {
    add,
    sub,
    mul,
    fma,
    neg,
    abs,
    min,
    max,
    min_nan,
    max_nan,
    ex2,
    tanh,
    min_product_sign,
    max_product_sign,
    min_nan_product_sign,
    max_nan_product_sign
};

constexpr std::pair<std::string_view, Do> operations[] = {{"add", Do::add},
                                                          {"sub", Do::sub},
                                                          {"mul", Do::mul},
                                                          {"fma", Do::fma},
                                                          {"neg", Do::neg},
                                                          {"abs", Do::abs},
                                                          {"min", Do::min},
                                                          {"max", Do::max},
                                                          {"min.NaN", Do::min_nan},
                                                          {"max.NaN", Do::max_nan},
                                                          {"ex2.approx", Do::ex2},
                                                          {"tanh.approx", Do::tanh},
                                                          {"min.xorsign.abs", Do::min_product_sign},
                                                          {"max.xorsign.abs", Do::max_product_sign},
                                                          {"min.NaN.xorsign.abs", Do::min_nan_product_sign},
                                                          {"max.NaN.xorsign.abs", Do::max_nan_product_sign}};

struct Options {
    bool ftz, saturate, relu;
};

template <bool brain>
struct Half {
    static constexpr HalfFormat format = brain ? bfloat_format : half_format;
    static constexpr std::uint16_t number_limit = brain ? 0x7f80 : 0x7c00;  // infinity: beyond it are NaNs
    static double number(std::uint16_t bits, bool ftz) {
        if (ftz && (bits & 0x7fff) < (1 << format.fraction_bits)) bits &= 0x8000;
        return number_of(format, bits);
    }
    // Below the least normal number, even when it is rounded to the format's precision with an exponent of any size.
    static bool is_tiny(double value) {
        constexpr double scale = 256;
        const double least = std::ldexp(1.0, 1 - format.bias);
        return std::fabs(value) < least &&
               std::fabs(number_of(format, half_of(format, value * scale, Rounding::nearest))) < least * scale;
    }
    static std::uint16_t rounded(double value, const Options& options) {
        if (std::isnan(value)) return options.saturate ? 0 : 0x7fff;
        if (options.saturate) value = value > 0 ? (value > 1 ? 1 : value) : 0;
        if (options.relu && !(value > 0)) value = 0;
        if (options.ftz && is_tiny(value)) return std::signbit(value) ? 0x8000 : 0;
        return half_of(format, value, Rounding::nearest);
    }
    static double lesser(double a, double b) {
        if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
        return a == b ? (std::signbit(a) ? a : b) : (a < b ? a : b);
    }
    // Of the absolute values; the sign is that of a product.
    static std::uint16_t of_sizes(Do what, std::uint16_t x, std::uint16_t y, const Options& options) {
        const std::uint16_t size = of(what, x & 0x7fff, y & 0x7fff, 0, options);
        const bool is_nan = size > number_limit;
        return is_nan ? size : static_cast<std::uint16_t>(size | ((x ^ y) & 0x8000));
    }
    static std::uint16_t of(Do what, std::uint16_t x, std::uint16_t y, std::uint16_t z, const Options& options) {
        if (what == Do::neg || what == Do::abs) {
            if (options.ftz && (x & 0x7fff) < (1 << format.fraction_bits)) x &= 0x8000;
            return static_cast<std::uint16_t>(what == Do::neg ? x ^ 0x8000 : x & 0x7fff);
        }
        const double a = number(x, options.ftz), b = number(y, options.ftz), c = number(z, options.ftz);
        switch (what) {
            case Do::add: return rounded(odd_sum(a, b), options);
            case Do::sub: return rounded(odd_sum(a, -b), options);
            case Do::mul: return rounded(a * b, options);
            case Do::fma: return rounded(odd_sum(a * b, c), options);  // the product is exact
            case Do::min: return rounded(lesser(a, b), options);
            case Do::max: return rounded(-lesser(-a, -b), options);
            case Do::min_nan: return rounded(std::isnan(a) || std::isnan(b) ? std::nan("") : lesser(a, b), options);
            case Do::max_nan: return rounded(std::isnan(a) || std::isnan(b) ? std::nan("") : -lesser(-a, -b), options);
            case Do::min_product_sign: return of_sizes(Do::min, x, y, options);
            case Do::max_product_sign: return of_sizes(Do::max, x, y, options);
            case Do::min_nan_product_sign: return of_sizes(Do::min_nan, x, y, options);
            case Do::max_nan_product_sign: return of_sizes(Do::max_nan, x, y, options);
            case Do::ex2: return rounded(std::exp2(a), options);
            case Do::tanh: return rounded(std::tanh(a), options);
            default: return 0;
        }
    }
};

template <bool brain, bool pair, Do what>
void run_half(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b), &c = warp.in(op.c);
    Row& d = warp.out(op.d);
    const Options options = {op.flag, (op.value2 & 1) != 0, (op.value2 & 2) != 0};
    const auto one = [&](std::uint32_t lane, unsigned shift) -> std::uint64_t {
        const auto part = [&](const Row& row) { return static_cast<std::uint16_t>(row[lane] >> shift); };
        return std::uint64_t{Half<brain>::of(what, part(a), part(b), part(c), options)} << shift;
    };
    for_lanes(mask, [&](std::uint32_t lane) { d[lane] = pair ? one(lane, 0) | one(lane, 16) : one(lane, 0); });
}

template <bool brain, bool pair, std::size_t... at>
Run chosen(Do what, std::index_sequence<at...>) {
    constexpr Run rows[] = {run_half<brain, pair, static_cast<Do>(at)>...};
    return rows[static_cast<std::size_t>(what)];
}

}  // namespace

Run half_run(std::string_view name, Type type) {
    constexpr std::make_index_sequence<16> all;
    for (const auto& [known, what] : operations) {
        if (known != name) continue;
        switch (type) {
            case Type::f16: return chosen<false, false>(what, all);
            case Type::f16x2: return chosen<false, true>(what, all);
            case Type::bf16: return chosen<true, false>(what, all);
            case Type::bf16x2: return chosen<true, true>(what, all);
            default: return nullptr;
        }
    }
    return nullptr;
}

}  // namespace isthmus::ptx
