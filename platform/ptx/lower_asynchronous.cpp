// SPDX-License-Identifier: Apache-2.0
// Decodes mbarrier and cp.async.
#include "lowering.hpp"

#include <utility>

namespace isthmus::ptx {
namespace {

constexpr std::string_view scopes[] = {".cta", ".cluster"};

bool is_shared_or_generic(std::optional<Space> space) {
    return !space || *space == Space::shared;
}

}  // namespace

bool Lowering::mbarrier() {
    if (now_->opcode != "mbarrier") return false;
    Qualifiers& words = *words_;
    const std::vector<Operand>& operands = now_->operands;
    if (words.type() != Type::b64 || words.types.size() != 1) return refuse_this("is not modelled"), true;
    if (words.take(".pending_count")) return simple(mbarrier_pending_run(), Type::b32, {Type::b64}), true;
    words.ignore(memory_orders);
    words.ignore(scopes);
    const bool tests = words.take(".test_wait"), tries = !tests && words.take(".try_wait");
    const bool arrives = words.take(".arrive"), drops = !arrives && words.take(".arrive_drop");
    const std::optional<Space> space = take_space(words);
    if (!is_shared_or_generic(space)) return refuse_this("is not modelled"), true;
    Op made;
    const auto object = [&](std::size_t at) {
        const AddressParts place = address(operands[at], space.value_or(Space::generic));
        made.space = place.space;
        made.a = place.base;
        made.value = place.offset;
        made.slot = program_.memory_slots++;
    };
    made.b = made.c = constant(0);
    if (tests || tries) {
        made.flag = words.take(".parity");
        if (!want(3, tries ? 4 : 3)) return true;
        object(1);
        made.b = value(operands[2], made.flag ? Type::b32 : Type::b64);
        made.p = predicate(operands[0], true);
        made.mode = tries ? 1 : 0;
        emit(mbarrier_test_run(), OpKind::may_wait, made);
        return true;
    }
    if (arrives || drops) {
        const bool expects = words.take(".expect_tx"), incomplete = words.take(".noComplete");
        const bool has_result = !operands.empty() && operands[0].kind != OperandKind::address;
        const std::size_t first = has_result ? 1 : 0;
        if (!want(first + 1 + (expects || incomplete ? 1 : 0), first + 2)) return true;
        object(first);
        made.b = constant(1);
        const Place number = operands.size() > first + 1 ? value(operands[first + 1], Type::b32) : made.b;
        (expects ? made.c : made.b) = number;
        made.flag = incomplete;
        made.value2 = !has_result || operands[0].kind == OperandKind::sink ? 1 : 0;
        if (made.value2 == 0) made.d = destination(operands[0], Type::b64);
        emit(mbarrier_run(drops ? MbarrierDo::drop : MbarrierDo::arrive), OpKind::may_fault, made);
        return true;
    }
    constexpr std::pair<std::string_view, MbarrierDo> rows[] = {{".init", MbarrierDo::init},
                                                                {".inval", MbarrierDo::inval},
                                                                {".expect_tx", MbarrierDo::expect},
                                                                {".complete_tx", MbarrierDo::complete}};
    for (const auto& [name, what] : rows) {
        if (!words.take(name)) continue;
        const std::size_t count = what == MbarrierDo::inval ? 1 : 2;
        if (!want(count, count)) return true;
        object(0);
        if (count == 2) made.b = value(operands[1], Type::b32);
        emit(mbarrier_run(what), OpKind::may_fault, made);
        return true;
    }
    return refuse_this("is not modelled"), true;
}

// cp.async.ca.shared.global [to], [from], bytes{, bytes to read or a predicate}{, policy}
void Lowering::thread_copy() {
    Qualifiers& words = *words_;
    const std::vector<Operand>& operands = now_->operands;
    const bool all_levels = words.take(".ca"), second_level = words.take(".cg");
    const bool has_policy = words.take(".L2::cache_hint");
    words.ignore_prefixed(".L2::");
    const bool to_shared = words.take(".shared") || words.take(".shared::cta");
    if (all_levels == second_level || !to_shared || !words.take(".global")) return refuse_this("is not modelled");
    const std::size_t policies = has_policy ? 1 : 0;
    if (!want(3 + policies, 4 + policies)) return;
    const Operand& size = operands[2];
    const bool known =
        size.kind == OperandKind::integer && (size.value == 16 || (all_levels && (size.value == 4 || size.value == 8)));
    if (!known) return refuse_this("is not modelled: its size");
    Op made;
    made.slot = program_.memory_slots++;
    const AddressParts to = address(operands[0], Space::shared), from = address(operands[1], Space::global);
    made.a = to.base;
    made.value = to.offset;
    made.b = from.base;
    made.value2 = from.offset;
    made.bytes = static_cast<std::uint8_t>(size.value);
    made.c = constant(size.value);
    if (operands.size() == 4 + policies) {
        const Operand& last = operands[3];
        const auto binding = last.kind == OperandKind::name ? find(last.name) : std::nullopt;
        if (binding && binding->kind == Binding::Kind::predicate) {
            made.p = predicate(last);
            made.flag = predicate_negated_;
        } else {
            made.c = value(last, Type::b32);
        }
    }
    emit(async_run(AsyncDo::copy), OpKind::may_fault, made);
}

// cp.async.bulk: to shared memory with an mbarrier object, or from it with a group. Groups are always done.
void Lowering::bulk_copy() {
    Qualifiers& words = *words_;
    const std::vector<Operand>& operands = now_->operands;
    if (words.take(".commit_group")) return;
    if (words.take(".wait_group")) {
        words.take(".read");
        want(1, 1);
        return;
    }
    if (words.take(".prefetch")) {
        words.left.clear();
        return;
    }
    const bool has_policy = words.take(".L2::cache_hint");
    const bool to_cluster = words.take(".shared::cluster");
    const bool from_global = words.take(".global");
    const bool has_own = words.take(".shared::cta");
    const bool told = words.take(".mbarrier::complete_tx::bytes"), grouped = words.take(".bulk_group");
    // The order of the spaces says which is the source.
    const bool to_global =
        from_global && !to_cluster && has_own && now_->qualifiers.size() > 2 && now_->qualifiers[2] == ".global";
    const bool lawful = to_global ? grouped && !told : told && !grouped && (to_cluster || (has_own && from_global));
    if (!lawful || !words.left.empty()) return refuse_this("is not modelled");
    const std::size_t count = (to_global ? 3 : 4) + (has_policy ? 1 : 0);
    if (!want(count, count)) return;
    Op made;
    made.slot = program_.memory_slots++;
    const Space source = to_global || !from_global ? Space::shared : Space::global;
    const AddressParts to = address(operands[0], to_global ? Space::global : Space::shared);
    const AddressParts from = address(operands[1], source);
    made.a = to.base;
    made.value = to.offset;
    made.b = from.base;
    made.value2 = from.offset;
    made.c = value(operands[2], Type::b32);
    made.mode = to_global ? 1 : 0;
    made.count = static_cast<std::uint8_t>(source);
    made.flag = to_global;
    if (!to_global) {
        const AddressParts object = address(operands[3], Space::shared);
        made.d = object.base;
        if (object.offset != 0) {
            made.d = new_row();
            Op& sum = emit(integer_run("add", Type::u64));
            sum.d = made.d;
            sum.a = object.base;
            sum.b = constant(object.offset);
        }
    }
    emit(async_run(AsyncDo::bulk), OpKind::may_fault, made);
}

bool Lowering::asynchronous_copy() {
    if (now_->opcode != "cp") return false;
    Qualifiers& words = *words_;
    if (!words.take(".async")) return refuse_this("is not modelled"), true;
    if (words.take(".bulk")) return bulk_copy(), true;
    if (words.take(".commit_group")) return emit(async_run(AsyncDo::commit)), true;
    const bool all = words.take(".wait_all");
    if (all || words.take(".wait_group")) {
        Op made;
        made.flag = all;
        if (!all) {
            if (!want(1, 1)) return true;
            if (now_->operands[0].kind != OperandKind::integer) return refuse_this("needs a number"), true;
            made.value = now_->operands[0].value;
        }
        emit(async_run(AsyncDo::wait), OpKind::plain, made);
        return true;
    }
    if (!words.take(".mbarrier")) return thread_copy(), true;
    const bool arrives = words.take(".arrive");
    Op made;
    made.flag = words.take(".noinc");
    const std::optional<Space> space = take_space(words);
    if (!arrives || !is_shared_or_generic(space) || words.type() != Type::b64) {
        return refuse_this("is not modelled"), true;
    }
    if (!want(1, 1)) return true;
    const AddressParts place = address(now_->operands[0], space.value_or(Space::generic));
    made.space = place.space;
    made.a = place.base;
    made.value = place.offset;
    made.slot = program_.memory_slots++;
    emit(async_run(AsyncDo::arrive), OpKind::may_fault, made);
    return true;
}

}  // namespace isthmus::ptx
