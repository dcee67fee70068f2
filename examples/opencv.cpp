// SPDX-License-Identifier: Apache-2.0
// OpenCV's cv::Mat and shared buffers, in both directions and without a copy. examples/mat.cpp has the same without
// OpenCV.
#include <isthmus/isthmus.hpp>

#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include "brighten.hpp"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>

namespace {

// show: over
// A cv::Mat over a host view; valid while the view is open. Its rows follow each other without gaps.
struct OpenMat {
    isthmus::HostView<std::uint8_t> view;
    cv::Mat mat;
};
isthmus::Result<OpenMat> open_mat(isthmus::Buffer<std::uint8_t>& buffer, cv::Size size) {
    if (buffer.size() != static_cast<std::size_t>(size.area())) {
        return isthmus::Error(isthmus::Code::invalid_argument, "the picture has not the size of the buffer");
    }
    ISTHMUS_TRY(auto view, buffer.read_write_on_host());  // waits for device work on this buffer
    cv::Mat mat(size, CV_8UC1, view.data());
    return OpenMat{std::move(view), std::move(mat)};
}
// end

// show: adopt
// A buffer over the pixels of a cv::Mat, which a copy of its header keeps alive. Row r begins at r * mat.step.
isthmus::Result<isthmus::Buffer<std::uint8_t>> adopt_mat(isthmus::Device& device, const cv::Mat& mat) {
    isthmus::AdoptOptions options;
    options.use = {.host = isthmus::Use::reads_and_writes, .device = isthmus::Use::reads_and_writes};
    options.release = [owner = mat](void*, std::size_t) mutable { owner.release(); };
    return device.adopt<std::uint8_t>(mat.data, static_cast<std::size_t>(mat.rows) * mat.step, std::move(options));
}
// end

int failures = 0;
void expect(bool held, const char* what) {
    if (held) return;
    std::printf("not so: %s\n", what);
    ++failures;
}

void over_a_view(isthmus::Device& device) {
    const cv::Size size(64, 48);
    constexpr std::size_t bytes = 64 * 48;
    // show: use
    auto image = device.allocate_shared<std::uint8_t>(bytes).value();
    auto blurred = device.allocate_shared<std::uint8_t>(bytes).value();
    device.fill(image, 10).value();
    {
        auto in = open_mat(image, size).value();
        auto out = open_mat(blurred, size).value();
        cv::rectangle(in.mat, {8, 8}, {40, 40}, cv::Scalar(200), cv::FILLED);
        // An output that fits is written where it is. One that does not is allocated anew: then `out.mat` is no longer
        // the buffer.
        cv::GaussianBlur(in.mat, out.mat, {5, 5}, 0);
        expect(out.mat.data == out.view.data(), "OpenCV wrote into the buffer's own memory");
    }  // the views close: kernels may use the images again
    device.launch(brighten, bytes, blurred, 5).value();
    // end
    const auto pixels = blurred.read_on_host().value();
    expect(pixels[20 * 64 + 20] == 205 && pixels[0] == 15, "the kernel brightened what OpenCV had blurred");
    const int edge = pixels[20 * 64 + 8];
    expect(edge > 15 && edge < 205, "the edge is blurred");
    expect(open_mat(image, {32, 32}).code() == isthmus::Code::invalid_argument, "another size is refused");
}

void over_a_mat(isthmus::Device& device) {
    cv::Mat mat(48, 64, CV_8UC1, cv::Scalar(30));
    bool held = false;
    {
        auto adopted = adopt_mat(device, mat).value();
        held = mat.u->refcount == 2;
        device.launch(brighten, adopted.size(), adopted, 5).value();
        expect(adopted.read_on_host().value()[0] == 35, "the kernel worked on the pixels");
        expect(cv::countNonZero(mat != 35) == 0, "OpenCV sees the result");
    }
    expect(held && mat.u->refcount == 1, "the buffer held the pixels, and let them go");
    // A region's rows are apart: its buffer has the gaps, too.
    const cv::Mat region = mat(cv::Rect(16, 8, 32, 16));
    auto adopted = adopt_mat(device, region.clone()).value();
    expect(adopted.size() == 32 * 16, "a clone has no gaps");
}

}  // namespace

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    over_a_view(runtime.default_device());
    over_a_mat(runtime.default_device());
    std::printf("cv::Mat and buffers without a copy: %s\n", failures == 0 ? "yes" : "no");
    return failures == 0 ? 0 : 1;
}
