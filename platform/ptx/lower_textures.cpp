// SPDX-License-Identifier: Apache-2.0
// Decodes fetches of textures (tex) and queries of textures and surfaces (txq, suq). Cubemaps, gradients, gathers
// (tld4) and multisampled textures are not known here, and so refused by name.
#include "lowering.hpp"

#include <utility>

namespace isthmus::ptx {

bool Lowering::textures() {
    if (now_->opcode != "tex") return false;
    Qualifiers& words = *words_;
    const bool has_level = words.take(".level");
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
    const std::size_t count = has_level ? 3 : 2;
    if (!want(count, count)) return true;
    const TextureShape& known = texture_shapes[*shape];
    const Operand &data = now_->operands[0], &place = now_->operands[1];
    const bool well_formed = place.kind == OperandKind::list && place.offset == 0 && place.elements.size() == 1 &&
                             place.elements[0].kind == OperandKind::vector && data.kind == OperandKind::vector &&
                             data.elements.size() == 4;
    if (!well_formed) return refuse_this("has other operands than four registers, a texture and coordinates"), true;
    const std::vector<Operand>& coordinates = place.elements[0].elements;
    if (coordinates.size() != known.operands) return refuse_this("has another number of coordinates"), true;
    Operand texture;
    texture.kind = OperandKind::name;
    texture.name = place.name;
    Op made;
    made.a = value(texture, Type::u64);
    Place axes[3] = {constant(0), constant(0), constant(0)};
    const std::size_t first = known.layered ? 1 : 0;
    for (std::size_t axis = 0; axis < known.dimensions; ++axis) axes[axis] = value(coordinates[first + axis], types[1]);
    made.b = axes[0];
    made.c = axes[1];
    made.d = axes[2];
    if (known.layered) made.value = static_cast<std::uint64_t>(value(coordinates[0], Type::u32));
    made.mode = static_cast<std::uint8_t>(*shape);
    made.flag = types[1] == Type::s32;
    made.space = Space::global;
    element_places(data, types[0], true, made);
    emit(texture_run(), OpKind::may_fault, made);
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
