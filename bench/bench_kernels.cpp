// Kernels that do next to nothing, so that launching them is all that is measured.
#include <isthmus/kernel.hpp>

namespace bench {

using namespace isthmus;

ISTHMUS_KERNEL(no_arguments, Index) {}
ISTHMUS_KERNEL(one_view, Index i, View<int> a) {
    a[i] += 1;
}
ISTHMUS_KERNEL(four_views, Index i, View<int> a, View<const int> b, View<const int> c, View<const int> d) {
    a[i] = b[i] + c[i] + d[i];
}

}  // namespace bench
