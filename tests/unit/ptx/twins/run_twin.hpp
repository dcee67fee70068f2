// SPDX-License-Identifier: Apache-2.0
// Takes the place of tests/unit/kernels/run_twin.hpp: each kernel runs from its PTX and as its twin, on the same
// memory, and both must leave the same bits. The PTX was made of the kernels' sources:
//     nvcc -x cu -ptx -std=c++20 -fmad=false -arch=compute_75 -I… camera_gray.cpp
// With kernels that changed since, make it anew.
#pragma once

#include <isthmus/kernel.hpp>

#include <execution.hpp>
#include <launch_shape.hpp>
#include <program.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace ptx_twins {

namespace ptx = isthmus::ptx;

// The memory of a kernel's views, and nothing else.
class Views final : public ptx::Memory {
public:
    struct View {
        std::byte* data;
        std::size_t size_bytes;
        bool writable;
    };
    Views(const isthmus::KernelInfo& info, const void* pack) {
        for (std::uint32_t at = 0; at < info.parameter_count; ++at) {
            const isthmus::ParameterInfo& parameter = info.parameter[at];
            if (parameter.element_bytes == 0) continue;
            struct {
                std::byte* data;
                std::uint64_t size;
            } view;
            std::memcpy(&view, static_cast<const std::byte*>(pack) + parameter.offset_bytes, sizeof view);
            views.push_back({view.data, static_cast<std::size_t>(view.size) * parameter.element_bytes,
                             parameter.use != isthmus::ArgumentUse::read});
        }
    }
    ptx::MemoryWindow window(std::uint64_t address, std::uint32_t bytes, bool writes) override {
        for (const View& view : views) {
            const auto begin = reinterpret_cast<std::uint64_t>(view.data);
            if (address < begin || address - begin >= view.size_bytes || (writes && !view.writable)) continue;
            if (view.size_bytes - (address - begin) < bytes) continue;
            return {begin, view.size_bytes, view.data, true, {}};
        }
        ptx::MemoryWindow out;
        out.refusal = "it is no view of the kernel";
        return out;
    }
    std::uint64_t update(void*, std::uint32_t, ptx::Update&) override { return 0; }
    void print(std::string_view) override {}
    void pause() override {}
    bool set_condition(std::uint64_t, std::uint32_t) override { return false; }

    using Contents = std::vector<std::vector<std::byte>>;
    Contents save() const {
        Contents out;
        for (const View& view : views) out.emplace_back(view.data, view.data + view.size_bytes);
        return out;
    }
    void restore(const Contents& contents) const {
        for (std::size_t at = 0; at < views.size(); ++at) {
            if (views[at].writable && views[at].size_bytes != 0)
                std::memcpy(views[at].data, contents[at].data(), views[at].size_bytes);
        }
    }
    std::vector<View> views;
};

inline std::map<std::string, std::unique_ptr<ptx::Program>>& programs() {
    static std::map<std::string, std::unique_ptr<ptx::Program>> all;
    if (!all.empty()) return all;
    for (const char* const name : {"camera_corners", "camera_gray", "camera_list", "camera_response", "camera_smooth",
                                   "camera_tiles", "sample_kernels"}) {
        std::ifstream file(std::string(ISTHMUS_PTX_FOLDER) + "/" + name + ".ptx");
        std::stringstream text;
        text << file.rdbuf();
        auto program = std::make_unique<ptx::Program>(text.str());
        EXPECT_FALSE(program->refusal().refused()) << name << ": " << program->refusal().what;
        program->place({});
        all[name] = std::move(program);
    }
    return all;
}

inline void run_from_ptx(const isthmus::KernelInfo& info, const isthmus::Extent& extent, const void* pack,
                         ptx::Memory& memory) {
    const auto shape = isthmus::platform::cuda::launch_shape(info, extent);
    if (shape.empty) return;
    for (const auto& [name, program] : programs()) {
        const ptx::Entry* const entry = program->entry(info.symbol);
        if (entry == nullptr) continue;
        ASSERT_FALSE(entry->refusal.refused()) << entry->refusal.what;
        std::vector<std::byte> block(entry->parameter_bytes);
        std::memcpy(block.data() + entry->parameters.at(0).offset_bytes, &extent, sizeof extent);
        if (info.pack_bytes != 0)
            std::memcpy(block.data() + entry->parameters.at(1).offset_bytes, pack, info.pack_bytes);
        ptx::ExecutionShape execution_shape;
        execution_shape.grid = {shape.grid[0], shape.grid[1], shape.grid[2]};
        execution_shape.block = {shape.block[0], shape.block[1], shape.block[2]};
        ptx::Execution execution(*program, *entry, execution_shape, block, memory);
        execution.run();
        ASSERT_EQ(execution.fault().kind, ptx::FaultKind::none) << execution.fault().message;
        return;
    }
    FAIL() << "no PTX for " << info.symbol;
}

}  // namespace ptx_twins

template <class Space, class... P>
void run_twin(const isthmus::Kernel<void(Space, P...)>& kernel,
              typename isthmus::KernelTraits<void(Space, P...)>::ExtentType items,
              const std::type_identity_t<P>&... values) {
    using Traits = isthmus::KernelTraits<void(Space, P...)>;
    const isthmus::Extent extent = Traits::extent(items);
    const auto pack = Traits::pack(values...);
    const std::uint64_t outermost[] = {extent.x * extent.y * extent.z, extent.x, extent.y, extent.z};
    ptx_twins::Views views(kernel.info(), &pack);
    const auto before = views.save();
    ptx_twins::run_from_ptx(kernel.info(), extent, &pack, views);
    const auto from_ptx = views.save();
    views.restore(before);
    kernel.info().twin(extent, 0, outermost[Traits::rank], &pack);
    const auto from_twin = views.save();
    EXPECT_TRUE(from_ptx == from_twin) << kernel.info().name << ": the PTX leaves other bits than the twin";
}
