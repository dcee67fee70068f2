// SPDX-License-Identifier: Apache-2.0
// Decodes the stack of a thread (alloca, stacksave, stackrestore).
#include "lowering.hpp"

#include <algorithm>
#include <bit>

namespace isthmus::ptx {

bool Lowering::stack() {
    const std::string_view opcode = now_->opcode;
    if (opcode != "alloca" && opcode != "stacksave" && opcode != "stackrestore") return false;
    const Type type = words_->type();
    if (words_->types.size() != 1 || (type != Type::u32 && type != Type::u64)) {
        return refuse_this("is not modelled"), true;
    }
    if (opcode == "stacksave") return simple(stack_save_run(), type, {}), true;
    Op made;
    if (opcode == "stackrestore") {
        if (!want(1, 1)) return true;
        made.a = value(now_->operands[0], type);
        emit(stack_restore_run(), OpKind::may_fault, made);
        return true;
    }
    if (!want(2, 3)) return true;
    made.value = 8;
    if (now_->operands.size() == 3) {
        const Operand& alignment = now_->operands[2];
        const bool lawful =
            alignment.kind == OperandKind::integer && std::has_single_bit(alignment.value) && alignment.value <= 4096;
        if (!lawful) return refuse_this("needs an alignment that is a power of 2, at most 4096"), true;
        made.value = alignment.value;
    }
    made.a = value(now_->operands[1], type);
    made.d = destination(now_->operands[0], type);
    emit(alloca_run(), OpKind::may_fault, made);
    return true;
}

// What alloca takes ends with the function that takes it.
bool Lowering::takes_stack() const {
    return std::any_of(syntax_.instructions.begin(), syntax_.instructions.end(),
                       [](const Instruction& one) { return one.opcode == "alloca"; });
}

// What alloca took in the function ends.
void Lowering::end_stack() {
    if (!stack_before_) return;
    Op made;
    made.a = *stack_before_;
    emit(stack_restore_run(), OpKind::may_fault, made);
}

}  // namespace isthmus::ptx
