// SPDX-License-Identifier: Apache-2.0
// Which small memory shares pages: every machine × kind × size, every placement and alignment around the borders.
#include "some_devices.hpp"

#include <small_rules.hpp>

#include <array>
#include <string>

namespace {

using namespace isthmus;
using namespace isthmus::rules;
using namespace some_devices;
using K = MemoryKind;

constexpr std::array sizes = {std::size_t{0},    std::size_t{1},    std::size_t{64},     std::size_t{255},
                              std::size_t{256},  std::size_t{257},  std::size_t{1024},   std::size_t{2047},
                              std::size_t{2048}, std::size_t{4096}, std::size_t{1} << 20};

template <class Each>
void for_every_machine(Each each) {
    for (const char* machine : gpu_machines) each(machine, of_machine(machine));
    each("cpu", cpu());
}

TEST(Small, OfEveryKindOnEveryMachineWhatIsBelow2KiBSharesPagesUnlessItIsAttachedWhole) {  // keeps M1, M2, K6
    int guarded = 0;
    int shared = 0;
    for_every_machine([&](const std::string& machine, const Capabilities& device) {
        const bool whole_managed = device.managed == ManagedModel::phase_guarded;
        guarded += static_cast<int>(whole_managed);
        for_every_kind([&](K kind) {
            const bool divisible = kind == K::device || kind == K::pinned || kind == K::registered || kind == K::host ||
                                   kind == K::host_numa || (kind == K::managed && !whole_managed);
            for (const std::size_t bytes : sizes) {
                const std::size_t place = small_place(device, kind, {}, bytes, 256);
                EXPECT_EQ(place != 0, divisible && bytes > 0 && bytes < 2048)
                    << machine << ' ' << name(kind) << ' ' << bytes;
                if (place == 0) continue;
                ++shared;
                EXPECT_GT(place, bytes) << "a byte behind it stays unused";
                EXPECT_LE(place - bytes, 256u);
                EXPECT_EQ(place % 256, 0u) << "no line of 128 bytes is shared";
                EXPECT_LT(place_class(place), place_count);
            }
        });
    });
    EXPECT_GT(guarded, 0);
    EXPECT_GT(shared, 0);
}

TEST(Small, APlacementOrAlignmentThatPromisesPagesGetsThem) {  // keeps M1, A16
    const Capabilities device = of_machine("h200");
    HostPlacement placement;
    EXPECT_EQ(small_place(device, K::registered, placement, 64, 256), 256u);
    EXPECT_EQ(small_place(device, K::registered, placement, 64, 512), 0u) << "no page of that size is shared";
    placement.page_size = PageSize::huge;
    EXPECT_EQ(small_place(device, K::registered, placement, 64, 256), 0u);
    placement = {};
    placement.locality = Locality::near_device;
    EXPECT_EQ(small_place(device, K::registered, placement, 64, 256), 256u);
    EXPECT_EQ(small_place(device, K::host, placement, 64, 256), 0u) << "cut out of slabs of its node already";
    EXPECT_EQ(small_place(device, K::pinned, placement, 64, 256), 256u) << "the driver places it";
    placement.strict = true;
    EXPECT_EQ(small_place(device, K::registered, placement, 64, 256), 0u) << "promised for each allocation";
    placement.strict = false;
    placement.locality = Locality::local;
    EXPECT_EQ(small_place(device, K::registered, placement, 64, 256), 0u) << "depends on the thread";
    placement.locality = Locality::unbound;
    EXPECT_EQ(small_place(device, K::host, placement, 64, 256), 256u);
}

TEST(Small, ASlabIsAnEighthOfWhatLivesWithinAPageAnd64KiB) {  // keeps M8
    EXPECT_EQ(slab_bytes(0, 4096), 4096u);
    EXPECT_EQ(slab_bytes(8 * 8192 - 1, 4096), 4096u);
    EXPECT_EQ(slab_bytes(8 * 8192, 4096), 8192u);
    EXPECT_EQ(slab_bytes(1 << 30, 4096), 65536u);
    EXPECT_EQ(slab_bytes(0, 65536), 65536u);
    EXPECT_EQ(slab_bytes(0, std::size_t{2} << 20), 65536u);
    EXPECT_EQ(slab_bytes(0, 0), 4096u) << "a page of unknown size";
}

}  // namespace
