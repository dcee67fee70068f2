// SPDX-License-Identifier: Apache-2.0
// A synthetic machine as a TurnClock: its turns take no real time, only that of now().
#pragma once

#include "synthetic.hpp"
#include "tune/clock.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace isthmus::tools::tune {

class SyntheticClock : public TurnClock {
public:
    // What was asked for; passes 0: host().
    struct Call {
        Way way;
        Role role = Role::reads;
        std::size_t bytes = 0;
        int passes = 0;
        friend bool operator==(const Call&, const Call&) = default;
    };

    explicit SyntheticClock(SyntheticMachine machine, const Noise& noise = {})
        : machine_(std::move(machine)), noise_(noise), random_(noise.seed) {}

    Result<double> turn(const Way& way, Role device, std::size_t bytes, int passes) override {
        return take({way, device, bytes, passes}, machine_.turn(way, device, static_cast<double>(bytes), passes));
    }
    Result<double> host(const Way& way, Role host, std::size_t bytes) override {
        return take({way, host, bytes, 0}, machine_.host(way, host, static_cast<double>(bytes)));
    }
    void renew(std::size_t bytes) override {
        ++renewed[bytes];
        std::erase_if(held_, [bytes](const auto& each) { return each.second == bytes; });
    }
    double now() override { return now_; }

    std::vector<Way> ways() const {
        std::vector<Way> ways;
        for (const WayCosts& costs : machine_.ways) ways.push_back(costs.way);
        return ways;
    }

    std::vector<Call> calls;
    std::optional<Way> broken;  // its turns fail
    double slower_from = 1e30;  // now() from which everything takes `slower` times as long
    double slower = 1;
    double places = 0;  // how much a buffer's place changes its turns, at most; 0.1: by a tenth, to either side
    std::map<std::size_t, int> renewed;  // calls, by size

private:
    // Of this buffer of the way, the same until the size is renewed.
    double place_of(const Call& call) {
        std::seed_seq seed{static_cast<unsigned>(call.way.kind), static_cast<unsigned>(call.way.locality),
                           static_cast<unsigned>(call.bytes), static_cast<unsigned>(renewed[call.bytes])};
        std::mt19937 random(seed);
        return 1 + std::uniform_real_distribution<double>(-places, places)(random);
    }

    Result<double> take(const Call& call, double seconds) {
        calls.push_back(call);
        if (broken && call.way == *broken) return Error(Code::out_of_memory, "there is none left");
        // An allocation and the first turns, which are not part of the time that is told.
        if (std::find(held_.begin(), held_.end(), std::pair(call.way.kind, call.bytes)) == held_.end()) {
            held_.emplace_back(call.way.kind, call.bytes);
            now_ += 20e-6 + 2 * seconds;
        }
        std::normal_distribution<double> spread;
        std::uniform_real_distribution<double> share(0, 1);
        if (noise_.deviation > 0) seconds *= std::max(1 + noise_.deviation * spread(random_), 0.5);
        if (share(random_) < noise_.outliers) seconds *= 10;
        if (places > 0) seconds *= place_of(call);
        if (now_ >= slower_from) seconds *= slower;
        now_ += seconds;
        return seconds;
    }

    SyntheticMachine machine_;
    Noise noise_;
    std::mt19937_64 random_;
    double now_ = 1000;  // any time
    std::vector<std::pair<MemoryKind, std::size_t>> held_;
};

}  // namespace isthmus::tools::tune
