// SPDX-License-Identifier: Apache-2.0
// Finds the missing piece by one question after the other; each text names the fact that answered it.
#include "doctor_sharing.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace isthmus::tools {
namespace {

using Found = std::optional<Diagnosis>;

constexpr std::string_view folder = "/dev/nvidia-caps-imex-channels";

bool any_says_fabric(const DoctorFacts& facts) {
    return std::any_of(facts.opening.devices.begin(), facts.opening.devices.end(),
                       [](const DeviceSighting& device) { return device.fabric; });
}

// The first failed try of this kind, or null. `tried` is set where there was any try of the kind.
const ExportFinding* failed_try(const DoctorFacts& facts, ExportKinds kind, bool& tried) {
    const ExportFinding* failed = nullptr;
    tried = false;
    for (const ExportFinding& one : facts.exports) {
        if (one.kind != kind) continue;
        tried = true;
        if (!one.works && failed == nullptr) failed = &one;
    }
    return failed;
}

// A channel file with another major number belongs to another driver, or to this one before it was loaded again.
bool is_the_drivers(const DoctorFacts& facts, const ImexChannel& channel) {
    return channel.major == facts.machine.imex_channels_major;
}

std::vector<int> open_channels(const DoctorFacts& facts) {
    std::vector<int> numbers;
    for (const ImexChannel& channel : facts.imex.channels) {
        if (is_the_drivers(facts, channel) && channel.failure.empty()) numbers.push_back(channel.number);
    }
    return numbers;
}

std::string list(const std::vector<int>& numbers) {
    std::string text;
    for (const int number : numbers) text += fmt::format("{}channel{}", text.empty() ? "" : ", ", number);
    return text;
}

// A missing piece is a problem with --fabric, and a note otherwise.
Weight weight_of(const DoctorFacts& facts) {
    return facts.imex.wanted ? Weight::problem : Weight::note;
}

bool speaks(const DoctorFacts& facts, FabricPiece piece) {
    return missing_piece(facts) == piece;
}

std::string what_failed(const ExportFinding& failed) {
    if (failed.failed == ExportStep::survive) {
        return fmt::format("the process that tried did not come back ({})", failed.message);
    }
    std::string text = fmt::format("{} failed", name(failed.failed));
    if (!failed.call.empty()) text = fmt::format("{} returned {}", failed.call, failed.driver_code);
    if (failed.device) text += " on " + failed.device.text();
    return failed.message.empty() ? text : text + ": " + failed.message;
}

}  // namespace

FabricPiece missing_piece(const DoctorFacts& facts) {
    if (facts.opening.devices.empty()) return FabricPiece::none;
    if (!any_says_fabric(facts)) return facts.imex.wanted ? FabricPiece::attribute : FabricPiece::none;
    bool tried = false;
    const bool fails = failed_try(facts, ExportKinds::fabric, tried) != nullptr;
    const std::vector<int> open = open_channels(facts);
    if (!tried || fails) {
        const std::vector<ImexChannel>& channels = facts.imex.channels;
        if (facts.machine.imex_channels_major < 0) return FabricPiece::major;
        if (channels.empty()) return FabricPiece::file;
        const auto ours = [&](const ImexChannel& channel) { return is_the_drivers(facts, channel); };
        if (std::none_of(channels.begin(), channels.end(), ours)) return FabricPiece::other_device;
        if (open.empty()) return FabricPiece::permission;
        if (fails) return facts.imex.daemon == Seen::no ? FabricPiece::daemon : FabricPiece::round_trip;
    }
    if (facts.imex.other_channel) {
        const bool ours = open.size() == 1 && open.front() == *facts.imex.other_channel;
        if (!ours) return FabricPiece::other_channel;
    }
    return facts.imex.wanted && facts.imex.daemon == Seen::no ? FabricPiece::daemon : FabricPiece::none;
}

Found no_fabric_attribute(const DoctorFacts& facts) {
    if (!speaks(facts, FabricPiece::attribute)) return std::nullopt;
    return Diagnosis{weight_of(facts),
                     "no GPU here says that it exports fabric handles (attribute 128 is 0, or not known to the driver)",
                     "fabric handles need GPUs of one NVLink fabric and a driver that knows them (CUDA 12.4 or later); "
                     "within one machine file descriptors do the same"};
}

Found no_imex_major(const DoctorFacts& facts) {
    if (!speaks(facts, FabricPiece::major)) return std::nullopt;
    return Diagnosis{weight_of(facts),
                     "the GPU says it can export fabric handles, but /proc/devices has no nvidia-caps-imex-channels",
                     "load a kernel module that has IMEX channels (550.54 or later), of the library's own version"};
}

Found no_imex_channel(const DoctorFacts& facts) {
    if (!speaks(facts, FabricPiece::file)) return std::nullopt;
    return Diagnosis{weight_of(facts),
                     fmt::format("the GPU says it can export fabric handles, but there is no channel file in {} "
                                 "(nvidia-caps-imex-channels has major number {}): creating such memory fails with 800",
                                 folder, facts.machine.imex_channels_major),
                     "only for sharing between nodes: nvidia-modprobe -c 0, or the driver option "
                     "NVreg_CreateImexChannel0=1; in a container: --device /dev/nvidia-caps-imex-channels/channel0"};
}

Found foreign_imex_channel(const DoctorFacts& facts) {
    if (!speaks(facts, FabricPiece::other_device)) return std::nullopt;
    const ImexChannel& channel = facts.imex.channels.front();
    const std::string what =
        channel.major < 0 ? "no character device" : fmt::format("of the device with major number {}", channel.major);
    return Diagnosis{weight_of(facts),
                     fmt::format("{}/channel{} is {}, and the driver's channels have {}", folder, channel.number, what,
                                 facts.machine.imex_channels_major),
                     "the number changes when the driver is loaded anew: remove the file, and make it again with "
                     "nvidia-modprobe -c 0; containers get it when they start"};
}

Found forbidden_imex_channel(const DoctorFacts& facts) {
    if (!speaks(facts, FabricPiece::permission)) return std::nullopt;
    std::string why;
    for (const ImexChannel& channel : facts.imex.channels) {
        if (is_the_drivers(facts, channel)) {
            why += fmt::format("{}channel{}: {}", why.empty() ? "" : "; ", channel.number, channel.failure);
        }
    }
    return Diagnosis{weight_of(facts), fmt::format("no channel file in {} can be opened ({})", folder, why),
                     "chgrp and chmod g+rw the channel of this user's group (a channel is a right: who may open it "
                     "shares memory with all who may); in a container: --device, or a rule of its device cgroup"};
}

Found no_imex_daemon(const DoctorFacts& facts) {
    if (!speaks(facts, FabricPiece::daemon)) return std::nullopt;
    bool tried = false;
    const ExportFinding* const failed = failed_try(facts, ExportKinds::fabric, tried);
    const char* const remedy =
        "systemctl start nvidia-imex on every node of the fabric, all with the same nodes_config.cfg; nvidia-imex-ctl "
        "-N shows who is connected; a daemon of the host is not seen from a container";
    if (failed == nullptr) {
        return Diagnosis{Weight::warning,
                         "fabric handles work within this machine, but no process is named nvidia-imex: other nodes "
                         "will not be reached",
                         remedy};
    }
    return Diagnosis{weight_of(facts),
                     fmt::format("fabric handles fail though {} can be opened: {}; and no process is named nvidia-imex",
                                 list(open_channels(facts)), what_failed(*failed)),
                     remedy};
}

Found fabric_fails(const DoctorFacts& facts) {
    if (!speaks(facts, FabricPiece::round_trip)) return std::nullopt;
    bool tried = false;
    const ExportFinding* const failed = failed_try(facts, ExportKinds::fabric, tried);
    return Diagnosis{weight_of(facts),
                     fmt::format("memory does not go out and back by a fabric handle, though {} can be opened: {}",
                                 list(open_channels(facts)), failed != nullptr ? what_failed(*failed) : "unknown"),
                     "see that the GPU has joined its fabric (nvidia-smi -q: Fabric, State), that nvidia-fabricmanager "
                     "runs where there are switches and nvidia-imex between nodes (nvidia-imex-ctl -N), and the "
                     "kernel's log (dmesg)"};
}

Found other_imex_channel(const DoctorFacts& facts) {
    if (!speaks(facts, FabricPiece::other_channel)) return std::nullopt;
    const std::vector<int> open = open_channels(facts);
    const int other = *facts.imex.other_channel;
    const bool among = std::find(open.begin(), open.end(), other) != open.end();
    const char* const remedy =
        "give both ends the same channel and no other: --device /dev/nvidia-caps-imex-channels/channelN";
    if (among) {
        return Diagnosis{Weight::warning,
                         fmt::format("the other end has channel{}, and this one may open {}: nothing says which the "
                                     "driver takes",
                                     other, list(open)),
                         remedy};
    }
    return Diagnosis{Weight::problem,
                     fmt::format("the other end has channel{}, and this one {}: what one exports the other cannot "
                                 "import",
                                 other, open.empty() ? "may open none" : "has " + list(open)),
                     remedy};
}

Found posix_fd_fails(const DoctorFacts& facts) {
    bool tried = false;
    const ExportFinding* const failed = failed_try(facts, ExportKinds::posix_fd, tried);
    if (failed == nullptr) return std::nullopt;
    return Diagnosis{Weight::problem,
                     "the GPU says that it exports memory by file descriptors (attribute 103), but it does not go out "
                     "and back: " +
                         what_failed(*failed),
                     "share frames through memory of the host (SharedFrameRing), and see whether a sandbox forbids "
                     "ioctl or the passing of descriptors; else the kernel's log (dmesg)"};
}

}  // namespace isthmus::tools
