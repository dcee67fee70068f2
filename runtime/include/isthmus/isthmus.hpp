// All of isthmus.
#pragma once

#include <isthmus/access.hpp>
#include <isthmus/allocator.hpp>
#include <isthmus/allocator_adaptors.hpp>
#include <isthmus/buffer.hpp>
#include <isthmus/callback_allocator.hpp>
#include <isthmus/capability.hpp>
#include <isthmus/copy.hpp>
#include <isthmus/device.hpp>
#include <isthmus/event.hpp>
#include <isthmus/facts.hpp>
#include <isthmus/graph.hpp>
#include <isthmus/hints.hpp>
#include <isthmus/host_view.hpp>
#include <isthmus/kernel.hpp>
#include <isthmus/log.hpp>
#include <isthmus/memory_kind.hpp>
#include <isthmus/memory_pool.hpp>
#include <isthmus/placement.hpp>
#include <isthmus/result.hpp>
#include <isthmus/runtime.hpp>
#include <isthmus/scoped_allocator.hpp>
#include <isthmus/sharing_use.hpp>
#include <isthmus/stream.hpp>
#include <isthmus/wait.hpp>
