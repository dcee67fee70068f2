// SPDX-License-Identifier: Apache-2.0
// JPEG files of every kind, made by libjpeg; an error of libjpeg ends the test.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <jpeglib.h>

namespace isthmus::tools::camera {

struct JpegKind {
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    J_COLOR_SPACE samples = JCS_GRAYSCALE;  // format of the given samples
    J_COLOR_SPACE stored = JCS_GRAYSCALE;   // format in the file
    bool progressive = false;
    int quality = 100;
    int subsampling = 1;  // of colour, on both axes
    std::string app1{};   // content of a segment APP1; empty: none
    int restart_rows = 0;
    std::vector<jpeg_scan_info> script{};  // of a progressive file; empty: libjpeg's default
};

inline std::string jpeg_of(const JpegKind& kind, std::string_view samples) {
    jpeg_error_mgr errors;
    jpeg_compress_struct info;
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    unsigned char* bytes = nullptr;
    unsigned long size = 0;
    jpeg_mem_dest(&info, &bytes, &size);
    const int components = kind.samples == JCS_GRAYSCALE ? 1 : kind.samples == JCS_CMYK ? 4 : 3;
    info.image_width = kind.width;
    info.image_height = kind.height;
    info.input_components = components;
    info.in_color_space = kind.samples;
    jpeg_set_defaults(&info);
    jpeg_set_colorspace(&info, kind.stored);
    jpeg_set_quality(&info, kind.quality, TRUE);
    info.optimize_coding = TRUE;
    if (info.num_components == 3) info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = kind.subsampling;
    if (kind.progressive) jpeg_simple_progression(&info);
    if (!kind.script.empty()) {
        info.scan_info = kind.script.data();
        info.num_scans = static_cast<int>(kind.script.size());
    }
    info.restart_in_rows = kind.restart_rows;
    jpeg_start_compress(&info, TRUE);
    if (!kind.app1.empty()) {
        jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(kind.app1.data()),
                          static_cast<unsigned>(kind.app1.size()));
    }
    std::string row;
    for (std::uint32_t y = 0; y < kind.height; ++y) {
        row = samples.substr(std::size_t{y} * kind.width * static_cast<unsigned>(components),
                             std::size_t{kind.width} * static_cast<unsigned>(components));
        auto* start = reinterpret_cast<JSAMPLE*>(row.data());
        jpeg_write_scanlines(&info, &start, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    std::string file(reinterpret_cast<const char*>(bytes), size);
    std::free(bytes);
    return file;
}

// The content of APP1 with this orientation, in either byte order.
inline std::string exif_segment(int orientation, bool little = true) {
    const auto low = static_cast<char>(orientation);
    if (little) {
        return std::string("Exif\0\0II*\0\x08\0\0\0\x02\0\x00\x01\x03\0\x01\0\0\0\x07\0\0\0\x12\x01\x03\0\x01\0\0\0",
                           36) +
               std::string{low, 0, 0, 0} + std::string(4, '\0');
    }
    return std::string("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 25) + std::string{low, 0, 0} +
           std::string(4, '\0');
}

}  // namespace isthmus::tools::camera
