// SPDX-License-Identifier: Apache-2.0
// Decodes branches, returns, traps, and what has no effect here.
#include "lowering.hpp"

namespace isthmus::ptx {

bool Lowering::branch_table() {
    if (now_->opcode != "brx") return false;
    if (!words_->take(".idx") || !want(2, 2)) return refuse_this("is not modelled"), true;
    const auto list = scopes_[0].targets.find(now_->operands[1].name);
    if (list == scopes_[0].targets.end()) return refuse_this("names no list of targets"), true;
    const std::vector<std::string_view>& labels = syntax_.targets[list->second];
    const Place index = value(now_->operands[0], Type::u32);
    Op& op = emit(nullptr, OpKind::branch_table);
    op.a = index;
    op.value = labels.size();
    op.extra = static_cast<std::uint32_t>(out_.extra.size());
    for (const std::string_view label : labels) {
        fixups_.push_back({out_.ops.size() - 1, label, scope_, static_cast<std::int32_t>(out_.extra.size()), line_});
        out_.extra.push_back(0);
    }
    return true;
}

bool Lowering::control() {
    const std::string_view opcode = now_->opcode;
    Qualifiers& words = *words_;
    if (opcode == "bra") {
        words.take(".uni");
        if (!want(1, 1)) return true;
        fixups_.push_back({out_.ops.size(), now_->operands[0].name, scope_, -1, line_});
        emit(nullptr, OpKind::branch);
        return true;
    }
    if (opcode == "ret" || opcode == "exit") {
        words.take(".uni");
        if (opcode == "ret") {
            store_results();
            end_stack();
        }
        emit(nullptr, opcode == "ret" ? OpKind::return_ : OpKind::exit);
        return true;
    }
    if (opcode == "trap" || opcode == "brkpt") {
        if (!want(0, 0)) return true;
        emit(trap_run(), OpKind::may_fault).flag = opcode == "brkpt";
        return true;
    }
    if (opcode == "nanosleep") {
        if (!words.types.empty() && want(1, 1)) emit(nullptr, OpKind::pause);
        return true;
    }
    if (without_effect()) return true;
    words.take(".uni");
    return branch_table() || call();
}

bool Lowering::without_effect() {
    const std::string_view opcode = now_->opcode;
    // Counts an event for a profiler; the order of launches, which is the stream's here; registers of a warp group.
    if (opcode == "pmevent" || opcode == "griddepcontrol" || opcode == "setmaxnreg") {
        words_->left.clear();
        return true;
    }
    if (opcode != "createpolicy") return false;
    words_->left.clear();
    if (!want(1, 4)) return true;
    Op made;  // opaque, and read by nothing
    made.d = destination(now_->operands[0], Type::b64);
    made.a = constant(0);
    emit(move_run(), OpKind::plain, made);
    return true;
}

}  // namespace isthmus::ptx
