// SPDX-License-Identifier: Apache-2.0
// Shared by tests of channels: what a process holds (open files, mapped shared memory), counted before and after; a
// directory; long timeouts.
#pragma once

#include <isthmus/ipc/channel.hpp>

#include <gtest/gtest.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>

// A timeout that a busy machine meets, too.
inline isthmus::ChannelOptions patient() {
    isthmus::ChannelOptions options;
    options.step_timeout = std::chrono::seconds(20);
    return options;
}

inline int open_files() {
    int count = 0;
    DIR* directory = ::opendir("/proc/self/fd");
    while (::readdir(directory) != nullptr) ++count;
    ::closedir(directory);
    return count;
}

inline int files_kept_by_exec() {
    int count = 0;
    for (int fd = 0; fd < 1024; ++fd) {
        const int flags = ::fcntl(fd, F_GETFD);
        count += flags >= 0 && (flags & FD_CLOEXEC) == 0 ? 1 : 0;
    }
    return count;
}

inline int mapped_memfds() {
    int count = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) count += line.find("/memfd:") != std::string::npos ? 1 : 0;
    return count;
}

// Fails the test where something is left.
class NothingLeft {
public:
    NothingLeft() : files_(open_files()), memfds_(mapped_memfds()) {}
    NothingLeft(const NothingLeft&) = delete;
    NothingLeft& operator=(const NothingLeft&) = delete;
    ~NothingLeft() { check(); }
    void check() const {
        EXPECT_EQ(open_files(), files_) << "descriptors are left open";
        EXPECT_EQ(mapped_memfds(), memfds_) << "shared memory is left mapped";
    }

private:
    int files_;
    int memfds_;
};

// An empty directory of mode 0700; removed with its contents.
class OwnDirectory {
public:
    OwnDirectory() {
        char path[] = "/tmp/isthmus-channel-XXXXXX";
        if (const char* made = ::mkdtemp(path)) path_ = made;
    }
    OwnDirectory(const OwnDirectory&) = delete;
    OwnDirectory& operator=(const OwnDirectory&) = delete;
    ~OwnDirectory() {
        ::unlink((path_ + "/channel").c_str());
        ::rmdir(path_.c_str());
    }
    const std::string& path() const { return path_; }
    int entries() const {
        int count = -2;  // . and ..
        DIR* directory = ::opendir(path_.c_str());
        while (::readdir(directory) != nullptr) ++count;
        ::closedir(directory);
        return count;
    }

private:
    std::string path_;
};
