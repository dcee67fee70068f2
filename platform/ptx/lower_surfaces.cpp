// SPDX-License-Identifier: Apache-2.0
// Decodes unformatted loads and stores of surfaces (suld.b, sust.b). Formatted ones (.p), reductions, queries and
// textures are not known here, and so refused by name.
#include "lowering.hpp"

#include <utility>

namespace isthmus::ptx {
namespace {

// The places of x, y and z among the coordinates; -1: the surface has no such dimension.
struct Geometry {
    int x = 0, y = -1, z = -1;
    std::size_t coordinates = 1;
};

std::optional<Geometry> take_geometry(Qualifiers& words) {
    constexpr std::pair<std::string_view, Geometry> rows[] = {{".1d", {0, -1, -1, 1}},
                                                              {".2d", {0, 1, -1, 2}},
                                                              {".3d", {0, 1, 2, 4}},
                                                              {".a1d", {1, -1, 0, 2}},
                                                              {".a2d", {1, 2, 0, 4}}};
    for (const auto& [name, one] : rows) {
        if (words.take(name)) return one;
    }
    return std::nullopt;
}

std::optional<Boundary> take_boundary(Qualifiers& words) {
    if (words.take(".trap")) return Boundary::trap;
    if (words.take(".clamp")) return Boundary::clamp;
    if (words.take(".zero")) return Boundary::zero;
    return std::nullopt;
}

}  // namespace

bool Lowering::surfaces() {
    const bool is_load = now_->opcode == "suld";
    if (!is_load && now_->opcode != "sust") return false;
    Qualifiers& words = *words_;
    constexpr std::string_view caches[] = {".ca", ".cg", ".cs", ".cv", ".wb", ".wt"};
    words.ignore(caches);
    const bool unformatted = words.take(".b");
    const std::optional<Geometry> geometry = take_geometry(words);
    const std::optional<Boundary> boundary = take_boundary(words);
    constexpr std::string_view vectors[] = {".v2", ".v4"};
    const std::string_view vector = words.take_one_of(vectors);
    const Type type = words.type();
    const std::size_t count = vector.empty() ? 1 : static_cast<std::size_t>(vector[1] - '0');
    const bool is_bits = type == Type::b8 || type == Type::b16 || type == Type::b32 || type == Type::b64;
    const std::uint32_t bytes = is_bits ? size_bytes(type) : 0;
    const Run run = surface_run(bytes, is_load);
    const bool wrong =
        !unformatted || !geometry || !boundary || run == nullptr || words.types.size() != 1 || bytes * count > 16;
    if (wrong) return refuse_this("is not modelled"), true;
    if (!want(2, 2)) return true;
    const Operand& place = now_->operands[is_load ? 1 : 0];
    const Operand& data = now_->operands[is_load ? 0 : 1];
    const bool well_formed = place.kind == OperandKind::list && place.offset == 0 && place.elements.size() == 1 &&
                             place.elements[0].kind == OperandKind::vector && data.kind == OperandKind::vector;
    if (!well_formed) return refuse_this("has other operands than a surface, coordinates and a vector"), true;
    const std::vector<Operand>& coordinates = place.elements[0].elements;
    if (coordinates.size() != geometry->coordinates || data.elements.size() != count) {
        return refuse_this("has another number of elements"), true;
    }
    const auto coordinate = [&](int at) {
        return at < 0 ? constant(0) : value(coordinates[static_cast<std::size_t>(at)], Type::s32);
    };
    Operand surface;
    surface.kind = OperandKind::name;
    surface.name = place.name;
    Op made;
    made.a = value(surface, Type::u64);
    made.b = coordinate(geometry->x);
    made.c = coordinate(geometry->y);
    made.d = coordinate(geometry->z);
    made.bytes = static_cast<std::uint8_t>(bytes);
    made.mode = static_cast<std::uint8_t>(*boundary);
    made.space = Space::global;
    element_places(data, type, is_load, made);
    emit(run, OpKind::may_fault, made);
    return true;
}

}  // namespace isthmus::ptx
