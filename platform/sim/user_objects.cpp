// SPDX-License-Identifier: Apache-2.0
// Objects of the program with a count of references, held by the program and by graphs.
#include "user_objects.hpp"

#include "call.hpp"
#include "graph_objects.hpp"

#include <climits>
#include <system_error>
#include <thread>
#include <utility>

namespace isthmus::sim {
namespace {

constexpr unsigned no_destructor_sync = 1, move_references = 1;

bool is_count(unsigned count) {
    return count > 0 && count <= INT_MAX;  // documented
}

// Documented: the destructor runs on a thread of the driver's, and must make no calls.
void run_destructor(HostFunction destroy, void* pointer) {
    try {
        std::thread(destroy, pointer).detach();
    } catch (const std::system_error&) {
        destroy(pointer);  // no thread is to be had
    }
}

// Requires the driver's mutex.
void drop(Driver& d, UserObject* object, std::uint64_t count) {
    object->references -= count;
    if (object->references != 0) return;
    run_destructor(object->destroy, object->pointer);
    d.user_objects.destroy(object);
}

// Body: Result(Driver&), called with a live object, a valid count and the driver's mutex held.
template <class Body>
Result call_for_object(CallId id, UserObject* object, unsigned count, Body&& body) {
    return call(id, [&](Driver& d) -> Result {
        // The graph's former references end after the lock is released.
        std::shared_ptr<const void> last;
        const std::lock_guard lock(d.mutex);
        if (!d.user_objects.alive(object)) {
            if (d.user_objects.was_alive(object)) undefined("a user object whose last reference was released");
            return result::invalid_value;
        }
        return is_count(count) ? body(d, last) : result::invalid_value;
    });
}

std::map<UserObject*, std::uint64_t> held_by(const engine::Graph& graph) {
    const auto* held = static_cast<const UserReferences*>(graph.owned().get());
    return held ? held->held() : std::map<UserObject*, std::uint64_t>();
}

Result hold(Driver& d, GraphObject& graph, std::map<UserObject*, std::uint64_t> held,
            std::shared_ptr<const void>& last) {
    auto now = held.empty() ? nullptr : std::make_shared<const UserReferences>(d, std::move(held));
    const Result code = change(d, graph, [&](engine::Graph& to) { last = to.own(now); });
    if (code != result::ok) last = std::move(now);  // nothing was changed
    return code;
}

}  // namespace

UserReferences::UserReferences(Driver& d, std::map<UserObject*, std::uint64_t> held) : d_(d), held_(std::move(held)) {
    for (const auto& [object, count] : held_) object->references += count;
}

UserReferences::~UserReferences() {
    const std::lock_guard lock(d_.mutex);
    for (const auto& [object, count] : held_) drop(d_, object, count);
}

extern "C" {

Result cuUserObjectCreate(UserObject** object, void* pointer, HostFunction destroy, unsigned references,
                          unsigned flags) {
    return call(CallId::cuUserObjectCreate, [&](Driver& d) -> Result {
        if (!object || !destroy || !is_count(references) || flags != no_destructor_sync) return result::invalid_value;
        const std::lock_guard lock(d.mutex);
        *object = d.user_objects.create();
        **object = {destroy, pointer, references};
        return result::ok;
    });
}

Result cuUserObjectRetain(UserObject* object, unsigned count) {
    return call_for_object(CallId::cuUserObjectRetain, object, count, [&](Driver&, auto&) -> Result {
        object->references += count;
        return result::ok;
    });
}

Result cuUserObjectRelease(UserObject* object, unsigned count) {
    return call_for_object(CallId::cuUserObjectRelease, object, count, [&](Driver& d, auto&) -> Result {
        if (count > object->references) {
            undefined("more references are released than there are");
            return result::invalid_value;
        }
        drop(d, object, count);
        return result::ok;
    });
}

Result cuGraphRetainUserObject(GraphObject* graph, UserObject* object, unsigned count, unsigned flags) {
    return call_for_object(CallId::cuGraphRetainUserObject, object, count, [&](Driver& d, auto& last) -> Result {
        if (!d.graphs.alive(graph) || flags > move_references) return result::invalid_value;
        if (flags == move_references && count > object->references) return result::invalid_value;
        std::map<UserObject*, std::uint64_t> held;
        if (const Result code = look(d, *graph, [&](const engine::Graph& to) { held = held_by(to); })) return code;
        held[object] += count;
        const Result code = hold(d, *graph, std::move(held), last);
        if (code == result::ok && flags == move_references) drop(d, object, count);
        return code;
    });
}

Result cuGraphReleaseUserObject(GraphObject* graph, UserObject* object, unsigned count) {
    return call_for_object(CallId::cuGraphReleaseUserObject, object, count, [&](Driver& d, auto& last) -> Result {
        if (!d.graphs.alive(graph)) return result::invalid_value;
        std::map<UserObject*, std::uint64_t> held;
        if (const Result code = look(d, *graph, [&](const engine::Graph& to) { held = held_by(to); })) return code;
        const auto found = held.find(object);
        if (found == held.end() || found->second < count) return result::invalid_value;
        if ((found->second -= count) == 0) held.erase(found);
        return hold(d, *graph, std::move(held), last);
    });
}
}

}  // namespace isthmus::sim
