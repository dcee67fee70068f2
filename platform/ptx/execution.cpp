// SPDX-License-Identifier: Apache-2.0
// One launch: blocks in turns on each thread that takes part, and the first fault.
#include "execution.hpp"

#include "stuck_blocks.hpp"
#include "warp_execution.hpp"

#include <cfenv>
#include <new>

namespace isthmus::ptx {
namespace {

thread_local Worker* current = nullptr;

// Instructions of a warp before the next one has its turn, and blocks of a thread that may wait for each other.
constexpr std::uint64_t steps_of_warp = 1 << 14;
constexpr std::size_t most_resident = 256;

std::string named(const Dimensions& at) {
    return "(" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " + std::to_string(at.z) + ")";
}

}  // namespace

std::string place_of(const Warp& warp, const Op& op, std::uint32_t lane) {
    const Execution::State& state = *warp.worker->state;
    const Dimensions& block = state.shape.block;
    const std::uint32_t thread = warp.number * lanes + lane;
    std::string out = "kernel " + state.entry->name;
    if (warp.now.frame != nullptr && !warp.now.frame->function->is_entry) {
        out += " in function " + warp.now.frame->function->name;
    }
    out += ", PTX line " + std::to_string(op.line);
    if (op.source.file != 0) {
        const auto file = state.code->files.find(op.source.file);
        out += " (" + (file == state.code->files.end() ? std::string("source") : file->second) + ":" +
               std::to_string(op.source.line) + ")";
    }
    return out + ", block " + named(warp.block->at) + ", thread " +
           named({thread % block.x, thread / block.x % block.y, thread / block.x / block.y});
}

namespace {

class BlockRuns {
public:
    explicit BlockRuns(Worker& worker) : worker_(worker), state_(*worker.state) {}

    void run() {
        while (!state_.stopped.load(std::memory_order_relaxed)) {
            std::unique_ptr<Block> block = next();
            if (!block) return;
            worker_.resident.push_front(std::move(block));
            const bool finished = pass(*worker_.resident.front());
            if (worker_.stop) {
                state_.stopped.store(true, std::memory_order_relaxed);
                return;
            }
            block = std::move(worker_.resident.front());
            worker_.resident.pop_front();
            if (finished) {
                block->cluster->blocks[block->rank] = nullptr;
                block->cluster.reset();
                spare_ = std::move(block);
            } else {
                worker_.resident.push_back(std::move(block));
                state_.memory->pause();
            }
        }
    }

private:
    // A new block as long as there are such and room for it, so that blocks can wait for each other.
    std::unique_ptr<Block> next() {
        const std::size_t room = state_.shape.cooperative ? ~std::size_t{0} : most_resident;
        const bool starts = worker_.resident.size() < room && (worker_.resident.empty() || ++passes_ % 4 == 0);
        if (starts) {
            const std::uint64_t number = state_.next_block.fetch_add(1, std::memory_order_relaxed);
            if (number < state_.blocks / cluster_blocks_) return started_cluster(number);
            state_.next_block.store(state_.blocks, std::memory_order_relaxed);
        }
        if (worker_.resident.empty()) return nullptr;
        std::unique_ptr<Block> block = std::move(worker_.resident.front());
        worker_.resident.pop_front();
        return block;
    }

    // The first block of a cluster; the others are resident from here on. The launch counts clusters.
    std::unique_ptr<Block> started_cluster(std::uint64_t number) {
        const Dimensions &grid = state_.shape.grid, &size = state_.shape.cluster;
        const std::uint64_t columns = grid.x / size.x, rows = grid.y / size.y;
        const Dimensions corner = {static_cast<std::uint32_t>(number % columns) * size.x,
                                   static_cast<std::uint32_t>(number / columns % rows) * size.y,
                                   static_cast<std::uint32_t>(number / columns / rows) * size.z};
        auto cluster = std::make_shared<Cluster>();
        cluster->blocks.resize(cluster_blocks_);
        cluster->threads = static_cast<std::uint32_t>(cluster_blocks_) * state_.threads;
        std::unique_ptr<Block> first;
        for (std::uint32_t rank = 0; rank < cluster_blocks_; ++rank) {
            const Dimensions at = {corner.x + rank % size.x, corner.y + rank / size.x % size.y,
                                   corner.z + rank / size.x / size.y};
            std::unique_ptr<Block> block = started(at);
            block->rank = rank;
            block->cluster = cluster;
            cluster->blocks[rank] = block.get();
            if (rank == 0) {
                first = std::move(block);
            } else {
                worker_.resident.push_back(std::move(block));
            }
        }
        return first;
    }

    std::unique_ptr<Block> started(const Dimensions& at) {
        std::unique_ptr<Block> block = spare_ ? std::move(spare_) : std::make_unique<Block>();
        const Dimensions& grid = state_.shape.grid;
        block->number = at.x + std::uint64_t{grid.x} * (at.y + std::uint64_t{grid.y} * at.z);
        block->at = at;
        block->mbarriers.clear();
        block->threads = state_.threads;
        block->exited = 0;
        block->shared.assign(std::size_t{state_.entry->shared_bytes} + state_.shape.dynamic_shared_bytes, std::byte{0});
        block->shared_written.assign(worker_.finds_uninitialised ? block->shared.size() : 0, std::byte{0});
        block->barriers = {};
        const std::uint32_t count = (state_.threads + lanes - 1) / lanes;
        while (block->warps.size() < count) block->warps.emplace_back();
        for (std::uint32_t index = 0; index < count; ++index) {
            Warp& warp = block->warps[index];
            const std::uint32_t left = state_.threads - index * lanes;
            warp.block = block.get();
            warp.worker = &worker_;
            warp.number = index;
            start_warp(warp, *state_.function, left >= lanes ? ~LaneMask{0} : (LaneMask{1} << left) - 1,
                       state_.local_bytes);
        }
        return block;
    }

    // Each warp once; whether all have ended.
    bool pass(Block& block) {
        worker_.windows.assign(worker_.windows.size(), {});
        worker_.textures.clear();
        block.progressed = false;
        bool finished = true, quiet = true;
        for (Warp& warp : block.warps) {
            if (warp.finished) continue;
            worker_.warp = &warp;
            const Outcome outcome = run_warp(warp, steps_of_warp);
            if (worker_.stop || state_.stopped.load(std::memory_order_relaxed)) return false;
            finished = finished && outcome == Outcome::finished;
            const bool only_waits = outcome == Outcome::out_of_steps ? warp.yields : outcome == Outcome::blocked;
            quiet = quiet && only_waits;
        }
        Cluster& cluster = *block.cluster;
        cluster.idle_passes = finished || block.progressed ? 0 : cluster.idle_passes + 1;
        const std::uint64_t others = cluster_blocks_ - 1;
        if (cluster.idle_passes > 2 * others) deadlock(block);
        if (!quiet) cluster.disturb();
        if (quiet && ++cluster.quiet_passes >= cluster.next_look) look_for_endless_waits(cluster);
        return finished;
    }

    Worker& worker_;
    Execution::State& state_;
    std::unique_ptr<Block> spare_;
    const std::uint64_t cluster_blocks_ = state_.cluster_blocks;
    std::uint64_t passes_ = 0;
};

}  // namespace

void fail(Warp& warp, const Op& op, std::uint32_t lane, FaultKind kind, const std::string& why) {
    Worker& worker = *warp.worker;
    worker.stop = true;
    const std::lock_guard lock(worker.state->mutex);
    if (worker.state->fault.kind != FaultKind::none) return;
    worker.state->fault = {kind, place_of(warp, op, lane) + ": " + why};
}

Execution::Execution(const Program& program, const Entry& entry, const ExecutionShape& shape,
                     std::span<const std::byte> parameters, Memory& memory)
    : state_(std::make_unique<State>()) {
    State& s = *state_;
    s.program = &program;
    s.code = &program.code();
    s.entry = &entry;
    for (std::size_t at = 0; at < s.code->entries.size(); ++at) {
        if (&s.code->entries[at] == &entry) s.function = &s.code->functions[s.code->entry_functions[at]];
    }
    s.shape = shape;
    if (s.shape.multiprocessors == 0) s.shape.multiprocessors = 1;
    s.parameters.assign(parameters.begin(), parameters.end());
    s.parameters.resize(std::max<std::size_t>(s.parameters.size(), entry.parameter_bytes));
    s.memory = &memory;
    s.blocks = std::uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
    s.cluster_blocks = std::uint64_t{shape.cluster.x} * shape.cluster.y * shape.cluster.z;
    s.threads = shape.block.x * shape.block.y * shape.block.z;
    s.local_bytes = s.code->local_bytes_needed;
    if (s.function == nullptr || entry.refusal.refused()) {
        s.stopped = true;
        s.fault = {FaultKind::illegal_instruction, "kernel " + entry.name + " cannot run: " + entry.refusal.what};
    }
}

Execution::~Execution() = default;

void Execution::run() {
    Worker* worker = nullptr;
    try {
        const std::lock_guard lock(state_->mutex);
        state_->workers.push_back(std::make_unique<Worker>());
        worker = state_->workers.back().get();
        worker->windows.resize(state_->code->memory_slots);
    } catch (const std::bad_alloc&) {
        return out_of_memory();
    }
    worker->state = state_.get();
    worker->finds_uninitialised = state_->shape.finds_uninitialised;
    current = worker;
    std::fenv_t environment;
    std::fegetenv(&environment);
    std::fesetenv(FE_DFL_ENV);
    try {
        BlockRuns(*worker).run();
    } catch (const std::bad_alloc&) {
        out_of_memory();
    }
    std::fesetenv(&environment);
    current = nullptr;
    const std::lock_guard lock(state_->mutex);
    state_->thread_instructions += worker->thread_instructions;
}

void Execution::out_of_memory() {
    state_->stopped.store(true, std::memory_order_relaxed);
    const std::lock_guard lock(state_->mutex);
    if (state_->fault.kind != FaultKind::none) return;
    state_->fault.kind = FaultKind::out_of_memory;
    state_->fault.message = "out of memory";  // so short that it needs no memory itself
}

void Execution::fail_here(const std::string& why) {
    std::fesetenv(FE_DFL_ENV);
    state_->stopped.store(true, std::memory_order_relaxed);
    if (current == nullptr || current->warp == nullptr) return;
    Warp& warp = *current->warp;
    const Op* const op = current->op;
    current = nullptr;
    if (op == nullptr) return;
    fail(warp, *op, static_cast<std::uint32_t>(std::countr_zero(warp.now.mask | (LaneMask{1} << 31))),
         FaultKind::illegal_address, why);
}

const Fault& Execution::fault() const noexcept {
    return state_->fault;
}

std::uint64_t Execution::thread_instructions() const noexcept {
    return state_->thread_instructions;
}

}  // namespace isthmus::ptx
