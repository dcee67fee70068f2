// SPDX-License-Identifier: Apache-2.0
// What the compiler says about a launch that is wrong: one sentence, with the number of the argument.
#pragma once

#include <isthmus/detail/check_arguments.hpp>

#include <cstddef>
#include <type_traits>

namespace isthmus {
inline namespace v0 {
class GraphInstance;
class Stream;
struct LaunchOptions;
template <class Signature>
class Kernel;

template <class Signature>
class ModuleKernel;  // module.hpp

namespace detail {

// Stands for the answer of a launch that does not compile. The message of a static_assert is a literal, so that there
// is one for each number; through a macro it would come with the macro's lines. Arguments are counted behind the
// extent.
template <class Answer, Mistake mistake, std::size_t argument>
[[noreturn]] Answer refuse_launch() {
    using enum Mistake;
    constexpr std::size_t number = argument < 9 ? argument : 9;
    constexpr auto fine = [](Mistake one, std::size_t at) { return mistake != one || number != at; };
    static_assert(fine(missing, 1), "isthmus: argument 1 is missing: pass one argument for each kernel parameter");
    static_assert(fine(missing, 2), "isthmus: argument 2 is missing: pass one argument for each kernel parameter");
    static_assert(fine(missing, 3), "isthmus: argument 3 is missing: pass one argument for each kernel parameter");
    static_assert(fine(missing, 4), "isthmus: argument 4 is missing: pass one argument for each kernel parameter");
    static_assert(fine(missing, 5), "isthmus: argument 5 is missing: pass one argument for each kernel parameter");
    static_assert(fine(missing, 6), "isthmus: argument 6 is missing: pass one argument for each kernel parameter");
    static_assert(fine(missing, 7), "isthmus: argument 7 is missing: pass one argument for each kernel parameter");
    static_assert(fine(missing, 8), "isthmus: argument 8 is missing: pass one argument for each kernel parameter");
    static_assert(fine(missing, 9),
                  "isthmus: an argument after the 8th is missing: pass one argument for each kernel parameter");
    static_assert(fine(too_many, 1), "isthmus: argument 1 is one too many: the kernel has no parameter for it");
    static_assert(fine(too_many, 2), "isthmus: argument 2 is one too many: the kernel has no parameter for it");
    static_assert(fine(too_many, 3), "isthmus: argument 3 is one too many: the kernel has no parameter for it");
    static_assert(fine(too_many, 4), "isthmus: argument 4 is one too many: the kernel has no parameter for it");
    static_assert(fine(too_many, 5), "isthmus: argument 5 is one too many: the kernel has no parameter for it");
    static_assert(fine(too_many, 6), "isthmus: argument 6 is one too many: the kernel has no parameter for it");
    static_assert(fine(too_many, 7), "isthmus: argument 7 is one too many: the kernel has no parameter for it");
    static_assert(fine(too_many, 8), "isthmus: argument 8 is one too many: the kernel has no parameter for it");
    static_assert(fine(too_many, 9),
                  "isthmus: an argument after the 8th is one too many: the kernel has no parameter for it");
    static_assert(fine(not_memory, 1), "isthmus: argument 1 is neither a buffer nor a view, as a View or Out takes");
    static_assert(fine(not_memory, 2), "isthmus: argument 2 is neither a buffer nor a view, as a View or Out takes");
    static_assert(fine(not_memory, 3), "isthmus: argument 3 is neither a buffer nor a view, as a View or Out takes");
    static_assert(fine(not_memory, 4), "isthmus: argument 4 is neither a buffer nor a view, as a View or Out takes");
    static_assert(fine(not_memory, 5), "isthmus: argument 5 is neither a buffer nor a view, as a View or Out takes");
    static_assert(fine(not_memory, 6), "isthmus: argument 6 is neither a buffer nor a view, as a View or Out takes");
    static_assert(fine(not_memory, 7), "isthmus: argument 7 is neither a buffer nor a view, as a View or Out takes");
    static_assert(fine(not_memory, 8), "isthmus: argument 8 is neither a buffer nor a view, as a View or Out takes");
    static_assert(fine(not_memory, 9),
                  "isthmus: an argument after the 8th is neither a buffer nor a view, as a View or Out takes");
    static_assert(fine(other_element, 1), "isthmus: argument 1 has elements of another type than the parameter");
    static_assert(fine(other_element, 2), "isthmus: argument 2 has elements of another type than the parameter");
    static_assert(fine(other_element, 3), "isthmus: argument 3 has elements of another type than the parameter");
    static_assert(fine(other_element, 4), "isthmus: argument 4 has elements of another type than the parameter");
    static_assert(fine(other_element, 5), "isthmus: argument 5 has elements of another type than the parameter");
    static_assert(fine(other_element, 6), "isthmus: argument 6 has elements of another type than the parameter");
    static_assert(fine(other_element, 7), "isthmus: argument 7 has elements of another type than the parameter");
    static_assert(fine(other_element, 8), "isthmus: argument 8 has elements of another type than the parameter");
    static_assert(fine(other_element, 9),
                  "isthmus: an argument after the 8th has elements of another type than the parameter");
    static_assert(fine(read_only, 1), "isthmus: argument 1 is read-only, but the kernel writes it");
    static_assert(fine(read_only, 2), "isthmus: argument 2 is read-only, but the kernel writes it");
    static_assert(fine(read_only, 3), "isthmus: argument 3 is read-only, but the kernel writes it");
    static_assert(fine(read_only, 4), "isthmus: argument 4 is read-only, but the kernel writes it");
    static_assert(fine(read_only, 5), "isthmus: argument 5 is read-only, but the kernel writes it");
    static_assert(fine(read_only, 6), "isthmus: argument 6 is read-only, but the kernel writes it");
    static_assert(fine(read_only, 7), "isthmus: argument 7 is read-only, but the kernel writes it");
    static_assert(fine(read_only, 8), "isthmus: argument 8 is read-only, but the kernel writes it");
    static_assert(fine(read_only, 9), "isthmus: an argument after the 8th is read-only, but the kernel writes it");
    static_assert(fine(memory, 1), "isthmus: argument 1 is a buffer or a view, but the parameter is a value");
    static_assert(fine(memory, 2), "isthmus: argument 2 is a buffer or a view, but the parameter is a value");
    static_assert(fine(memory, 3), "isthmus: argument 3 is a buffer or a view, but the parameter is a value");
    static_assert(fine(memory, 4), "isthmus: argument 4 is a buffer or a view, but the parameter is a value");
    static_assert(fine(memory, 5), "isthmus: argument 5 is a buffer or a view, but the parameter is a value");
    static_assert(fine(memory, 6), "isthmus: argument 6 is a buffer or a view, but the parameter is a value");
    static_assert(fine(memory, 7), "isthmus: argument 7 is a buffer or a view, but the parameter is a value");
    static_assert(fine(memory, 8), "isthmus: argument 8 is a buffer or a view, but the parameter is a value");
    static_assert(fine(memory, 9),
                  "isthmus: an argument after the 8th is a buffer or a view, but the parameter is a value");
    static_assert(fine(lossy, 1), "isthmus: argument 1 does not convert without loss: write the conversion");
    static_assert(fine(lossy, 2), "isthmus: argument 2 does not convert without loss: write the conversion");
    static_assert(fine(lossy, 3), "isthmus: argument 3 does not convert without loss: write the conversion");
    static_assert(fine(lossy, 4), "isthmus: argument 4 does not convert without loss: write the conversion");
    static_assert(fine(lossy, 5), "isthmus: argument 5 does not convert without loss: write the conversion");
    static_assert(fine(lossy, 6), "isthmus: argument 6 does not convert without loss: write the conversion");
    static_assert(fine(lossy, 7), "isthmus: argument 7 does not convert without loss: write the conversion");
    static_assert(fine(lossy, 8), "isthmus: argument 8 does not convert without loss: write the conversion");
    static_assert(fine(lossy, 9),
                  "isthmus: an argument after the 8th does not convert without loss: write the conversion");
    __builtin_unreachable();
}

// What stands where launch() and explain() take a kernel.
template <class K>
inline constexpr bool is_no_kernel = true;
template <class Signature>
inline constexpr bool is_no_kernel<Kernel<Signature>> = false;
template <class Signature>
inline constexpr bool is_no_kernel<ModuleKernel<Signature>> = false;
template <>
inline constexpr bool is_no_kernel<LaunchOptions> = false;
template <>
inline constexpr bool is_no_kernel<GraphInstance> = false;
template <>
inline constexpr bool is_no_kernel<Stream> = false;

// Takes what stands where an extent is expected, in braces too.
struct AnyExtent {
    template <class... Numbers>
    constexpr AnyExtent(const Numbers&...) noexcept {}
};

template <class Answer, class K>
[[noreturn]] Answer refuse_kernel() {
    static_assert(!is_no_kernel<K>,
                  "isthmus: a launch takes a kernel that ISTHMUS_KERNEL defined: a lambda, a function and a template "
                  "have no code for a GPU");
    __builtin_unreachable();
}
template <class Answer, class Wanted, class Given>
[[noreturn]] Answer refuse_extent() {
    static_assert(std::is_convertible_v<Given, Wanted>,
                  "isthmus: behind the kernel a launch takes the size of its index space: a number for Index, {width, "
                  "height} for Index2, {width, height, depth} for Index3, a number of blocks or {x, y, z} for Block");
    __builtin_unreachable();
}

}  // namespace detail
}  // namespace v0
}  // namespace isthmus
