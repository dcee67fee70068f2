// SPDX-License-Identifier: Apache-2.0
// The ways of this library, and of OpenCV and NPP where they were found.
#include "camera_ways.hpp"

#include <optional>
#include <utility>
#include <vector>

#if defined(ISTHMUS_BENCH_OPENCV)
#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>
#endif
#if defined(ISTHMUS_BENCH_NPP)
#include <cuda_runtime_api.h>
#include <nppcore.h>
#include <nppi_filtering_functions.h>
#endif

namespace bench {
namespace {

using namespace isthmus;
using kernels::Corner;
using kernels::CornerCount;
using kernels::Plane;

class Isthmus final : public Way {
public:
    Isthmus(Device& device, const Plane& plane, bool copied) : device_(device), plane_(plane) {
        const std::optional<MemoryKind> kind = copied ? std::optional(MemoryKind::device) : std::nullopt;
        const SharedUse in{.host = Use::reads_and_writes, .device = Use::reads_once, .kind = kind};
        const SharedUse out{.host = Use::reads_once, .device = Use::writes_once, .kind = kind};
        const std::size_t pixels = kernels::size_of(plane);
        for (Buffer<std::uint8_t>& frame : frames_) frame = device.allocate_shared<std::uint8_t>(pixels, in).value();
        for (std::size_t at = 0; at < camera_lanes; ++at) {
            Lane& lane = lanes_.emplace_back(device.create_stream().value());
            lane.luma = device.allocate<std::uint8_t>(kernels::size_of(luma_)).value();
            lane.response = device.allocate<std::int32_t>(pixels).value();
            lane.columns = device.allocate<std::uint16_t>(pixels).value();
            lane.rows = device.allocate<std::uint32_t>(plane.height).value();
            lane.corners = device.allocate_shared<Corner>(camera_capacity(plane), out).value();
            lane.count = device.allocate_shared<CornerCount>(1, out).value();
            lane.before.emplace(device.create_event({.timing = true}).value());
            lane.after.emplace(device.create_event({.timing = true}).value());
            record(lane);
        }
    }
    // As a ring of frames does it: a frame of the next lane may still be read, so each lane has two buffers by turns.
    void give(std::size_t at, const std::uint8_t* pixels) override {
        Lane& lane = lanes_[at];
        Buffer<std::uint8_t>& frame = frames_[2 * at + lane.turn++ % 2];
        {
            const HostView<std::uint8_t> view = frame.write_on_host().value();
            std::copy_n(pixels, view.size(), view.begin());
        }
        if (lane.copies) {
            lane.graph->set_arguments(*lane.copies, kernels::luma_runs(luma_), lane.luma, luma_, frame, layout())
                .value();
        } else {
            lane.graph
                ->set_arguments(*lane.first, kernels::response_tiles(plane_), lane.response, plane_, frame, layout())
                .value();
        }
        if (timed_) lane.stream.record(*lane.before).value();
        lane.stream.launch(*lane.graph).value();
        if (timed_) lane.stream.record(*lane.after).value();
    }
    std::uint64_t take(std::size_t at) override {
        Lane& lane = lanes_[at];
        const CornerCount count = lane.count.read_on_host().value()[0];
        return digest_of(lane.corners.read_on_host().value().data(), count);
    }
    std::uint64_t bytes_copied() const override {
        std::uint64_t sum = 0;
        for (const Buffer<std::uint8_t>& frame : frames_) sum += frame.staged_bytes();
        for (const Lane& lane : lanes_) sum += lane.corners.staged_bytes() + lane.count.staged_bytes();
        return sum;
    }
    double device_us() override {
        std::vector<std::uint8_t> frame(kernels::size_of(plane_), 100);
        double least = 0;
        timed_ = true;
        for (int n = 0; n < 20; ++n) {
            give(0, frame.data());
            (void)take(0);
            lanes_[0].after->synchronize().value();
            const double us = 1e3 * static_cast<double>(Event::elapsed_ms(*lanes_[0].before, *lanes_[0].after).value());
            if (least == 0 || us < least) least = us;
        }
        timed_ = false;
        return least;
    }

private:
    using First = KernelNode<void(Block, Out<std::int32_t>, Plane, View<const std::uint8_t>, kernels::LumaLayout)>;
    using Copies = KernelNode<void(Index2, Out<std::uint8_t>, Plane, View<const std::uint8_t>, kernels::LumaLayout)>;
    struct Lane {
        explicit Lane(const Stream& own) : stream(own) {}
        Stream stream;
        Buffer<std::uint8_t> luma{};
        Buffer<std::int32_t> response{};
        Buffer<std::uint16_t> columns{};
        Buffer<std::uint32_t> rows{};
        Buffer<Corner> corners{};
        Buffer<CornerCount> count{};
        std::optional<Event> before{}, after{};
        std::optional<GraphInstance> graph{};
        std::optional<First> first{};
        std::optional<Copies> copies{};
        std::size_t turn = 0;
    };
    kernels::LumaLayout layout() const { return kernels::luma_layout(kernels::PixelFormat::gray, plane_.pitch); }
    void record(Lane& lane) {
        Capture capture = lane.stream.begin_capture().value();
        // As `isthmus run` does it: frames that the GPU uses in place go over the link once.
        if (device_.is_cpu() || frames_[0].path() == LaunchPath::stage) {
            lane.first.emplace(capture
                                   .launch(kernels::frame_response, kernels::response_tiles(plane_), lane.response,
                                           plane_, frames_[0], layout())
                                   .value());
        } else {
            lane.copies.emplace(
                capture.launch(kernels::copy_luma, kernels::luma_runs(luma_), lane.luma, luma_, frames_[0], layout())
                    .value());
            capture
                .launch(kernels::frame_response, kernels::response_tiles(plane_), lane.response, plane_, lane.luma,
                        kernels::LumaLayout{0, luma_.pitch, 1})
                .value();
        }
        capture
            .launch(kernels::row_corners, Blocks(plane_.height), lane.rows, lane.columns, lane.response, plane_,
                    camera_rule)
            .value();
        capture
            .launch(kernels::join_corners, kernels::row_groups(plane_), lane.corners, lane.count, lane.rows,
                    lane.columns, lane.response, plane_)
            .value();
        lane.graph.emplace(capture.end().value().instantiate().value());
    }

    Device& device_;
    Plane plane_, luma_ = luma_plane(plane_);
    Buffer<std::uint8_t> frames_[2 * camera_lanes];
    std::vector<Lane> lanes_{};
    bool timed_ = false;
};

#if defined(ISTHMUS_BENCH_OPENCV)
// The same filters in floating point. It marks corners where the response is the greatest nearby, and lists none.
class OpenCv final : public Way {
public:
    explicit OpenCv(const Plane& plane) : plane_(plane) {
        cv::setNumThreads(1);
        for (cv::Mat& frame : frames_) {
            frame.create(static_cast<int>(plane.height), static_cast<int>(plane.width), CV_8U);
        }
    }
    bool lists_corners() const override { return false; }
    void give(std::size_t lane, const std::uint8_t* pixels) override {
        std::copy_n(pixels, kernels::size_of(plane_), frames_[lane].data);
    }
    std::uint64_t take(std::size_t lane) override {
        constexpr int across = 2 * static_cast<int>(camera_rule.radius) + 1;
        static const cv::Mat nearby = cv::Mat::ones(across, across, CV_8U);
        cv::GaussianBlur(frames_[lane], filtered_, cv::Size(5, 5), 0, 0, cv::BORDER_REPLICATE);
        cv::cornerHarris(filtered_, response_, 5, 3, 0.04, cv::BORDER_REPLICATE);
        cv::dilate(response_, greatest_, nearby);
        return static_cast<std::uint64_t>(greatest_.at<float>(0, 0) != 0.0f);
    }

private:
    Plane plane_;
    cv::Mat frames_[camera_lanes], filtered_, response_, greatest_;
};
#endif

#if defined(ISTHMUS_BENCH_NPP)
// Harris alone, without filter, maxima and list: less than the others do.
class Npp final : public Way {
public:
    explicit Npp(const Plane& plane) : plane_(plane) {
        const NppiSize size{static_cast<int>(plane.width), static_cast<int>(plane.height)};
        int scratch = 0;
        good_ = nppiFilterHarrisCornersBorderGetBufferSize(size, &scratch) == NPP_SUCCESS &&
                cudaMalloc(&scratch_, static_cast<std::size_t>(scratch)) == cudaSuccess;
        for (Lane& lane : lanes_) {
            good_ = good_ && cudaStreamCreate(&lane.stream) == cudaSuccess &&
                    cudaMallocHost(&lane.host, kernels::size_of(plane)) == cudaSuccess &&
                    cudaMalloc(&lane.frame, kernels::size_of(plane)) == cudaSuccess &&
                    cudaMalloc(&lane.response, 4 * kernels::size_of(plane)) == cudaSuccess;
        }
        int device = 0;
        cudaDeviceProp facts{};
        good_ =
            good_ && cudaGetDevice(&device) == cudaSuccess && cudaGetDeviceProperties(&facts, device) == cudaSuccess;
        context_.nCudaDeviceId = device;
        context_.nMultiProcessorCount = facts.multiProcessorCount;
        context_.nMaxThreadsPerMultiProcessor = facts.maxThreadsPerMultiProcessor;
        context_.nMaxThreadsPerBlock = facts.maxThreadsPerBlock;
        context_.nSharedMemPerBlock = facts.sharedMemPerBlock;
        context_.nCudaDevAttrComputeCapabilityMajor = facts.major;
        context_.nCudaDevAttrComputeCapabilityMinor = facts.minor;
    }
    ~Npp() override {
        for (Lane& lane : lanes_) {
            (void)cudaStreamSynchronize(lane.stream);
            (void)cudaFreeHost(lane.host);
            (void)cudaFree(lane.frame);
            (void)cudaFree(lane.response);
            (void)cudaStreamDestroy(lane.stream);
        }
        (void)cudaFree(scratch_);
    }
    bool ready() const override { return good_; }
    bool lists_corners() const override { return false; }
    void give(std::size_t at, const std::uint8_t* pixels) override {
        Lane& lane = lanes_[at];
        std::copy_n(pixels, kernels::size_of(plane_), lane.host);
        (void)cudaMemcpyAsync(lane.frame, lane.host, kernels::size_of(plane_), cudaMemcpyHostToDevice, lane.stream);
        context_.hStream = lane.stream;
        const NppiSize size{static_cast<int>(plane_.width), static_cast<int>(plane_.height)};
        const int pitch = static_cast<int>(plane_.pitch);
        good_ = nppiFilterHarrisCornersBorder_8u32f_C1R_Ctx(lane.frame, pitch, size, {0, 0}, lane.response, 4 * pitch,
                                                            size, NPP_FILTER_SOBEL, NPP_MASK_SIZE_3_X_3,
                                                            NPP_MASK_SIZE_5_X_5, 0.04f, 1.0f, NPP_BORDER_REPLICATE,
                                                            scratch_, context_) == NPP_SUCCESS;
        copied_ += kernels::size_of(plane_);
    }
    std::uint64_t take(std::size_t at) override {
        (void)cudaStreamSynchronize(lanes_[at].stream);
        return good_ ? 1 : 0;
    }
    std::uint64_t bytes_copied() const override { return copied_; }

private:
    struct Lane {
        cudaStream_t stream = nullptr;
        std::uint8_t *host = nullptr, *frame = nullptr;
        float* response = nullptr;
    };
    Plane plane_;
    Lane lanes_[camera_lanes];
    std::uint8_t* scratch_ = nullptr;
    NppStreamContext context_{};
    std::uint64_t copied_ = 0;
    bool good_ = false;
};
#endif

}  // namespace

std::unique_ptr<Way> isthmus_way(Device& device, const Plane& plane, bool copied) {
    return std::make_unique<Isthmus>(device, plane, copied);
}
std::unique_ptr<Way> opencv_way([[maybe_unused]] const Plane& plane) {
#if defined(ISTHMUS_BENCH_OPENCV)
    return std::make_unique<OpenCv>(plane);
#else
    return nullptr;
#endif
}
std::unique_ptr<Way> npp_way([[maybe_unused]] const Plane& plane) {
#if defined(ISTHMUS_BENCH_NPP)
    return std::make_unique<Npp>(plane);
#else
    return nullptr;
#endif
}

}  // namespace bench
