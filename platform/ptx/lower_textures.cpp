// SPDX-License-Identifier: Apache-2.0
// Decodes fetches of textures (tex, tld4) and queries of textures and surfaces (txq, suq). Multisampled textures,
// offsets and depth comparisons are not known here, and so refused by name.
#include "lowering.hpp"

#include <utility>

namespace isthmus::ptx {

bool Lowering::textures() {
    const bool gathers = now_->opcode == "tld4";
    if (now_->opcode != "tex" && !gathers) return false;
    Qualifiers& words = *words_;
    Fetching fetching = gathers ? Fetching::gather : Fetching::base;
    std::uint64_t channel = 0;
    if (gathers) {
        constexpr std::string_view channels[] = {".r", ".g", ".b", ".a"};
        while (channel < std::size(channels) && !words.take(channels[channel])) ++channel;
        if (channel == std::size(channels)) return refuse_this("is not modelled"), true;
    } else if (words.take(".level")) {
        fetching = Fetching::level;
    } else if (words.take(".grad")) {
        fetching = Fetching::gradients;
    }
    std::optional<std::size_t> shape;
    for (std::size_t at = 0; at < std::size(texture_shapes) && !shape; ++at) {
        if (words.take(texture_shapes[at].name)) shape = at;
    }
    const bool is_vector = words.take(".v4");
    const std::vector<Type>& types = words.types;
    const bool lawful = shape && is_vector && types.size() == 2 && words.left.empty() &&
                        (types[0] == Type::f32 || types[0] == Type::u32 || types[0] == Type::s32) &&
                        (types[1] == Type::f32 || types[1] == Type::s32);
    if (!lawful) return refuse_this("is not modelled"), true;
    const TextureShape& known = texture_shapes[*shape];
    const bool by_integers = types[1] == Type::s32;
    const bool of_plane = known.dimensions == 2 && !known.is_cube;
    const bool is_known =
        gathers ? of_plane && !by_integers : !by_integers || (!known.is_cube && fetching != Fetching::gradients);
    if (!is_known) return refuse_this("is not modelled"), true;
    const std::size_t count = fetching == Fetching::gradients ? 4 : fetching == Fetching::level ? 3 : 2;
    if (!want(count, count)) return true;
    const Operand &data = now_->operands[0], &place = now_->operands[1];
    const bool well_formed = place.kind == OperandKind::list && place.offset == 0 && place.elements.size() == 1 &&
                             place.elements[0].kind == OperandKind::vector && data.kind == OperandKind::vector &&
                             data.elements.size() == 4;
    if (!well_formed)
        return refuse_this(
                   "has other operands than four registers, a texture and "
                   "coordinates"),
               true;
    const std::vector<Operand>& coordinates = place.elements[0].elements;
    if (coordinates.size() != known.operands) return refuse_this("has another number of coordinates"), true;
    Operand texture;
    texture.kind = OperandKind::name;
    texture.name = place.name;
    Op made;
    made.a = value(texture, Type::u64);
    Place axes[3] = {constant(0), constant(0), constant(0)};
    const std::size_t first = known.layered ? 1 : 0;
    for (std::size_t axis = 0; axis < known.coordinates(); ++axis)
        axes[axis] = value(coordinates[first + axis], types[1]);
    made.b = axes[0];
    made.c = axes[1];
    made.d = axes[2];
    if (known.layered) made.value = static_cast<std::uint64_t>(value(coordinates[0], Type::u32));
    made.mode = static_cast<std::uint8_t>(*shape);
    made.flag = by_integers;
    made.bytes = static_cast<std::uint8_t>(fetching);
    made.value2 = channel;
    made.space = Space::global;
    std::vector<Place> more;
    if (fetching == Fetching::level) more.push_back(value(now_->operands[2], types[1]));
    if (fetching == Fetching::gradients && !gradients(known, more)) return true;
    element_places(data, types[0], true, made);
    out_.extra.insert(out_.extra.end(), more.begin(), more.end());
    emit(texture_run(), OpKind::may_fault, made);
    return true;
}

// The places of both gradients, by axis.
bool Lowering::gradients(const TextureShape& shape, std::vector<Place>& out) {
    for (const std::size_t at : {2, 3}) {
        const Operand& gradient = now_->operands[at];
        // A line's may stand without braces.
        const bool is_alone = gradient.kind == OperandKind::name && shape.of_gradient == 1;
        const bool is_vector = gradient.kind == OperandKind::vector && gradient.elements.size() == shape.of_gradient;
        if (!is_alone && !is_vector) return refuse_this("has another number of coordinates of a gradient"), false;
        for (std::size_t axis = 0; axis < shape.coordinates(); ++axis) {
            out.push_back(value(is_alone ? gradient : gradient.elements[axis], Type::f32));
        }
    }
    return true;
}

bool Lowering::object_query() {
    const bool of_surface = now_->opcode == "suq";
    if (!of_surface && now_->opcode != "txq") return false;
    constexpr std::pair<std::string_view, ObjectQuery> rows[] = {{".width", ObjectQuery::width},
                                                                 {".height", ObjectQuery::height},
                                                                 {".depth", ObjectQuery::depth},
                                                                 {".array_size", ObjectQuery::array_size},
                                                                 {".channel_data_type", ObjectQuery::channel_type},
                                                                 {".channel_order", ObjectQuery::channel_order},
                                                                 {".normalized_coords", ObjectQuery::normalised},
                                                                 {".num_mipmap_levels", ObjectQuery::levels}};
    std::optional<ObjectQuery> what;
    for (const auto& [name, one] : rows) {
        if (!what && words_->take(name)) what = one;
    }
    const bool of_textures = what == ObjectQuery::normalised || what == ObjectQuery::levels;
    if (!what || (of_surface && of_textures) || words_->type() != Type::b32)
        return refuse_this("is not modelled"), true;
    if (!want(2, 2)) return true;
    const Operand& place = now_->operands[1];
    if (place.kind != OperandKind::address || place.offset != 0) return refuse_this("needs an object"), true;
    Operand object;
    object.kind = OperandKind::name;
    object.name = place.name;
    Op made;
    made.a = value(object, Type::u64);
    made.d = destination(now_->operands[0], Type::b32);
    made.mode = static_cast<std::uint8_t>(*what);
    made.flag = of_surface;
    made.space = Space::global;
    emit(object_query_run(), OpKind::may_fault, made);
    return true;
}

}  // namespace isthmus::ptx
