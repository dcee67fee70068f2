// SPDX-License-Identifier: Apache-2.0
// 8-bit floats of cuda_fp8.h. small_floats.ptx was made of it by nvcc 13.0:
//     nvcc -ptx -std=c++17 -arch=compute_90 small_floats.cu
#include <cuda_fp8.h>
extern "C" __global__ void from_singles(const float* in, unsigned char* e4m3, unsigned char* e5m2, int n) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    e4m3[at] = __nv_fp8_e4m3(in[at]).__x;
    e5m2[at] = __nv_fp8_e5m2(in[at]).__x;
}
extern "C" __global__ void pairs(const float2* in, unsigned short* e4m3, unsigned short* e5m2, int n) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    e4m3[at] = __nv_fp8x2_e4m3(in[at]).__x;
    e5m2[at] = __nv_fp8x2_e5m2(in[at]).__x;
}
extern "C" __global__ void from_halves(const __half2* in, unsigned short* e4m3, unsigned short* e5m2, int n) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    e4m3[at] = __nv_fp8x2_e4m3(in[at]).__x;
    e5m2[at] = __nv_fp8x2_e5m2(in[at]).__x;
}
extern "C" __global__ void to_singles(const unsigned char* in, float* e4m3, float* e5m2, int n) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    __nv_fp8_e4m3 a;
    a.__x = in[at];
    __nv_fp8_e5m2 b;
    b.__x = in[at];
    e4m3[at] = float(a);
    e5m2[at] = float(b);
}
