// SPDX-License-Identifier: Apache-2.0
// Single and double precision. Exact where PTX is; .approx is computed in double precision and rounded, which is within
// every documented error.
#include "numbers.hpp"
#include "warp.hpp"

#include <limits>
#include <type_traits>

namespace isthmus::ptx {
namespace {

template <class T, bool ftz>
T operand(std::uint64_t slot) {
    const T value = from_slot<T>(slot);
    return ftz ? flushed(value) : value;
}
// The result of an operation whose results below the least normal number are flushed: also those that become this
// number only because subnormal numbers have fewer bits. Operations with such results have `scaled`: the result times a
// power of 2. Operands that give the least normal number stay finite with it.
template <class F, class T, class... Operands>
T flushed_result(Operands... operands) {
    const T value = F::of(operands...);
    if constexpr (requires { F::scaled(T{1}, operands...); }) {
        constexpr T scale = 256, least = std::numeric_limits<T>::min();
        if (std::fabs(value) == least && std::fabs(F::scaled(scale, operands...)) < least * scale) {
            return std::copysign(T{0}, value);
        }
    }
    return flushed(value);
}
template <class F, bool ftz, class T, class... More>
T result_of(T a, More... more) {
    if constexpr (ftz) return flushed_result<F, T>(a, more...);
    return F::of(a, more...);
}
template <class T, bool saturate>
std::uint64_t finished(T value) {
    if (saturate) {
        if (!(value > 0)) return to_slot(T{0});  // also NaN
        if (value > 1) value = 1;
    }
    return to_slot(canonical(value));
}

struct Add {
    template <class T>
    static T of(T a, T b) {
        return a + b;
    }
};
struct Subtract {
    template <class T>
    static T of(T a, T b) {
        return a - b;
    }
};
struct Multiply {
    template <class T>
    static T of(T a, T b) {
        return a * b;
    }
    template <class T>
    static T scaled(T scale, T a, T b) {
        return of(a * scale, b);
    }
};
struct Divide {
    template <class T>
    static T scaled(T scale, T a, T b) {
        return of(a * scale, b);
    }
    template <class T>
    static T of(T a, T b) {
        return a / b;
    }
};
// PTX ISA, div.approx and div.full: 2 ulp for divisors of usual size. The exact quotient is one of the results allowed,
// but for |b| in (2^126, 2^128) .approx flushes to 0.
struct DivideApproximately {
    template <class T>
    static T of(T a, T b) {
        const T size = std::fabs(b);
        if (size > static_cast<T>(0x1p126) && size < std::numeric_limits<T>::infinity()) {
            const T zero = std::copysign(T{0}, a) * std::copysign(T{1}, b);
            return std::isinf(a) ? std::numeric_limits<T>::quiet_NaN() : std::isnan(a) ? a : zero;
        }
        return a / b;
    }
};
struct FusedMultiplyAdd {
    template <class T>
    static T of(T a, T b, T c) {
        return std::fma(a, b, c);
    }
    template <class T>
    static T scaled(T scale, T a, T b, T c) {
        return of(a * scale, b, c * scale);
    }
};
// PTX ISA, min and max: of a NaN and a number the number; -0.0 is less than +0.0.
struct Minimum {
    template <class T>
    static T of(T a, T b) {
        if (std::isnan(a)) return b;
        if (std::isnan(b)) return a;
        if (a == b) return std::signbit(a) ? a : b;
        return a < b ? a : b;
    }
};
struct Maximum {
    template <class T>
    static T of(T a, T b) {
        if (std::isnan(a)) return b;
        if (std::isnan(b)) return a;
        if (a == b) return std::signbit(a) ? b : a;
        return a < b ? b : a;
    }
};
template <class F>
struct OrNan {
    template <class T>
    static T of(T a, T b) {
        return std::isnan(a) ? a : std::isnan(b) ? b : F::of(a, b);
    }
};
// PTX ISA, .xorsign.abs: of the absolute values; the sign is that of a product.
template <class F>
struct WithSignOfProduct {
    template <class T>
    static T of(T a, T b) {
        const T size = F::of(std::fabs(a), std::fabs(b));
        return std::signbit(a) != std::signbit(b) ? -size : size;
    }
};
struct Reciprocal {
    template <class T>
    static T of(T a) {
        return T{1} / a;
    }
    template <class T>
    static T scaled(T scale, T a) {
        return scale / a;
    }
};
struct SquareRoot {
    template <class T>
    static T of(T a) {
        return std::sqrt(a);
    }
};
// These have no exact form. The result is that of the host's library in double precision.
template <double (*function)(double)>
struct Approximate {
    template <class T>
    static T of(T a) {
        return static_cast<T>(function(static_cast<double>(a)));
    }
};
double reciprocal_root(double a) {
    return a == 0 ? std::copysign(HUGE_VAL, a) : 1.0 / std::sqrt(a);
}
double sine(double a) {
    return std::sin(a);
}
double cosine(double a) {
    return std::cos(a);
}
double logarithm(double a) {
    return std::log2(a);
}
double power_of_2(double a) {
    return std::exp2(a);
}
double hyperbolic_tangent(double a) {
    return std::tanh(a);
}

template <class T, class F, bool ftz, bool saturate>
void unary(Warp& warp, const Op& op, LaneMask mask) {
    const RoundingScope rounding(static_cast<Rounding>(op.mode));
    const Row& a = warp.in(op.a);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        d[lane] = finished<T, saturate>(result_of<F, ftz>(operand<T, ftz>(a[lane])));
    });
}
template <class T, class F, bool ftz, bool saturate>
void binary(Warp& warp, const Op& op, LaneMask mask) {
    const RoundingScope rounding(static_cast<Rounding>(op.mode));
    const Row &a = warp.in(op.a), &b = warp.in(op.b);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        d[lane] = finished<T, saturate>(result_of<F, ftz>(operand<T, ftz>(a[lane]), operand<T, ftz>(b[lane])));
    });
}
template <class T, class F, bool ftz, bool saturate>
void ternary(Warp& warp, const Op& op, LaneMask mask) {
    const RoundingScope rounding(static_cast<Rounding>(op.mode));
    const Row &a = warp.in(op.a), &b = warp.in(op.b), &c = warp.in(op.c);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        d[lane] = finished<T, saturate>(
            result_of<F, ftz>(operand<T, ftz>(a[lane]), operand<T, ftz>(b[lane]), operand<T, ftz>(c[lane])));
    });
}

// Changes of the sign bit alone keep the payload of a NaN.
template <class T, bool ftz, bool absolute>
void change_sign(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        const T value = operand<T, ftz>(a[lane]);
        d[lane] = to_slot(absolute ? std::fabs(value) : -value);
    });
}
// PTX ISA, copysign: the sign of a, and the rest of b.
template <class T>
void copy_sign(Warp& warp, const Op& op, LaneMask mask) {
    const Row &a = warp.in(op.a), &b = warp.in(op.b);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        d[lane] = to_slot(std::copysign(from_slot<T>(b[lane]), from_slot<T>(a[lane])));
    });
}
// Only the upper half of the operand and of the result count.
template <double (*function)(double)>
void approximate_double(Warp& warp, const Op& op, LaneMask mask) {
    constexpr std::uint64_t upper = 0xffffffff00000000;
    const Row& a = warp.in(op.a);
    Row& d = warp.out(op.d);
    for_lanes(mask, [&](std::uint32_t lane) {
        std::uint64_t bits = a[lane] & upper;
        const std::uint64_t exponent = bits & 0x7ff0000000000000;
        if (exponent == 0) bits &= std::uint64_t{1} << 63;
        const double result = function(std::bit_cast<double>(bits));
        if (result != result) {
            d[lane] = 0x7fffffff00000000;
            return;
        }
        std::uint64_t out = std::bit_cast<std::uint64_t>(result);
        if ((out & 0x7ff0000000000000) == 0) out &= std::uint64_t{1} << 63;
        d[lane] = out & upper;
    });
}
double reciprocal(double a) {
    return 1.0 / a;
}

template <class T>
bool has_property(std::string_view name, T value) {
    if (name == "finite") return std::isfinite(value);
    if (name == "infinite") return std::isinf(value);
    if (name == "number") return !std::isnan(value);
    if (name == "notanumber") return std::isnan(value);
    if (name == "normal") return std::isnormal(value) || value == 0;  // PTX ISA, testp: zeros count as normal
    return std::fpclassify(value) == FP_SUBNORMAL;
}
constexpr std::string_view properties[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
template <class T, std::size_t property>
void test_property(Warp& warp, const Op& op, LaneMask mask) {
    const Row& a = warp.in(op.a);
    LaneMask yes = 0;
    for_lanes(mask, [&](std::uint32_t lane) {
        yes |= LaneMask{has_property(properties[property], from_slot<T>(a[lane]))} << lane;
    });
    warp.predicates[op.p] = (warp.predicates[op.p] & ~mask) | yes;
}

template <class T, bool ftz, bool saturate>
Run arithmetic(std::string_view name) {
    if (name == "add") return binary<T, Add, ftz, saturate>;
    if (name == "sub") return binary<T, Subtract, ftz, saturate>;
    if (name == "mul") return binary<T, Multiply, ftz, saturate>;
    if (name == "fma") return ternary<T, FusedMultiplyAdd, ftz, saturate>;
    return nullptr;
}
template <class T, bool ftz>
Run unsaturated(std::string_view name) {
    if (name == "div") return binary<T, Divide, ftz, false>;
    if (name == "rcp") return unary<T, Reciprocal, ftz, false>;
    if (name == "sqrt") return unary<T, SquareRoot, ftz, false>;
    if (name == "min") return binary<T, Minimum, ftz, false>;
    if (name == "max") return binary<T, Maximum, ftz, false>;
    if (name == "abs") return change_sign<T, ftz, true>;
    if (name == "neg") return change_sign<T, ftz, false>;
    return nullptr;
}
template <bool ftz>
Run single_only(std::string_view name) {
    using T = float;
    if (name == "div.approx") return binary<T, DivideApproximately, ftz, false>;
    if (name == "div.full") return binary<T, Divide, ftz, false>;
    if (name == "rcp.approx") return unary<T, Reciprocal, ftz, false>;
    if (name == "sqrt.approx") return unary<T, SquareRoot, ftz, false>;
    if (name == "rsqrt.approx") return unary<T, Approximate<reciprocal_root>, ftz, false>;
    if (name == "sin.approx") return unary<T, Approximate<sine>, ftz, false>;
    if (name == "cos.approx") return unary<T, Approximate<cosine>, ftz, false>;
    if (name == "lg2.approx") return unary<T, Approximate<logarithm>, ftz, false>;
    if (name == "ex2.approx") return unary<T, Approximate<power_of_2>, ftz, false>;
    if (name == "tanh.approx") return unary<T, Approximate<hyperbolic_tangent>, ftz, false>;
    if (name == "min.NaN") return binary<T, OrNan<Minimum>, ftz, false>;
    if (name == "max.NaN") return binary<T, OrNan<Maximum>, ftz, false>;
    if (name == "min.xorsign.abs") return binary<T, WithSignOfProduct<Minimum>, ftz, false>;
    if (name == "max.xorsign.abs") return binary<T, WithSignOfProduct<Maximum>, ftz, false>;
    if (name == "min.NaN.xorsign.abs") return binary<T, WithSignOfProduct<OrNan<Minimum>>, ftz, false>;
    if (name == "max.NaN.xorsign.abs") return binary<T, WithSignOfProduct<OrNan<Maximum>>, ftz, false>;
    return nullptr;
}
template <class T>
Run plain(std::string_view name) {
    if (name == "copysign") return copy_sign<T>;
    if (name == "testp.finite") return test_property<T, 0>;
    if (name == "testp.infinite") return test_property<T, 1>;
    if (name == "testp.number") return test_property<T, 2>;
    if (name == "testp.notanumber") return test_property<T, 3>;
    if (name == "testp.normal") return test_property<T, 4>;
    if (name == "testp.subnormal") return test_property<T, 5>;
    return nullptr;
}

template <bool ftz>
Run single(std::string_view name, bool saturate) {
    if (saturate) return arithmetic<float, ftz, true>(name);
    if (const Run run = arithmetic<float, ftz, false>(name)) return run;
    if (const Run run = unsaturated<float, ftz>(name)) return run;
    return single_only<ftz>(name);
}

}  // namespace

Run float_run(std::string_view name, Type type, bool ftz, bool saturate) {
    if (type == Type::f32) {
        if (const Run run = !ftz && !saturate ? plain<float>(name) : nullptr) return run;
        return ftz ? single<true>(name, saturate) : single<false>(name, saturate);
    }
    if (type != Type::f64 || saturate) return nullptr;
    if (name == "rcp.approx") return ftz ? approximate_double<reciprocal> : nullptr;
    if (name == "rsqrt.approx") {
        return ftz ? approximate_double<reciprocal_root> : unary<double, Approximate<reciprocal_root>, false, false>;
    }
    if (ftz) return nullptr;
    if (const Run run = plain<double>(name)) return run;
    if (const Run run = arithmetic<double, false, false>(name)) return run;
    return unsaturated<double, false>(name);
}

}  // namespace isthmus::ptx
