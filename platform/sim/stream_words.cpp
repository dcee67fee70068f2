// SPDX-License-Identifier: Apache-2.0
// Waits for values in memory and writes of values, in stream order and as nodes of graphs.
#include "access.hpp"
#include "call.hpp"
#include "copies.hpp"
#include "node_kinds.hpp"
#include "written_bytes.hpp"

#include <atomic>
#include <chrono>
#include <thread>
#include <type_traits>
#include <utility>

namespace isthmus::sim {
namespace {

// CUstreamBatchMemOpType
constexpr int wait_32 = 1, write_32 = 2, flush = 3, wait_64 = 4, write_64 = 5, barrier = 6;
// CUstreamWaitValue_flags
constexpr unsigned comparison = 3, by_nor = 3, then_flush = 1u << 30;
constexpr unsigned most_operations = 255;  // documented: less than 256

bool is_wait(int type) {
    return type == wait_32 || type == wait_64;
}
bool has_address(int type) {
    return is_wait(type) || type == write_32 || type == write_64;
}
std::size_t bytes_of(int type) {
    return type == wait_64 || type == write_64 ? 8 : 4;
}

// An operation with the address that the worker uses.
struct Word {
    MemoryOperation asked;
    void* pointer = nullptr;
    Reached reached;
    bool on_host = true;
};

// `details` of the operation.
struct Words {
    GpuAgent agent;
    std::vector<Word> all;
    mutable std::vector<MemoryOperation> asked;  // documented: a query returns the node's own array
    unsigned flags = 0;
};

template <class T>
bool holds(T now, T wanted, unsigned flags) {
    switch (flags & comparison) {
        case 0: return static_cast<std::make_signed_t<T>>(now - wanted) >= 0;  // cyclic
        case 1: return now == wanted;
        case 2: return (now & wanted) != 0;
        default: return static_cast<T>(~(now | wanted)) != 0;
    }
}

bool holds_now(const Word& word) {
    if (bytes_of(word.asked.type) == 8) {
        const auto now = __atomic_load_n(static_cast<const std::uint64_t*>(word.pointer), __ATOMIC_ACQUIRE);
        return holds(now, word.asked.value, word.asked.flags);
    }
    const auto now = __atomic_load_n(static_cast<const std::uint32_t*>(word.pointer), __ATOMIC_ACQUIRE);
    return holds(now, static_cast<std::uint32_t>(word.asked.value), word.asked.flags);
}

void write(const Word& word) {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // documented: as __threadfence_system() before the write
    if (bytes_of(word.asked.type) == 8) {
        __atomic_store_n(static_cast<std::uint64_t*>(word.pointer), word.asked.value, __ATOMIC_RELEASE);
    } else {
        const auto value = static_cast<std::uint32_t>(word.asked.value);
        __atomic_store_n(static_cast<std::uint32_t*>(word.pointer), value, __ATOMIC_RELEASE);
    }
    written_bytes::written(word.pointer, bytes_of(word.asked.type));
}

// Body: void(). Accesses the word, with the driver's mutex: meanwhile its memory is not moved into a file. Other work
// does not notice a wait between two looks, and memory is closed to the CPU then.
template <class Body>
Result access(Driver& d, const GpuAgent& agent, const Word& word, const char* what, Body body) {
    if (const Result lost = check_reached(d, agent, what, {word.reached})) return lost;
    const std::lock_guard lock(d.mutex);
    constexpr std::uint64_t all_devices = ~std::uint64_t{0};  // what this one reaches was checked
    if (!word.on_host) d.protection.gpu_work_begins(all_devices);
    std::uintptr_t fault = 0;
    const bool there = Protection::run_guarded(body, fault);
    if (!word.on_host) d.protection.gpu_work_ends();
    return there ? result::ok : result::illegal_address;
}

// The memory is checked at every look: it may be freed meanwhile. A lost device ends the wait. In seeded order each
// look is a draw of its own.
Result wait(Driver& d, const GpuAgent& agent, const Word& word) {
    constexpr int spins = 200;
    constexpr auto pause = std::chrono::microseconds(50);
    for (int looks = 0;; ++looks) {
        bool done = false;
        const auto look = [&] { done = holds_now(word); };
        if (const Result lost = access(d, agent, word, "a wait for a value", look)) return lost;
        if (done || d.engine().device_code(agent.device) != result::ok) return result::ok;
        if (d.seeded) return engine::code::later;
        if (looks < spins) {
            std::this_thread::yield();
        } else {
            std::this_thread::sleep_for(pause);
        }
    }
}

Result run(Driver& d, const GpuAgent& agent, const Word& word) {
    if (is_wait(word.asked.type)) return wait(d, agent, word);
    if (!has_address(word.asked.type)) {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        return result::ok;
    }
    return access(d, agent, word, "a write of a value", [&] { write(word); });
}

// Flags, and what the device's attributes allow. The codes are assumed.
Result check_flags(const Driver& d, int device, const MemoryOperation& asked) {
    const bool flushes = d.fact(device, attribute::flush_remote) != 0;
    switch (asked.type) {
        case flush:
            return asked.order_flags != 0 ? result::invalid_value : flushes ? result::ok : result::not_supported;
        case barrier: return asked.order_flags > 1 ? result::invalid_value : result::ok;
        case wait_32:
        case wait_64:
            if ((asked.flags & ~(comparison | then_flush)) != 0) return result::invalid_value;
            if ((asked.flags & then_flush) != 0 && !flushes) return result::not_supported;
            if ((asked.flags & comparison) == by_nor && d.fact(device, attribute::wait_nor) == 0) {
                return result::not_supported;
            }
            break;
        case write_32:
        case write_64:
            // Observed (580, H200): CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER of the second version is 1, as others.
            if (asked.flags != 0) return result::invalid_value;
            break;
        default: return result::invalid_value;
    }
    if (bytes_of(asked.type) == 8 && d.fact(device, attribute::words_of_64) == 0) return result::not_supported;
    return result::ok;
}

// Requires the driver's mutex.
Result check_word(const Driver& d, int device, const MemoryOperation& asked, Word& out) {
    out.asked = asked;
    if (const Result code = check_flags(d, device, asked)) return code;
    if (!has_address(asked.type)) return result::ok;
    const std::size_t bytes = bytes_of(asked.type);
    if (asked.address % bytes != 0) return result::invalid_value;  // assumed
    const Found found = d.regions.find(asked.address);
    // Documented: registered memory goes by the address of cuMemHostGetDevicePointer.
    if (found && found.by_host_name && d.fact(device, attribute::pageable) == 0) return result::invalid_value;
    // Documented: not with managed memory; the code is assumed.
    if (found && found.region->kind == Kind::managed) return result::invalid_value;
    const CopySide side = check_copy_side(d, device, asked.address, bytes, true);
    if (side.code != result::ok) return side.code;
    out.pointer = side.pointer;
    out.on_host = operand_of(side).host;
    out.reached = {side.region ? side.region->id : 0, !is_wait(asked.type), true, asked.address, bytes};
    return result::ok;
}

// Requires the driver's mutex.
Result check_words(const Driver& d, const GpuAgent& agent, const MemoryOperations& asked, Words& out) {
    if (asked.count > most_operations || (asked.count != 0 && !asked.all) || asked.flags != 0) {
        return result::invalid_value;
    }
    out.agent = agent;
    out.flags = asked.flags;
    for (unsigned i = 0; i < asked.count; ++i) {
        if (const Result code = check_word(d, agent.device, asked.all[i], out.all.emplace_back())) return code;
        out.asked.push_back(asked.all[i]);
    }
    return result::ok;
}

engine::Operation operation_of(Driver& d, Words&& words) {
    engine::Operation operation;
    operation.kind = engine::Kind::words;
    operation.label = "operations on values in memory";
    operation.device = words.agent.device;
    const auto kept = std::make_shared<const Words>(std::move(words));
    operation.details = kept;
    operation.body = [&d, kept]() -> int {
        std::uint64_t& at = engine::Engine::reached();
        for (; at < kept->all.size(); ++at) {
            if (const Result code = run(d, kept->agent, kept->all[at])) return code;
        }
        return result::ok;
    };
    return operation;
}

Result submit(Driver& d, Stream* handle, const MemoryOperations& asked) {
    StreamTarget stream;
    if (const Result code = resolve_for_work(d, handle, stream)) return code;
    Words words;
    {
        const std::lock_guard lock(d.mutex);
        if (const Result code = check_words(d, {stream.device, stream.context, stream.id}, asked, words)) return code;
    }
    if (words.all.empty()) return result::ok;
    const Result code = d.engine().submit(stream.id, operation_of(d, std::move(words)));
    update_managed_access(d);
    return code;
}

Result submit_one(CallId id, Stream* stream, int type, Address address, std::uint64_t value, unsigned flags) {
    return call(id, [&](Driver& d) {
        MemoryOperation one = {type, 0, address, value, flags, 0, 0, 0};
        return submit(d, stream, {nullptr, 1, &one, 0});
    });
}

// The first version of these functions works only where a device has the attribute for it. The attributes for 64-bit
// operations and for CU_STREAM_WAIT_VALUE_NOR have versions too; no record has a device with any of them.
Result submit_v1(CallId id, Stream* handle, const MemoryOperations& asked) {
    return call(id, [&](Driver& d) -> Result {
        StreamTarget stream;
        if (const Result code = resolve(d, handle, stream)) return code;
        if (d.fact(stream.device, attribute::stream_words_v1) == 0) return result::not_supported;
        return submit(d, handle, asked);
    });
}

Result submit_one_v1(CallId id, Stream* stream, int type, Address address, std::uint64_t value, unsigned flags) {
    MemoryOperation one = {type, 0, address, value, flags, 0, 0, 0};
    return submit_v1(id, stream, {nullptr, 1, &one, 0});
}

const Words* words_of(const engine::GraphNode& node) {
    if (node.child || node.operation.kind != engine::Kind::words) return nullptr;
    return static_cast<const Words*>(node.operation.details.get());
}

// Documented: in an instance addresses, values and comparisons change, nothing else.
bool may_become(const Words& old, const Words& now) {
    if (old.agent.context != now.agent.context || old.all.size() != now.all.size()) return false;
    for (std::size_t i = 0; i < old.all.size(); ++i) {
        const MemoryOperation &a = old.all[i].asked, &b = now.all[i].asked;
        const unsigned changeable = is_wait(a.type) ? comparison : 0u;
        if (a.type != b.type || (a.flags & ~changeable) != (b.flags & ~changeable)) return false;
        if (!has_address(a.type) && a.order_flags != b.order_flags) return false;
    }
    return true;
}

// Observed (580, H200): a new node without a context is 1. Assumed for setting one.
Result code_of_context(const Driver& d, const MemoryOperations& parameters) {
    return parameters.context ? context_code(d, parameters.context) : result::invalid_value;
}

}  // namespace

Result add_words_node(Driver& d, const NodePlace& place, const MemoryOperations* parameters) {
    if (!parameters) return result::invalid_value;
    engine::Operation operation;
    const std::lock_guard lock(d.mutex);
    if (const Result code = code_of_context(d, *parameters)) return code;
    Words words;
    const GpuAgent agent = {parameters->context->device, parameters->context, engine::StreamId::none};
    if (const Result code = check_words(d, agent, *parameters, words)) return code;
    operation = operation_of(d, std::move(words));
    return add_node(d, place.node, place.graph, place.dependencies, place.count,
                    [&](engine::Graph& to, std::vector<engine::NodeIndex> after) {
                        return to.add(std::move(operation), std::move(after));
                    });
}

Result set_words_node(Driver& d, const NodeChange& change, const MemoryOperations* parameters) {
    if (!parameters) return result::invalid_value;
    engine::Operation last;
    const std::lock_guard lock(d.mutex);
    if (const Result code = code_of_context(d, *parameters)) return code;
    return replace_operation(
        d, change.instance, change.node, last, [&](const engine::GraphNode& now, engine::Operation& made) -> Result {
            const Words* const old = words_of(now);
            if (!old) return result::invalid_value;
            Words words;
            const GpuAgent agent = {parameters->context->device, parameters->context, engine::StreamId::none};
            if (const Result code = check_words(d, agent, *parameters, words)) return code;
            if (change.instance && !may_become(*old, words)) return result::invalid_value;
            made = operation_of(d, std::move(words));
            return result::ok;
        });
}

bool words_may_become(const void* old, const void* now) {
    return may_become(*static_cast<const Words*>(old), *static_cast<const Words*>(now));
}

extern "C" {

Result cuStreamWaitValue32_v2(Stream* stream, Address address, std::uint32_t value, unsigned flags) {
    return submit_one(CallId::cuStreamWaitValue32_v2, stream, wait_32, address, value, flags);
}

Result cuStreamWaitValue64_v2(Stream* stream, Address address, std::uint64_t value, unsigned flags) {
    return submit_one(CallId::cuStreamWaitValue64_v2, stream, wait_64, address, value, flags);
}

Result cuStreamWriteValue32_v2(Stream* stream, Address address, std::uint32_t value, unsigned flags) {
    return submit_one(CallId::cuStreamWriteValue32_v2, stream, write_32, address, value, flags);
}

Result cuStreamWriteValue64_v2(Stream* stream, Address address, std::uint64_t value, unsigned flags) {
    return submit_one(CallId::cuStreamWriteValue64_v2, stream, write_64, address, value, flags);
}

Result cuStreamBatchMemOp_v2(Stream* stream, unsigned count, MemoryOperation* operations, unsigned flags) {
    return call(CallId::cuStreamBatchMemOp_v2, [&](Driver& d) {
        return submit(d, stream, {nullptr, count, operations, flags});
    });
}

Result cuStreamWaitValue32(Stream* stream, Address address, std::uint32_t value, unsigned flags) {
    return submit_one_v1(CallId::cuStreamWaitValue32, stream, wait_32, address, value, flags);
}

Result cuStreamWaitValue64(Stream* stream, Address address, std::uint64_t value, unsigned flags) {
    return submit_one_v1(CallId::cuStreamWaitValue64, stream, wait_64, address, value, flags);
}

Result cuStreamWriteValue32(Stream* stream, Address address, std::uint32_t value, unsigned flags) {
    return submit_one_v1(CallId::cuStreamWriteValue32, stream, write_32, address, value, flags);
}

Result cuStreamWriteValue64(Stream* stream, Address address, std::uint64_t value, unsigned flags) {
    return submit_one_v1(CallId::cuStreamWriteValue64, stream, write_64, address, value, flags);
}

Result cuStreamBatchMemOp(Stream* stream, unsigned count, MemoryOperation* operations, unsigned flags) {
    return submit_v1(CallId::cuStreamBatchMemOp, stream, {nullptr, count, operations, flags});
}

Result cuGraphAddBatchMemOpNode(NodeObject** node, GraphObject* graph, NodeObject* const* dependencies,
                                std::size_t count, const MemoryOperations* parameters) {
    return call(CallId::cuGraphAddBatchMemOpNode, [&](Driver& d) {
        return add_words_node(d, {node, graph, dependencies, count}, parameters);
    });
}

Result cuGraphBatchMemOpNodeGetParams(NodeObject* node, MemoryOperations* parameters) {
    return call(CallId::cuGraphBatchMemOpNodeGetParams, [&](Driver& d) -> Result {
        const std::lock_guard lock(d.mutex);
        return look_at_node(d, node, [&](const engine::GraphNode& found) -> Result {
            const Words* const words = words_of(found);
            if (!parameters || !words) return result::invalid_value;
            *parameters = {const_cast<Context*>(words->agent.context), static_cast<unsigned>(words->asked.size()),
                           words->asked.data(), words->flags};
            return result::ok;
        });
    });
}

Result cuGraphBatchMemOpNodeSetParams(NodeObject* node, const MemoryOperations* parameters) {
    return call(CallId::cuGraphBatchMemOpNodeSetParams, [&](Driver& d) {
        return set_words_node(d, {node, nullptr}, parameters);
    });
}

Result cuGraphExecBatchMemOpNodeSetParams(GraphExec* instance, NodeObject* node, const MemoryOperations* parameters) {
    return call(CallId::cuGraphExecBatchMemOpNodeSetParams, [&](Driver& d) {
        return set_words_node(d, {node, &instance}, parameters);
    });
}
}

}  // namespace isthmus::sim
