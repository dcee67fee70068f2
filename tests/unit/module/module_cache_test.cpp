// SPDX-License-Identifier: Apache-2.0
// Records of compiled PTX: what is read back, and what is not. // keeps W8
#include "module_cache.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace {

using namespace isthmus::detail;

const std::string ptx = ".version 8.0 .target sm_80 .entry a() { ret; }";

std::vector<std::byte> some_code() {
    std::vector<std::byte> code;
    for (int at = 0; at < 100; ++at) code.push_back(static_cast<std::byte>(at));
    return code;
}

TEST(CacheRecord, ComesBackForTheSameTextDriverAndDeviceOnly) {
    const std::vector<std::byte> code = some_code();
    const std::vector<std::byte> record = cache_record(ptx, 13000, 90, code);
    const auto found = cubin_of(record, ptx, 13000, 90);
    ASSERT_TRUE(found.has_value());
    EXPECT_TRUE(std::equal(found->begin(), found->end(), code.begin(), code.end()));
    EXPECT_FALSE(cubin_of(record, ptx, 13010, 90).has_value());
    EXPECT_FALSE(cubin_of(record, ptx, 13000, 80).has_value());
    EXPECT_FALSE(cubin_of(record, ptx + " ", 13000, 90).has_value());
    std::string other = ptx;
    other.back() = ' ';
    EXPECT_FALSE(cubin_of(record, other, 13000, 90).has_value());
    EXPECT_FALSE(cubin_of(cache_record(ptx, 13000, 90, {}), ptx, 13000, 90).has_value());
}

TEST(CacheRecord, WithAnyByteChangedOrMissingIsIgnored) {
    const std::vector<std::byte> record = cache_record(ptx, 13000, 90, some_code());
    for (std::size_t at = 0; at < record.size(); ++at) {
        std::vector<std::byte> changed = record;
        changed[at] ^= std::byte{1};
        EXPECT_FALSE(cubin_of(changed, ptx, 13000, 90).has_value()) << at;
        const std::span<const std::byte> cut(record.data(), at);
        EXPECT_FALSE(cubin_of(cut, ptx, 13000, 90).has_value()) << at;
    }
}

struct Folder {
    Folder() {
        char name[] = "/tmp/isthmus-module-cache-XXXXXX";
        path = ::mkdtemp(name);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string path;
};

TEST(ModuleCache, KeepsOneFileAndReplacesADamagedOne) {
    const Folder folder;
    const ModuleCache cache(folder.path, ptx, 13000, 90);
    EXPECT_FALSE(cache.read().has_value());
    cache.write(some_code());
    EXPECT_EQ(cache.read(), some_code());
    const std::string file = folder.path + '/' + cache_file_name(ptx, 13000, 90);
    std::filesystem::resize_file(file, 50);
    EXPECT_FALSE(cache.read().has_value());
    cache.write(some_code());
    EXPECT_EQ(cache.read(), some_code());
    std::size_t files = 0;
    for ([[maybe_unused]] const auto& one : std::filesystem::directory_iterator(folder.path)) ++files;
    EXPECT_EQ(files, 1u);
}

TEST(ModuleCache, RunsNoCodeThatOthersMayWrite) {
    const Folder folder;
    const ModuleCache cache(folder.path, ptx, 13000, 90);
    cache.write(some_code());
    const std::string file = folder.path + '/' + cache_file_name(ptx, 13000, 90);
    ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
    EXPECT_FALSE(cache.read().has_value());
    ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
    EXPECT_TRUE(cache.read().has_value());
    ASSERT_EQ(::rename(file.c_str(), (file + ".there").c_str()), 0);
    ASSERT_EQ(::symlink((file + ".there").c_str(), file.c_str()), 0);
    EXPECT_FALSE(cache.read().has_value());
}

TEST(ModuleCache, WithoutAFolderKeepsNothing) {
    const ModuleCache cache("/nonexistent/folder", ptx, 13000, 90);
    cache.write(some_code());
    EXPECT_FALSE(cache.read().has_value());
}

}  // namespace
