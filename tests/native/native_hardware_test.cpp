// SPDX-License-Identifier: Apache-2.0
// Work of other code on a real GPU: a kernel compiled by nvcc, cuBLAS, and NPP where the toolkit has it, on shared
// buffers of every kind, compared with the CPU. Skipped without a GPU and on the simulator, which runs no GPU code.
#include "native_kernels.hpp"

#include <isthmus/isthmus.hpp>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#if defined(ISTHMUS_TEST_NPP)
#include <nppi_arithmetic_and_logical_operations.h>
#endif

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace isthmus;

constexpr int side = 512;  // of matrices and pictures
constexpr std::size_t count = std::size_t{side} * side;
constexpr float one = 1, zero = 0;

bool simulated() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library != nullptr && dlsym(library, "isthmus_sim_call_count") != nullptr;
}

class NativeHardware : public testing::Test {
protected:
    void SetUp() override {
        const bool there = !device().is_cpu() && !simulated();
        if (!there && std::getenv("ISTHMUS_TEST_REAL") != nullptr) FAIL() << "no GPU";
        if (!there) GTEST_SKIP() << "no GPU";
    }
    static Runtime& runtime() {
        static Runtime opened = Runtime::open().value();
        return opened;
    }
    static Device& device() { return runtime().default_device(); }
};

// cuBLAS with a workspace of its own, which a graph keeps using.
class Blas {
public:
    Blas() {
        EXPECT_EQ(cublasCreate(&handle_), CUBLAS_STATUS_SUCCESS);
        EXPECT_EQ(cudaMalloc(&workspace_, workspace_bytes), cudaSuccess);
        EXPECT_EQ(cublasSetMathMode(handle_, CUBLAS_PEDANTIC_MATH), CUBLAS_STATUS_SUCCESS);
    }
    ~Blas() {
        (void)cublasDestroy(handle_);
        (void)cudaFree(workspace_);
    }
    Blas(const Blas&) = delete;
    Blas& operator=(const Blas&) = delete;
    // c = a · b, column by column.
    cublasStatus_t multiply(void* cu_stream, const float* a, const float* b, float* c) const {
        cublasStatus_t status = cublasSetStream(handle_, static_cast<cudaStream_t>(cu_stream));
        if (status == CUBLAS_STATUS_SUCCESS) status = cublasSetWorkspace(handle_, workspace_, workspace_bytes);
        if (status != CUBLAS_STATUS_SUCCESS) return status;
        return cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, side, side, side, &one, a, side, b, side, &zero, c, side);
    }

private:
    static constexpr std::size_t workspace_bytes = 32 << 20;
    cublasHandle_t handle_ = nullptr;
    void* workspace_ = nullptr;
};

template <class T, class Body>
void with_every_kind(Device& device, std::size_t size, Body body) {
    const auto plain = [&](const char* what, auto made) {
        SCOPED_TRACE(what);
        if (made) body(*made);
    };
    plain("chosen", device.allocate_shared<T>(size));
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::managed}) {
        SharedUse use;
        use.kind = kind;
        plain(std::string(name(kind)).c_str(), device.allocate_shared<T>(size, use));
    }
    GrowableOptions on_host;
    on_host.where = MemoryPlace::Where::host;
    auto grown = GrowableBuffer<T>::create(device, 2 * size, on_host);
    if (grown && grown->resize(size)) plain("growable", std::move(grown));
    auto exportable = ExportableBuffer<T>::create(device, size, {.seen_by = SeenBy::cpus_and_gpus});
    if (!exportable) return;
    plain("imported", import_memory<T>(device, exportable->export_memory().value()));
    plain("exportable", std::move(exportable));
}

// Small whole numbers: sums of their products are exact.
void set_numbers(TypedBuffer<float>& buffer, int seed) {
    auto view = buffer.write_on_host().value();
    for (std::size_t i = 0; i < view.size(); ++i)
        view[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(seed)) % 5);
}

std::vector<float> copied(const TypedBuffer<float>& buffer) {
    const auto view = buffer.read_on_host().value();
    return {view.begin(), view.end()};
}

float at(const std::vector<float>& matrix, int index) {
    return matrix[static_cast<std::size_t>(index)];
}

float product_at(const std::vector<float>& a, const std::vector<float>& b, int row, int column) {
    float sum = 0;
    for (int k = 0; k < side; ++k) {
        sum += at(a, k * side + row) * at(b, column * side + k);
    }
    return sum;
}

void expect_product(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& c) {
    for (int column = 0; column < side; column += 37) {
        for (int row = 0; row < side; row += 23) {
            ASSERT_EQ(c[static_cast<std::size_t>(column * side + row)], product_at(a, b, row, column));
        }
    }
}

// keeps W1
TEST_F(NativeHardware, AKernelOfNvccRunsOnBuffersOfEveryKind) {
    Stream stream = device().create_stream().value();
    with_every_kind<float>(device(), count, [&](TypedBuffer<float>& data) {
        for (int round = 0; round < 3; ++round) {
            set_numbers(data, round);
            const std::vector<float> before = copied(data);
            const std::uint64_t uploaded = data.staged_bytes();
            (void)stream
                .enqueue_native(
                    "scale", [](void* s, float* numbers) { return scale_on(s, numbers, 3, count); }, updates(data))
                .value();
            if (data.path() == LaunchPath::stage) {
                EXPECT_EQ(data.staged_bytes() - uploaded, data.size_bytes());
            }
            const std::vector<float> after = copied(data);
            for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(after[i], 3 * before[i]) << i;
        }
    });
}

// keeps W1
TEST_F(NativeHardware, CublasMultipliesBuffersOfEveryKind) {
    const Blas blas;
    Stream stream = device().create_stream().value();
    Buffer<float> b = device().allocate_shared<float>(count).value();
    set_numbers(b, 1);
    with_every_kind<float>(device(), count, [&](TypedBuffer<float>& a) {
        Buffer<float> c = device().allocate_shared<float>(count).value();
        set_numbers(a, 2);
        (void)stream
            .enqueue_native(
                "sgemm",
                [&](void* s, const float* left, const float* right, float* product) {
                    return blas.multiply(s, left, right, product);
                },
                reads(a), reads(b), writes(c))
            .value();
        expect_product(copied(a), copied(b), copied(c));
    });
}

// keeps W3
TEST_F(NativeHardware, CublasWorksInAScope) {
    const Blas blas;
    Stream stream = device().create_stream().value();
    with_every_kind<float>(device(), count, [&](TypedBuffer<float>& a) {
        Buffer<float> c = device().allocate_shared<float>(count).value();
        set_numbers(a, 3);
        auto scope = stream.open_native_scope("square", reads(a), writes(c)).value();
        EXPECT_EQ(a.write_on_host().code(), Code::in_use);
        EXPECT_EQ(blas.multiply(scope.stream(), scope.get<0>(), scope.get<0>(), scope.get<1>()), CUBLAS_STATUS_SUCCESS);
        EXPECT_EQ(scale_on(scope.stream(), scope.get<1>(), 1, count), 0);
        (void)scope.close().value();
        const std::vector<float> numbers = copied(a);
        expect_product(numbers, numbers, copied(c));
    });
}

// keeps W4, G12
TEST_F(NativeHardware, ACapturedCublasCallFollowsTheHostsData) {
    const Blas blas;
    Stream stream = device().create_stream().value();
    with_every_kind<float>(device(), count, [&](TypedBuffer<float>& a) {
        if (a.path() == LaunchPath::attach) return;  // refused in graphs
        Buffer<float> b = device().allocate_shared<float>(count).value();
        Buffer<float> c = device().allocate_shared<float>(count).value();
        set_numbers(a, 0);
        set_numbers(b, 4);
        const auto work = [&](void* s, const float* left, const float* right, float* product) {
            return blas.multiply(s, left, right, product);
        };
        (void)stream.enqueue_native("sgemm", work, reads(a), reads(b), writes(c)).value();  // brings up the library
        stream.synchronize().value();
        Capture capture = stream.begin_capture().value();
        (void)stream.enqueue_native("sgemm", work, reads(a), reads(b), writes(c)).value();
        GraphInstance instance = capture.end().value().instantiate().value();
        for (int round = 1; round <= 3; ++round) {
            set_numbers(a, round);
            stream.launch(instance).value();
            expect_product(copied(a), copied(b), copied(c));
        }
    });
}

// keeps W4
TEST_F(NativeHardware, AnErrorOfALibraryIsTypedAndHarmless) {
    Stream stream = device().create_stream().value();
    Buffer<float> data = device().allocate_shared<float>(count).value();
    set_numbers(data, 1);
    const auto refused = stream.enqueue_native(
        "no handle", [](void* s, float*) { return cublasSetStream(nullptr, static_cast<cudaStream_t>(s)); },
        updates(data));
    EXPECT_EQ(refused.code(), Code::driver_error);
    EXPECT_NE(refused.error().message().find("no handle"), std::string_view::npos);
    EXPECT_TRUE(device().healthy());
    const std::vector<float> numbers = copied(data);
    EXPECT_EQ(numbers[3], static_cast<float>((3 * 7 + 1) % 5));
}

// keeps W1: the runtime library's calls find the device's context, and its error state is its own
TEST_F(NativeHardware, TheRuntimeLibraryFindsTheDevice) {
    Stream stream = device().create_stream().value();
    int found = -1;
    (void)stream.enqueue_native("device", [&](void*) { return cudaGetDevice(&found); }).value();
    EXPECT_EQ(found, device().facts().ordinal);
}

#if defined(ISTHMUS_TEST_NPP)
NppStreamContext npp_context(int ordinal) {
    cudaDeviceProp properties{};
    EXPECT_EQ(cudaGetDeviceProperties(&properties, ordinal), cudaSuccess);
    NppStreamContext context{};
    context.nCudaDeviceId = ordinal;
    context.nMultiProcessorCount = properties.multiProcessorCount;
    context.nMaxThreadsPerMultiProcessor = properties.maxThreadsPerMultiProcessor;
    context.nMaxThreadsPerBlock = properties.maxThreadsPerBlock;
    context.nSharedMemPerBlock = properties.sharedMemPerBlock;
    context.nCudaDevAttrComputeCapabilityMajor = properties.major;
    context.nCudaDevAttrComputeCapabilityMinor = properties.minor;
    return context;
}

// keeps W1
TEST_F(NativeHardware, NppAddsToPicturesOfEveryKind) {
    NppStreamContext context = npp_context(device().facts().ordinal);
    Stream stream = device().create_stream().value();
    with_every_kind<std::uint8_t>(device(), count, [&](TypedBuffer<std::uint8_t>& in) {
        Buffer<std::uint8_t> out = device().allocate_shared<std::uint8_t>(count).value();
        for (unsigned round = 1; round <= 2; ++round) {
            {
                auto view = in.write_on_host().value();
                for (std::size_t i = 0; i < count; ++i) view[i] = static_cast<std::uint8_t>(i * round % 200);
            }
            const std::uint64_t uploaded = in.staged_bytes();
            (void)stream
                .enqueue_native(
                    "add",
                    [&](void* s, const Npp8u* from, Npp8u* to) {
                        context.hStream = static_cast<cudaStream_t>(s);
                        return nppiAddC_8u_C1RSfs_Ctx(from, side, 10, to, side, {side, side}, 0, context);
                    },
                    reads(in), writes(out))
                .value();
            if (in.path() == LaunchPath::stage) {
                EXPECT_EQ(in.staged_bytes() - uploaded, in.size_bytes());
            }
            const auto view = out.read_on_host().value();
            for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(view[i], i * round % 200 + 10) << i;
        }
    });
}
#endif

}  // namespace
