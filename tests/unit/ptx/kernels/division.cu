// SPDX-License-Identifier: Apache-2.0
// Quotient and remainder of 128-bit integers. division.ptx was made of it by nvcc 13.0:
//     nvcc -ptx -std=c++17 -arch=compute_75 division.cu
using Wide = unsigned __int128;
extern "C" __global__ void divide(const unsigned long long* of, unsigned long long* out) {
    const unsigned at = 4 * (threadIdx.x + blockIdx.x * blockDim.x);
    const Wide a = static_cast<Wide>(of[at]) << 64 | of[at + 1], b = static_cast<Wide>(of[at + 2]) << 64 | of[at + 3];
    const Wide quotient = a / b, remainder = a % b;
    out[at] = static_cast<unsigned long long>(quotient >> 64);
    out[at + 1] = static_cast<unsigned long long>(quotient);
    out[at + 2] = static_cast<unsigned long long>(remainder >> 64);
    out[at + 3] = static_cast<unsigned long long>(remainder);
}
