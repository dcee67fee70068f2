// SPDX-License-Identifier: Apache-2.0
// Includes every public header of isthmus.
#pragma once

#if defined(__CUDACC__)
#error \
    "isthmus.hpp is for programs, which the host's compiler reads. nvcc reads kernel sources alone: put the kernels into a file of their own, include <isthmus/kernel.hpp> there, and add it with isthmus_add_kernels() (CMake) or the kernel recipe (Meson); docs/kernels.md"
#endif

#include <isthmus/access.hpp>
#include <isthmus/adopt.hpp>
#include <isthmus/allocator.hpp>
#include <isthmus/allocator_adaptors.hpp>
#include <isthmus/atomic_pair.hpp>
#include <isthmus/atomic_ref.hpp>
#include <isthmus/atomic_span.hpp>
#include <isthmus/buffer.hpp>
#include <isthmus/buffer_part.hpp>
#include <isthmus/callback_allocator.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/completion_queue.hpp>
#include <isthmus/concurrent/atomic_wait.hpp>
#include <isthmus/concurrent/frame_ring.hpp>
#include <isthmus/concurrent/mailbox.hpp>
#include <isthmus/concurrent/service.hpp>
#include <isthmus/concurrent/sharded_counter.hpp>
#include <isthmus/concurrent_view.hpp>
#include <isthmus/copy.hpp>
#include <isthmus/current.hpp>
#include <isthmus/device.hpp>
#include <isthmus/event.hpp>
#include <isthmus/export_finding.hpp>
#include <isthmus/facts.hpp>
#include <isthmus/file_descriptor.hpp>
#include <isthmus/graph.hpp>
#include <isthmus/hints.hpp>
#include <isthmus/host_view.hpp>
#include <isthmus/ipc/channel.hpp>
#include <isthmus/ipc/export_probe.hpp>
#include <isthmus/ipc/shared_event.hpp>
#include <isthmus/ipc/shared_frame_ring.hpp>
#include <isthmus/ipc/shared_memory.hpp>
#include <isthmus/kernel.hpp>
#include <isthmus/litmus.hpp>
#include <isthmus/log.hpp>
#include <isthmus/mapping/alias_fence.hpp>
#include <isthmus/mapping/growable_buffer.hpp>
#include <isthmus/mapping/mirrored_buffer.hpp>
#include <isthmus/mapping/multicast.hpp>
#include <isthmus/mapping/multimem.hpp>
#include <isthmus/mapping/paged_pool.hpp>
#include <isthmus/mapping/virtual_memory.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/memory_pool.hpp>
#include <isthmus/order_check.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/print.hpp>
#include <isthmus/read_back.hpp>
#include <isthmus/result.hpp>
#include <isthmus/runtime.hpp>
#include <isthmus/scoped_allocator.hpp>
#include <isthmus/share_method.hpp>
#include <isthmus/sharing_use.hpp>
#include <isthmus/stream.hpp>
#include <isthmus/uuid.hpp>
#include <isthmus/wait.hpp>
