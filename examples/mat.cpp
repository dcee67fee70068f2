// SPDX-License-Identifier: Apache-2.0
// How to use an image class such as OpenCV's cv::Mat with shared buffers, in both directions.
#include <isthmus/isthmus.hpp>

#include "brighten.hpp"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

namespace {

// Stands for cv::Mat of type CV_8UC1: the fields have the same names and meanings. With OpenCV write
// cv::Mat(rows, cols, CV_8UC1, data, step), which refers to memory that it does not own.
struct Mat {
    int rows;
    int cols;
    std::uint8_t* data;
    std::size_t step;  // bytes from one row to the next
};

// Stands for a function of an image library.
void draw_frame(const Mat& image) {
    for (int x = 0; x < image.cols; ++x) {
        image.data[x] = 255;
        image.data[static_cast<std::size_t>(image.rows - 1) * image.step + static_cast<std::size_t>(x)] = 255;
    }
}

// show: over
// A Mat over a host view. The Mat is valid while the view is open.
struct OpenMat {
    isthmus::HostView<std::uint8_t> view;
    Mat mat;
};
isthmus::Result<OpenMat> open_mat(isthmus::Buffer<std::uint8_t>& buffer, int rows, int cols) {
    ISTHMUS_TRY(auto view, buffer.read_write_on_host());  // waits for device work on this buffer
    std::uint8_t* data = view.data();
    return OpenMat{std::move(view), {rows, cols, data, static_cast<std::size_t>(cols)}};
}
// end

// show: adopt
// A buffer over the memory of a Mat. `owner` keeps the pixels alive: for cv::Mat, a copy of the cv::Mat.
isthmus::Result<isthmus::Buffer<std::uint8_t>> adopt_mat(isthmus::Device& device, const Mat& mat,
                                                         std::shared_ptr<void> owner) {
    isthmus::AdoptOptions options;
    options.use = {.host = isthmus::Use::reads_and_writes, .device = isthmus::Use::reads_and_writes};
    options.release = [owner = std::move(owner)](void*, std::size_t) mutable { owner.reset(); };
    return device.adopt<std::uint8_t>(mat.data, static_cast<std::size_t>(mat.rows) * mat.step, std::move(options));
}
// end

}  // namespace

int main() {
    isthmus::Runtime runtime = isthmus::Runtime::open({.launch_mode = isthmus::LaunchMode::checked}).value();
    isthmus::Device& device = runtime.default_device();
    constexpr int rows = 48;
    constexpr int cols = 64;
    constexpr std::size_t size = std::size_t{rows} * cols;

    // show: use
    auto image = device.allocate_shared<std::uint8_t>(size).value();
    device.fill(image, 10).value();
    {
        auto open = open_mat(image, rows, cols).value();
        draw_frame(open.mat);
    }  // the view closes: kernels may use the image again
    device.launch(brighten, size, image, 5).value();
    // end
    const auto drawn = image.read_on_host().value();
    const bool first = drawn[0] == 255 && drawn[cols] == 15;

    auto pixels = std::make_shared<std::vector<std::uint8_t>>(size, std::uint8_t{30});
    const Mat mat{rows, cols, pixels->data(), std::size_t{cols}};
    bool second = false;
    {
        auto adopted = adopt_mat(device, mat, pixels).value();
        device.launch(brighten, size, adopted, 5).value();
        second = adopted.read_on_host().value()[0] == 35 && mat.data[0] == 35;  // in the Mat's own memory
    }
    std::printf("drawn %d, adopted %d\n", first, second);
    return first && second && pixels.use_count() == 1 ? 0 : 1;
}
