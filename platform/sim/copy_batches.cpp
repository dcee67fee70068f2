// SPDX-License-Identifier: Apache-2.0
// Batches of copies: one operation of a stream, whose copies have no order among themselves.
#include "arrays.hpp"
#include "batches.hpp"
#include "call.hpp"

#include <algorithm>

namespace isthmus::sim {
namespace {

// CUmemcpySrcAccessOrder
constexpr int in_stream_order = 1, during_call = 2, any_order = 3;
constexpr unsigned overlap_with_compute = 1;  // a hint
constexpr int pointer_type = 1, array_type = 2;

bool are_lawful(int source_order, unsigned flags) {
    return source_order >= in_stream_order && source_order <= any_order && flags <= overlap_with_compute;
}

// The bytes of one side of a copy: rows with gaps between them, or one row without any.
struct Shape {
    Address begin = 0, end = 0;
    Box box;
    Layout layout;
    std::size_t copy = 0;  // the program's index
    bool written = false;
    std::size_t rows() const { return box.height * box.depth; }
    Address row(std::size_t i) const { return begin + i / box.height * layout.slice + i % box.height * layout.pitch; }
};

Shape shape_of(const Side& side, const Box& box, const Layout& layout, std::size_t copy, bool written) {
    std::size_t bytes = 0;
    (void)measure(box, layout, bytes);  // the side was checked
    Shape shape = {side.address, side.address + bytes, box, layout, copy, written};
    if (bytes == box.width_bytes * box.height * box.depth) {
        shape.box = {bytes, 1, 1};
        shape.layout = {bytes, bytes};
    }
    return shape;
}

// Whether a row of `bytes` from `distance` on meets one of `count` pieces that begin every `step` bytes: the first that
// ends behind its begin is the only one to look at. `index` is that piece.
bool meets(std::size_t distance, std::size_t bytes, std::size_t piece, std::size_t step, std::size_t count,
           std::size_t& index) {
    index = distance < piece ? 0 : (distance - piece) / step + 1;
    return index < count && index * step < distance + bytes;
}

// Rows of a shape ascend and do not overlap, nor do its layers.
bool meets(const Shape& shape, Address begin, std::size_t bytes) {
    if (begin + bytes <= shape.begin || begin >= shape.end) return false;
    if (begin < shape.begin) {
        bytes -= shape.begin - begin;
        begin = shape.begin;
    }
    const Box& box = shape.box;
    const std::size_t layer_bytes = (box.height - 1) * shape.layout.pitch + box.width_bytes;
    std::size_t layer = 0, row = 0;
    while (meets(begin - shape.begin, bytes, layer_bytes, shape.layout.slice, box.depth, layer)) {
        const Address from = shape.begin + layer * shape.layout.slice;
        const Address first = std::max(begin, from);
        if (meets(first - from, begin + bytes - first, box.width_bytes, shape.layout.pitch, box.height, row))
            return true;
        if (begin + bytes <= from + layer_bytes) return false;
        bytes -= from + layer_bytes - begin;
        begin = from + layer_bytes;
    }
    return false;
}

bool meet(const Shape& a, const Shape& b) {
    const Shape &few = a.rows() <= b.rows() ? a : b, &many = a.rows() <= b.rows() ? b : a;
    for (std::size_t i = 0; i < few.rows(); ++i) {
        if (meets(many, few.row(i), few.box.width_bytes)) return true;
    }
    return false;
}

// The legacy stream is refused. Observed (580, H200) for lines: while capturing 900, and the capture stays valid.
Result check_stream(Driver& d, Stream* handle, StreamTarget& stream) {
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    if (stream.legacy) return result::invalid_value;
    const bool captures = d.engine().capture_info(stream.id).state != engine::CaptureState::none;
    return captures ? result::capture_unsupported : result::ok;
}

struct Lines {
    const Address *to, *from;
    const std::size_t* sizes;
    std::size_t count;
    const CopyAttributes* attributes;
    const std::size_t* first_of;
    std::size_t attribute_count;
};

// Documented: each copy has attributes, by indices that ascend from 0.
bool well_formed(const Lines& lines) {
    if (!lines.to || !lines.from || !lines.sizes || lines.count == 0) return false;
    if (!lines.attributes || !lines.first_of) return false;
    if (!ascend_from_zero(lines.first_of, lines.attribute_count, lines.count)) return false;
    return std::all_of(lines.attributes, lines.attributes + lines.attribute_count,
                       [](const CopyAttributes& one) { return are_lawful(one.source_order, one.flags); });
}

Result copy_lines(Driver& d, const Lines& lines, Stream* stream, std::size_t* failed) {
    StreamTarget target;
    if (const Result code = check_stream(d, stream, target)) return code;
    if (!well_formed(lines)) return result::invalid_value;
    std::vector<BatchedRequest> batch;
    std::size_t current = 0;
    for (std::size_t i = 0; i < lines.count; ++i) {
        if (current + 1 < lines.attribute_count && lines.first_of[current + 1] == i) ++current;
        const std::size_t bytes = lines.sizes[i];
        if (bytes == 0) {  // observed (580, H200); the index is assumed
            if (failed) *failed = i;
            return result::invalid_value;
        }
        BatchedRequest& one = batch.emplace_back();
        one.copy.destination = {lines.to[i], false};
        one.copy.source = {lines.from[i], false};
        one.copy.box = {bytes, 1, 1};
        one.copy.to = one.copy.from = {bytes, bytes};
        one.index = i;
        one.source_during_call = lines.attributes[current].source_order == during_call;
    }
    return copy_batch(d, stream, batch, failed);
}

// The bytes of an element, in which widths and rows are measured: documented as that of the arrays, which is the same
// for two of them, and 1 without any. Requires the driver's mutex.
Result find_element(const Driver& d, const Context* context, const BatchedCopy& asked, std::size_t& element) {
    element = 0;
    for (const BatchedEnd* const end : {&asked.source, &asked.destination}) {
        if (end->type != array_type) continue;
        const auto* const array = static_cast<const Array*>(end->array.array);
        if (!array) die_like_the_driver("a batch of copies with an array that is null");  // observed (580, H200)
        if (const Result code = check_handle(d, array, context, "a batch of copies")) return code;
        const std::size_t bytes = element_bytes_of(array->description.format, array->description.channels);
        if (bytes == 0 || (element != 0 && element != bytes)) return result::invalid_value;
        element = bytes;
    }
    if (element == 0) element = 1;
    return result::ok;
}

// Documented: a row or layer that is shorter than the copy is an error, and 0 means without gaps. Requires the driver's
// mutex.
Result lay_out(const Driver& d, const Context* context, const BatchedEnd& end, std::size_t element, const Box& box,
               Side& side, Layout& layout) {
    if (end.type == array_type) {
        ArrayPlace place = {static_cast<Array*>(end.array.array), 0, end.array.offset[1], end.array.offset[2]};
        if (__builtin_mul_overflow(end.array.offset[0], element, &place.x_bytes)) return result::invalid_value;
        return place_in_array(d, context, place, box, side, layout);
    }
    if (end.type != pointer_type || end.pointer.address == 0) return result::invalid_value;
    std::size_t row = box.width_bytes;
    if (end.pointer.row_length != 0 && __builtin_mul_overflow(end.pointer.row_length, element, &row)) {
        return result::invalid_value;
    }
    const std::size_t rows = end.pointer.layer_rows != 0 ? end.pointer.layer_rows : box.height;
    if (row < box.width_bytes || rows < box.height) return result::invalid_value;
    layout.pitch = row;
    if (__builtin_mul_overflow(row, rows, &layout.slice)) return result::invalid_value;
    side = {end.pointer.address, false};
    return result::ok;
}

// Requires the driver's mutex.
Result read_box(const Driver& d, const Context* context, const BatchedCopy& asked, BatchedRequest& out) {
    std::size_t element = 0;
    if (const Result code = find_element(d, context, asked, element)) return code;
    Box& box = out.copy.box;
    box = {0, asked.height, asked.depth};
    if (__builtin_mul_overflow(asked.width, element, &box.width_bytes)) return result::invalid_value;
    if (box.empty() || !are_lawful(asked.source_order, asked.flags)) return result::invalid_value;
    CopyRequest& copy = out.copy;
    if (const Result code = lay_out(d, context, asked.destination, element, box, copy.destination, copy.to))
        return code;
    if (const Result code = lay_out(d, context, asked.source, element, box, copy.source, copy.from)) return code;
    out.source_during_call = asked.source_order == during_call;
    return result::ok;
}

Result copy_boxes(Driver& d, std::size_t count, const BatchedCopy* copies, unsigned long long flags, Stream* stream,
                  std::size_t* failed) {
    StreamTarget target;
    if (const Result code = check_stream(d, stream, target)) return code;
    if (count == 0 || !copies || flags != 0) return result::invalid_value;
    std::vector<BatchedRequest> batch;
    for (std::size_t i = 0; i < count; ++i) {
        BatchedRequest& one = batch.emplace_back();
        one.index = i;
        const std::lock_guard lock(d.mutex);
        const Result code = read_box(d, target.context, copies[i], one);
        if (code != result::ok && failed) *failed = i;
        if (code != result::ok) return code;
    }
    return copy_batch(d, stream, batch, failed);
}

// The first version reports the copy that failed. Documented: SIZE_MAX where it is none in particular.
void report_none(std::size_t* failed) {
    if (failed) *failed = static_cast<std::size_t>(-1);
}

}  // namespace

void check_independence(const std::vector<BatchedRequest>& batch) {
    std::vector<Shape> shapes;
    for (const BatchedRequest& one : batch) {
        shapes.push_back(shape_of(one.copy.destination, one.copy.box, one.copy.to, one.index, true));
        shapes.push_back(shape_of(one.copy.source, one.copy.box, one.copy.from, one.index, false));
    }
    std::sort(shapes.begin(), shapes.end(), [](const Shape& a, const Shape& b) { return a.begin < b.begin; });
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        for (std::size_t k = i + 1; k < shapes.size() && shapes[k].begin < shapes[i].end; ++k) {
            if (shapes[i].copy == shapes[k].copy || (!shapes[i].written && !shapes[k].written)) continue;
            if (!meet(shapes[i], shapes[k])) continue;
            say("copies %zu and %zu of a batch touch the same memory from %#llx on, and a batch has no order",
                shapes[i].copy, shapes[k].copy, shapes[k].begin);
            undefined("copies of one batch that depend on each other");
            return;
        }
    }
}

extern "C" {

Result cuMemcpyBatchAsync_v2(Address* to, Address* from, std::size_t* sizes, std::size_t count,
                             CopyAttributes* attributes, std::size_t* first_of, std::size_t attribute_count,
                             Stream* stream) {
    return call(CallId::cuMemcpyBatchAsync_v2, [&](Driver& d) {
        return copy_lines(d, {to, from, sizes, count, attributes, first_of, attribute_count}, stream, nullptr);
    });
}

Result cuMemcpyBatchAsync(Address* to, Address* from, std::size_t* sizes, std::size_t count, CopyAttributes* attributes,
                          std::size_t* first_of, std::size_t attribute_count, std::size_t* failed, Stream* stream) {
    return call(CallId::cuMemcpyBatchAsync, [&](Driver& d) {
        report_none(failed);
        return copy_lines(d, {to, from, sizes, count, attributes, first_of, attribute_count}, stream, failed);
    });
}

Result cuMemcpy3DBatchAsync_v2(std::size_t count, BatchedCopy* copies, unsigned long long flags, Stream* stream) {
    return call(CallId::cuMemcpy3DBatchAsync_v2,
                [&](Driver& d) { return copy_boxes(d, count, copies, flags, stream, nullptr); });
}

Result cuMemcpy3DBatchAsync(std::size_t count, BatchedCopy* copies, std::size_t* failed, unsigned long long flags,
                            Stream* stream) {
    return call(CallId::cuMemcpy3DBatchAsync, [&](Driver& d) {
        report_none(failed);
        return copy_boxes(d, count, copies, flags, stream, failed);
    });
}
}

}  // namespace isthmus::sim
