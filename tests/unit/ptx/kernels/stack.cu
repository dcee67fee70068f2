// SPDX-License-Identifier: Apache-2.0
// alloca, __brkpt and a call within. stack.ptx was made of it by nvcc 13.0:
//     nvcc -ptx -std=c++17 -arch=compute_75 stack.cu
__device__ __noinline__ int sum_of_squares(int n) {
    int* const squares = static_cast<int*>(__builtin_alloca(n * sizeof(int)));
    for (int at = 0; at < n; ++at) squares[at] = at * at;
    int sum = 0;
    for (int at = n - 1; at >= 0; --at) sum += squares[at];
    return sum;
}
extern "C" __global__ void squares(int* out) {
    int sum = 0;
    for (int round = 0; round < 100; ++round) sum += sum_of_squares(threadIdx.x + 1 + round);
    out[threadIdx.x] = sum;
}
extern "C" __global__ void in_entry(int* out, int n) {
    char* const text = static_cast<char*>(__builtin_alloca(n));
    for (int at = 0; at < n; ++at) text[at] = static_cast<char>(at + threadIdx.x);
    int sum = 0;
    for (int at = 0; at < n; ++at) sum += text[at];
    out[threadIdx.x] = sum;
}
extern "C" __global__ void stop(int* out) {
    out[threadIdx.x] = 1;
    if (threadIdx.x == 3) __brkpt();
    out[threadIdx.x] = 2;
}
