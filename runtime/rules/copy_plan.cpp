// SPDX-License-Identifier: Apache-2.0
// Paths of copies, and the arithmetic of shapes.
#include "copy_plan.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace isthmus::rules {
namespace {

// CU_DEVICE_ATTRIBUTE_MAX_PITCH of every machine on record.
constexpr std::size_t max_pitch_bytes = 2147483647;

enum class Site : std::uint8_t { pageable, pinned, gpu };

// A staged buffer counts as device memory: claims bring the device's side up to date, whichever side is newer.
Site site_of(const CopySideFacts& side) {
    if (side.path == LaunchPath::stage) return Site::gpu;
    switch (side.kind) {
        case MemoryKind::unknown:
        case MemoryKind::host:
        case MemoryKind::host_numa: return Site::pageable;
        case MemoryKind::pinned:
        case MemoryKind::registered:
        case MemoryKind::write_combined: return Site::pinned;
        default: return Site::gpu;
    }
}

bool is_managed(const CopySideFacts& side) {
    return side.kind == MemoryKind::managed || side.kind == MemoryKind::managed_pool;
}

// May the calling thread access it, after a wait for the device work that uses it?
bool host_visible(const CopySideFacts& side) {
    return site_of(side) != Site::gpu || side.path == LaunchPath::stage || is_managed(side);
}

bool elsewhere(const CopySideFacts& side) {
    return site_of(side) == Site::gpu && side.owner == CopyOwner::other_gpu && !side.reached;
}

// Pageable memory is never given to the driver behind other work, even where the device reaches it. Drivers differ in
// when they read such a source, and in when they return from writing such a destination (a driver may read before
// earlier work of the stream has written), and no deadline ends their wait. On an idle stream none of this matters:
// pageable_way().
bool in_place(const CopySideFacts& side) {
    switch (site_of(side)) {
        case Site::pageable: return false;
        case Site::pinned: return true;
        case Site::gpu: return side.owner != CopyOwner::other_gpu || side.reached;
    }
    return false;
}

platform::CopyDirection direction(const CopySideFacts& to, const CopySideFacts& from) {
    using platform::CopyDirection;
    if (is_host_memory(from)) return is_host_memory(to) ? CopyDirection::host_to_host : CopyDirection::host_to_device;
    return is_host_memory(to) ? CopyDirection::device_to_host : CopyDirection::device_to_device;
}

CopyPlan plan(CopyPath path, std::string_view reason) {
    return {path, platform::CopyDirection::device_to_device, reason, {}};
}

}  // namespace

bool is_host_memory(const CopySideFacts& side) {
    return site_of(side) != Site::gpu;
}

CopyCarrier copy_carrier(bool cpu_stream, const CopySideFacts& to, const CopySideFacts& from) {
    if (cpu_stream) {
        if (!host_visible(to)) return CopyCarrier::owner_of_destination;
        return host_visible(from) ? CopyCarrier::stream : CopyCarrier::owner_of_source;
    }
    // Between the host and another GPU, that GPU copies; between two other GPUs, the receiving one.
    const auto others = [](const CopySideFacts& side) {
        return site_of(side) == Site::gpu && side.owner == CopyOwner::other_gpu;
    };
    if (others(to) && (others(from) || is_host_memory(from))) return CopyCarrier::owner_of_destination;
    if (others(from) && is_host_memory(to)) return CopyCarrier::owner_of_source;
    // Attached memory belongs to one stream at a time, which must be a stream of its own device.
    if (elsewhere(to) && to.path == LaunchPath::attach) return CopyCarrier::owner_of_destination;
    if (elsewhere(from) && from.path == LaunchPath::attach) return CopyCarrier::owner_of_source;
    return CopyCarrier::stream;
}

CopyPlan plan_copy(bool cpu_stream, const CopySideFacts& to, const CopySideFacts& from) {
    const bool by_host = host_visible(to) && host_visible(from);
    if (cpu_stream) {
        if (by_host) return plan(CopyPath::on_host, "the CPU device copies on the calling thread");
        return {CopyPath::refuse, {}, "the CPU device cannot touch memory of a GPU", "copy on a stream of that GPU"};
    }
    const auto attached_elsewhere = [](const CopySideFacts& side) {
        return elsewhere(side) && side.path == LaunchPath::attach;
    };
    if (attached_elsewhere(to) || attached_elsewhere(from)) {
        if (by_host)
            return plan(CopyPath::on_host, "managed memory that another GPU shares by phases: the host copies");
        return {CopyPath::refuse,
                {},
                "managed memory that another GPU shares by phases is not to be had on this stream",
                "copy it to pinned memory on a stream of its own device first"};
    }
    if (!in_place(to) && is_host_memory(to)) {
        if (is_host_memory(from)) return plan(CopyPath::on_host, "both sides are host memory: no device is needed");
        return plan(CopyPath::bounce_down,
                    "pageable memory: through bounce buffers, or staged by the driver; written when the call returns");
    }
    if (!in_place(from) && is_host_memory(from)) {
        if (is_host_memory(to)) return plan(CopyPath::on_host, "both sides are host memory: no device is needed");
        return plan(CopyPath::bounce_up,
                    "pageable memory: through bounce buffers, or staged by the driver; read when the call returns");
    }
    if (elsewhere(to) || elsewhere(from)) {
        return plan(CopyPath::between_devices, "the devices do not see each other's memory: the driver stages");
    }
    CopyPlan found = plan(CopyPath::driver, "the device reaches both sides: one asynchronous copy");
    found.direction = direction(to, from);
    return found;
}

CopyPlan plan_recorded_copy(bool cpu_stream, const CopySideFacts& to, const CopySideFacts& from) {
    const auto takes_part = [](const CopySideFacts& side) {
        return in_place(side) || (site_of(side) == Site::pageable && side.owner == CopyOwner::same && side.reached);
    };
    if (cpu_stream || !takes_part(to) || !takes_part(from)) return plan_copy(cpu_stream, to, from);
    CopyPlan found = plan(CopyPath::driver, "the device reaches both sides: a node of the graph");
    found.direction = direction(to, from);
    return found;
}

// Memory of other kinds: a managed or mapped destination was not measured, and a copy that reaches over two mapped
// handles needs a current context.
PageableWay pageable_way(const CopySideFacts& gpu, const PageableFacts& facts) {
    const bool plain = gpu.kind == MemoryKind::device || gpu.kind == MemoryKind::pool;
    const bool in_order = gpu.path == LaunchPath::pass || gpu.path == LaunchPath::stage;
    if (!plain || !in_order || gpu.owner != CopyOwner::same || !facts.one_range) return PageableWay::bounce;
    // One DRAM: both ways are copies by the CPU, and which is faster was not measured.
    if (facts.memory == MemoryModel::shared_dram || facts.memory == MemoryModel::host) return PageableWay::bounce;
    // Nothing may come before the copy once the stream was seen idle; the driver's call might wait for a service, and
    // might end a capture of another thread.
    if (facts.others_submit || facts.capture_is_open || facts.service_runs) return PageableWay::bounce;
    if (facts.bytes < (facts.up ? driver_up_bytes : driver_down_bytes)) return PageableWay::bounce;
    return facts.up && facts.bytes <= facts.bounce_bytes ? PageableWay::driver_if_idle : PageableWay::driver;
}

Fit fit(CopyLayout& layout, const CopyBox& box, std::size_t elements) {
    if (box.width == 0 || box.height == 0 || box.depth == 0) return {};
    if (layout.row_pitch == 0) layout.row_pitch = box.width;
    if (box.height > 1 && layout.row_pitch < box.width) return {Fit::Answer::row_pitch, 0};
    std::size_t rows = 0, slices = 0, end = 0, slice = 0;
    if (__builtin_mul_overflow(box.height - 1, layout.row_pitch, &rows) ||
        __builtin_add_overflow(rows, box.width, &slice)) {
        return {Fit::Answer::overflow, 0};
    }
    if (layout.slice_pitch == 0 && __builtin_mul_overflow(box.height, layout.row_pitch, &layout.slice_pitch)) {
        return {Fit::Answer::overflow, 0};
    }
    if (box.depth > 1 && layout.slice_pitch < slice) return {Fit::Answer::slice_pitch, 0};
    if (__builtin_mul_overflow(box.depth - 1, layout.slice_pitch, &slices) ||
        __builtin_add_overflow(slice, slices, &end) || __builtin_add_overflow(end, layout.offset, &end)) {
        return {Fit::Answer::overflow, 0};
    }
    return end <= elements ? Fit{} : Fit{Fit::Answer::outside, end};
}

CopyShape simplest(CopyShape shape) {
    const auto both = [&](auto holds) { return holds(shape.to) && holds(shape.from); };
    const auto one_slice = [&] {
        shape.slices = 1;
        shape.to.slice = shape.from.slice = 0;
    };
    if (shape.rows == 1 && shape.slices > 1) {  // slices of one row each are rows
        shape.rows = shape.slices;
        shape.to.row = shape.to.slice;
        shape.from.row = shape.from.slice;
        one_slice();
    }
    if (shape.slices > 1 && both([&](const CopyStride& side) { return side.slice == shape.rows * side.row; })) {
        shape.rows *= shape.slices;
        one_slice();
    }
    if (shape.rows > 1 && both([&](const CopyStride& side) { return side.row == shape.width; })) {
        shape.width *= shape.rows;
        shape.rows = 1;
        if (shape.slices > 1) return simplest(shape);
    }
    if (shape.slices == 1) one_slice();
    if (shape.rows == 1 && shape.slices == 1) shape.to.row = shape.from.row = shape.width;
    return shape;
}

namespace {

// Are two boxes of the same pitches, `distance` bytes apart, without a common byte? Rows and slices do not overlap
// themselves, so only the two nearest numbers of slices, and of rows, can bring the boxes together.
bool meet(std::size_t distance, const CopyShape& shape) {
    const std::size_t slice = shape.slices > 1 ? shape.to.slice : 0;
    const std::size_t max_slices = slice == 0 ? 0 : distance / slice;
    for (std::size_t z = max_slices; z <= max_slices + (slice == 0 ? 0 : 1); ++z) {
        if (z >= shape.slices) continue;
        const bool beyond = z * slice > distance;
        const std::size_t rest = beyond ? z * slice - distance : distance - z * slice;
        const std::size_t row = shape.rows > 1 ? shape.to.row : 0;
        const std::size_t max_rows = row == 0 ? 0 : rest / row;
        for (std::size_t y = max_rows; y <= max_rows + (row == 0 ? 0 : 1); ++y) {
            if (y >= shape.rows) continue;
            const std::size_t left = y * row > rest ? y * row - rest : rest - y * row;
            if (left < shape.width) return true;
        }
    }
    return false;
}

std::size_t reach(const CopyShape& shape, const CopyStride& side) {
    return (shape.slices - 1) * side.slice + (shape.rows - 1) * side.row + shape.width;
}

}  // namespace

bool overlaps(const CopyShape& shape) {
    if (shape.width == 0 || shape.rows == 0 || shape.slices == 0) return false;
    if (shape.to.offset + reach(shape, shape.to) <= shape.from.offset ||
        shape.from.offset + reach(shape, shape.from) <= shape.to.offset) {
        return false;
    }
    const bool alike = (shape.rows == 1 || shape.to.row == shape.from.row) &&
                       (shape.slices == 1 || shape.to.slice == shape.from.slice);
    if (!alike) return true;
    return meet(
        shape.to.offset > shape.from.offset ? shape.to.offset - shape.from.offset : shape.from.offset - shape.to.offset,
        shape);
}

bool one_call(const CopyShape& shape) {
    const auto fits = [&](const CopyStride& side) {
        if (shape.rows == 1 && shape.slices == 1) return true;
        if (side.row > max_pitch_bytes || side.row < shape.width) return false;
        return shape.slices == 1 || (side.slice % side.row == 0 && side.slice / side.row >= shape.rows);
    };
    return fits(shape.to) && fits(shape.from);
}

bool CopyChunks::next(CopyChunk& chunk) {
    if (shape_.width == 0 || row_ == shape_.rows || slice_ == shape_.slices) return false;
    chunk.to = slice_ * shape_.to.slice + row_ * shape_.to.row + at_;
    chunk.from = slice_ * shape_.from.slice + row_ * shape_.from.row + at_;
    if (shape_.width >= chunk_bytes_) {
        chunk.width = std::min(chunk_bytes_, shape_.width - at_);
        chunk.rows = 1;
        at_ += chunk.width;
        if (at_ < shape_.width) return true;
        at_ = 0;
    } else {
        chunk.width = shape_.width;
        chunk.rows = std::min(chunk_bytes_ / shape_.width, shape_.rows - row_);
    }
    row_ += chunk.rows;
    if (row_ == shape_.rows && slice_ + 1 < shape_.slices) {
        row_ = 0;
        ++slice_;
    }
    return true;
}

FillPattern shortest_pattern(const void* value, std::size_t bytes) {
    const auto* const first = static_cast<const unsigned char*>(value);
    for (const std::size_t length : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
        if (bytes % length != 0) break;
        bool repeats = true;
        for (std::size_t at = length; at < bytes && repeats; ++at) repeats = first[at] == first[at - length];
        if (!repeats) continue;
        FillPattern found{length, 0};
        if (length == 1) found.value = *first;
        std::uint16_t half = 0;
        if (length == 2) std::memcpy(&half, value, 2), found.value = half;
        if (length == 4) std::memcpy(&found.value, value, 4);
        return found;
    }
    return {};
}

namespace {

// Takes `count` of the shape's lines (slices, or rows of its only slice) from `first` on.
CopyShape lines_of(CopyShape shape, std::size_t first, std::size_t count) {
    const bool slices = shape.slices > 1;
    const auto further = [&](const CopyStride& side) { return first * (slices ? side.slice : side.row); };
    shape.to.offset += further(shape.to);
    shape.from.offset += further(shape.from);
    (slices ? shape.slices : shape.rows) = count;
    return simplest(shape);
}

// Splits the shape where it extends across the seam.
void split(const CopyShape& shape, std::size_t seam, std::vector<CopyShape>& out) {
    const std::size_t begin = shape.to.offset;
    if (seam <= begin || begin + reach(shape, shape.to) <= seam) return out.push_back(shape);
    if (shape.slices == 1 && shape.rows == 1) {
        CopyShape before = shape, behind = shape;
        before.width = seam - begin;
        behind.width -= before.width;
        behind.to.offset += before.width;
        behind.from.offset += before.width;
        out.push_back(simplest(before));
        return out.push_back(simplest(behind));
    }
    // Lines do not overlap, so only the last line that begins before the seam may extend across it.
    const std::size_t lines = shape.slices > 1 ? shape.slices : shape.rows;
    const std::size_t stride = shape.slices > 1 ? shape.to.slice : shape.to.row;
    const std::size_t across = std::min((seam - begin - 1) / stride, lines - 1);
    if (across > 0) out.push_back(lines_of(shape, 0, across));
    split(lines_of(shape, across, 1), seam, out);
    if (across + 1 < lines) out.push_back(lines_of(shape, across + 1, lines - across - 1));
}

}  // namespace

std::vector<CopyShape> shapes_between(const CopyShape& shape, const std::vector<std::size_t>& seams) {
    std::vector<CopyShape> shapes{shape};
    for (const std::size_t seam : seams) {
        std::vector<CopyShape> finer;
        for (const CopyShape& each : shapes) split(each, seam, finer);
        shapes = std::move(finer);
    }
    return shapes;
}

}  // namespace isthmus::rules
