// SPDX-License-Identifier: Apache-2.0
// Decodes operations between lanes, and barriers.
#include "lowering.hpp"

namespace isthmus::ptx {

bool Lowering::between_lanes() {
    Qualifiers& words = *words_;
    const std::string_view opcode = now_->opcode;
    if (opcode == "activemask") {
        simple(warp_run("activemask"), Type::b32, {});
        return true;
    }
    const bool known =
        opcode == "shfl" || opcode == "vote" || opcode == "match" || opcode == "redux" || opcode == "elect";
    if (!known) return false;
    constexpr std::string_view ways[] = {".up",     ".down", ".bfly", ".idx", ".all", ".any", ".uni",
                                         ".ballot", ".add",  ".min",  ".max", ".and", ".or",  ".xor"};
    if (!words.take(".sync")) return refuse_this("is not modelled: only .sync is"), true;
    std::string name(opcode);
    const std::string_view way = words.take_one_of(ways);
    if (!way.empty()) name += "." + std::string(way);
    const Type type = words.type();
    if (opcode == "redux")
        name += type == Type::u32 ? ".u32" : type == Type::s32 ? ".s32" : type == Type::b32 ? ".b32" : ".?";
    const Run run = warp_run(name);
    if (run == nullptr) return refuse_this("is not modelled"), true;
    Op made;
    Place members = 0;
    const Operand& result = now_->operands.empty() ? Operand() : now_->operands[0];
    const Operand first = result.kind == OperandKind::pair ? result.elements[0] : result;
    if (result.kind == OperandKind::pair) made.p = predicate(result.elements[1], true);
    if (opcode == "shfl") {
        if (!want(5, 5) || type != Type::b32) return refuse_this("is not modelled"), true;
        made.a = value(now_->operands[1], Type::b32);
        made.b = value(now_->operands[2], Type::u32);
        made.c = value(now_->operands[3], Type::u32);
        members = value(now_->operands[4], Type::b32);
        made.d = destination(first, Type::b32);
    } else if (opcode == "vote") {
        if (!want(3, 3)) return true;
        made.q = predicate(now_->operands[1]);
        made.flag = predicate_negated_;
        members = value(now_->operands[2], Type::b32);
        if (name == "vote.ballot") {
            made.d = destination(first, Type::b32);
        } else {
            made.p = predicate(first, true);
        }
    } else if (opcode == "elect") {
        if (!want(2, 2)) return true;
        made.d = destination(first, Type::b32);
        members = value(now_->operands[1], Type::b32);
    } else {
        if (!want(3, 3)) return true;
        if (opcode == "match" && type != Type::b32 && type != Type::b64) return refuse_this("is not modelled"), true;
        made.a = value(now_->operands[1], type);
        members = value(now_->operands[2], Type::b32);
        made.bytes = static_cast<std::uint8_t>(size_bytes(type));
        made.d = destination(first, Type::b32);
    }
    made.extra = static_cast<std::uint32_t>(members);
    emit(run, OpKind::warp_sync, made);
    return true;
}

bool Lowering::barrier() {
    if (now_->opcode != "bar" && now_->opcode != "barrier") return false;
    Qualifiers& words = *words_;
    if (words.take(".warp")) {
        if (!words.take(".sync") || !want(1, 1)) return refuse_this("is not modelled"), true;
        const Place members = value(now_->operands[0], Type::b32);
        Op& op = emit(warp_run("bar.warp"), OpKind::warp_sync);
        op.extra = static_cast<std::uint32_t>(members);
        op.flag = true;
        return true;
    }
    if (words.take(".cluster")) return cluster_barrier();
    words.take(".cta");
    words.take(".aligned");
    Op made;
    constexpr std::string_view results[] = {".popc", ".and", ".or"};
    std::string name;
    std::size_t first = 0, most = 2;
    if (words.take(".sync")) {
        name = "sync";
    } else if (words.take(".arrive")) {
        name = "arrive";
        made.value2 = 1;
    } else if (words.take(".red")) {
        name = "red." + std::string(words.take_one_of(results));
        made.value2 = 2;
        first = 1;
        most = 4;
    } else {
        return refuse_this("is not modelled"), true;
    }
    if (!want(first + 1 + (made.value2 == 2 ? 1 : 0), most)) return true;
    const bool red = made.value2 == 2;
    const std::size_t numbers = now_->operands.size() - first - (red ? 1 : 0);
    made.a = value(now_->operands[first], Type::u32);
    made.flag = numbers > 1;
    if (made.flag) made.b = value(now_->operands[first + 1], Type::u32);
    if (red) {
        made.q = predicate(now_->operands.back());
        made.c = predicate_negated_ ? 1 : 0;
        if (name == "red.popc") {
            made.d = destination(now_->operands[0], Type::u32);
        } else {
            made.p = predicate(now_->operands[0], true);
        }
    }
    emit(barrier_run(name), OpKind::barrier, made);
    return true;
}

}  // namespace isthmus::ptx
