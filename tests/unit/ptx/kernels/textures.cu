// SPDX-License-Identifier: Apache-2.0
// Fetches through texture objects. textures.ptx was made of it by nvcc 13.0:
//     nvcc -ptx -std=c++17 -arch=compute_75 textures.cu
#define FOR_EACH_POINT(n)                                        \
    const int i = blockIdx.x * blockDim.x + threadIdx.x;         \
    if (i >= n) return
extern "C" __global__ void line(cudaTextureObject_t t, const float4* p, float* out, int n) {
    FOR_EACH_POINT(n);
    out[i] = tex1D<float>(t, p[i].x);
}
extern "C" __global__ void plane(cudaTextureObject_t t, const float4* p, float* out, int n) {
    FOR_EACH_POINT(n);
    out[i] = tex2D<float>(t, p[i].x, p[i].y);
}
extern "C" __global__ void volume(cudaTextureObject_t t, const float4* p, float* out, int n) {
    FOR_EACH_POINT(n);
    out[i] = tex3D<float>(t, p[i].x, p[i].y, p[i].z);
}
extern "C" __global__ void lines(cudaTextureObject_t t, const float4* p, float* out, int n) {
    FOR_EACH_POINT(n);
    out[i] = tex1DLayered<float>(t, p[i].x, static_cast<int>(p[i].w));
}
extern "C" __global__ void planes(cudaTextureObject_t t, const float4* p, float* out, int n) {
    FOR_EACH_POINT(n);
    out[i] = tex2DLayered<float>(t, p[i].x, p[i].y, static_cast<int>(p[i].w));
}
extern "C" __global__ void vectors(cudaTextureObject_t t, const float4* p, float4* out, int n) {
    FOR_EACH_POINT(n);
    out[i] = tex2D<float4>(t, p[i].x, p[i].y);
}
extern "C" __global__ void integers(cudaTextureObject_t t, const float4* p, int4* out, int n) {
    FOR_EACH_POINT(n);
    out[i] = tex2D<int4>(t, p[i].x, p[i].y);
}
extern "C" __global__ void fetches(cudaTextureObject_t t, const int* at, float* out, int n) {
    FOR_EACH_POINT(n);
    out[i] = tex1Dfetch<float>(t, at[i]);
}
extern "C" __global__ void levels(cudaTextureObject_t t, const float4* p, float* out, int n) {
    FOR_EACH_POINT(n);
    out[i] = tex2DLod<float>(t, p[i].x, p[i].y, p[i].z);
}
extern "C" __global__ void cubes(cudaTextureObject_t t, const float4* p, float* out, int n) {
    FOR_EACH_POINT(n);
    out[i] = texCubemap<float>(t, p[i].x, p[i].y, p[i].z);
}
// Queries, which C++ has no function for.
extern "C" __global__ void facts(cudaTextureObject_t t, cudaSurfaceObject_t s, unsigned* out) {
    unsigned value;
#define ASK(at, what, of)                                              \
    asm volatile(what ".b32 %0, [%1];" : "=r"(value) : "l"(of)); \
    out[at] = value
    ASK(0, "txq.width", t);
    ASK(1, "txq.height", t);
    ASK(2, "txq.depth", t);
    ASK(3, "txq.channel_data_type", t);
    ASK(4, "txq.channel_order", t);
    ASK(5, "txq.normalized_coords", t);
    ASK(6, "txq.array_size", t);
    ASK(7, "txq.num_mipmap_levels", t);
    ASK(8, "suq.width", s);
    ASK(9, "suq.height", s);
    ASK(10, "suq.depth", s);
    ASK(11, "suq.channel_data_type", s);
    ASK(12, "suq.channel_order", s);
    ASK(13, "suq.array_size", s);
}
