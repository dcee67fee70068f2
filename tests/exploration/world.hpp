// SPDX-License-Identifier: Apache-2.0
// The model's slots with the runtime's objects in them: carries out steps and records the answers.
#pragma once

#include "model.hpp"
#include "steps.hpp"

#include <isthmus/isthmus.hpp>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <variant>

namespace exploration {

class World {
public:
    explicit World(isthmus::Runtime& runtime);
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    Answer carry_out(const Step& step, std::uint32_t mark);
    // The contents of a buffer, copied to the host on its device's default stream.
    isthmus::Result<Values> contents(std::size_t buffer, std::size_t on_device);

private:
    using Element = std::int32_t;
    // A view, and the half of the buffer that it covers.
    using AnyView =
        std::variant<isthmus::HostView<const Element>, isthmus::HostView<Element>, isthmus::ConcurrentView<Element>>;
    struct View {
        AnyView view;
        unsigned halves;
    };

    isthmus::Device& device(std::size_t index) { return *runtime_.device(index).value(); }
    isthmus::Result<isthmus::Buffer<Element>> allocate(const Step& step);
    Answer of_streams(const Step& step);
    Answer of_events(const Step& step);
    Answer of_memory(const Step& step);
    Answer of_views(const Step& step);
    template <class Memory>
    Answer open_view(const Step& step, Memory& memory, unsigned halves);
    Answer of_graphs(const Step& step);
    Answer of_work(const Step& step, std::uint32_t mark);

    isthmus::Runtime& runtime_;
    std::array<std::optional<isthmus::Stream>, max_streams> streams_;
    std::array<std::optional<isthmus::Event>, max_events> events_;
    std::array<isthmus::Buffer<Element>, max_buffers> buffers_;
    std::array<std::optional<View>, max_views> views_;
    std::array<std::optional<isthmus::Capture>, max_captures> captures_;
    std::array<std::optional<isthmus::Graph>, max_graphs> graphs_;
    std::array<std::optional<isthmus::GraphInstance>, max_instances> instances_;
};

// Asks a runtime once which kinds of memory its devices allocate; the exploration tests order only and takes the kinds
// as given.
MachineFacts learn(isthmus::Runtime& runtime);

}  // namespace exploration
