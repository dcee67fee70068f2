// SPDX-License-Identifier: Apache-2.0
// How to use frames in NVMM memory of a Jetson's GStreamer elements in place. It is built where the Jetson Multimedia
// API (nvbufsurface.h) is found. Not run by the project, which has no Jetson: docs/gstreamer.md.
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <cudaEGL.h>
#include <gst/app/gstappsink.h>
#include <gst/gst.h>
#include <nvbufsurface.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>

namespace {

// A frame from the appsink until its destructor: mapped for CUDA through an EGL image, in the context that is current
// where it is made. The destructor may run on any thread.
class NvmmFrame {
public:
    explicit NvmmFrame(GstSample* sample) : sample_(sample) {
        cuCtxGetCurrent(&context_);
        GstBuffer* const buffer = gst_sample_get_buffer(sample_);
        mapped_ = gst_buffer_map(buffer, &map_, GST_MAP_READ) != FALSE;
        if (!mapped_) return;
        surface_ = reinterpret_cast<NvBufSurface*>(map_.data);  // NVMM memory maps as its description
        image_ = NvBufSurfaceMapEglImage(surface_, 0) == 0;
        if (!image_) return;
        const EGLImageKHR image = surface_->surfaceList[0].mappedAddr.eglImage;
        registered_ =
            cuGraphicsEGLRegisterImage(&resource_, image, CU_GRAPHICS_MAP_RESOURCE_FLAGS_NONE) == CUDA_SUCCESS;
        if (registered_) known_ = cuGraphicsResourceGetMappedEglFrame(&frame_, resource_, 0, 0) == CUDA_SUCCESS;
    }
    NvmmFrame(const NvmmFrame&) = delete;
    NvmmFrame& operator=(const NvmmFrame&) = delete;
    ~NvmmFrame() {
        if (registered_ && cuCtxPushCurrent(context_) == CUDA_SUCCESS) {
            cuGraphicsUnregisterResource(resource_);
            cuCtxPopCurrent(nullptr);
        }
        if (image_) NvBufSurfaceUnMapEglImage(surface_, 0);
        if (mapped_) gst_buffer_unmap(gst_sample_get_buffer(sample_), &map_);
        gst_sample_unref(sample_);
    }

    // The first plane; null: the frame has no rows in memory (block linear, or not mapped).
    std::uint8_t* luma() const {
        const bool rows = known_ && frame_.frameType == CU_EGL_FRAME_TYPE_PITCH;
        return rows ? static_cast<std::uint8_t*>(frame_.frame.pPitch[0]) : nullptr;
    }
    std::size_t luma_bytes() const { return std::size_t{frame_.pitch} * frame_.height; }

private:
    GstSample* sample_;
    CUcontext context_ = nullptr;
    GstMapInfo map_{};
    NvBufSurface* surface_ = nullptr;
    CUgraphicsResource resource_ = nullptr;
    CUeglFrame frame_{};
    bool mapped_ = false, image_ = false, registered_ = false, known_ = false;
};

// The frame as a buffer of the device. The frame goes back to its pool when the last kernel has ended.
isthmus::Result<isthmus::Buffer<std::uint8_t>> adopt_frame(isthmus::Device& device, GstSample* sample) {
    auto frame = std::make_shared<NvmmFrame>(sample);
    if (frame->luma() == nullptr) {
        return isthmus::Error(isthmus::Code::unsupported, "the frame cannot be mapped for CUDA as rows",
                              "nvvidconv with bl-output=false before the appsink");
    }
    std::uint8_t* const luma = frame->luma();
    const std::size_t bytes = frame->luma_bytes();
    isthmus::AdoptOptions options;
    options.use = {.host = isthmus::Use::never, .device = isthmus::Use::reads_and_writes};
    options.release = [frame = std::move(frame)](void*, std::size_t) mutable { frame.reset(); };
    return device.adopt<std::uint8_t>(luma, bytes, std::move(options));
}

}  // namespace

int main(int count, char** words) {
    gst_init(&count, &words);
    isthmus::Runtime runtime = isthmus::Runtime::open().value();
    isthmus::Device& device = runtime.default_device();
    isthmus::Stream stream = device.stream();

    // The EGL calls use the context that the runtime uses: the device's primary context.
    CUdevice ordinal = 0;
    CUcontext context = nullptr;
    if (cuDeviceGet(&ordinal, 0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, ordinal) != CUDA_SUCCESS ||
        cuCtxSetCurrent(context) != CUDA_SUCCESS) {
        std::fprintf(stderr, "there is no CUDA device\n");
        return 1;
    }

    GstElement* const pipeline = gst_parse_launch(
        "nvarguscamerasrc num-buffers=100 ! nvvidconv bl-output=false ! "
        "video/x-raw(memory:NVMM),format=NV12,width=1280,height=720 ! appsink name=frames max-buffers=4 sync=false",
        nullptr);
    if (pipeline == nullptr) return 1;
    GstElement* const frames = gst_bin_get_by_name(GST_BIN(pipeline), "frames");
    gst_element_set_state(pipeline, GST_STATE_PLAYING);

    int status = 0, seen = 0;
    while (GstSample* const sample = gst_app_sink_pull_sample(GST_APP_SINK(frames))) {
        auto luma = adopt_frame(device, sample);
        if (!luma) {
            std::fprintf(stderr, "%s\n", luma.error().text().c_str());
            status = 1;
            break;
        }
        if (auto launched = stream.launch(brighten, luma->size(), *luma, 10); !launched) {
            std::fprintf(stderr, "%s\n", launched.error().text().c_str());
            status = 1;
            break;
        }
        ++seen;
    }  // `luma` ends: the frame's memory is given back when its kernel has ended
    std::printf("%d frames were brightened in place\n", seen);
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(frames);
    gst_object_unref(pipeline);
    cuDevicePrimaryCtxRelease(ordinal);
    return status;
}
