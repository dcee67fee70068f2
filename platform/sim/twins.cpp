// SPDX-License-Identifier: Apache-2.0
// The registered twins, and recognition of images by their bytes.
#include "twins.hpp"

#include <driver_abi/sim_registration.h>

#include <deque>
#include <mutex>
#include <utility>

namespace isthmus::sim {
namespace {

struct Register {
    std::mutex mutex;
    std::deque<Twin> twins;
};
Register& the_register() {
    static auto* const instance = new Register();
    return *instance;
}

// The driver does not get an image's size, so the comparison stops at the first difference.
bool same_bytes(const std::vector<unsigned char>& registered, const unsigned char* image) {
    for (std::size_t i = 0; i < registered.size(); ++i) {
        if (registered[i] != image[i]) return false;
    }
    return !registered.empty();
}

ImageName image_of(const isthmus_sim_kernel& kernel) {
    return {kernel.image_hash, kernel.image_data, kernel.image_first_use};
}

Twin copy_of(const isthmus_sim_kernel& kernel) {
    Twin twin;
    twin.image = image_of(kernel);
    twin.symbol = kernel.symbol;
    for (std::uint32_t i = 0; i < kernel.parameter_count; ++i) {
        const isthmus_sim_parameter& p = kernel.parameter[i];
        twin.parameters.push_back({p.offset_bytes, p.size_bytes, p.element_bytes, p.use});
    }
    twin.pack_bytes = kernel.pack_bytes;
    twin.rank = kernel.rank;
    twin.block_threads = kernel.block_threads;
    twin.run = kernel.twin;
    twin.play_gpu = kernel.play_gpu;
    return twin;
}

bool well_formed(const isthmus_sim_kernel* kernel) {
    if (!kernel || kernel->struct_bytes < sizeof(isthmus_sim_kernel)) return false;
    if (!kernel->image_hash || !kernel->image_data || !kernel->symbol || !kernel->twin || kernel->rank > 3)
        return false;
    for (std::uint32_t i = 0; i < kernel->parameter_count; ++i) {
        const isthmus_sim_parameter& p = kernel->parameter[i];
        const bool fits = p.offset_bytes <= kernel->pack_bytes && p.size_bytes <= kernel->pack_bytes - p.offset_bytes;
        if (!fits || (p.element_bytes != 0 && p.size_bytes < sizeof(void*) + sizeof(std::uint64_t))) return false;
    }
    return true;
}

}  // namespace

ImageName name_of_image(const void* image) {
    const auto* bytes = static_cast<const unsigned char*>(image);
    Register& all = the_register();
    const std::lock_guard lock(all.mutex);
    const Twin* found = nullptr;
    for (auto twin = all.twins.rbegin(); twin != all.twins.rend(); ++twin) {  // the newest first
        const bool here = twin->image.address == bytes;
        if ((!here && found) || !same_bytes(*twin->content, bytes)) continue;
        if (here) return twin->image;
        found = &*twin;
    }
    return found ? found->image : ImageName{};
}

const Twin* find_twin(const ImageName& image, const char* symbol) {
    Register& all = the_register();
    const std::lock_guard lock(all.mutex);
    for (const Twin& twin : all.twins) {
        if (twin.image == image && twin.symbol == symbol) return &twin;
    }
    return nullptr;
}

std::vector<std::string> twins_of_image(const ImageName& image) {
    Register& all = the_register();
    const std::lock_guard lock(all.mutex);
    std::vector<std::string> symbols;
    for (const Twin& twin : all.twins) {
        if (twin.image == image) symbols.push_back(twin.symbol);
    }
    return symbols;
}

}  // namespace isthmus::sim

extern "C" __attribute__((visibility("default"))) int isthmus_sim_register_kernel(const isthmus_sim_kernel* kernel) {
    using namespace isthmus::sim;
    if (!well_formed(kernel)) return 1;
    Register& all = the_register();
    const std::lock_guard lock(all.mutex);
    const ImageName image = image_of(*kernel);
    std::shared_ptr<const std::vector<unsigned char>> content;
    for (const Twin& twin : all.twins) {
        if (twin.image.hash == image.hash && twin.content->size() == kernel->image_bytes) content = twin.content;
        if (twin.image != image || twin.symbol != kernel->symbol) continue;
        const bool same = twin.pack_bytes == kernel->pack_bytes && twin.rank == kernel->rank &&
                          twin.parameters.size() == kernel->parameter_count && twin.run == kernel->twin;
        return same ? 0 : 1;
    }
    if (!content) {
        content = std::make_shared<const std::vector<unsigned char>>(kernel->image_data,
                                                                     kernel->image_data + kernel->image_bytes);
    }
    all.twins.push_back(copy_of(*kernel));
    all.twins.back().content = std::move(content);
    return 0;
}
