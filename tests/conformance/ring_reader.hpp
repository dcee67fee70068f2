// SPDX-License-Identifier: Apache-2.0
// A reader of a shared ring in the same process.
#pragma once

#include <isthmus/ipc/shared_frame_ring.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace conformance {

// As received over a transport: bytes and descriptors.
template <class T>
isthmus::SharedFrameReader<T> reader_of(isthmus::Device& device, isthmus::SharedFrameRing<T>& ring) {
    isthmus::SharedRingDescriptor admitted = ring.admit().value();
    std::vector<isthmus::FileDescriptor> fds;
    const std::vector<std::byte> bytes(admitted.bytes().begin(), admitted.bytes().end());
    for (isthmus::FileDescriptor& fd : admitted.release_fds()) fds.push_back(std::move(fd));
    auto received = isthmus::SharedRingDescriptor::received(bytes, std::move(fds)).value();
    return isthmus::SharedFrameReader<T>::open(device, std::move(received)).value();
}

}  // namespace conformance
