// SPDX-License-Identifier: Apache-2.0
// Graphics interoperability of a machine without OpenGL: nothing can be registered, so no resource is known.
#include "call.hpp"

namespace isthmus::sim {
namespace {

// Observed (580, H200), without a current context of OpenGL: CUDA_ERROR_OPERATING_SYSTEM.
constexpr Result no_graphics = result::operating_system;

Result refuse_registering(CallId id, const void* out) {
    return call_in_context(id, [&](Driver&, Context&) -> Result { return out ? no_graphics : result::invalid_value; });
}

Result refuse_resource(CallId id) {
    return call_in_context(id, [](Driver&, Context&) -> Result { return result::invalid_handle; });
}

// Observed (580, H200): 1 for no resources.
Result refuse_resources(CallId id, unsigned count, GraphicsResource* const* resources, Stream* handle) {
    return call(id, [&](Driver& d) -> Result {
        StreamTarget stream;
        if (const Result code = resolve_for_work(d, handle, stream)) return code;
        return count != 0 && resources ? result::invalid_handle : result::invalid_value;
    });
}

}  // namespace

extern "C" {

Result cuGLGetDevices_v2(unsigned* count, DeviceOrdinal*, unsigned, int) {
    return call(CallId::cuGLGetDevices_v2,
                [&](Driver&) -> Result { return count ? no_graphics : result::invalid_value; });
}

Result cuGraphicsGLRegisterBuffer(GraphicsResource** resource, unsigned, unsigned) {
    return refuse_registering(CallId::cuGraphicsGLRegisterBuffer, resource);
}

Result cuGraphicsGLRegisterImage(GraphicsResource** resource, unsigned, unsigned, unsigned) {
    return refuse_registering(CallId::cuGraphicsGLRegisterImage, resource);
}

Result cuGraphicsUnregisterResource(GraphicsResource*) {
    return refuse_resource(CallId::cuGraphicsUnregisterResource);
}

Result cuGraphicsSubResourceGetMappedArray(Array**, GraphicsResource*, unsigned, unsigned) {
    return refuse_resource(CallId::cuGraphicsSubResourceGetMappedArray);
}

Result cuGraphicsResourceGetMappedMipmappedArray(MipmappedArray**, GraphicsResource*) {
    return refuse_resource(CallId::cuGraphicsResourceGetMappedMipmappedArray);
}

Result cuGraphicsResourceGetMappedPointer_v2(Address*, std::size_t*, GraphicsResource*) {
    return refuse_resource(CallId::cuGraphicsResourceGetMappedPointer_v2);
}

Result cuGraphicsResourceSetMapFlags_v2(GraphicsResource*, unsigned) {
    return refuse_resource(CallId::cuGraphicsResourceSetMapFlags_v2);
}

Result cuGraphicsMapResources(unsigned count, GraphicsResource** resources, Stream* stream) {
    return refuse_resources(CallId::cuGraphicsMapResources, count, resources, stream);
}

Result cuGraphicsUnmapResources(unsigned count, GraphicsResource** resources, Stream* stream) {
    return refuse_resources(CallId::cuGraphicsUnmapResources, count, resources, stream);
}
}

}  // namespace isthmus::sim
