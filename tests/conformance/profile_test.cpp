// SPDX-License-Identifier: Apache-2.0
// A profile that `isthmus tune` could have written for this machine chooses the memory of shared buffers.
#include "scenario.hpp"

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace conformance {
namespace {

// A file with one device, of which each member can be changed, and one choice for every use.
struct ProfileText {
    std::string uuid;
    int driver_version = 0;
    std::string kernel_release;
    bool simulated = false;
    std::string translation;
    std::string memory;
    std::string kind = "device";
    std::string measured_on = "2026-11-24";

    ProfileText(const MachineFacts& machine, const Device& device)
        : uuid(device.facts().uuid.text()),
          driver_version(machine.driver_version),
          kernel_release(machine.kernel_release),
          simulated(machine.simulated),
          translation(name(device.capabilities().translation)),
          memory(name(device.capabilities().memory)) {}

    std::string text() const {
        std::string choices;
        for (const char* side : {"reads", "writes", "reads_and_writes"}) {
            for (const char* host : {"reads", "writes", "reads_and_writes"}) {
                for (const char* often : {"false", "true"}) {
                    for (const char* prefer : {"throughput", "latency"}) {
                        choices += choices.empty() ? "" : ",\n";
                        choices += std::string(R"({"device": ")") + side + R"(", "host": ")" + host +
                                   R"(", "host_often": )" + often + R"(, "prefer": ")" + prefer +
                                   R"(", "rows": [[1, 0, 0]]})";
                    }
                }
            }
        }
        return R"({"schema": "isthmus-profile-1", "devices": [{"uuid": ")" + uuid + R"(", "driver_version": )" +
               std::to_string(driver_version) + R"(, "kernel_release": ")" + kernel_release + R"(", "simulated": )" +
               (simulated ? "true" : "false") + R"(, "translation": ")" + translation + R"(", "memory": ")" + memory +
               R"(", "measured_on": ")" + measured_on + R"(", "ways": [{"kind": ")" + kind +
               R"(", "locality": "anywhere"}], "choices": [)" + choices + "]}]}";
    }
};

class ProfileFile {
public:
    explicit ProfileFile(const std::string& text) {
        const int file = ::mkstemp(name_.data());
        EXPECT_GE(file, 0);
        ::close(file);
        std::ofstream(name_) << text;
    }
    ProfileFile(const ProfileFile&) = delete;
    ProfileFile& operator=(const ProfileFile&) = delete;
    ~ProfileFile() { (void)std::remove(name_.c_str()); }
    const std::string& name() const { return name_; }

private:
    std::string name_ = ::testing::TempDir() + "isthmus-profile-XXXXXX";
};

using Lines = std::vector<std::string>;

Result<Runtime> open_with(const std::string& profile, Lines& log) {
    RuntimeOptions options;
    options.profile = profile;
    options.log = [&log](Severity, std::string_view line) { log.emplace_back(line); };
    return Runtime::open(options);
}
bool said(const Lines& log, std::string_view words) {
    for (const std::string& line : log) {
        if (line.find(words) != std::string::npos) return true;
    }
    return false;
}

constexpr SharedUse read_once{.host = Use::writes_once, .device = Use::reads_once};

// keeps P3, P5: the choice of a profile decides where nobody asked for a kind, and the buffer says so
TEST(Profiles, TheMeasuredChoiceDecidesAndTheBufferSaysSo) {
    on_every_gpu([](Device& device) {
        ProfileText text(runtime().machine(), device);
        for (const char* kind : {"device", "pinned"}) {
            text.kind = kind;
            const ProfileFile file(text.text());
            Lines log;
            Result<Runtime> opened = open_with(file.name(), log);
            ASSERT_TRUE(worked(opened));
            Device& tuned = *opened->device(device.facts().uuid).value();
            ASSERT_TRUE(unless_fault(tuned.capabilities().profile != nullptr));
            EXPECT_TRUE(unless_fault(said(log, "uses its profile of 2026-11-24"))) << log.size();
            Buffer<std::int32_t> buffer = tuned.allocate_shared<std::int32_t>(1000, read_once).value();
            EXPECT_TRUE(unless_fault(name(buffer.kind()) == kind)) << buffer.explain();
            EXPECT_TRUE(unless_fault(buffer.explain().find("measured on this device") != std::string::npos))
                << buffer.explain();
            {
                auto view = buffer.write_on_host().value();
                for (std::int32_t& each : view) each = 41;
            }
            Buffer<std::int32_t> copy = tuned.allocate_shared<std::int32_t>(1000).value();
            tuned.stream().launch(scale_into, 1000, copy, buffer, 2).value();
            expect_all(copy, 82);
            SharedUse asked = read_once;
            asked.kind = std::string_view(kind) == "device" ? MemoryKind::pinned : MemoryKind::device;
            EXPECT_EQ(tuned.allocate_shared<std::int32_t>(1000, asked).value().kind(), *asked.kind);
        }
    });
}

// keeps P5: a kind that the rules refuse here leaves the choice to the table
TEST(Profiles, AMeasurementNeverWidensTheRules) {
    on_every_gpu([](Device& device) {
        for (const char* kind : {"host", "managed", "write_combined", "graph"}) {
            ProfileText text(runtime().machine(), device);
            text.kind = kind;
            const ProfileFile file(text.text());
            Lines log;
            Result<Runtime> opened = open_with(file.name(), log);
            ASSERT_TRUE(worked(opened));
            Device& tuned = *opened->device(device.facts().uuid).value();
            Result<Buffer<std::int32_t>> buffer =
                tuned.allocate_shared<std::int32_t>(1000, {.host = Use::reads_once, .device = Use::writes_once});
            ASSERT_TRUE(worked(buffer));
            EXPECT_NE(buffer->path(), LaunchPath::attach) << buffer->explain();
            EXPECT_NE(name(buffer->kind()), "write_combined") << "the host reads it";
            ASSERT_TRUE(worked(tuned.stream().launch(add_one, 1000, *buffer)));
            EXPECT_TRUE(worked(buffer->read_on_host()));
        }
    });
}

// keeps P4: each key is compared; a profile of anything else is named and ignored
TEST(Profiles, AProfileOfAnythingElseIsNamedAndIgnored) {
    on_every_gpu([](Device& device) {
        const ProfileText own(runtime().machine(), device);
        std::vector<std::pair<ProfileText, std::string>> others(6, {own, ""});
        others[0].first.uuid = "GPU-00000000-0000-0000-0000-000000000001";
        others[0].second = "that device is not there";
        others[1].first.driver_version += 10;
        others[1].second = "another driver";
        others[2].first.kernel_release += "-other";
        others[2].second = "another kernel";
        others[3].first.translation = own.translation == "none" ? "hmm" : "none";
        others[3].second = "another memory model";
        others[4].first.memory = own.memory == "separate" ? "shared_dram" : "separate";
        others[4].second = "another memory model";
        others[5].first.simulated = !own.simulated;
        others[5].second = own.simulated ? "uses its profile" : "simulated machine";
        for (const auto& [text, reason] : others) {
            const ProfileFile file(text.text());
            Lines log;
            Result<Runtime> opened = open_with(file.name(), log);
            ASSERT_TRUE(worked(opened));
            const bool used = reason == "uses its profile";
            EXPECT_TRUE(unless_fault(said(log, reason))) << reason;
            EXPECT_TRUE(unless_fault(said(log, "is not used") != used)) << reason;
            const Capabilities& found = opened->device(device.facts().uuid).value()->capabilities();
            EXPECT_TRUE(unless_fault((found.profile != nullptr) == used));
        }
    });
}

// keeps P4: one clear error, and no runtime that uses half of it
TEST(Profiles, ADamagedProfileIsOneClearError) {
    const ProfileFile file(R"({"schema": "isthmus-profile-1", "devices": [{]})");
    Lines log;
    Result<Runtime> opened = open_with(file.name(), log);
    ASSERT_TRUE(refused_as(opened, Code::invalid_argument));
    EXPECT_NE(opened.error().text().find(file.name()), std::string::npos);
    EXPECT_TRUE(refused_as(open_with(file.name() + "-missing", log), Code::invalid_argument));
    Result<Runtime> without = open_with("none", log);
    ASSERT_TRUE(worked(without));
    EXPECT_EQ(without->default_device().capabilities().profile, nullptr);
}

}  // namespace
}  // namespace conformance
