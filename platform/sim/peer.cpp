// SPDX-License-Identifier: Apache-2.0
// Peer access of contexts to other devices' memory.
#include "call.hpp"

namespace isthmus::sim {

std::set<int> peers_of_device(const Driver& d, int device) {
    std::set<int> peers = d.devices[static_cast<std::size_t>(device)].primary.peers;
    for (const Context* context : d.contexts.all()) {
        if (context->device == device) peers.insert(context->peers.begin(), context->peers.end());
    }
    const auto add = [&](const Pool& pool) {
        if (pool.device >= 0 && pool.access(device) != 0) peers.insert(pool.device);
    };
    for (const Pool* pool : d.pools.all()) add(*pool);
    for (const Pool& pool : d.retired_pools) add(pool);
    for (const DeviceState& state : d.devices) add(state.default_pool);
    add_mapped_devices(d, device, peers);
    return peers;
}

extern "C" {

Result cuCtxEnablePeerAccess(Context* peer, unsigned flags) {
    return call_in_context(CallId::cuCtxEnablePeerAccess, [&](Driver& d, Context& context) -> Result {
        if (flags != 0) return result::invalid_value;
        const std::lock_guard lock(d.mutex);
        if (const Result code = context_code(d, peer)) return code;
        if (peer->device == context.device) return result::invalid_context;
        const auto* way = d.machine.peer(context.device, peer->device);
        if (!way || !way->access) return result::peer_unsupported;
        return context.peers.insert(peer->device).second ? result::ok : result::peer_already_enabled;
    });
}

Result cuCtxDisablePeerAccess(Context* peer) {
    return call_in_context(CallId::cuCtxDisablePeerAccess, [&](Driver& d, Context& context) -> Result {
        const std::lock_guard lock(d.mutex);
        if (const Result code = context_code(d, peer)) return code;
        return context.peers.erase(peer->device) != 0 ? result::ok : result::peer_not_enabled;
    });
}
}

}  // namespace isthmus::sim
