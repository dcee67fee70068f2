// SPDX-License-Identifier: Apache-2.0
// The plugin's memory, pools and rings in one process, with the device's kernels beside them.
#include "elements.hpp"
#include "foreign.hpp"
#include "foreign_copy.hpp"
#include "incoming.hpp"
#include "layout.hpp"
#include "memory.hpp"
#include "pool.hpp"
#include "ring_pool.hpp"

#include "no_more_threads.hpp"
#include "share/ring_message.hpp"

#include <isthmus/kernels/camera.hpp>

#include <gst/allocators/gstdmabuf.h>
#include <gst/gst.h>
#include <gst/video/video.h>
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace isthmus::gst {
namespace {

// One session for each test; the environment names the machine.
class GStreamer : public testing::Test {
protected:
    void SetUp() override {
        gst_init(nullptr, nullptr);
        Result<OpenSession> opened = open_session({});
        ASSERT_TRUE(opened) << opened.error().text();
        opened_.emplace(std::move(opened).value());
        allocator_ = make_allocator(*opened_);
    }
    GstMemory* allocate(gsize size, gsize align = 0) const {
        GstAllocationParams params{};
        params.align = align;
        return gst_allocator_alloc(allocator_.get(), size, &params);
    }
    Device& device() const { return *opened_->device; }

    std::optional<OpenSession> opened_;
    AllocatorPointer allocator_;
};

using Memory = GStreamer;
using Pool = GStreamer;
using SlotsOfARing = GStreamer;
using Frames = GStreamer;

// keeps Y4
TEST_F(Memory, WhatIsWrittenByAMapIsReadByTheNext) {
    GstMemory* const memory = allocate(1000);
    ASSERT_NE(memory, nullptr);
    EXPECT_TRUE(gst_memory_is_type(memory, "IsthmusMemory"));
    GstMapInfo map;
    ASSERT_TRUE(gst_memory_map(memory, &map, GST_MAP_WRITE));
    EXPECT_EQ(map.size, 1000u);
    for (gsize at = 0; at < map.size; ++at) map.data[at] = static_cast<guint8>(at);
    gst_memory_unmap(memory, &map);
    ASSERT_TRUE(gst_memory_map(memory, &map, GST_MAP_READ));
    for (gsize at = 0; at < map.size; ++at) ASSERT_EQ(map.data[at], static_cast<guint8>(at));
    gst_memory_unmap(memory, &map);
    gst_memory_unref(memory);
}

// keeps Y4
TEST_F(Memory, MapsAreHostViews) {
    GstMemory* const memory = allocate(4096);
    const Buffer<std::uint8_t>* const buffer = whole_buffer(memory, device());
    ASSERT_NE(buffer, nullptr);
    GstMapInfo map, second;
    ASSERT_TRUE(gst_memory_map(memory, &map, GST_MAP_WRITE));
    EXPECT_EQ(buffer->read_on_host().code(), Code::in_use);  // the map holds the buffer
    ASSERT_TRUE(gst_memory_map(memory, &second, GST_MAP_WRITE));
    gst_memory_unmap(memory, &second);
    EXPECT_EQ(buffer->read_on_host().code(), Code::in_use);  // until the last one ends
    gst_memory_unmap(memory, &map);
    EXPECT_TRUE(buffer->read_on_host());
    {
        Result<HostView<const std::uint8_t>> view = buffer->read_on_host();
        ASSERT_TRUE(view);
        EXPECT_FALSE(gst_memory_map(memory, &map, GST_MAP_WRITE));  // refused as a view is
        ASSERT_TRUE(gst_memory_map(memory, &map, GST_MAP_READ));    // two readers
        gst_memory_unmap(memory, &map);
    }
    EXPECT_TRUE(gst_memory_map(memory, &map, GST_MAP_WRITE));
    gst_memory_unmap(memory, &map);
    gst_memory_unref(memory);
}

// keeps Y4
TEST_F(Memory, AMapWaitsForTheKernelBeforeIt) {
    constexpr std::uint32_t width = 64, height = 64;
    GstMemory* const from = allocate(width * height);
    GstMemory* const to = allocate(width * height);
    GstMapInfo map;
    ASSERT_TRUE(gst_memory_map(from, &map, GST_MAP_WRITE));
    for (gsize at = 0; at < map.size; ++at) map.data[at] = static_cast<guint8>(at * 7);
    const kernels::Plane plane{width, height, width};
    auto* const source = const_cast<Buffer<std::uint8_t>*>(whole_buffer(from, device()));
    auto* const target = const_cast<Buffer<std::uint8_t>*>(whole_buffer(to, device()));
    const auto launch = [&] {
        return device().launch(kernels::to_gray, Extent2{width, height}, *target, plane, *source,
                               kernels::LumaLayout{0, width, 1});
    };
    EXPECT_EQ(launch().code(), Code::in_use);  // a kernel and a map for writing never meet
    gst_memory_unmap(from, &map);
    ASSERT_TRUE(launch());
    ASSERT_TRUE(gst_memory_map(to, &map, GST_MAP_READ));
    for (gsize at = 0; at < map.size; ++at) ASSERT_EQ(map.data[at], static_cast<guint8>(at * 7));
    gst_memory_unmap(to, &map);
    gst_memory_unref(from);
    gst_memory_unref(to);
}

// keeps Y4
TEST_F(Memory, APartIsAMemoryOfItsOwn) {
    GstMemory* const memory = allocate(256);
    GstMapInfo map;
    ASSERT_TRUE(gst_memory_map(memory, &map, GST_MAP_WRITE));
    for (gsize at = 0; at < 256; ++at) map.data[at] = static_cast<guint8>(at);
    gst_memory_unmap(memory, &map);
    GstMemory* const part = gst_memory_share(memory, 100, 50);
    ASSERT_NE(part, nullptr);
    GstMemory* const further = gst_memory_share(part, 10, -1);
    ASSERT_NE(further, nullptr);
    ASSERT_TRUE(gst_memory_map(part, &map, GST_MAP_READ));
    EXPECT_EQ(map.size, 50u);
    EXPECT_EQ(map.data[0], 100);
    gst_memory_unmap(part, &map);
    ASSERT_TRUE(gst_memory_map(further, &map, GST_MAP_READ));
    EXPECT_EQ(map.size, 40u);
    EXPECT_EQ(map.data[0], 110);
    gst_memory_unmap(further, &map);
    EXPECT_EQ(whole_buffer(part, device()), nullptr);        // a kernel would get the whole
    EXPECT_EQ(gst_memory_share(memory, 200, 100), nullptr);  // beyond the end
    gst_memory_unref(further);
    gst_memory_unref(memory);
    ASSERT_TRUE(gst_memory_map(part, &map, GST_MAP_READ));  // it keeps the whole
    gst_memory_unmap(part, &map);
    gst_memory_unref(part);
}

// keeps Y4
TEST_F(Memory, AlignmentPrefixAndZerosAreAsAskedFor) {
    for (const gsize align : {gsize{63}, gsize{4095}, gsize{8191}}) {
        GstAllocationParams params{};
        params.align = align;
        params.prefix = 64;
        params.padding = 32;
        params.flags = static_cast<GstMemoryFlags>(GST_MEMORY_FLAG_ZERO_PREFIXED | GST_MEMORY_FLAG_ZERO_PADDED);
        GstMemory* const memory = gst_allocator_alloc(allocator_.get(), 1000, &params);
        ASSERT_NE(memory, nullptr);
        GstMapInfo map;
        ASSERT_TRUE(gst_memory_map(memory, &map, GST_MAP_READ));
        EXPECT_EQ((reinterpret_cast<std::uintptr_t>(map.data) - params.prefix) & align, 0u);
        EXPECT_EQ(map.size, 1000u);
        for (gsize at = 1; at <= params.prefix; ++at) EXPECT_EQ(map.data[-static_cast<std::ptrdiff_t>(at)], 0);
        for (gsize at = 0; at < params.padding; ++at) EXPECT_EQ(map.data[1000 + at], 0);
        gst_memory_unmap(memory, &map);
        EXPECT_EQ(whole_buffer(memory, device()), nullptr);  // it begins within its buffer
        gst_memory_unref(memory);
    }
}

// keeps Y4
TEST_F(Memory, OnlyMemoryOfTheDeviceIsForItsKernels) {
    GstMemory* const ours = allocate(64);
    GstMemory* const systems = gst_allocator_alloc(nullptr, 64, nullptr);
    EXPECT_NE(whole_buffer(ours, device()), nullptr);
    EXPECT_EQ(whole_buffer(systems, device()), nullptr);
    if (!device().is_cpu()) {
        EXPECT_EQ(whole_buffer(ours, opened_->session->runtime.cpu()), nullptr);
    }
    gst_memory_unref(ours);
    gst_memory_unref(systems);
}

// keeps Y4
TEST_F(Memory, WhatAnotherDeviceOrMachineIsAskedForIsRefused) {
    EXPECT_EQ(open_session({.device = "4711", .machine = {}}).code(), Code::invalid_argument);
    EXPECT_EQ(open_session({.device = "GPU-nonsense", .machine = {}}).code(), Code::invalid_argument);
    Result<OpenSession> again = open_session({.device = "cpu", .machine = {}});
    ASSERT_TRUE(again);
    EXPECT_EQ(again->session, opened_->session);  // one runtime for the process
    EXPECT_TRUE(again->device->is_cpu());
}

GstCaps* caps_of(const char* format, int width, int height) {
    return gst_caps_new_simple("video/x-raw", "format", G_TYPE_STRING, format, "width", G_TYPE_INT, width, "height",
                               G_TYPE_INT, height, "framerate", GST_TYPE_FRACTION, 30, 1, nullptr);
}

// keeps Y4
TEST_F(Pool, ItsFramesLieAsTheirCapsSayInMemoryOfTheAllocator) {
    GstCaps* const caps = caps_of("I420", 99, 75);
    GstQuery* const query = gst_query_new_allocation(caps, TRUE);
    ASSERT_FALSE(is_proposed(query));
    ASSERT_TRUE(propose(query, allocator_.get(), nullptr));
    EXPECT_TRUE(is_proposed(query));
    EXPECT_TRUE(gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr));
    GstBufferPool* pool = nullptr;
    guint size = 0, least = 0, most = 0;
    gst_query_parse_nth_allocation_pool(query, 0, &pool, &size, &least, &most);
    ASSERT_NE(pool, nullptr);
    ASSERT_TRUE(gst_buffer_pool_set_active(pool, TRUE));
    GstBuffer* buffer = nullptr;
    ASSERT_EQ(gst_buffer_pool_acquire_buffer(pool, &buffer, nullptr), GST_FLOW_OK);
    EXPECT_NE(whole_buffer(gst_buffer_peek_memory(buffer, 0), device()), nullptr);
    GstVideoInfo info;
    ASSERT_TRUE(gst_video_info_from_caps(&info, caps));
    EXPECT_TRUE(same_planes(layout_of(buffer, info).value(), layout_of(info)));
    GstVideoFrame frame;
    ASSERT_TRUE(gst_video_frame_map(&frame, &info, buffer, GST_MAP_WRITE));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(GST_VIDEO_FRAME_PLANE_DATA(&frame, 0)) % 64, 0u);
    gst_video_frame_unmap(&frame);
    gst_buffer_unref(buffer);
    gst_buffer_pool_set_active(pool, FALSE);
    gst_object_unref(pool);
    gst_query_unref(query);
    gst_caps_unref(caps);

    GstCaps* const audio = gst_caps_new_empty_simple("audio/x-raw");
    GstQuery* const strange = gst_query_new_allocation(audio, TRUE);
    EXPECT_FALSE(propose(strange, allocator_.get(), nullptr));
    gst_query_unref(strange);
    gst_caps_unref(audio);
}

// A pool of a ring of gray frames, as the sink proposes it.
struct RingAndPool {
    std::shared_ptr<Ring> ring;
    GstPad* pad = nullptr;
    GstBufferPool* pool = nullptr;
    GstVideoInfo info{};

    RingAndPool(Device& device, GstAllocator* allocator, guint least, const char* format = "GRAY8", int width = 64,
                std::uint32_t slots = 2) {
        GstCaps* const caps = caps_of(format, width, 48);
        gst_video_info_from_caps(&info, caps);
        ring = Ring::create(device, shape_of(info).value(), {.slots = slots}).value();
        pad = gst_pad_new("sink", GST_PAD_SINK);
        gst_object_ref_sink(pad);
        gst_pad_set_active(pad, TRUE);
        pool = make_ring_pool(allocator, ring, pad);
        GstStructure* const config = gst_buffer_pool_get_config(pool);
        gst_buffer_pool_config_set_params(config, caps, static_cast<guint>(GST_VIDEO_INFO_SIZE(&info)), least, 0);
        gst_buffer_pool_set_config(pool, config);
        gst_caps_unref(caps);
        gst_buffer_pool_set_active(pool, TRUE);
    }
    RingAndPool(const RingAndPool&) = delete;
    RingAndPool& operator=(const RingAndPool&) = delete;
    ~RingAndPool() {
        gst_buffer_pool_set_active(pool, FALSE);
        gst_object_unref(pool);
        gst_object_unref(pad);
    }
    GstBuffer* acquire() const {
        GstBuffer* buffer = nullptr;
        return gst_buffer_pool_acquire_buffer(pool, &buffer, nullptr) == GST_FLOW_OK ? buffer : nullptr;
    }
    Ring::Slot* slot(GstBuffer* buffer) const { return slot_of(buffer, info, *ring); }
};

// keeps Y4
TEST_F(SlotsOfARing, AreLentOneAtATimeAndOtherFramesGoBeforeTheNext) {
    for (const std::uint32_t slots : {2u, 4u}) {  // of four, the ring itself would give out two
        SCOPED_TRACE(slots);
        RingAndPool some(device(), allocator_.get(), 0, "GRAY8", 64, slots);
        GstBuffer* const first = some.acquire();
        GstBuffer* const second = some.acquire();
        EXPECT_NE(some.slot(first), nullptr);
        EXPECT_EQ(some.slot(second), nullptr);  // it will be copied
        EXPECT_EQ(Ring::begin(some.ring).code(), Code::in_use);
        ASSERT_TRUE(some.slot(first)->publish());
        gst_buffer_unref(first);
        GstBuffer* const third = some.acquire();
        EXPECT_EQ(some.slot(third), nullptr);  // a slot would come after the second frame, and be filled before it
        gst_buffer_unref(second);
        gst_buffer_unref(third);
        GstBuffer* const fourth = some.acquire();
        EXPECT_NE(some.slot(fourth), nullptr);
        gst_buffer_unref(fourth);  // not published: its number goes to the next frame
        EXPECT_TRUE(Ring::begin(some.ring));
    }
}

// keeps Y4
TEST_F(SlotsOfARing, ArePublishedOnceAndNotWrittenAfterThat) {
    RingAndPool some(device(), allocator_.get(), 0);
    GstBuffer* const buffer = some.acquire();
    GstMemory* const memory = gst_buffer_peek_memory(buffer, 0);
    GstMapInfo map;
    ASSERT_TRUE(gst_memory_map(memory, &map, GST_MAP_WRITE));
    EXPECT_EQ(some.slot(buffer)->publish().code(), Code::in_use);  // still mapped
    gst_memory_unmap(memory, &map);
    ASSERT_TRUE(some.slot(buffer)->publish());
    EXPECT_EQ(some.slot(buffer)->publish().code(), Code::invalid_handle);
    EXPECT_FALSE(gst_memory_map(memory, &map, GST_MAP_WRITE));
    ASSERT_TRUE(gst_memory_map(memory, &map, GST_MAP_READ));
    gst_memory_unmap(memory, &map);
    gst_buffer_unref(buffer);
}

// keeps Y4
TEST_F(SlotsOfARing, AreNotFilledAgainWhileThisProcessHasTheFrame) {
    RingAndPool some(device(), allocator_.get(), 0);  // of two slots
    GstBuffer* const kept = some.acquire();
    ASSERT_TRUE(some.slot(kept)->publish());
    ASSERT_TRUE(Ring::begin(some.ring).value()->publish());
    EXPECT_EQ(Ring::begin(some.ring).code(), Code::not_ready);
    gst_buffer_unref(kept);
    EXPECT_TRUE(Ring::begin(some.ring));
    some.ring->close();
    EXPECT_EQ(Ring::begin(some.ring).code(), Code::ended);
}

// keeps Y4
TEST_F(SlotsOfARing, AreForThoseThatHoldOneFrameInTheRingsLayout) {
    RingAndPool several(device(), allocator_.get(), 3);  // upstream wants three frames at a time
    GstBuffer* buffer = several.acquire();
    EXPECT_EQ(several.slot(buffer), nullptr);
    gst_buffer_unref(buffer);
    RingAndPool odd(device(), allocator_.get(), 0, "I420", 99);  // and does not say that it knows GstVideoMeta
    EXPECT_FALSE(has_usual_layout(odd.ring->shape()));
    buffer = odd.acquire();
    EXPECT_EQ(odd.slot(buffer), nullptr);
    gst_buffer_unref(buffer);
    RingAndPool even(device(), allocator_.get(), 0, "I420", 64);
    EXPECT_TRUE(has_usual_layout(even.ring->shape()));
    buffer = even.acquire();
    EXPECT_NE(even.slot(buffer), nullptr);
    gst_buffer_unref(buffer);
}

// keeps Y4
TEST_F(SlotsOfARing, AreLentWhereUpstreamWantsOneFrameMadeBeforehand) {
    RingAndPool some(device(), allocator_.get(), 1);  // which the pool makes when it starts
    for (int round = 0; round < 2; ++round) {
        SCOPED_TRACE(round);
        GstBuffer* const first = some.acquire();
        EXPECT_NE(some.slot(first), nullptr);
        GstBuffer* const second = some.acquire();
        EXPECT_EQ(some.slot(second), nullptr);
        gst_buffer_unref(first);
        GstBuffer* const third = some.acquire();
        EXPECT_EQ(some.slot(third), nullptr);  // a slot would come after the second frame
        gst_buffer_unref(third);
        gst_buffer_unref(second);
        gst_buffer_pool_set_active(some.pool, FALSE);
        gst_buffer_pool_set_active(some.pool, TRUE);
    }
}

// Without their pool, its pad, the allocator and the session, in parts, on another thread.
// keeps Y4
TEST_F(SlotsOfARing, OutliveAllElse) {
    for (const bool published : {false, true}) {
        SCOPED_TRACE(published);
        if (!opened_) SetUp();
        std::optional<RingAndPool> some(std::in_place, device(), allocator_.get(), 0u);
        GstBuffer* const buffer = some->acquire();
        GstBuffer* const other = some->acquire();
        ASSERT_NE(some->slot(buffer), nullptr);
        if (published) {
            ASSERT_TRUE(some->slot(buffer)->publish());
        }
        GstMemory* const part = gst_memory_share(gst_buffer_peek_memory(buffer, 0), 64, 64);
        GstMemory* const whole = gst_buffer_get_memory(other, 0);
        ASSERT_NE(part, nullptr);
        some.reset();
        allocator_.reset();
        opened_.reset();
        std::thread([&] {
            gst_buffer_unref(buffer);
            gst_buffer_unref(other);
            GstMapInfo map;
            EXPECT_TRUE(gst_memory_map(part, &map, GST_MAP_READ));
            gst_memory_unmap(part, &map);
            EXPECT_TRUE(gst_memory_map(whole, &map, GST_MAP_WRITE));
            gst_memory_unmap(whole, &map);
            gst_memory_unref(part);
            gst_memory_unref(whole);
        }).join();
    }
}

// keeps Y4, I1
TEST_F(Frames, ThoseThatWereOverwrittenAreToldWhenTheyAreGivenBack) {
    std::string folder = (std::filesystem::temp_directory_path() / "isthmus-gst-XXXXXX").string();
    ASSERT_NE(g_mkdtemp(folder.data()), nullptr);
    RingAndPool some(device(), allocator_.get(), 0);
    Result<Listener> listener = Listener::create(folder + "/meet");
    ASSERT_TRUE(listener) << listener.error().text();
    ASSERT_TRUE(some.ring->open_to(std::move(listener).value()));
    const auto count = std::make_shared<OvertakenCount>(0);
    tools::share::MeetingOptions meeting;
    meeting.at = folder + "/meet";
    Result<std::shared_ptr<Incoming>> incoming = Incoming::open(*opened_, meeting, count);
    ASSERT_TRUE(incoming) << incoming.error().text();
    const auto publish = [&] { ASSERT_TRUE(Ring::begin(some.ring).value()->publish()); };
    publish();
    Incoming::Taken whole = Incoming::next(*incoming).value();
    EXPECT_TRUE(whole.frame->finish());
    publish();
    Incoming::Taken torn = Incoming::next(*incoming).value();
    for (int more = 0; more < 3; ++more) publish();
    EXPECT_FALSE(torn.frame->finish());
    EXPECT_EQ(count->load(), 1u);
    {
        const Incoming::Taken dropped = Incoming::next(*incoming).value();  // given back by its end
        EXPECT_GT(dropped.missed, 0u);
        for (int more = 0; more < 3; ++more) publish();
    }
    EXPECT_EQ(count->load(), 2u);
    some.ring->close();
    std::filesystem::remove_all(folder);
}

// Memory that passes for GStreamer's CUDA memory: of cuMemAlloc, in a context of its own, mapped with GST_MAP_CUDA to
// its device address and otherwise to a copy. GStreamer's library and contexts are not part of it.
struct MadeUpCuda {
    void* library = ::dlopen(std::getenv("ISTHMUS_CUDA_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
    void* context = nullptr;
    unsigned long long address = 0;
    static constexpr std::size_t bytes = 64 * 48;
    std::array<std::uint8_t, bytes> content{};
    int device_maps = 0, host_maps = 0, open = 0;
    bool refuses = false;
    bool begins_upload = false;  // a map with GST_MAP_CUDA does, and does not wait

    template <class... Parameters>
    int call(const char* name, Parameters... parameters) const {
        auto* const function = reinterpret_cast<int (*)(Parameters...)>(::dlsym(library, name));
        return function == nullptr ? -1 : function(parameters...);
    }
    bool make() {
        if (library == nullptr || call("cuCtxCreate_v2", &context, 0u, 0) != 0) return false;
        for (std::size_t at = 0; at < bytes; ++at) content[at] = (at % 64 / 13 + at / 64 / 11) % 2 == 0 ? 220 : 20;
        void* left = nullptr;
        const bool made = call("cuMemAlloc_v2", &address, std::size_t{bytes}) == 0;
        return call("cuCtxPopCurrent_v2", &left) == 0 && made && upload();
    }
    bool upload() const {
        void* left = nullptr;
        if (call("cuCtxPushCurrent_v2", context) != 0) return false;
        const bool done =
            call("cuMemcpyHtoD_v2", address, static_cast<const void*>(content.data()), std::size_t{bytes}) == 0;
        return call("cuCtxPopCurrent_v2", &left) == 0 && done;
    }
};

struct CudaMemoryAllocator {
    GstAllocator base;
    MadeUpCuda* cuda;
};
struct CudaMemoryAllocatorClass {
    GstAllocatorClass base;
};
G_DEFINE_TYPE(CudaMemoryAllocator, cuda_memory_allocator, GST_TYPE_ALLOCATOR)
void cuda_memory_allocator_class_init(CudaMemoryAllocatorClass* type) {
    type->base.free = [](GstAllocator*, GstMemory* memory) { g_free(memory); };
}
void cuda_memory_allocator_init(CudaMemoryAllocator* allocator) {
    allocator->base.mem_type = cuda_memory_type;
    allocator->base.mem_map_full = [](GstMemory* memory, GstMapInfo* info, gsize) -> gpointer {
        MadeUpCuda& cuda = *reinterpret_cast<CudaMemoryAllocator*>(memory->allocator)->cuda;
        if (cuda.refuses) return nullptr;
        ++cuda.open;
        if ((info->flags & map_cuda) == 0) return ++cuda.host_maps, cuda.content.data();
        if (cuda.begins_upload) GST_MINI_OBJECT_FLAG_SET(memory, cuda_needs_sync);
        return ++cuda.device_maps, reinterpret_cast<gpointer>(cuda.address);
    };
    allocator->base.mem_unmap_full = [](GstMemory* memory, GstMapInfo*) {
        --reinterpret_cast<CudaMemoryAllocator*>(memory->allocator)->cuda->open;
    };
    GST_OBJECT_FLAG_SET(allocator, GST_ALLOCATOR_FLAG_CUSTOM_ALLOC);
}

GstMemory* memory_of(MadeUpCuda& cuda) {
    auto* const allocator = static_cast<CudaMemoryAllocator*>(g_object_new(cuda_memory_allocator_get_type(), nullptr));
    gst_object_ref_sink(allocator);
    allocator->cuda = &cuda;
    auto* const memory = static_cast<GstMemory*>(g_malloc0(sizeof(GstMemory)));
    gst_memory_init(memory, static_cast<GstMemoryFlags>(0), &allocator->base, nullptr, MadeUpCuda::bytes, 0, 0,
                    MadeUpCuda::bytes);
    gst_object_unref(allocator);  // the memory has it
    return memory;
}

using Foreign = GStreamer;

// keeps Y4
TEST_F(Foreign, CudaMemoryIsUsedAtItsDeviceAddress) {
    if (device().is_cpu()) {
        GTEST_SKIP() << "the CPU device has no memory of CUDA";
    }
    MadeUpCuda cuda;
    ASSERT_TRUE(cuda.make());
    GstMemory* const memory = memory_of(cuda);
    {
        Result<ForeignFrame> frame = ForeignFrame::of(memory, *opened_);
        ASSERT_TRUE(frame);
        EXPECT_EQ(frame->buffer().kind(), MemoryKind::device) << frame->buffer().explain();
        EXPECT_EQ(frame->buffer().path(), LaunchPath::pass);
        EXPECT_EQ(frame->buffer().size(), std::size_t{MadeUpCuda::bytes});
        EXPECT_EQ(cuda.open, 1) << "mapped for as long as the device may use it";
        Buffer<std::uint8_t> seen = device().allocate_shared<std::uint8_t>(MadeUpCuda::bytes).value();
        ASSERT_TRUE(device().stream().copy(seen, frame->buffer()));
        const auto view = seen.read_on_host().value();
        for (std::size_t at = 0; at < MadeUpCuda::bytes; ++at) ASSERT_EQ(view[at], cuda.content[at]) << at;
        EXPECT_FALSE(ForeignFrame::of(memory, *opened_)) << "memory is adopted once";
    }
    EXPECT_EQ(cuda.open, 0);
    EXPECT_EQ(cuda.host_maps, 0);
    EXPECT_TRUE(ForeignFrame::of(memory, *opened_)) << "each frame anew";
    // Work of a stream that is still to be waited for: a map for the CPU does that.
    GST_MINI_OBJECT_FLAG_SET(memory, cuda_needs_sync);
    EXPECT_FALSE(ForeignFrame::of(memory, *opened_));
    GST_MINI_OBJECT_FLAG_UNSET(memory, cuda_needs_sync);
    // An upload that a map would begin, and one that the map itself has begun.
    const int maps = cuda.device_maps;
    GST_MINI_OBJECT_FLAG_SET(memory, cuda_needs_upload);
    EXPECT_FALSE(ForeignFrame::of(memory, *opened_));
    GST_MINI_OBJECT_FLAG_UNSET(memory, cuda_needs_upload);
    EXPECT_EQ(cuda.device_maps, maps);
    cuda.begins_upload = true;
    EXPECT_FALSE(ForeignFrame::of(memory, *opened_));
    EXPECT_EQ(cuda.device_maps, maps + 1);
    EXPECT_EQ(cuda.open, 0);
    cuda.begins_upload = false;
    GST_MINI_OBJECT_FLAG_UNSET(memory, cuda_needs_sync);
    EXPECT_TRUE(ForeignFrame::of(memory, *opened_));
    cuda.refuses = true;
    EXPECT_FALSE(ForeignFrame::of(memory, *opened_));
    EXPECT_EQ(cuda.open, 0);
    EXPECT_FALSE(ForeignFrame::of(memory, {opened_->session, &opened_->session->runtime.cpu()}));
    gst_memory_unref(memory);
}

// isthmuscorners alone, with a pad before and a pad behind it.
class CornersAlone {
public:
    explicit CornersAlone(const char* feature) {
        element_ = GST_ELEMENT_CAST(g_object_new(corners_element_type(), nullptr));
        gst_object_ref_sink(element_);
        gst_element_set_bus(element_, bus_);
        gst_pad_set_chain_function(behind_, [](GstPad*, GstObject*, GstBuffer* buffer) {
            gst_buffer_unref(buffer);
            return GST_FLOW_OK;
        });
        link(before_, "sink");
        link(behind_, "src");
        gst_element_set_state(element_, GST_STATE_PLAYING);
        GstCaps* const caps = caps_of("GRAY8", 64, 48);
        if (feature != nullptr) gst_caps_set_features(caps, 0, gst_caps_features_new(feature, nullptr));
        GstSegment segment;
        gst_segment_init(&segment, GST_FORMAT_TIME);
        gst_pad_push_event(before_, gst_event_new_stream_start("alone"));
        gst_pad_push_event(before_, gst_event_new_caps(caps));
        gst_pad_push_event(before_, gst_event_new_segment(&segment));
        gst_caps_unref(caps);
    }
    CornersAlone(const CornersAlone&) = delete;
    CornersAlone& operator=(const CornersAlone&) = delete;
    ~CornersAlone() {
        gst_element_set_state(element_, GST_STATE_NULL);
        gst_element_set_bus(element_, nullptr);
        gst_object_unref(element_);
        gst_object_unref(before_);
        gst_object_unref(behind_);
        gst_object_unref(bus_);
    }
    // The digest of the frame's corners; empty: there were none, or the element failed.
    std::string find(GstMemory* memory) {
        GstBuffer* const buffer = gst_buffer_new();
        gst_buffer_append_memory(buffer, gst_memory_ref(memory));
        if (gst_pad_push(before_, buffer) != GST_FLOW_OK) return "";
        std::string digest;
        while (GstMessage* const message =
                   gst_bus_pop_filtered(bus_, static_cast<GstMessageType>(GST_MESSAGE_ELEMENT | GST_MESSAGE_ERROR))) {
            guint corners = 0;
            const GstStructure* const told = gst_message_get_structure(message);
            if (gst_structure_get_uint(told, "corners", &corners) != FALSE && corners > 0) {
                digest = gst_structure_get_string(told, "digest");
            }
            gst_message_unref(message);
        }
        return digest;
    }
    guint64 copied() const {
        guint64 count = 0;
        g_object_get(element_, "copied-frames", &count, nullptr);
        return count;
    }

private:
    void link(GstPad* pad, const char* name) {
        gst_object_ref_sink(pad);
        gst_pad_set_active(pad, TRUE);
        GstPad* const other = gst_element_get_static_pad(element_, name);
        if (pad == before_) {
            gst_pad_link(pad, other);
        } else {
            gst_pad_link(other, pad);
        }
        gst_object_unref(other);
    }

    GstElement* element_ = nullptr;
    GstPad* const before_ = gst_pad_new("before", GST_PAD_SRC);
    GstPad* const behind_ = gst_pad_new("behind", GST_PAD_SINK);
    GstBus* const bus_ = gst_bus_new();
};

// keeps Y4
TEST_F(Foreign, CornersAreFoundInCudaMemoryInPlaceFrameAfterFrame) {
    if (device().is_cpu()) {
        GTEST_SKIP() << "the CPU device has no memory of CUDA";
    }
    MadeUpCuda cuda, other;
    ASSERT_TRUE(cuda.make());
    ASSERT_TRUE(other.make());
    GstMemory* const plain = gst_allocator_alloc(nullptr, MadeUpCuda::bytes, nullptr);
    GstMapInfo map;
    ASSERT_TRUE(gst_memory_map(plain, &map, GST_MAP_WRITE));
    std::copy(cuda.content.begin(), cuda.content.end(), map.data);
    gst_memory_unmap(plain, &map);
    std::string wanted;
    {
        CornersAlone corners(nullptr);
        wanted = corners.find(plain);
        EXPECT_EQ(corners.copied(), 1u);
    }
    EXPECT_NE(wanted, "");
    GstMemory* const memory = memory_of(cuda);
    GstMemory* const second = memory_of(other);
    {
        CornersAlone corners(cuda_caps_feature);
        // Also twice the same memory, as a pool of one buffer gives it.
        for (GstMemory* const frame : {memory, second, memory, memory, memory}) {
            EXPECT_EQ(corners.find(frame), wanted);
            EXPECT_EQ(cuda.open + other.open, 0) << "mapped for one frame";
        }
        EXPECT_EQ(corners.copied(), 0u);
        EXPECT_EQ(cuda.host_maps + other.host_maps, 0);
        cuda.begins_upload = true;
        EXPECT_EQ(corners.find(memory), wanted);
        EXPECT_EQ(corners.copied(), 1u);
        EXPECT_EQ(cuda.host_maps, 1);
    }
    gst_memory_unref(memory);
    gst_memory_unref(second);
    gst_memory_unref(plain);
}

// keeps Y4
TEST(Copies, AreOneByTheRuntimeWhereverItCanAndElseAreToldAsTwo) {
    constexpr CopyPath all[] = {CopyPath::on_host,   CopyPath::driver,      CopyPath::between_devices,
                                CopyPath::bounce_up, CopyPath::bounce_down, CopyPath::refuse};
    for (const CopyPath path : all) {
        const bool one = path == CopyPath::driver || path == CopyPath::on_host;
        const bool refused = path == CopyPath::refuse;
        SCOPED_TRACE(static_cast<int>(path));
        // Memory that the CPU reads: never more than one copy.
        EXPECT_EQ(frame_copy(path, false, false), (FrameCopy{one ? CopyWay::runtime : CopyWay::map, false}));
        EXPECT_EQ(frame_copy(path, true, false), (FrameCopy{CopyWay::map, false}));
        // Memory of a device: a map for the CPU is the first of two copies.
        EXPECT_EQ(frame_copy(path, false, true), (FrameCopy{refused ? CopyWay::map : CopyWay::runtime, !one}));
        EXPECT_EQ(frame_copy(path, true, true), (FrameCopy{refused ? CopyWay::map : CopyWay::runtime, true}));
    }
}

// isthmussink alone, with a pad before it and a viewer of its ring.
class SinkAlone {
public:
    explicit SinkAlone(const char* device) {
        g_mkdtemp(folder_.data());
        element_ = GST_ELEMENT_CAST(g_object_new(sink_element_type(), nullptr));
        gst_object_ref_sink(element_);
        g_object_set(element_, "at", at().c_str(), "device", device, "sync", FALSE, "async", FALSE, nullptr);
        gst_element_set_bus(element_, bus_);
        gst_object_ref_sink(before_);
        gst_pad_set_active(before_, TRUE);
        gst_element_set_state(element_, GST_STATE_PLAYING);
        sink_ = gst_element_get_static_pad(element_, "sink");
        gst_pad_link(before_, sink_);
        gst_pad_push_event(before_, gst_event_new_stream_start("alone"));
    }
    SinkAlone(const SinkAlone&) = delete;
    SinkAlone& operator=(const SinkAlone&) = delete;
    ~SinkAlone() {
        gst_element_set_state(element_, GST_STATE_NULL);
        gst_element_set_bus(element_, nullptr);
        gst_object_unref(sink_);
        gst_object_unref(element_);
        gst_object_unref(before_);
        gst_object_unref(bus_);
        std::filesystem::remove_all(folder_);
    }
    std::string at() const { return folder_ + "/meet"; }
    GstPad* sink() const { return sink_; }
    GstPad* before() const { return before_; }
    GstElement* element() const { return element_; }
    void restart() {
        gst_pad_set_active(before_, FALSE);
        gst_pad_set_active(before_, TRUE);
        gst_pad_push_event(before_, gst_event_new_stream_start("alone"));
    }
    GstFlowReturn push_frame(GstBuffer* buffer) { return gst_pad_push(before_, buffer); }
    static GstCaps* caps(const char* feature) {
        GstCaps* const caps = caps_of("GRAY8", 64, 48);
        if (feature != nullptr) gst_caps_set_features(caps, 0, gst_caps_features_new(feature, nullptr));
        return caps;
    }
    void set_caps(const char* feature) {
        GstCaps* const all = caps(feature);
        GstSegment segment;
        gst_segment_init(&segment, GST_FORMAT_TIME);
        gst_pad_push_event(before_, gst_event_new_caps(all));
        gst_pad_push_event(before_, gst_event_new_segment(&segment));
        gst_caps_unref(all);
    }
    GstFlowReturn push(GstMemory* memory) {
        GstBuffer* const buffer = gst_buffer_new();
        gst_buffer_append_memory(buffer, gst_memory_ref(memory));
        return gst_pad_push(before_, buffer);
    }
    // The next error's message and what it says beside; empty: there was none.
    std::string error() {
        GstMessage* const message = gst_bus_pop_filtered(bus_, GST_MESSAGE_ERROR);
        if (message == nullptr) return "";
        GError* error = nullptr;
        gchar* more = nullptr;
        gst_message_parse_error(message, &error, &more);
        std::string text = std::string(error->message) + " | " + more;
        g_clear_error(&error);
        g_free(more);
        gst_message_unref(message);
        return text;
    }
    guint64 count(const char* property) const {
        guint64 count = 0;
        g_object_get(element_, property, &count, nullptr);
        return count;
    }

private:
    std::string folder_ = (std::filesystem::temp_directory_path() / "isthmus-gst-XXXXXX").string();
    GstElement* element_ = nullptr;
    GstPad* sink_ = nullptr;
    GstPad* const before_ = gst_pad_new("before", GST_PAD_SRC);
    GstBus* const bus_ = gst_bus_new();
};

// keeps Y4
TEST_F(Frames, ASinkThatGetsNoThreadSaysSoAndStartsLater) {
    SinkAlone sink("cpu");
    {
        const test::NoMoreThreads none;
        sink.set_caps(nullptr);  // which makes the ring
        EXPECT_NE(sink.error().find("thread"), std::string::npos);
    }
    GstMemory* const memory = gst_allocator_alloc(nullptr, 64 * 48, nullptr);
    sink.set_caps(nullptr);
    EXPECT_EQ(sink.push(memory), GST_FLOW_OK);
    EXPECT_EQ(sink.count("frames"), 1u);
    gst_memory_unref(memory);
}

// keeps Y4, I6
TEST_F(Frames, ASinkThatWaitsForAViewerIsStoppedFlushedAndStartedAgain) {
    for (const bool lent : {false, true}) {
        SCOPED_TRACE(lent);
        SinkAlone sink("cpu");
        gst_element_set_state(sink.element(), GST_STATE_NULL);
        g_object_set(sink.element(), "policy", 1, "slots", 2, "viewer-deadline", 3600000, nullptr);
        for (int round = 0; round < 3; ++round) {
            SCOPED_TRACE(round);
            gst_element_set_state(sink.element(), GST_STATE_PLAYING);
            sink.restart();
            const auto count = std::make_shared<OvertakenCount>(0);
            tools::share::MeetingOptions meeting;
            meeting.at = sink.at();
            sink.set_caps(nullptr);
            GstCaps* const caps = SinkAlone::caps(nullptr);
            GstBufferPool* pool = nullptr;
            if (lent) {
                GstQuery* const query = gst_query_new_allocation(caps, TRUE);
                ASSERT_TRUE(gst_pad_query(sink.sink(), query));
                guint size = 0;
                gst_query_parse_nth_allocation_pool(query, 0, &pool, &size, nullptr, nullptr);
                gst_query_unref(query);
                GstStructure* const config = gst_buffer_pool_get_config(pool);
                gst_buffer_pool_config_set_params(config, caps, size, 0, 0);
                gst_buffer_pool_set_config(pool, config);
                ASSERT_TRUE(gst_buffer_pool_set_active(pool, TRUE));
            }
            gst_caps_unref(caps);
            const auto make = [&] {
                GstBuffer* buffer = nullptr;
                if (pool == nullptr) return gst_buffer_new_allocate(nullptr, 64 * 48, nullptr);
                return gst_buffer_pool_acquire_buffer(pool, &buffer, nullptr) == GST_FLOW_OK ? buffer : nullptr;
            };
            ASSERT_EQ(sink.push_frame(make()), GST_FLOW_OK);
            Result<std::shared_ptr<Incoming>> incoming = Incoming::open(*opened_, meeting, count);
            ASSERT_TRUE(incoming) << incoming.error().text();
            std::atomic<int> pushed{0};
            std::atomic<bool> over{false};
            std::thread upstream([&] {
                for (;;) {
                    GstBuffer* const buffer = make();
                    if (buffer == nullptr || sink.push_frame(buffer) != GST_FLOW_OK) break;
                    ++pushed;
                }
                over = true;
            });
            while (pushed < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            EXPECT_FALSE(over);
            if (round == 1) {
                gst_pad_push_event(sink.before(), gst_event_new_flush_start());
                upstream.join();
                gst_pad_push_event(sink.before(), gst_event_new_flush_stop(TRUE));
                gst_element_set_state(sink.element(), GST_STATE_NULL);
            } else {
                gst_element_set_state(sink.element(), GST_STATE_NULL);
                upstream.join();
            }
            Incoming::Taken kept = Incoming::next(*incoming).value();
            kept.frame.reset();
            if (pool != nullptr) {
                gst_buffer_pool_set_active(pool, FALSE);
                gst_object_unref(pool);
            }
        }
    }
}

// keeps Y4
TEST_F(Foreign, CudaMemoryGoesIntoTheRingByOneCopyOfTheDevice) {
    if (device().is_cpu()) {
        GTEST_SKIP() << "the CPU device has no memory of CUDA";
    }
    MadeUpCuda cuda;
    ASSERT_TRUE(cuda.make());
    GstMemory* const memory = memory_of(cuda);
    // Slots in pageable memory, which the device uses in place, get copies of it in two steps.
    const RingAndPool other(device(), allocator_.get(), 0);
    const auto slot = Ring::begin(other.ring).value();
    const auto of_device = device().allocate<std::uint8_t>(MadeUpCuda::bytes, MemoryKind::device).value();
    const CopyPath path = device().stream().explain_copy(slot->buffer(), of_device).path;
    const bool one_step = path == CopyPath::driver;
    EXPECT_TRUE(one_step || (path == CopyPath::bounce_down && slot->buffer().kind() == MemoryKind::host));
    SinkAlone alone("");
    alone.set_caps(cuda_caps_feature);
    tools::share::MeetingOptions meeting;
    meeting.at = alone.at();
    Result<std::shared_ptr<Incoming>> incoming = Incoming::open(*opened_, meeting, std::make_shared<OvertakenCount>(0));
    ASSERT_TRUE(incoming) << incoming.error().text();
    const auto arrives = [&] {
        ASSERT_EQ(alone.push(memory), GST_FLOW_OK) << alone.error();
        EXPECT_EQ(cuda.open, 0) << "mapped for one frame";
        Incoming::Taken taken = Incoming::next(*incoming).value();
        {
            const auto view = taken.frame->buffer().read_on_host().value();
            for (std::size_t at = 0; at < MadeUpCuda::bytes; ++at) ASSERT_EQ(view[at], cuda.content[at]) << at;
        }
        EXPECT_TRUE(taken.frame->finish());
    };
    for (std::uint8_t frame = 0; frame < 5; ++frame) {
        cuda.content[frame] = static_cast<std::uint8_t>(frame + 1);
        ASSERT_TRUE(cuda.upload());
        arrives();
    }
    EXPECT_EQ(alone.count("frames"), 5u);
    EXPECT_EQ(alone.count("copied-frames"), 5u);
    EXPECT_EQ(alone.count("twice-copied-frames"), one_step ? 0u : 5u);
    EXPECT_EQ(cuda.host_maps, 0);
    // Where the memory waits for its stream, its allocator makes a copy for the CPU, and the sink the second one.
    cuda.begins_upload = true;
    arrives();
    EXPECT_EQ(cuda.host_maps, 1);
    EXPECT_EQ(alone.count("copied-frames"), 6u);
    EXPECT_EQ(alone.count("twice-copied-frames"), one_step ? 1u : 6u);
    // Where its upload is still to come, the CPU has the newer bytes: the map copies nothing.
    cuda.begins_upload = false;
    GST_MINI_OBJECT_FLAG_UNSET(memory, cuda_needs_sync);
    GST_MINI_OBJECT_FLAG_SET(memory, cuda_needs_upload);
    arrives();
    GST_MINI_OBJECT_FLAG_UNSET(memory, cuda_needs_upload);
    EXPECT_EQ(cuda.host_maps, 2);
    EXPECT_EQ(alone.count("copied-frames"), 7u);
    EXPECT_EQ(alone.count("twice-copied-frames"), one_step ? 1u : 6u);
    // Memory that neither side gets.
    cuda.refuses = true;
    EXPECT_EQ(alone.push(memory), GST_FLOW_ERROR);
    const std::string error = alone.error();
    EXPECT_NE(error.find("cannot be mapped for reading, and the device does not use its memory"), std::string::npos)
        << error;
    EXPECT_NE(error.find("cudadownload"), std::string::npos) << error;
    EXPECT_EQ(alone.count("frames"), 7u);
    EXPECT_EQ(cuda.open, 0);
    gst_memory_unref(memory);
}

// keeps Y4
TEST_F(Foreign, AFrameIsMappedWhereTheDeviceMakesNoStream) {
    if (device().is_cpu()) {
        GTEST_SKIP() << "the CPU device has no memory of CUDA";
    }
    MadeUpCuda cuda;
    ASSERT_TRUE(cuda.make());
    GstMemory* const memory = memory_of(cuda);
    SinkAlone alone("");
    alone.set_caps(cuda_caps_feature);
    ASSERT_EQ(cuda.call("isthmus_sim_fault_plan", "call=cuStreamCreateWithPriority:code=2"), 0);
    EXPECT_EQ(alone.push(memory), GST_FLOW_OK) << alone.error();
    EXPECT_EQ(cuda.host_maps, 1);
    EXPECT_EQ(alone.count("twice-copied-frames"), 1u);
    cuda.refuses = true;
    EXPECT_EQ(alone.push(memory), GST_FLOW_ERROR);
    cuda.refuses = false;
    EXPECT_EQ(cuda.call("isthmus_sim_fault_plan", ""), 0);
    EXPECT_EQ(alone.push(memory), GST_FLOW_OK) << alone.error();
    EXPECT_EQ(cuda.host_maps, 1) << "the next frame tries again";
    EXPECT_EQ(alone.count("frames"), 2u);
    gst_memory_unref(memory);
}

// keeps Y4
TEST(Planes, AreCopiedFromWithinTheirMemoryAlone) {
    static_assert(plane_fits(94, 0, 10, 10, 4) && !plane_fits(93, 0, 10, 10, 4));
    static_assert(plane_fits(94, 90, -10, 10, 4) && !plane_fits(93, 90, -10, 10, 4));
    static_assert(!plane_fits(100, 89, -10, 10, 4));
    static_assert(!plane_fits(100, 0, 0, 10, 4));
    gst_init(nullptr, nullptr);
    const FrameShape shape = tools::camera::make_frame_shape(kernels::PixelFormat::nv12, 62, 48, 64).value();
    GstVideoInfo info;
    gst_video_info_set_format(&info, GST_VIDEO_FORMAT_NV12, 62, 48);
    constexpr gsize luma = 64 * 48, all = luma + 64 * 24;
    // Rows of 62 bytes, 64 apart; nothing need be behind the last one.
    struct Row {
        gsize bytes, colour;
        gint luma_stride, colour_stride;
        gsize luma;
        Code code;
    };
    for (const Row& row : {Row{all - 2, luma, 64, 64, 0, Code::ok},
                           {all - 3, luma, 64, 64, 0, Code::unsupported},
                           {all, luma + 3, 64, 64, 0, Code::unsupported},
                           {all, luma, 64, 66, 0, Code::unsupported},
                           {all, luma, 64, 0, 0, Code::unsupported},
                           {all, luma, -64, 64, 64 * 47, Code::ok},
                           {all, luma, -64, 64, 64 * 46, Code::unsupported}}) {
        SCOPED_TRACE(std::to_string(row.bytes) + ", " + std::to_string(row.colour) + ", " +
                     std::to_string(row.luma_stride) + ", " + std::to_string(row.colour_stride));
        // At the end of its pages: what is read behind it ends the test.
        constexpr gsize pages = 8192;
        auto* const mapped = static_cast<std::uint8_t*>(
            ::mmap(nullptr, pages + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        ASSERT_EQ(::mprotect(mapped + pages, 4096, PROT_NONE), 0);
        std::uint8_t* const pixels = mapped + pages - row.bytes;
        for (gsize at = 0; at < row.bytes; ++at) pixels[at] = static_cast<std::uint8_t>(at / 64);
        GstBuffer* const buffer = gst_buffer_new_wrapped_full(static_cast<GstMemoryFlags>(0), pixels, row.bytes, 0,
                                                              row.bytes, nullptr, nullptr);
        gsize offsets[GST_VIDEO_MAX_PLANES]{row.luma, row.colour};
        gint strides[GST_VIDEO_MAX_PLANES]{row.luma_stride, row.colour_stride};
        gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_NV12, 62, 48, 2, offsets,
                                       strides);
        GstVideoFrame frame{};
        ASSERT_TRUE(gst_video_frame_map(&frame, &info, buffer, GST_MAP_READ));
        std::vector<std::uint8_t> to(shape.size_bytes, 0xee);
        EXPECT_EQ(copy_planes(to.data(), shape, frame).code(), row.code);
        gst_video_frame_unmap(&frame);
        if (row.code == Code::ok) {
            const bool down = row.luma_stride < 0;
            EXPECT_EQ(to[0], down ? 47 : 0);
            EXPECT_EQ(to[47 * 64 + 61], down ? 0 : 47);
            EXPECT_EQ(to[luma + 23 * 64 + 61], 71);
        } else {
            EXPECT_EQ(std::count(to.begin(), to.end(), 0xee), static_cast<std::ptrdiff_t>(to.size())) << "untouched";
        }
        gst_buffer_unref(buffer);
        ::munmap(mapped, pages + 4096);
    }
}

// keeps Y4
TEST(Planes, FitIntoTheirMemoryUpToTheLastByte) {
    static_assert(rows_fit(100, 0, 10, 10, 10));
    static_assert(rows_fit(94, 0, 10, 10, 4));  // no padding behind the last row
    static_assert(!rows_fit(93, 0, 10, 10, 4));
    static_assert(rows_fit(100, 6, 10, 10, 4));
    static_assert(!rows_fit(100, 7, 10, 10, 4));
    static_assert(rows_fit(4, 0, 10, 1, 4));
    static_assert(!rows_fit(4, 5, 10, 1, 4));
    static_assert(!rows_fit(3, 0, 10, 1, 4));
    constexpr gsize most = ~gsize{0};
    static_assert(!rows_fit(100, most, 10, 10, 10));
    static_assert(!rows_fit(100, 0, most, most, 10));
    GstAllocator* const allocator = gst_dmabuf_allocator_new();
    GstVideoInfo info;
    gst_init(nullptr, nullptr);
    gst_video_info_set_format(&info, GST_VIDEO_FORMAT_NV12, 64, 48);
    const Result<OpenSession> opened = open_session({});
    ASSERT_TRUE(opened);
    constexpr gsize luma = 64 * 48, all = luma + 64 * 24;
    // Where planes fit, the memory itself is asked for, and a memory file is no dma-buf.
    for (const auto& [boundary, fits] :
         {std::pair{luma, true}, {luma - 1, false}, {luma + 1, false}, {all - 1, false}}) {
        SCOPED_TRACE(boundary);
        GstBuffer* const buffer = gst_buffer_new();
        for (const gsize bytes : {boundary, all - boundary}) {
            const int file = ::memfd_create("no dma-buf", MFD_CLOEXEC);
            ASSERT_EQ(::ftruncate(file, static_cast<off_t>(bytes)), 0);
            gst_buffer_append_memory(buffer, gst_dmabuf_allocator_alloc(allocator, file, bytes));
        }
        const Result<ForeignPlanes> planes = ForeignPlanes::of(buffer, info, *opened);
        ASSERT_FALSE(planes);
        EXPECT_EQ(planes.error().message().find("behind the end of its memory") == std::string_view::npos, fits);
        EXPECT_TRUE(fits || planes.code() == Code::unsupported);
        gst_buffer_unref(buffer);
    }
    gst_object_unref(allocator);
}

// keeps Y4
TEST_F(Foreign, CudaMemoryIsRefusedWithItsReasonWhereTheDeviceIsTheCpu) {
    SinkAlone alone("cpu");
    const auto takes = [&](const char* feature) {
        GstCaps* const asked = SinkAlone::caps(feature);
        GstCaps* const all = gst_pad_query_caps(alone.sink(), nullptr);
        const bool can = gst_caps_can_intersect(all, asked) != FALSE;
        gst_caps_unref(all);
        gst_caps_unref(asked);
        return can;
    };
    EXPECT_TRUE(takes(nullptr));
    EXPECT_TRUE(takes(GST_CAPS_FEATURE_MEMORY_DMABUF));
    EXPECT_FALSE(takes(cuda_caps_feature));  // so that upstream chooses other memory
    alone.set_caps(cuda_caps_feature);
    const std::string error = alone.error();
    EXPECT_NE(error.find("memory:CUDAMemory"), std::string::npos) << error;
    EXPECT_NE(error.find("cudadownload"), std::string::npos) << error;
    GstMemory* const plain = gst_allocator_alloc(nullptr, MadeUpCuda::bytes, nullptr);
    EXPECT_EQ(alone.push(plain), GST_FLOW_NOT_NEGOTIATED);
    alone.set_caps(nullptr);
    EXPECT_EQ(alone.push(plain), GST_FLOW_OK) << alone.error();
    EXPECT_EQ(alone.count("frames"), 1u);
    gst_memory_unref(plain);
}

// keeps Y4
TEST_F(Foreign, NoPoolIsProposedForMemoryOfItsOwnKind) {
    SinkAlone alone("");
    for (const char* const feature : {static_cast<const char*>(nullptr), GST_CAPS_FEATURE_MEMORY_DMABUF}) {
        alone.set_caps(feature);
        GstCaps* const caps = SinkAlone::caps(feature);
        GstQuery* const query = gst_query_new_allocation(caps, TRUE);
        EXPECT_TRUE(gst_pad_query(alone.sink(), query));
        EXPECT_EQ(gst_query_get_n_allocation_pools(query), feature == nullptr ? 1u : 0u);
        EXPECT_EQ(is_proposed(query), feature == nullptr);
        EXPECT_TRUE(gst_query_find_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr));
        gst_query_unref(query);
        gst_caps_unref(caps);
    }
}

// keeps Y4
TEST_F(Foreign, AMetaThatDoesNotSuitTheCapsIsNotFollowed) {
    GstCaps* const caps = caps_of("I420", 64, 48);
    GstVideoInfo info;
    ASSERT_TRUE(gst_video_info_from_caps(&info, caps));
    gst_caps_unref(caps);
    struct Row {
        GstVideoFormat format;
        guint width, height, planes;
        bool suits;
    };
    constexpr Row rows[] = {
        {GST_VIDEO_FORMAT_I420, 64, 48, 3, true},  {GST_VIDEO_FORMAT_I420, 80, 50, 3, true},
        {GST_VIDEO_FORMAT_NV12, 64, 48, 2, false}, {GST_VIDEO_FORMAT_YV12, 64, 48, 3, false},
        {GST_VIDEO_FORMAT_I420, 62, 48, 3, false}, {GST_VIDEO_FORMAT_I420, 64, 46, 3, false},
        {GST_VIDEO_FORMAT_I420, 64, 48, 2, false}, {GST_VIDEO_FORMAT_I420, 64, 48, 4, false},
    };
    for (const Row& row : rows) {
        SCOPED_TRACE(&row - rows);
        gsize offsets[GST_VIDEO_MAX_PLANES] = {0, 8000, 12000};
        gint strides[GST_VIDEO_MAX_PLANES] = {80, 40, 40};
        GstBuffer* const buffer = gst_buffer_new_allocate(nullptr, 16384, nullptr);
        gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, row.format, row.width, row.height, row.planes,
                                       offsets, strides);
        const Result<Layout> layout = layout_of(buffer, info);
        EXPECT_EQ(static_cast<bool>(layout), row.suits);
        if (layout) {
            EXPECT_EQ(layout->planes, 3u);
            EXPECT_EQ(layout->offset[2], 12000u);
            EXPECT_EQ(layout->stride[0], 80);
        } else {
            EXPECT_EQ(layout.code(), Code::unsupported);
            EXPECT_EQ(ForeignPlanes::of(buffer, info, *opened_).error().message(), layout.error().message());
        }
        gst_buffer_unref(buffer);
    }
    RingAndPool some(device(), allocator_.get(), 0, "I420", 64);
    GstBuffer* const lent = some.acquire();
    ASSERT_NE(some.slot(lent), nullptr);
    GstVideoMeta* const meta = gst_buffer_get_video_meta(lent);
    if (meta != nullptr) {
        meta->format = GST_VIDEO_FORMAT_YV12;
    } else {
        gst_buffer_add_video_meta(lent, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_YV12, 64, 48);
    }
    EXPECT_EQ(some.slot(lent), nullptr) << "the planes would change places";
    gst_buffer_unref(lent);
}

// keeps Y5
TEST(Refusals, OnlyThoseThatStayAreRemembered) {
    for (int at = 0; at < 64; ++at) {
        const auto code = static_cast<Code>(at);
        EXPECT_EQ(is_for_good(code), code == Code::unsupported || code == Code::invalid_argument) << at;
    }
    EXPECT_FALSE(is_for_good(Code::out_of_memory));
    EXPECT_FALSE(is_for_good(Code::in_use));
}

// keeps Y5
TEST_F(Foreign, AFileThatIsNoDmaBufIsNotTaken) {
    const int file = ::memfd_create("no dma-buf", MFD_CLOEXEC);
    ASSERT_EQ(::ftruncate(file, 4096), 0);
    GstAllocator* const allocator = gst_dmabuf_allocator_new();
    GstMemory* const memory = gst_dmabuf_allocator_alloc(allocator, file, 4096);
    EXPECT_FALSE(ForeignFrame::of(memory, *opened_));
    EXPECT_FALSE(ForeignFrame::of(memory, *opened_));
    GstMemory* const systems = gst_allocator_alloc(nullptr, 64, nullptr);
    EXPECT_FALSE(ForeignFrame::of(systems, *opened_));
    gst_memory_unref(systems);
    gst_memory_unref(memory);
    gst_object_unref(allocator);
}

}  // namespace
}  // namespace isthmus::gst
