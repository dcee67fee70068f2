// SPDX-License-Identifier: Apache-2.0
// A program with a kernel of its own, as docs/kernels.md builds one.
#include <isthmus/isthmus.hpp>

#include <cstdio>

ISTHMUS_DECLARE_KERNEL(scale, isthmus::Index i, isthmus::View<int> values, int factor);

int main() {
    isthmus::RuntimeOptions options;
    options.use_cuda = false;
    isthmus::Runtime runtime = isthmus::Runtime::open(options).value();
    auto values = runtime.cpu().allocate_shared<int>(10).value();
    runtime.cpu().fill(values, 3).value();
    runtime.cpu().launch(scale, values.size(), values, 3).value();
    int sum = 0;
    for (const int value : values.read_on_host().value()) sum += value;
    std::printf("sum %d\n", sum);
    return sum == 90 ? 0 : 1;
}
