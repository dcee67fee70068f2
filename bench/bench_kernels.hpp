// SPDX-License-Identifier: Apache-2.0
// The kernels of bench_kernels.cpp, and parameter lists that are too long to write out.
#pragma once

#include <isthmus/kernel.hpp>

#define ISTHMUS_BENCH_4_VIEWS(p) \
    isthmus::View<int> p##0, isthmus::View<int> p##1, isthmus::View<int> p##2, isthmus::View<int> p##3
#define ISTHMUS_BENCH_16_VIEWS(p) \
    ISTHMUS_BENCH_4_VIEWS(p##0), ISTHMUS_BENCH_4_VIEWS(p##1), ISTHMUS_BENCH_4_VIEWS(p##2), ISTHMUS_BENCH_4_VIEWS(p##3)
#define ISTHMUS_BENCH_64_VIEWS \
    ISTHMUS_BENCH_16_VIEWS(a), ISTHMUS_BENCH_16_VIEWS(b), ISTHMUS_BENCH_16_VIEWS(c), ISTHMUS_BENCH_16_VIEWS(d)

namespace bench {

ISTHMUS_DECLARE_KERNEL(no_arguments, isthmus::Index);
ISTHMUS_DECLARE_KERNEL(one_view, isthmus::Index i, isthmus::View<int> a);
ISTHMUS_DECLARE_KERNEL(four_views, isthmus::Index i, isthmus::View<int> a, isthmus::View<const int> b,
                       isthmus::View<const int> c, isthmus::View<const int> d);
ISTHMUS_DECLARE_KERNEL(views_16, isthmus::Index i, ISTHMUS_BENCH_16_VIEWS(a));
ISTHMUS_DECLARE_KERNEL(views_64, isthmus::Index i, ISTHMUS_BENCH_64_VIEWS);

}  // namespace bench
