// SPDX-License-Identifier: Apache-2.0
// Growable buffers over several devices: handle k lies on device k mod n, one call grants access to all devices, and
// each of them uses the whole buffer.
#include "scenario.hpp"

#include <isthmus/mapping/growable_buffer.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace conformance {
namespace {

using Numbers = GrowableBuffer<std::int32_t>;
using Devices = std::vector<const Device*>;
// In elements; of every recorded machine.
constexpr std::size_t granule = (std::size_t{2} << 20) / sizeof(std::int32_t);
constexpr LaunchOptions checked{.mode = LaunchMode::checked};

Devices mapping_devices() {
    Devices found;
    for (const Device& device : all_devices()) {
        if (device.capabilities().has(Feature::virtual_memory)) found.push_back(&device);
    }
    return found;
}

bool reach_each_other(const Device& a, const Device& b) {
    return &a == &b || (Numbers::create(a, 1, {.also = {&b}}).ok() && Numbers::create(b, 1, {.also = {&a}}).ok());
}

// Runs the body for every GPU that maps memory, with a stripe over all GPUs that reach each other; where there is only
// one, over that GPU twice.
template <class Body>
void on_every_stripe(Body body) {
    on_every_device([&](Device& device) {
        if (!device.capabilities().has(Feature::virtual_memory)) return;
        Devices stripe;
        for (const Device* other : mapping_devices()) {
            if (reach_each_other(device, *other)) stripe.push_back(other);
        }
        if (stripe.size() == 1) stripe.push_back(stripe.front());
        body(device, stripe);
    });
}

MemoryPlace place_of(const Device& device) {
    return {MemoryPlace::Where::device, device.facts().ordinal};
}

Device& usable(const Device& device) {
    return *runtime().device(device.index()).value();
}

// keeps V6, V9, V11
TEST(Growable, AStripeLiesOnItsDevicesInTurnAndEachOfThemUsesAllOfIt) {
    on_every_stripe([](Device& device, const Devices& stripe) {
        const std::size_t n = stripe.size();
        Numbers buffer = Numbers::create(device, 16 * n * granule, {.stripe = stripe}).value();
        EXPECT_EQ(buffer.figures().devices, n);
        EXPECT_NE(buffer.explain().find("in turn"), std::string_view::npos) << buffer.explain();
        EXPECT_FALSE(buffer.place(0));
        buffer.resize(100).value();
        EXPECT_EQ(buffer.capacity(), n * granule);  // one granule on each
        const std::uint64_t base = buffer.device_address();
        device.stream().fill(buffer, 1).value();
        buffer.resize(4 * n * granule - 1).value();
        EXPECT_EQ(buffer.capacity(), 4 * n * granule);
        EXPECT_EQ(buffer.device_address(), base);
        EXPECT_EQ(buffer.figures().handles, 2 * n);
        for (std::size_t at = 0; at < n; ++at) {
            EXPECT_EQ(buffer.place(at * granule), place_of(*stripe[at]));
            EXPECT_EQ(buffer.place((at + 1) * granule - 1), place_of(*stripe[at]));
            EXPECT_EQ(buffer.place((n + 3 * at) * granule), place_of(*stripe[at]));
            EXPECT_EQ(buffer.place((n + 3 * at + 3) * granule - 1), place_of(*stripe[at]));
        }
        EXPECT_FALSE(buffer.place(4 * n * granule));
        // Written by the device that made it, then changed by each device, across all borders.
        constexpr std::size_t reach = 128;
        std::vector<std::size_t> borders;
        for (std::size_t at = 1; at <= n; ++at) borders.push_back(at * granule);
        for (std::size_t at = 1; at < n; ++at) borders.push_back((n + 3 * at) * granule);
        device.stream().fill(buffer, 5).value();
        device.synchronize().value();
        for (const Device* one : stripe) {
            Device& user = usable(*one);
            EXPECT_EQ(user.can_access(buffer).verdict, Verdict::yes);
            for (const std::size_t border : borders) {
                const auto around = buffer.part(border - reach, 2 * reach).value();
                (void)user.stream().launch(checked, add_one, around.size(), around).value();
            }
            user.synchronize().value();
        }
        Buffer<std::int32_t> out = pinned(device, buffer.size(), -1);
        device.stream().copy(out, buffer).value();  // one copy over all devices
        auto seen = out.read_on_host().value();
        const std::int32_t changed = 5 + static_cast<std::int32_t>(n);
        for (const std::size_t border : borders) {
            for (std::size_t at = border - reach; at < border + reach; ++at) ASSERT_EQ(seen[at], changed) << at;
            EXPECT_EQ(seen[border - reach - 1], 5);
            EXPECT_EQ(seen[border + reach], 5);
        }
        EXPECT_EQ(seen[0], 5);
        EXPECT_EQ(seen[seen.size() - 1], 5);
    });
}

// keeps V11: one cuMemSetAccess per step for all devices, by count
TEST(Growable, AStripesStepCreatesAndMapsOnceForEachDeviceAndLetsAllInByOneCall) {
    (void)runtime();  // opens the driver that counts
    if (driver_calls() < 0) GTEST_SKIP() << "driver calls are counted on the simulator";
    on_every_stripe([](Device& device, const Devices& stripe) {
        const auto n = static_cast<long>(stripe.size());
        for (const Growth growth : {Growth::exact, Growth::doubling}) {
            Numbers buffer = Numbers::create(device, 256 * granule, {.stripe = stripe, .growth = growth}).value();
            for (int step = 0; step < 4; ++step) {
                const std::array<long, 4> before{driver_calls("cuMemCreate"), driver_calls("cuMemMap"),
                                                 driver_calls("cuMemSetAccess"), driver_calls()};
                buffer.resize(buffer.capacity() + 1).value();
                EXPECT_TRUE(unless_fault(driver_calls("cuMemCreate") == before[0] + n));
                EXPECT_TRUE(unless_fault(driver_calls("cuMemMap") == before[1] + n));
                EXPECT_TRUE(unless_fault(driver_calls("cuMemSetAccess") == before[2] + 1));
                EXPECT_TRUE(unless_fault(driver_calls() == before[3] + 2 * n + 1));
            }
            const long unmaps = driver_calls("cuMemUnmap");
            const long releases = driver_calls("cuMemRelease");
            buffer.release().value();
            EXPECT_TRUE(unless_fault(driver_calls("cuMemUnmap") == unmaps + 4 * n));
            EXPECT_TRUE(unless_fault(driver_calls("cuMemRelease") == releases + 4 * n));
        }
    });
}

// keeps V11
TEST(Growable, AStripeThatWasTrimmedGoesOnWithTheNextDevice) {
    on_every_stripe([](Device& device, const Devices& stripe) {
        const std::size_t n = stripe.size();
        Numbers buffer = Numbers::create(device, 4 * n * granule, {.stripe = stripe, .growth = Growth::exact}).value();
        buffer.resize(2 * n * granule).value();
        device.stream().fill(buffer, 3).value();
        buffer.resize(granule).value();  // one handle of 2 granules holds it
        EXPECT_TRUE(worked(buffer.trim()));
        EXPECT_EQ(buffer.figures().handles, 1u);
        EXPECT_EQ(buffer.capacity(), 2 * granule);
        buffer.resize((2 + n) * granule).value();
        EXPECT_EQ(buffer.figures().handles, 1 + n);
        for (std::size_t at = 0; at < n; ++at) {
            EXPECT_EQ(buffer.place((2 + at) * granule), place_of(*stripe[(1 + at) % n]));
        }
        // The rest of the reservation is used, also where it is less than one granule per device.
        buffer.resize(4 * n * granule).value();
        EXPECT_EQ(buffer.capacity(), 4 * n * granule);
        EXPECT_TRUE(refused_as(buffer.resize(4 * n * granule + 1), Code::invalid_argument));
        device.synchronize().value();
        Device& last = usable(*stripe.back());
        (void)last.stream().launch(checked, add_one, granule, buffer).value();
        last.synchronize().value();
        Buffer<std::int32_t> out = pinned(device, 1, -1);
        device.stream().copy(out, 0, buffer, granule - 1, 1).value();
        EXPECT_EQ(out.read_on_host().value()[0], 4);
    });
}

// keeps V1, V9, V11
TEST(Growable, AStripeThatNotAllReachIsRefusedAndNamesThePair) {
    on_every_device([](Device& device) {
        const bool maps = device.capabilities().has(Feature::virtual_memory);
        EXPECT_TRUE(refused_as(Numbers::create(device, 1, {.stripe = {nullptr}}), Code::invalid_argument));
        const auto over_cpu = Numbers::create(device, 1, {.stripe = {&device, &runtime().cpu()}});
        EXPECT_TRUE(refused_as(over_cpu, Code::unsupported));
        GrowableOptions on_host;
        on_host.where = MemoryPlace::Where::host;
        on_host.stripe = {&device};
        EXPECT_TRUE(refused_as(Numbers::create(device, 1, on_host), Code::invalid_argument));
        if (!maps) {
            const auto refused = Numbers::create(device, 1, {.stripe = {&device}});
            ASSERT_TRUE(refused_as(refused, Code::unsupported));
            EXPECT_NE(refused.error().message().find(device.name()), std::string_view::npos);
            EXPECT_FALSE(refused.error().remedy().empty());
            return;
        }
        EXPECT_TRUE(refused_as(Numbers::create(device, 1, {.also = {&runtime().cpu()}, .stripe = {&device}}),
                               Code::unsupported));
        for (const Device* other : mapping_devices()) {
            const auto made = Numbers::create(device, 1, {.stripe = {&device, other}});
            if (reach_each_other(device, *other)) {
                EXPECT_TRUE(worked(made));
                continue;
            }
            EXPECT_TRUE(unless_fault(!made));
            if (fault_happened()) continue;  // the calls above had other results
            ASSERT_TRUE(refused_as(made, Code::unsupported));
            const std::string message(made.error().message());
            for (const Device* named : {static_cast<const Device*>(&device), other}) {
                const std::string name = std::string(named->name()) + " (device " + std::to_string(named->index());
                EXPECT_NE(message.find(name), std::string::npos) << message;
            }
            EXPECT_NE(message.find("no link"), std::string::npos) << message;
            EXPECT_FALSE(made.error().remedy().empty());
        }
    });
}

// keeps G3: a device's own memory is where its threads may update words
TEST(Growable, KernelsUpdateWordsInThePartsOfAStripeThatLieOnTheirDevice) {
    on_every_stripe([](Device& device, const Devices& stripe) {
        auto buffer =
            GrowableBuffer<std::uint32_t>::create(device, 2 * stripe.size() * granule, {.stripe = stripe}).value();
        buffer.resize(stripe.size() * granule).value();
        device.stream().fill(buffer, 0u).value();
        device.synchronize().value();
        const bool one_device = stripe.front() == stripe.back();
        for (const Device* each : stripe) {
            Device& user = usable(*each);
            const auto whole = user.stream().launch(checked, update_words, 10, buffer);
            EXPECT_TRUE(one_device ? worked(whole) : refused_as(whole, Code::not_accessible));
            for (std::size_t handle = 0; handle < stripe.size(); ++handle) {
                const auto part = buffer.part(handle * granule, 64).value();
                const auto given = user.stream().launch(checked, update_words, 10, part);
                EXPECT_TRUE(stripe[handle] == each ? worked(given) : refused_as(given, Code::not_accessible));
            }
            user.synchronize().value();
        }
    });
}

}  // namespace
}  // namespace conformance
