// SPDX-License-Identifier: Apache-2.0
// Decodes clusters (mapa, getctarank, barrier.cluster).
#include "lowering.hpp"

namespace isthmus::ptx {

bool Lowering::clusters() {
    Qualifiers& words = *words_;
    const bool maps = now_->opcode == "mapa";
    if (maps || now_->opcode == "getctarank") {
        const bool shared = words.take(".shared::cluster");
        const Type type = words.type();
        const bool lawful = words.types.size() == 1 && (type == Type::u32 || type == Type::u64);
        const std::size_t count = maps ? 3 : 2;
        if (!lawful) return refuse_this("is not modelled"), true;
        if (!want(count, count)) return true;
        // An address of shared memory may stand in a register of 32 bits; a variable is one.
        const Operand& place = now_->operands[1];
        const bool is_variable = place.kind == OperandKind::name && !find(place.name);
        const Place a = value(place, is_variable ? Type::u64 : type);
        const Place b = maps ? value(now_->operands[2], Type::u32) : constant(0);
        const Place d = destination(now_->operands[0], maps ? type : Type::u32);
        Op& op = emit(maps ? map_rank_run(!shared) : rank_of_run(!shared), OpKind::may_fault);
        op.a = a;
        op.b = b;
        op.d = d;
        return true;
    }
    return false;
}

bool Lowering::cluster_barrier() {
    Qualifiers& words = *words_;
    words.ignore(memory_orders);
    words.take(".aligned");
    if (!want(0, 0)) return true;
    if (words.take(".arrive")) return emit(cluster_arrive_run(), OpKind::may_fault), true;
    if (words.take(".wait")) return emit(nullptr, OpKind::cluster_wait), true;
    return refuse_this("is not modelled"), true;
}

}  // namespace isthmus::ptx
