// SPDX-License-Identifier: Apache-2.0
#include "device_work.hpp"

#include "latency_kernel.hpp"

#include <isthmus/atomic_ref.hpp>
#include <isthmus/concurrent/service.hpp>
#include <isthmus/graph.hpp>

#include <chrono>
#include <optional>
#include <utility>

namespace isthmus::tools::latency {
namespace {

constexpr std::uint32_t mutant_turn = 3;  // from this turn on: it may be skipped itself

// What the turns of all kinds of work have in common.
struct Setting {
    Wait wait;
    Mutant mutant = Mutant::none;

    std::uint32_t salt(std::uint32_t turn) const noexcept {
        return turn + (mutant == Mutant::wrong_answer && turn >= mutant_turn ? 1 : 0);
    }
    bool leaves_out(std::uint32_t turn) const noexcept { return mutant == Mutant::no_answer && turn >= mutant_turn; }
};

Result<void> done(const Result<LaunchReport>& report) {
    if (!report) return report.error();
    return {};
}

// Launches and graphs: the buffer is viewed before and after, which waits for the device.
class ViewedWork : public DeviceWork {
public:
    ViewedWork(const Stream& stream, Buffer<std::uint32_t> words, const Setting& setting)
        : setting_(setting), stream_(stream), words_(std::move(words)) {}

    Result<void> submit(std::uint32_t turn) override {
        {
            Result<HostView<std::uint32_t>> view = words_.write_on_host(setting_.wait);
            if (!view) return std::move(view).error();
            for (std::size_t at = 0; at < view->size(); ++at) {
                (*view)[at] = question(turn, static_cast<std::uint32_t>(at));
            }
        }
        return setting_.leaves_out(turn) ? Result<void>{} : give(setting_.salt(turn));
    }
    Result<void> wait() override {
        Result<HostView<const std::uint32_t>> view = std::as_const(words_).read_on_host(setting_.wait);
        if (!view) return std::move(view).error();
        view_.emplace(std::move(view).value());
        return {};
    }
    Result<bool> view(std::uint32_t turn) override {
        bool right = true;
        for (std::size_t at = 0; at < view_->size(); ++at) {
            right &= (*view_)[at] == answer(question(turn, static_cast<std::uint32_t>(at)), turn);
        }
        view_.reset();
        return right;
    }
    const BufferBase& buffer() const noexcept override { return words_; }

protected:
    virtual Result<void> give(std::uint32_t salt) = 0;
    std::uint32_t items() const noexcept { return static_cast<std::uint32_t>(words_.size()); }

    Setting setting_;
    Stream stream_;
    Buffer<std::uint32_t> words_;

private:
    std::optional<HostView<const std::uint32_t>> view_{};  // between wait() and view(); declared last: closes first
};

class LaunchWork final : public ViewedWork {
public:
    using ViewedWork::ViewedWork;

private:
    Result<void> give(std::uint32_t salt) override {
        return done(stream_.launch(latency_answer, items(), words_, salt));
    }
};

class GraphWork final : public ViewedWork {
public:
    using Node = KernelNode<void(Index, View<std::uint32_t>, std::uint32_t)>;

    static Result<std::unique_ptr<DeviceWork>> make(Stream stream, Buffer<std::uint32_t> words,
                                                    const Setting& setting) {
        Result<Capture> capture = stream.begin_capture();
        if (!capture) return std::move(capture).error();
        Result<Node> node =
            capture->launch(latency_answer, static_cast<std::uint32_t>(words.size()), words, std::uint32_t{0});
        if (!node) return std::move(node).error();
        Result<Graph> graph = capture->end();
        if (!graph) return std::move(graph).error();
        Result<GraphInstance> instance = graph->instantiate();
        if (!instance) return std::move(instance).error();
        return std::unique_ptr<DeviceWork>(new GraphWork(stream, std::move(words), setting, *node, *instance));
    }

private:
    GraphWork(const Stream& stream, Buffer<std::uint32_t> words, const Setting& setting, Node node,
              const GraphInstance& instance)
        : ViewedWork(stream, std::move(words), setting), node_(node), instance_(instance) {}

    Result<void> give(std::uint32_t salt) override {
        if (Result<void> set = instance_.set_arguments(node_, items(), words_, salt); !set) return set;
        return stream_.launch(instance_);
    }

    Node node_;
    GraphInstance instance_;
};

// The buffer stays open for both sides: the service works on it between a request and its reply.
class ServiceWork final : public DeviceWork {
public:
    using Answering = Service<TurnRequest, std::uint32_t>;

    static Result<std::unique_ptr<DeviceWork>> make(Device& device, Buffer<std::uint32_t> words,
                                                    const Setting& setting) {
        Result<ConcurrentView<std::uint32_t>> view = words.concurrent_on_host(setting.wait);
        if (!view) return std::move(view).error();
        Result<Answering> service = Answering::start(device, latency_serve, words);
        if (!service) return std::move(service).error();
        return std::unique_ptr<DeviceWork>(
            new ServiceWork(std::move(words), std::move(view).value(), std::move(service).value(), setting));
    }

    Result<void> submit(std::uint32_t turn) override {
        for (std::size_t at = 0; at < view_.size(); ++at) {
            word(at).store_relaxed(question(turn, static_cast<std::uint32_t>(at)));
        }
        sent_ = setting_.leaves_out(turn) ? unanswered_turn : turn;
        return service_.mailbox().send({sent_, setting_.salt(turn)}, setting_.wait);
    }
    Result<void> wait() override {
        Result<std::uint32_t> reply = service_.mailbox().receive(setting_.wait);
        if (!reply) return std::move(reply).error();
        replied_ = *reply;
        return {};
    }
    Result<bool> view(std::uint32_t turn) override {
        bool right = replied_ == sent_;
        for (std::size_t at = 0; at < view_.size(); ++at) {
            right &= word(at).load_relaxed() == answer(question(turn, static_cast<std::uint32_t>(at)), turn);
        }
        return right;
    }
    const BufferBase& buffer() const noexcept override { return words_; }
    Result<void> end() override { return service_.stop(setting_.wait); }

private:
    ServiceWork(Buffer<std::uint32_t> words, ConcurrentView<std::uint32_t> view, Answering service,
                const Setting& setting)
        : setting_(setting), words_(std::move(words)), view_(std::move(view)), service_(std::move(service)) {}

    AtomicRef<std::uint32_t, AtomicSet::load_store> word(std::size_t at) const noexcept {
        return AtomicRef<std::uint32_t, AtomicSet::load_store>(view_.data()[at]);
    }

    Setting setting_;
    std::uint32_t sent_ = 0;
    std::uint32_t replied_ = 0;
    Buffer<std::uint32_t> words_;
    ConcurrentView<std::uint32_t> view_;
    Answering service_;  // declared last: ends before its buffer closes
};

}  // namespace

Result<std::unique_ptr<DeviceWork>> make_work(Device& device, const Request& request, std::optional<MemoryKind> kind) {
    const auto give_up = std::chrono::duration<double>(request.give_up_seconds);
    const Setting setting{Wait(give_up), request.mutant};
    SharedUse use;
    use.prefer = Prefer::latency;
    use.kind = kind;
    Result<Buffer<std::uint32_t>> words = device.allocate_shared<std::uint32_t>(request.bytes / 4, use);
    if (!words) return std::move(words).error();
    if (request.work == WorkKind::service) return ServiceWork::make(device, std::move(words).value(), setting);
    // The highest priority: blocks of other streams' kernels are begun after those of the loop's.
    Result<Stream> stream = device.create_stream({.priority = -1});
    if (!stream) return std::move(stream).error();
    if (request.work == WorkKind::graph) return GraphWork::make(*stream, std::move(words).value(), setting);
    return std::unique_ptr<DeviceWork>(new LaunchWork(*stream, std::move(words).value(), setting));
}

}  // namespace isthmus::tools::latency
