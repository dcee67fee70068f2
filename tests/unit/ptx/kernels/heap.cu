// SPDX-License-Identifier: Apache-2.0
// malloc, free, new and delete in kernels. heap.ptx was made of it by nvcc 13.0:
//     nvcc -ptx -std=c++17 -arch=compute_75 heap.cu
struct Node { int value; Node* next; };
struct Shape { __device__ virtual int area() const = 0; __device__ virtual ~Shape() {} };
struct Square : Shape { int a; __device__ Square(int x) : a(x) {} __device__ int area() const override { return a * a; } };
struct Box : Shape { int a, b; __device__ Box(int x, int y) : a(x), b(y) {} __device__ int area() const override { return a * b; } };
extern "C" __global__ void build_list(Node** head, int n) {
    Node* list = nullptr;
    for (int i = 0; i < n; ++i) { Node* one = new Node{(int)threadIdx.x * 100 + i, list}; list = one; }
    head[threadIdx.x] = list;
}
extern "C" __global__ void sum_list(Node** head, int* sums) {
    int sum = 0;
    for (Node* at = head[threadIdx.x]; at != nullptr;) { Node* next = at->next; sum += at->value; delete at; at = next; }
    sums[threadIdx.x] = sum;
}
extern "C" __global__ void shapes(int* out) {
    Shape* one = threadIdx.x % 2 ? (Shape*)new Square(threadIdx.x) : (Shape*)new Box(threadIdx.x, 3);
    out[threadIdx.x] = one->area();
    delete one;
}
extern "C" __global__ void exhaust(unsigned long long* counts, unsigned long long bytes) {
    unsigned long long n = 0; void** last = nullptr;
    for (;;) { void** one = (void**)malloc(bytes); if (!one) break; *one = last; last = one; ++n; }
    counts[0] = n;
    while (last) { void** next = (void**)*last; free(last); last = next; }
    void* again = malloc(bytes); counts[1] = again != nullptr; free(again);
}
extern "C" __global__ void free_twice(int* out) { int* a = (int*)malloc(64); free(a); out[0] = 1; free(a); out[1] = 2; }
extern "C" __global__ void free_foreign(int* out) { free(out); }
extern "C" __global__ void free_null() { free(nullptr); }
extern "C" __global__ void beyond(int* out, int at) { int* a = (int*)malloc(64); a[at] = 1; out[0] = a[at]; free(a); }
extern "C" __global__ void after_free(int* out) { volatile int* a = (volatile int*)malloc(64); a[0] = 1; free((void*)a); out[0] = a[0]; }
extern "C" __global__ void unwritten(int* out) { int* a = (int*)malloc(64); out[threadIdx.x] = a[threadIdx.x]; free(a); }
extern "C" __global__ void keep(void** out, unsigned long long bytes) { void* a = malloc(bytes); if (a) *(int*)a = 4711; out[0] = a; }
extern "C" __global__ void read_again(int* out) {
    volatile int* a = (volatile int*)malloc(64);
    a[0] = 7;
#pragma unroll 1
    for (int round = 0; round < 2; ++round) {
        out[round] = a[0];
        if (round == 0) free((void*)a);
    }
}
