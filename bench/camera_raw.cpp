// SPDX-License-Identifier: Apache-2.0
// Plain CUDA: memory, launches, graphs and copies by the driver's functions.
#include "camera_raw.hpp"

#include "raw_driver.hpp"

#include <algorithm>
#include <chrono>

namespace bench {
namespace {

using isthmus::Blocks;
using isthmus::Extent;
using isthmus::kernels::Corner;
using isthmus::kernels::CornerCount;
using isthmus::kernels::Plane;
namespace kernels = isthmus::kernels;

struct Driver : RawDriver {
    struct Params {  // as CUDA_KERNEL_NODE_PARAMS
        Handle function;
        unsigned grid[3], block[3], shared;
        void** arguments;
        void** extra;
        Handle kernel, context;
    };
    int (*host_allocate)(void**, std::size_t, unsigned) = nullptr;
    int (*host_free)(void*) = nullptr;
    int (*to_device)(std::uint64_t, const void*, std::size_t, Handle) = nullptr;
    int (*to_host)(void*, std::uint64_t, std::size_t, Handle) = nullptr;
    int (*begin)(Handle, int) = nullptr;
    int (*end)(Handle, Handle*) = nullptr;
    int (*info)(Handle, int*, std::uint64_t*, Handle*, const Handle**, std::size_t*) = nullptr;
    int (*instantiate)(Handle*, Handle, unsigned long long) = nullptr;
    int (*graph_launch)(Handle, Handle) = nullptr;
    int (*set_params)(Handle, Handle, const Params*) = nullptr;
    int (*destroy_graph)(Handle) = nullptr;
    int (*destroy_instance)(Handle) = nullptr;
    Handle copy = nullptr, first = nullptr, rows = nullptr, join = nullptr;  // the functions

    bool find_all() {
        return open() && prepare_device() && find(host_allocate, "cuMemHostAlloc") &&
               find(host_free, "cuMemFreeHost") && find(to_device, "cuMemcpyHtoDAsync_v2") &&
               find(to_host, "cuMemcpyDtoHAsync_v2") && find(begin, "cuStreamBeginCapture_v2") &&
               find(end, "cuStreamEndCapture") && find(info, "cuStreamGetCaptureInfo_v2") &&
               find(instantiate, "cuGraphInstantiateWithFlags") && find(graph_launch, "cuGraphLaunch") &&
               find(set_params, "cuGraphExecKernelNodeSetParams_v2") && find(destroy_graph, "cuGraphDestroy") &&
               find(destroy_instance, "cuGraphExecDestroy") && load_one(kernels::copy_luma.info(), copy) &&
               load_one(kernels::frame_response.info(), first) && load_one(kernels::row_corners.info(), rows) &&
               load_one(kernels::join_corners.info(), join);
    }
    bool load_one(const isthmus::KernelInfo& kernel, Handle& entry) {
        Handle image = nullptr;
        return kernel.image != nullptr && kernel.image->has_gpu_code && load(&image, kernel.image->data) == 0 &&
               function(&entry, image, kernel.symbol) == 0;
    }
};

// The argument lists of the kernels. copy_luma has items, the others blocks.
struct Arguments {
    Extent runs{}, tiles{}, each_row{}, groups{};
    decltype(kernels::copy_luma)::Traits::Pack copy{};
    decltype(kernels::frame_response)::Traits::Pack first{};
    decltype(kernels::row_corners)::Traits::Pack rows{};
    decltype(kernels::join_corners)::Traits::Pack join{};
};
Extent extent_of(const Blocks& blocks) {
    return {blocks.x, blocks.y, blocks.z};
}

// The memory of one frame in flight. An address is the same for CPU and GPU where both use the memory.
struct Lane {
    RawDriver::Handle stream = nullptr;
    std::uint8_t* host_frame[2] = {};
    Corner* host_corners = nullptr;
    CornerCount* host_count = nullptr;
    std::uint64_t frame = 0, corners = 0, count = 0;  // in the device, for copies
    std::uint64_t luma = 0, response = 0, rows = 0, columns = 0;
    std::size_t turn = 0;
    RawDriver::Handle graph = nullptr, instance = nullptr, node = nullptr;

    bool allocate(Driver& driver, const Plane& plane) {
        const std::size_t pixels = kernels::size_of(plane);
        const auto pinned = [&](auto*& into, std::size_t bytes) {
            return driver.host_allocate(reinterpret_cast<void**>(&into), bytes, 0) == 0;
        };
        return driver.stream_create(&stream, 1) == 0 && pinned(host_frame[0], pixels) &&
               pinned(host_frame[1], pixels) && pinned(host_corners, camera_capacity(plane) * sizeof(Corner)) &&
               pinned(host_count, sizeof(CornerCount)) && driver.allocate(&frame, pixels) == 0 &&
               driver.allocate(&corners, camera_capacity(plane) * sizeof(Corner)) == 0 &&
               driver.allocate(&count, sizeof(CornerCount)) == 0 &&
               driver.allocate(&luma, kernels::size_of(luma_plane(plane))) == 0 &&
               driver.allocate(&response, 4 * pixels) == 0 && driver.allocate(&columns, 2 * pixels) == 0 &&
               driver.allocate(&rows, std::size_t{plane.height} * 4) == 0;
    }
    void release(Driver& driver) {
        (void)driver.stream_sync(stream);
        if (instance != nullptr) (void)driver.destroy_instance(instance);
        if (graph != nullptr) (void)driver.destroy_graph(graph);
        for (void* const host : {static_cast<void*>(host_frame[0]), static_cast<void*>(host_frame[1]),
                                 static_cast<void*>(host_corners), static_cast<void*>(host_count)}) {
            (void)driver.host_free(host);
        }
        for (const std::uint64_t memory : {frame, corners, count, luma, response, columns, rows})
            (void)driver.free(memory);
        (void)driver.stream_destroy(stream);
    }
};

template <class T>
T* pointer(std::uint64_t address) {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}

// `in_place`: the frame lies in host memory, and copy_luma comes first.
Arguments arguments_of(const Plane& plane, const Lane& lane, const std::uint8_t* frame, Corner* corners,
                       CornerCount* count, bool in_place) {
    const std::size_t pixels = kernels::size_of(plane);
    auto* const response = pointer<std::int32_t>(lane.response);
    auto* const rows = pointer<std::uint32_t>(lane.rows);
    auto* const columns = pointer<std::uint16_t>(lane.columns);
    Arguments made;
    made.tiles = extent_of(kernels::response_tiles(plane));
    made.each_row = extent_of(Blocks(plane.height));
    made.groups = extent_of(kernels::row_groups(plane));
    const Plane luma = luma_plane(plane);
    auto* const copied = pointer<std::uint8_t>(lane.luma);
    const kernels::LumaLayout layout = kernels::luma_layout(kernels::PixelFormat::gray, plane.pitch);
    made.runs = {kernels::luma_runs(plane).width, kernels::luma_runs(plane).height, 1};
    made.copy =
        decltype(kernels::copy_luma)::Traits::pack({copied, kernels::size_of(luma)}, luma, {frame, pixels}, layout);
    made.first =
        in_place ? decltype(kernels::frame_response)::Traits::pack({response, pixels}, plane,
                                                                   {copied, kernels::size_of(luma)}, {0, luma.pitch, 1})
                 : decltype(kernels::frame_response)::Traits::pack({response, pixels}, plane, {frame, pixels}, layout);
    made.rows = decltype(kernels::row_corners)::Traits::pack({rows, plane.height}, {columns, pixels},
                                                             {response, pixels}, plane, camera_rule);
    made.join = decltype(kernels::join_corners)::Traits::pack({corners, camera_capacity(plane)}, {count, 1},
                                                              {rows, plane.height}, {columns, pixels},
                                                              {response, pixels}, plane);
    return made;
}

template <class Pack>
void launch_one(Driver& driver, RawDriver::Handle entry, unsigned threads, Extent& blocks, Pack& pack,
                RawDriver::Handle stream) {
    void* arguments[] = {&blocks, &pack};
    (void)driver.launch(entry, static_cast<unsigned>(blocks.x), static_cast<unsigned>(blocks.y), 1, threads, 1, 1, 0,
                        stream, arguments, nullptr);
}
// Blocks of 32 × 8 threads, as the library launches items of two dimensions.
unsigned blocks_of(std::uint64_t items, unsigned threads) {
    return static_cast<unsigned>((items + threads - 1) / threads);
}
void launch_copy(Driver& driver, Arguments& arguments, RawDriver::Handle stream) {
    void* list[] = {&arguments.runs, &arguments.copy};
    (void)driver.launch(driver.copy, blocks_of(arguments.runs.x, 32), blocks_of(arguments.runs.y, 8), 1, 32, 8, 1, 0,
                        stream, list, nullptr);
}
void launch_three(Driver& driver, Arguments& arguments, RawDriver::Handle stream) {
    launch_one(driver, driver.first, kernels::tile_threads, arguments.tiles, arguments.first, stream);
    launch_one(driver, driver.rows, kernels::row_threads, arguments.each_row, arguments.rows, stream);
    launch_one(driver, driver.join, kernels::row_threads, arguments.groups, arguments.join, stream);
}
void launch_all(Driver& driver, Arguments& arguments, RawDriver::Handle stream) {
    launch_copy(driver, arguments, stream);
    launch_three(driver, arguments, stream);
}

class RawWay final : public Way {
public:
    RawWay(const Plane& plane, Raw how) : plane_(plane), how_(how) {
        good_ = driver_.find_all();
        for (Lane& lane : lanes_) good_ = good_ && lane.allocate(driver_, plane);
        if (!good_ || how != Raw::graph) return;
        for (Lane& lane : lanes_) record(lane);
    }
    ~RawWay() override {
        if (!good_) return;
        for (Lane& lane : lanes_) lane.release(driver_);
    }
    bool ready() const override { return good_; }
    void give(std::size_t at, const std::uint8_t* pixels) override {
        Lane& lane = lanes_[at];
        std::uint8_t* const frame = lane.host_frame[lane.turn++ % 2];
        const std::size_t size = kernels::size_of(plane_);
        std::copy_n(pixels, size, frame);
        if (how_ == Raw::copies) {
            Arguments arguments = arguments_of(plane_, lane, pointer<const std::uint8_t>(lane.frame),
                                               pointer<Corner>(lane.corners), pointer<CornerCount>(lane.count), false);
            (void)driver_.to_device(lane.frame, frame, size, lane.stream);
            launch_three(driver_, arguments, lane.stream);
            (void)driver_.to_host(lane.host_count, lane.count, sizeof(CornerCount), lane.stream);
            (void)driver_.to_host(lane.host_corners, lane.corners, usual * sizeof(Corner), lane.stream);
            copied_ += size + sizeof(CornerCount) + usual * sizeof(Corner);
            return;
        }
        Arguments arguments = arguments_of(plane_, lane, frame, lane.host_corners, lane.host_count, true);
        if (how_ == Raw::launches) return launch_all(driver_, arguments, lane.stream);
        void* first[] = {&arguments.runs, &arguments.copy};
        const Driver::Params params{driver_.copy, {blocks_of(arguments.runs.x, 32), blocks_of(arguments.runs.y, 8), 1},
                                    {32, 8, 1},   0,
                                    first,        nullptr,
                                    nullptr,      nullptr};
        (void)driver_.set_params(lane.instance, lane.node, &params);
        (void)driver_.graph_launch(lane.instance, lane.stream);
    }
    std::uint64_t take(std::size_t at) override {
        Lane& lane = lanes_[at];
        (void)driver_.stream_sync(lane.stream);
        if (how_ == Raw::copies && lane.host_count->listed > usual) {  // seldom: the rest of the list
            const std::size_t rest = (lane.host_count->listed - usual) * sizeof(Corner);
            (void)driver_.to_host(lane.host_corners + usual, lane.corners + usual * sizeof(Corner), rest, lane.stream);
            (void)driver_.stream_sync(lane.stream);
            copied_ += rest;
        }
        return digest_of(lane.host_corners, *lane.host_count);
    }
    std::uint64_t bytes_copied() const override { return copied_; }

private:
    static constexpr std::size_t usual = 1024;  // corners that come back with their number

    void record(Lane& lane) {
        Arguments arguments = arguments_of(plane_, lane, lane.host_frame[0], lane.host_corners, lane.host_count, true);
        (void)driver_.begin(lane.stream, 1);
        launch_copy(driver_, arguments, lane.stream);
        int status = 0;
        const RawDriver::Handle* last = nullptr;
        std::size_t count = 0;
        (void)driver_.info(lane.stream, &status, nullptr, nullptr, &last, &count);
        if (count == 1) lane.node = last[0];
        launch_three(driver_, arguments, lane.stream);
        good_ = good_ && driver_.end(lane.stream, &lane.graph) == 0 &&
                driver_.instantiate(&lane.instance, lane.graph, 0) == 0 && lane.node != nullptr;
    }

    Plane plane_;
    Raw how_;
    Driver driver_{};
    Lane lanes_[camera_lanes];
    std::uint64_t copied_ = 0;
    bool good_ = false;
};

class AloneKernels final : public RawKernels {
public:
    explicit AloneKernels(const Plane& plane) : plane_(plane) {
        good = driver_.find_all() && lane_.allocate(driver_, plane);
    }
    ~AloneKernels() override {
        if (good) lane_.release(driver_);
    }
    void write(const std::uint8_t* pixels) override {
        std::copy_n(pixels, kernels::size_of(plane_), lane_.host_frame[0]);
        (void)driver_.to_device(lane_.frame, lane_.host_frame[0], kernels::size_of(plane_), lane_.stream);
        (void)driver_.stream_sync(lane_.stream);
    }
    std::vector<std::pair<std::string, double>> measure() override {
        Arguments in_place =
            arguments_of(plane_, lane_, lane_.host_frame[0], lane_.host_corners, lane_.host_count, true);
        Arguments direct =
            arguments_of(plane_, lane_, lane_.host_frame[0], lane_.host_corners, lane_.host_count, false);
        const RawDriver::Handle on = lane_.stream;
        const auto tiles = [&](Arguments& of) {
            launch_one(driver_, driver_.first, kernels::tile_threads, of.tiles, of.first, on);
        };
        launch_all(driver_, in_place, on);
        (void)driver_.stream_sync(on);
        return {{"copy_luma", timed([&] { launch_copy(driver_, in_place, on); })},
                {"frame_response", timed([&] { tiles(in_place); })},
                {"frame_response_over_the_link", timed([&] { tiles(direct); })},
                {"row_corners", timed([&] {
                     launch_one(driver_, driver_.rows, kernels::row_threads, in_place.each_row, in_place.rows, on);
                 })},
                {"join_corners", timed([&] {
                     launch_one(driver_, driver_.join, kernels::row_threads, in_place.groups, in_place.join, on);
                 })},
                {"all_four", timed([&] { launch_all(driver_, in_place, on); })}};
    }
    bool good = false;

private:
    template <class Launch>
    double timed(Launch launch) {
        constexpr int launches = 100;
        RawDriver::Handle graph = nullptr, instance = nullptr;
        (void)driver_.begin(lane_.stream, 1);
        for (int n = 0; n < launches; ++n) launch();
        (void)driver_.end(lane_.stream, &graph);
        (void)driver_.instantiate(&instance, graph, 0);
        double least = 0;
        for (int n = 0; n < 5; ++n) {
            const auto begin = std::chrono::steady_clock::now();
            (void)driver_.graph_launch(instance, lane_.stream);
            (void)driver_.stream_sync(lane_.stream);
            const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
            if (n == 1 || (n > 1 && took.count() < least)) least = took.count();
        }
        (void)driver_.destroy_instance(instance);
        (void)driver_.destroy_graph(graph);
        return least / launches;
    }

    Plane plane_;
    Driver driver_{};
    Lane lane_{};
};

}  // namespace

std::unique_ptr<Way> raw_way(const Plane& plane, Raw how) {
    return std::make_unique<RawWay>(plane, how);
}

std::unique_ptr<RawKernels> raw_kernels(const Plane& plane) {
    auto made = std::make_unique<AloneKernels>(plane);
    return made->good ? std::move(made) : nullptr;
}

}  // namespace bench
