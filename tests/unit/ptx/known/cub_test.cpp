// SPDX-License-Identifier: Apache-2.0
// CUB's block and device algorithms from the PTX that nvcc made of them, on the simulated machine that ISTHMUS_SIM
// names, beside the results of the CPU.
//     test_cub cub_blocks.ptx cub_device.ptx [options of GoogleTest]
#include <exports.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace isthmus::sim;

std::string blocks_ptx, device_ptx;  // set by main()

std::string content_of(const char* path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

template <class T>
class Array {
public:
    explicit Array(std::size_t count) : count_(count) {
        EXPECT_EQ(cuMemAlloc_v2(&address, count * sizeof(T)), 0);
        EXPECT_EQ(cuMemsetD8_v2(address, 0, count * sizeof(T)), 0);
    }
    explicit Array(const std::vector<T>& values) : Array(values.size()) {
        EXPECT_EQ(cuMemcpyHtoD_v2(address, values.data(), values.size() * sizeof(T)), 0);
    }
    Array(Array&&) = delete;
    ~Array() { EXPECT_EQ(cuMemFree_v2(address), 0); }
    std::vector<T> values() const {
        std::vector<T> out(count_);
        EXPECT_EQ(cuMemcpyDtoH_v2(out.data(), address, count_ * sizeof(T)), 0);
        return out;
    }
    Address address = 0;

private:
    std::size_t count_;
};

class Cub : public ::testing::Test {
protected:
    void SetUp() override {
        Context* context = nullptr;
        ASSERT_EQ(cuInit(0), 0);
        ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), 0);
        ASSERT_EQ(cuCtxSetCurrent(context), 0);
    }
    void TearDown() override {
        if (module_ != nullptr) {
            EXPECT_EQ(cuModuleUnload(module_), 0);
        }
        EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), 0);
    }
    void load(const std::string& text) {
        text_ = text;
        ASSERT_EQ(cuModuleLoadData(&module_, text_.c_str()), 0);
    }
    // The entry whose name has all these parts and not the other; exactly one must be there.
    Function* entry(std::initializer_list<const char*> parts, const char* without = nullptr) {
        Function* function = nullptr;
        int found = 0;
        const std::string before = ".entry ";
        for (std::size_t at = text_.find(before); at != std::string::npos; at = text_.find(before, at + 1)) {
            const std::size_t begin = at + before.size();
            const std::string name = text_.substr(begin, text_.find('(', begin) - begin);
            if (!std::all_of(parts.begin(), parts.end(),
                             [&](const char* part) { return name.find(part) != std::string::npos; })) {
                continue;
            }
            if (without != nullptr && name.find(without) != std::string::npos) continue;
            ++found;
            EXPECT_EQ(cuModuleGetFunction(&function, module_, name.c_str()), 0) << name;
        }
        EXPECT_EQ(found, 1) << *parts.begin();
        return function;
    }
    static unsigned threads_of(Function* function) {  // of a kernel with __launch_bounds__
        int threads = 0;
        EXPECT_EQ(cuFuncGetAttribute(&threads, 0 /* CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK */, function), 0);
        return static_cast<unsigned>(threads);
    }
    template <class... Arguments>
    static void launch(Function* function, unsigned grid, unsigned block, Arguments... arguments) {
        void* parameters[] = {&arguments..., nullptr};
        ASSERT_EQ(cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, nullptr, parameters, nullptr), 0);
        ASSERT_EQ(cuCtxSynchronize(), 0);
    }

private:
    Module* module_ = nullptr;
    std::string text_;
};

std::vector<int> numbers(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<int> out(count);
    for (int& number : out) number = static_cast<int>(random() % 20001) - 10000;
    return out;
}

TEST_F(Cub, BlocksAreReducedByEachAlgorithm) {
    load(blocks_ptx);
    constexpr int count = 1000;  // the last of 8 blocks has 104 of 128
    const std::vector<int> in = numbers(count, 1);
    std::vector<int> wanted(8);
    for (int at = 0; at < count; ++at) wanted[at / 128] += in[at];
    const Array<int> from(in);
    for (const char* const name : {"reduce_by_shuffles", "reduce_by_raking", "reduce_commutative"}) {
        const Array<int> to(std::size_t{8});
        launch(entry({name}), 8, 128, from.address, to.address, count);
        EXPECT_EQ(to.values(), wanted) << name;
    }
}

TEST_F(Cub, StructsAreReducedWithAFunctionOfTheUser) {
    load(blocks_ptx);
    struct Place {
        double value;
        int at;
    };
    std::vector<double> in(96 * 3);
    std::mt19937 random(2);
    for (double& value : in) value = static_cast<int>(random() % 50);  // the least occurs often: its first place counts
    const Array<double> from(in);
    const Array<Place> to(std::size_t{3});
    launch(entry({"least_of_block"}), 3, 96, from.address, to.address);
    const std::vector<Place> found = to.values();
    for (std::size_t block = 0; block < 3; ++block) {
        const auto begin = in.begin() + static_cast<std::ptrdiff_t>(96 * block), end = begin + 96;
        const auto least = std::min_element(begin, end);
        EXPECT_EQ(found[block].value, *least);
        EXPECT_EQ(found[block].at, least - in.begin());
    }
}

TEST_F(Cub, BlocksAreScannedThroughTransposedLoadsAndStores) {
    load(blocks_ptx);
    const std::vector<int> in = numbers(640, 3);
    std::vector<int> wanted(640);
    std::exclusive_scan(in.begin(), in.end(), wanted.begin(), 0);
    const Array<int> from(in);
    for (const char* const name : {"scan_by_warps", "scan_by_raking"}) {
        const Array<int> to(std::size_t{640}), total(std::size_t{1});
        launch(entry({name}), 1, 128, from.address, to.address, total.address);
        EXPECT_EQ(to.values(), wanted) << name;
        EXPECT_EQ(total.values()[0], wanted.back() + in.back()) << name;
    }
}

TEST_F(Cub, BlocksAreSortedWithTheirValues) {
    load(blocks_ptx);
    std::mt19937 random(4);
    std::vector<float> keys(512);
    std::vector<unsigned short> values(512);
    for (float& key : keys) key = static_cast<float>(random() % 300) - 150.5f;  // equal keys: the sort is stable
    std::iota(values.begin(), values.end(), static_cast<unsigned short>(0));
    std::vector<unsigned short> order = values;
    std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) { return keys[a] < keys[b]; });
    std::vector<float> sorted(512);
    std::transform(order.begin(), order.end(), sorted.begin(), [&](unsigned at) { return keys[at]; });
    const Array<float> key_array(keys);
    const Array<unsigned short> value_array(values);
    launch(entry({"sort_block"}, "down"), 1, 128, key_array.address, value_array.address);
    EXPECT_EQ(key_array.values(), sorted);
    EXPECT_EQ(value_array.values(), order);

    std::vector<std::uint64_t> wide(192);
    for (std::uint64_t& key : wide) key = std::uint64_t{random()} << 32 | random();
    const Array<std::uint64_t> wide_array(wide);
    launch(entry({"sort_block_down"}), 1, 64, wide_array.address);
    std::sort(wide.begin(), wide.end(), std::greater<>());
    EXPECT_EQ(wide_array.values(), wide);
}

// CUB's dispatch needs the CUDA runtime library. These tests launch its kernels as the dispatch of CUB 3.0 does.
class CubDevice : public Cub {
protected:
    void SetUp() override {
        Cub::SetUp();
        load(device_ptx);
        const Array<unsigned> out(std::size_t{6});
        launch(entry({"describe"}), 1, 1, out.address);
        const std::vector<unsigned> found = out.values();
        reduce_tile = found[0], scan_tile = found[1], single_tile = found[2], onesweep_tile = found[3];
        radix_bits = found[4], sum_threads = found[5];
        for (const unsigned value : found) ASSERT_NE(value, 0u);
    }
    unsigned reduce_tile = 0, scan_tile = 0, single_tile = 0, onesweep_tile = 0, radix_bits = 0, sum_threads = 0;
};

unsigned tiles_of(std::size_t count, unsigned tile) {
    return static_cast<unsigned>((count + tile - 1) / tile);
}

// cub::GridEvenShare<unsigned> after DispatchInit().
struct EvenShare {
    EvenShare(unsigned count, int most_blocks, unsigned tile)
        : total_tiles(static_cast<int>(tiles_of(count, tile))),
          num_items(count),
          grid_size(std::min(total_tiles, most_blocks)),
          block_offset(count),
          block_end(count) {
        const int tiles_of_block = total_tiles / grid_size;
        big_shares = total_tiles - tiles_of_block * grid_size;
        normal_share_items = static_cast<unsigned>(tiles_of_block) * tile;
        normal_base_offset = static_cast<unsigned>(big_shares) * tile;
        big_share_items = normal_share_items + tile;
    }
    int total_tiles, big_shares = 0;
    unsigned big_share_items = 0, normal_share_items = 0, normal_base_offset = 0, num_items;
    int grid_size;
    unsigned block_offset, block_end, block_stride = 0;
};
struct Nothing {};

TEST_F(CubDevice, ReducesInOneTileAndInSharesOfBlocks) {
    for (const unsigned count : {1u, 777u, 5 * reduce_tile + 333, 23 * reduce_tile + 1}) {
        const std::vector<int> in = numbers(count, count);
        const int wanted = std::accumulate(in.begin(), in.end(), 17);
        const Array<int> from(in), to(std::size_t{1});
        Function* const first = entry({"DeviceReduceSingleTileKernel", "EPKiPi"});
        Function* const second = entry({"DeviceReduceSingleTileKernel", "EPiS"});
        Function* const shares = entry({"DeviceReduceKernel"});
        launch(first, 1, threads_of(first), from.address, to.address, static_cast<int>(count), Nothing{}, 17,
               Nothing{});
        EXPECT_EQ(to.values()[0], wanted) << count;

        const EvenShare share(count, 7, reduce_tile);
        const auto blocks = static_cast<unsigned>(share.grid_size);
        const Array<int> parts(std::size_t{blocks}), again(std::size_t{1});
        launch(shares, blocks, threads_of(shares), from.address, parts.address, count, share, Nothing{}, Nothing{});
        launch(second, 1, threads_of(second), parts.address, again.address, share.grid_size, Nothing{}, 17, Nothing{});
        EXPECT_EQ(again.values()[0], wanted) << count;
    }
}

// Each block waits for what the blocks before it publish: decoupled look-back.
TEST_F(CubDevice, ScansWithBlocksThatLookBack) {
    Function* const prepare = entry({"DeviceScanInitKernel"});
    Function* const scan = entry({"DeviceScanKernel"});
    struct Value {  // cub::detail::InputValue<int>
        bool is_future = false;
        alignas(8) int value = 0;
        int unused = 0;
    };
    for (const unsigned count : {1u, scan_tile, 9 * scan_tile + 100, 150 * scan_tile - 1}) {
        const std::vector<int> in = numbers(count, count);
        std::vector<int> wanted(count);
        std::exclusive_scan(in.begin(), in.end(), wanted.begin(), 5);
        const unsigned tiles = tiles_of(count, scan_tile);
        const Array<int> from(in), to(std::size_t{count});
        const Array<std::uint64_t> state(std::size_t{tiles} + 32);
        launch(prepare, tiles_of(tiles, 128), 128, state.address, static_cast<int>(tiles));
        launch(scan, tiles, threads_of(scan), from.address, to.address, state.address, 0, Nothing{}, Value{false, 5},
               static_cast<int>(count));
        EXPECT_TRUE(to.values() == wanted) << count;
    }
}

TEST_F(CubDevice, SortsInOneTile) {
    std::mt19937 random(8);
    std::vector<unsigned> keys(single_tile - 3);
    for (unsigned& key : keys) key = static_cast<unsigned>(random());
    const Array<unsigned> from(keys), to(keys.size());
    Function* const sort = entry({"DeviceRadixSortSingleTileKernel"});
    launch(sort, 1, threads_of(sort), from.address, to.address, Address{0}, Address{0},
           static_cast<unsigned>(keys.size()), 0, 32, Nothing{});
    std::sort(keys.begin(), keys.end());
    EXPECT_TRUE(to.values() == keys);
}

TEST_F(CubDevice, SortsByPassesOverAllBlocks) {
    std::mt19937 random(9);
    std::vector<unsigned> keys(5 * onesweep_tile + 77);
    for (unsigned& key : keys) key = static_cast<unsigned>(random());
    const unsigned passes = tiles_of(32, radix_bits), digits = 1u << radix_bits;
    const auto count = static_cast<unsigned>(keys.size());
    const unsigned blocks = tiles_of(count, onesweep_tile);
    const Array<unsigned> first(keys), second(std::size_t{count}), bins(std::size_t{passes} * digits);
    const Array<int> look_back(std::size_t{blocks} * digits), counters(std::size_t{passes});
    Function* const histogram = entry({"DeviceRadixSortHistogramKernel"});
    Function* const sums = entry({"DeviceRadixSortExclusiveSumKernel"});
    Function* const pass_kernel = entry({"DeviceRadixSortOnesweepKernel"});
    launch(histogram, 3, threads_of(histogram), bins.address, first.address, count, 0, 32, Nothing{});
    launch(sums, passes, sum_threads, bins.address);
    Address from = first.address, to = second.address;
    for (unsigned pass = 0; pass < passes; ++pass) {
        ASSERT_EQ(cuMemsetD8_v2(look_back.address, 0, std::size_t{blocks} * digits * 4), 0);
        const auto bit = static_cast<int>(pass * radix_bits);
        launch(pass_kernel, blocks, threads_of(pass_kernel), look_back.address, counters.address + pass * 4, Address{0},
               bins.address + Address{pass} * digits * 4, to, from, Address{0}, Address{0}, static_cast<int>(count),
               bit, std::min(32 - bit, static_cast<int>(radix_bits)), Nothing{});
        std::swap(from, to);
    }
    std::sort(keys.begin(), keys.end());
    EXPECT_TRUE((from == first.address ? first : second).values() == keys);
}

// 0: the launch ended with 700.
int sum_of_too_short_an_input(Function* sum, unsigned threads, Address in, Address out) {
    int count = 200000, init = 0;
    Nothing none;
    void* parameters[] = {&in, &out, &count, &none, &init, &none, nullptr};
    if (cuLaunchKernel(sum, 1, 1, 1, threads, 1, 1, 0, nullptr, parameters, nullptr) != 0) return 1;
    return cuCtxSynchronize() == 700 ? 0 : 2;
}

// CUB's own loads are judged, too, and named.
TEST_F(CubDevice, AnInputThatIsTooShortIsAnIllegalAddress) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // the child starts the driver itself
    const Array<int> from(std::size_t{1000}), to(std::size_t{1});
    Function* const sum = entry({"DeviceReduceSingleTileKernel", "EPKiPi"});
    EXPECT_EXIT(std::_Exit(sum_of_too_short_an_input(sum, threads_of(sum), from.address, to.address)),
                ::testing::ExitedWithCode(0),
                "DeviceReduceSingleTileKernel.*behind the nearest allocation .device memory, 4000 bytes");
}

}  // namespace

int main(int argc, char** argv) {
    ::testing::InitGoogleTest(&argc, argv);
    if (argc != 3) return 2;
    blocks_ptx = content_of(argv[1]);
    device_ptx = content_of(argv[2]);
    // Older drivers take older texts; nothing here needs a new one.
    for (std::string* const text : {&blocks_ptx, &device_ptx}) {
        const std::size_t at = text->find(".version ");
        if (at == std::string::npos) return 2;
        text->replace(at, text->find('\n', at) - at, ".version 8.0");
    }
    return RUN_ALL_TESTS();
}
