// SPDX-License-Identifier: Apache-2.0
// Decodes loads, stores, atomics and conversions of addresses.
#include "lowering.hpp"

#include <array>
#include <utility>

namespace isthmus::ptx {
namespace {

constexpr std::array scopes = std::to_array<std::string_view>({".cta", ".cluster", ".gpu", ".sys"});
constexpr std::array caches = std::to_array<std::string_view>(
    {".ca", ".cg", ".cs", ".lu", ".cv", ".wb", ".wt", ".nc", ".weak", ".relaxed", ".volatile", ".mmio", ".unified"});

}  // namespace

// What createpolicy made has no effect here.
bool Lowering::policy_operand(std::size_t at) {
    value(now_->operands[at], Type::b64);
    return !refused();
}

bool Lowering::load_or_store(bool is_load) {
    Qualifiers& words = *words_;
    const bool acquire = words.take(".acquire"), release = words.take(".release");
    words.ignore(scopes);
    words.ignore(caches);
    words.ignore_prefixed(".L1::");
    const std::size_t policies = words.take(".L2::cache_hint") ? 1 : 0;
    words.ignore_prefixed(".L2::");
    const Space space = take_space(words).value_or(Space::generic);
    constexpr std::string_view vectors[] = {".v2", ".v4", ".v8"};
    const std::string_view vector = words.take_one_of(vectors);
    const Type type = words.type();
    const std::uint32_t bytes = size_bytes(type);
    const std::size_t count = vector.empty() ? 1 : static_cast<std::size_t>(vector[1] - '0');
    const Run run = is_load ? load_run(bytes) : store_run(bytes);
    const bool wrong = run == nullptr || words.types.size() != 1 || type == Type::pred || bytes * count > 32 ||
                       (count > 1 && type == Type::b128) || (is_load ? release : acquire) ||
                       (!is_load && space == Space::constant);
    if (wrong) return refuse_this("is not modelled"), true;
    if (!want(2 + policies, 2 + policies) || (policies != 0 && !policy_operand(2))) return true;
    const Operand& place = now_->operands[is_load ? 1 : 0];
    const Operand& data = now_->operands[is_load ? 0 : 1];
    const AddressParts at = address(place, space);
    if (!is_load && at.space == Space::param) return refuse_this("writes to a parameter"), true;
    Op made;
    made.bytes = static_cast<std::uint8_t>(bytes);
    made.space = at.space;
    made.a = at.base;
    made.value = at.offset;
    made.slot = program_.memory_slots++;
    made.mode = acquire || release ? 1 : 0;
    if ((data.kind == OperandKind::vector) != (count > 1) || (count > 1 && data.elements.size() != count)) {
        return refuse_this("has another number of elements"), true;
    }
    if (count > 1) {
        element_places(data, type, is_load, made);
    } else if (is_load) {
        made.d = destination(data, type);
    } else {
        made.b = value(data, type);
    }
    // Signed loads fill the register.
    if (is_load && is_signed(type)) {
        made.flag = true;
        const Operand* target = &data;
        for (std::size_t one = 0; one < count && count > 1; ++one) {
            if (target = &data.elements[one]; target->kind != OperandKind::sink) break;
        }
        const auto binding = find(target->name);
        made.value2 = mask_of(binding ? size_bytes(binding->type) : bytes);
    }
    emit(run, OpKind::may_fault, made);
    return true;
}

bool Lowering::atomic() {
    const bool reduces = now_->opcode == "red";
    if (!reduces && now_->opcode != "atom") return false;
    Qualifiers& words = *words_;
    constexpr std::string_view orders[] = {".relaxed", ".acquire", ".release", ".acq_rel", ".noftz"};
    words.ignore(orders);
    words.ignore(scopes);
    const std::size_t policies = words.take(".L2::cache_hint") ? 1 : 0;
    words.ignore_prefixed(".L2::");
    const Space space = take_space(words).value_or(Space::generic);
    constexpr std::pair<std::string_view, AtomicKind> kinds[] = {
        {".add", AtomicKind::add}, {".min", AtomicKind::min},  {".max", AtomicKind::max},   {".and", AtomicKind::and_},
        {".or", AtomicKind::or_},  {".xor", AtomicKind::xor_}, {".exch", AtomicKind::exch}, {".cas", AtomicKind::cas},
        {".inc", AtomicKind::inc}, {".dec", AtomicKind::dec}};
    std::optional<AtomicKind> kind;
    for (const auto& [name, one] : kinds) {
        if (!kind && words.take(name)) kind = one;
    }
    const Type type = words.type();
    const std::uint32_t bytes = size_bytes(type);
    const Run run = atomic_run(bytes);
    const bool is_logic = kind == AtomicKind::and_ || kind == AtomicKind::or_ || kind == AtomicKind::xor_;
    const bool exchanges = kind == AtomicKind::exch || kind == AtomicKind::cas;
    const bool counts = kind == AtomicKind::inc || kind == AtomicKind::dec;
    const bool is_bits = type == Type::b16 || type == Type::b32 || type == Type::b64;
    const bool floats_compare = is_float(type) && type != Type::f32 && type != Type::f64;
    bool wrong = run == nullptr || !kind || words.types.size() != 1 ||
                 (space != Space::generic && space != Space::global && space != Space::shared);
    wrong = wrong || (bytes == 2 && !(type == Type::b16 && kind == AtomicKind::cas) && !is_float(type));
    wrong = wrong || ((is_logic || exchanges) && !is_bits) || (!(is_logic || exchanges) && is_bits);
    wrong = wrong || (counts && type != Type::u32) || (is_float(type) && kind != AtomicKind::add && !floats_compare);
    if (wrong) return refuse_this("is not modelled"), true;
    const std::size_t first = reduces ? 0 : 1, count = first + (kind == AtomicKind::cas ? 3 : 2);
    if (!want(count + policies, count + policies) || (policies != 0 && !policy_operand(count))) return true;
    const AddressParts at = address(now_->operands[first], space);
    const Place operand = value(now_->operands[first + 1], type);
    const Place third = kind == AtomicKind::cas ? value(now_->operands[first + 2], type) : operand;
    const bool unwanted = reduces || now_->operands[0].kind == OperandKind::sink;
    const Place d = unwanted ? 0 : destination(now_->operands[0], type);
    Op& op = emit(run, OpKind::may_fault);
    op.space = at.space;
    op.a = at.base;
    op.value = at.offset;
    op.b = operand;
    op.c = third;
    op.d = d;
    op.bytes = static_cast<std::uint8_t>(bytes);
    op.mode = static_cast<std::uint8_t>(*kind);
    op.extra = static_cast<std::uint32_t>(type);
    op.value2 = unwanted ? 1 : 0;
    op.slot = program_.memory_slots++;
    return true;
}

bool Lowering::spaces() {
    Qualifiers& words = *words_;
    if (now_->opcode == "cvta") {
        const bool from_generic = words.take(".to");
        const std::optional<Space> space = take_space(words);
        if (!space || words.type() != Type::u64) return refuse_this("is not modelled"), true;
        return simple(from_generic ? from_generic_run(*space) : to_generic_run(*space), Type::u64, {Type::u64}), true;
    }
    if (now_->opcode == "isspacep") {
        const bool of_cluster = words.take(".shared::cluster");
        const std::optional<Space> space = of_cluster ? Space::shared : take_space(words);
        const Run run = of_cluster ? is_cluster_run() : space ? is_space_run(*space) : nullptr;
        return test(run, Type::u64);
    }
    return false;
}

bool Lowering::memory() {
    Qualifiers& words = *words_;
    const std::string_view opcode = now_->opcode;
    if (opcode == "ld" || opcode == "ldu") return load_or_store(true);
    if (opcode == "st") return load_or_store(false);
    if (opcode == "membar" || opcode == "fence") {
        constexpr std::string_view kinds[] = {
            ".cta", ".gl", ".sys", ".sc", ".acq_rel", ".acquire", ".release", ".gpu", ".cluster",
            // Of the asynchronous proxy, whose copies are done at once.
            ".proxy", ".alias", ".async", ".global", ".shared::cta", ".shared::cluster", ".mbarrier_init"};
        words.ignore(kinds);
        if (now_->operands.empty()) emit(fence_run());
        return true;
    }
    if (opcode == "prefetch" || opcode == "prefetchu" || opcode == "discard" || opcode == "applypriority") {
        // Hints, apart from discard, which allows the memory to keep its content.
        words.left.clear();
        return true;
    }
    return atomic() || spaces() || mbarrier() || asynchronous_copy() || clusters() || stack();
}

}  // namespace isthmus::ptx
