// SPDX-License-Identifier: Apache-2.0
// Formats the corner list as JSON.
#include "corner_list_writer.hpp"

namespace isthmus::tools::camera {

Result<CornerListWriter> CornerListWriter::create(const std::string& path, std::uint32_t width, std::uint32_t height) {
    Result<AtomicFile> file = AtomicFile::create(path);
    if (!file) return std::move(file).error();
    CornerListWriter writer(std::move(file).value());
    Result<void> begun =
        writer.file_.write("{\"width\": " + std::to_string(width) + ", \"height\": " + std::to_string(height) +
                           ",\n\"columns\": [\"x\", \"y\", \"score\", \"track\", \"previous\"],\n\"frames\": [");
    if (!begun) return std::move(begun).error();
    return writer;
}

Result<void> CornerListWriter::write(std::span<const TrackedCorner> corners) {
    text_ = (frame_ == 0 ? "\n" : ",\n") + ("{\"frame\": " + std::to_string(frame_)) + ", \"corners\": [";
    ++frame_;
    const char* separator = "[";
    for (const TrackedCorner& corner : corners) {
        text_ += separator;
        text_ += std::to_string(corner.item.corner.x) + "," + std::to_string(corner.item.corner.y) + "," +
                 std::to_string(corner.item.corner.score) + "," + std::to_string(corner.track) + "," +
                 std::to_string(corner.previous) + "]";
        separator = ",[";
    }
    text_ += "]}";
    return file_.write(text_);
}

Result<void> CornerListWriter::finish(const std::string& corners_digest, const std::string& tracks_digest,
                                      OutputFiles& files) {
    Result<void> ended = file_.write("],\n\"corners_digest\": \"" + corners_digest + "\", \"tracks_digest\": \"" +
                                     tracks_digest + "\"}\n");
    if (!ended) return ended;
    return files.add(std::move(file_));
}

}  // namespace isthmus::tools::camera
