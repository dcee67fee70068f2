// SPDX-License-Identifier: Apache-2.0
// Kernels with almost no work, so that only the launch is measured.
#include "bench_kernels.hpp"

namespace bench {

using namespace isthmus;

ISTHMUS_KERNEL(no_arguments, Index) {}
ISTHMUS_KERNEL(one_view, Index i, View<int> a) {
    a[i] += 1;
}
ISTHMUS_KERNEL(four_views, Index i, View<int> a, View<const int> b, View<const int> c, View<const int> d) {
    a[i] = b[i] + c[i] + d[i];
}

// Many arguments, of which only the last one is used.
#pragma GCC diagnostic ignored "-Wunused-parameter"
ISTHMUS_KERNEL(views_16, Index i, ISTHMUS_BENCH_16_VIEWS(a)) {
    a33[i] += 1;
}
ISTHMUS_KERNEL(views_64, Index i, ISTHMUS_BENCH_64_VIEWS) {
    d33[i] += 1;
}

}  // namespace bench
