#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads every #include and refuses those that no corridor allows (docs/architecture.md): the build keeps rooms apart by
include directories, this keeps them apart by name, "../" included. The rooms of runtime/ and their order: rooms.json.

usage: corridors.py SOURCE_ROOT [--self-test]
"""
import json
import os
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
SUFFIXES = ('.cpp', '.hpp', '.h', '.c', '.def')
BACKENDS = r'(platform/)?(cuda|cpu|sim)/'

# Where a file lies (the longest prefix counts), and what it may not include. "public" stands for the public headers of
# runtime/ROOM/include, "platform" for platform/ headers, "cuda" for the toolkit's, "backend" for the rooms of the
# backends, "abi" for what the CUDA backend and the simulator share. Files of a room of runtime/ are also checked
# against the order of the rooms.
RULES = {
    'runtime/vocabulary/': {'public', 'platform', 'cuda', 'backend', 'third-party', 'machines', 'abi'},
    'runtime/rules/': {'platform', 'cuda', 'backend', 'third-party', 'machines', 'operating-system', 'abi'},
    'runtime/order/': {'platform', 'cuda', 'backend', 'third-party', 'machines', 'operating-system', 'abi'},
    'runtime/': {'cuda', 'backend', 'third-party', 'machines', 'abi'},
    'platform/interface/': {'public', 'cuda', 'backend', 'third-party', 'machines', 'abi'},
    'platform/os/': {'public', 'cuda', 'backend', 'third-party', 'machines', 'abi'},
    'platform/table/': {'public', 'cuda', 'backend', 'third-party', 'machines', 'operating-system', 'abi'},
    'platform/cpu/': {'public', 'cuda', 'backend', 'third-party', 'machines', 'abi'},
    'platform/cuda/': {'public', 'cuda', 'backend', 'third-party', 'machines'},
    'platform/machines/': {'public', 'platform', 'cuda', 'backend', 'operating-system', 'abi'},
    'platform/sim/': {'public', 'platform', 'backend'},
    'platform/abi/': {'public', 'platform', 'cuda', 'backend', 'third-party', 'machines', 'operating-system'},
    'platform/driver_list.cpp': {'public', 'cuda', 'third-party', 'machines'},
    'kernels/': {'platform', 'cuda', 'backend', 'third-party', 'machines', 'operating-system', 'abi'},
    'tools/': {'platform', 'cuda', 'backend', 'abi'},
    # The simulator's counts: a layout that both sides read, without code of either.
    'tools/command/simulate/': {'platform', 'cuda', 'backend'},
    # They show machines other than this one, from their records: no runtime has those open.
    'tools/command/caps/caps_render.cpp': {'cuda', 'backend', 'abi'},
    'tools/command/caps/caps_screen.cpp': {'cuda', 'backend', 'abi'},
    'tools/command/caps/machines_page.cpp': {'cuda', 'backend', 'abi'},
    'bindings/': {'platform', 'cuda', 'backend', 'third-party', 'machines', 'abi'},
    # A header over the program's own NVTX and toolkit; nothing of the library includes it.
    'bindings/trace/include/isthmus/nvtx_streams.hpp': {'platform', 'backend', 'third-party', 'machines', 'abi'},
    'bindings/gstreamer/': {'platform', 'cuda', 'backend', 'third-party', 'abi'},  # records: as tools/
    'examples/': {'platform', 'cuda', 'backend', 'machines', 'abi'},
    # EGL images of a Jetson: a program's own use of the driver's API.
    'examples/nvmm_frames.cpp': {'platform', 'backend', 'machines', 'abi'},
    # NCCL takes the runtime API's current device.
    'examples/nccl_all_reduce.cpp': {'platform', 'backend', 'machines', 'abi'},
    'tests/conformance/': {'platform', 'cuda', 'backend', 'machines'},
}
# Public headers of every room, in addition to what their room may not include: they are installed, platform/ is not.
PUBLIC = {'platform', 'cuda', 'backend', 'third-party', 'machines', 'operating-system', 'abi'}
# Headers of platform/ that a place may include although it may not include others of platform/.
NAMED = {'runtime/rules/': {'platform/capability_table.hpp', 'platform/detect.hpp'},  # pure: they read capabilities
         'runtime/rules/copy_plan.hpp': {'platform/driver.hpp'}}                      # CopyDirection
OPERATING_SYSTEM = re.compile(r'^(sys/|linux/|unistd\.h|fcntl\.h|dlfcn\.h|pthread\.h|numa|signal\.h|poll\.h|sched\.h)')
THIRD_PARTY = re.compile(r'^(nlohmann/|fmt/|CLI/|gtest/|gmock/|benchmark/)')
CUDA = re.compile(r'^(cuda|cuda_runtime|cudaTypedefs|driver_types|nvml)[\w/]*\.h$')


def kind_of(name):
    if name in ('cuda/atomic', 'cuda/memory_resource'):  # libcu++: part of the toolkit, and in none of the rooms
        return 'own'
    if CUDA.match(name):
        return 'cuda'
    if THIRD_PARTY.match(name):
        return 'third-party'
    if name.startswith('driver_abi/'):
        return 'abi'
    if name.startswith('machines/'):
        return 'machines'
    if re.match(BACKENDS, name):
        return 'backend'
    if name.startswith('platform/'):
        return 'platform'
    if OPERATING_SYSTEM.match(name):
        return 'operating-system'
    return 'own'


class Rooms:
    """The rooms of runtime/ in their order, and which headers are whose."""

    def __init__(self, root):
        with open(os.path.join(root, 'runtime/rooms.json'), encoding='utf-8') as file:
            self.order = json.load(file)['order']
        self.vocabulary = self.headers(root, 'runtime/vocabulary') | {'isthmus/version.hpp'}
        self.public = {name: room for room in self.order for name in self.headers(root, f'runtime/{room}/include')}
        self.private = {name: room for room in self.order for name in self.headers(root, f'runtime/{room}')}

    @staticmethod
    def headers(root, folder):
        """Names by which the headers of an include directory are included."""
        start, found = os.path.join(root, folder), set()
        for top, folders, names in os.walk(start):
            folders[:] = [name for name in folders if name not in ('pch', 'include')]
            headers = [os.path.join(top, name) for name in names if name.endswith(('.hpp', '.h'))]
            found |= {os.path.relpath(path, start) for path in headers}
        return found

    def room_of(self, path):
        parts = path.split('/')
        return parts[1] if parts[0] == 'runtime' and parts[1] in self.order else None

    def kind_of(self, name):
        if name.startswith('isthmus/'):
            return 'vocabulary' if name in self.vocabulary else 'public'
        return kind_of(name)

    def refusal(self, path, quote, name):
        """Why the file may not include this header of a room; None: it may, or it is no header of a room."""
        own = self.room_of(path)
        owner = self.public.get(name) or (self.private.get(name) if quote == '"' else None)
        if owner is None or own is None:
            return None
        if is_public(path) and name not in self.public:
            return f'is private to {owner}, and this header is public'
        if self.order.index(owner) > self.order.index(own):
            return f'belongs to {owner}, which comes after {own} (runtime/rooms.json)'
        return None


def is_public(path):
    return bool(re.match(r'runtime/(\w+/include|vocabulary/isthmus)/.*\.h(pp)?$', path))


def refusals(path, text, rooms):
    """The includes of the file at `path` (relative to the root) that lead where it may not go."""
    place = max((prefix for prefix in RULES if path.startswith(prefix)), key=len, default=None)
    barred = (RULES[place] if place else set()) | (PUBLIC if rooms.room_of(path) and is_public(path) else set())
    named = set().union(*(names for prefix, names in NAMED.items() if path.startswith(prefix)))
    found = []
    for quote, name in INCLUDE.findall(text):
        kind = rooms.kind_of(name)
        upward = rooms.refusal(path, quote, name)
        if not path.startswith('runtime/') and re.fullmatch(r'.*/pch/\w+\.hpp \.\./\w+\.hpp', f'{path} {name}'):
            continue  # the room's own precompiled header; the build gives quoted names no other folder there
        if '..' in name.split('/') or name.startswith('/'):
            found.append(f'{path}: "{name}" walks around the include directories')
        elif upward:
            found.append(f'{path}: {name} {upward}')
        elif kind in barred and name not in named:
            # Files that compare the project's declarations with the toolkit's.
            if kind == 'cuda' and re.fullmatch(r'platform/cuda/\w+_check\.cpp', path):
                continue
            found.append(f'{path}: {name} ({kind}) is not for {place}')
        elif quote == '"' and is_public(path):
            found.append(f'{path}: "{name}": public headers name each other by <isthmus/...>')
    return found


def check_tree(root):
    rooms = Rooms(root)
    found, files = [], 0
    for top in ('runtime', 'platform', 'kernels', 'bindings', 'tools', 'examples', 'bench', 'tests'):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith(SUFFIXES):
                    path = os.path.join(folder, name)
                    with open(path, encoding='utf-8') as file:
                        found += refusals(os.path.relpath(path, root), file.read(), rooms)
                    files += 1
    return found, files


def self_test(root):
    """A wrong include of every kind is seen, and the right one beside it is not."""
    rooms = Rooms(root)
    wrong = [('runtime/streams/stream.cpp', '#include "cuda/api.hpp"'),
             ('runtime/streams/stream.cpp', '#include <cuda.h>'),
             ('runtime/core/include/isthmus/view.hpp', '#include <platform/driver.hpp>'),
             ('runtime/core/include/isthmus/view.hpp', '#include <sys/mman.h>'),
             ('runtime/core/include/isthmus/view.hpp', '#include "isthmus/event.hpp"'),
             # Of a later room: private and public headers, by quotes and by angle brackets, also of a header.
             ('runtime/core/operation.cpp', '#include "memory_source.hpp"'),
             ('runtime/core/operation.cpp', '#include <isthmus/concurrent/service.hpp>'),
             ('runtime/core/operation.cpp', '#include "isthmus/runtime.hpp"'),
             ('runtime/device/device_session.hpp', '#include "device_state.hpp"'),
             ('runtime/core/pch/prelude.hpp', '#include "event_state.hpp"'),
             ('runtime/core/pch/prelude.hpp', '#include "../operation.hpp"'),
             ('runtime/core/include/isthmus/buffer.hpp', '#include <isthmus/allocator_adaptors.hpp>'),
             ('runtime/core/include/isthmus/buffer.hpp', '#include <isthmus/concurrent/protocol/ring.hpp>'),
             ('runtime/core/include/isthmus/buffer.hpp', '#include "buffer_state.hpp"'),
             ('runtime/core/include/isthmus/detail/pack.hpp', '#include <isthmus/isthmus.hpp>'),
             ('runtime/vocabulary/isthmus/facts.hpp', '#include <isthmus/hints.hpp>'),
             ('runtime/rules/access_rules.cpp', '#include <platform/os.hpp>'),
             ('runtime/rules/access_rules.cpp', '#include <platform/driver.hpp>'),
             ('runtime/rules/access_rules.cpp', '#include <unistd.h>'),
             ('runtime/order/order_book.cpp', '#include <platform/capability_table.hpp>'),
             ('runtime/order/order_book.cpp', '#include <pthread.h>'),
             ('platform/os/host_pages.cpp', '#include <isthmus/buffer.hpp>'),
             ('platform/cuda/api.cpp', '#include "../sim/engine.hpp"'), ('platform/cuda/api.cpp', '#include <cuda.h>'),
             ('platform/cpu/cpu_driver.cpp', '#  include "sim/engine.hpp"'),
             ('runtime/vocabulary/isthmus/facts.hpp', '#include <nlohmann/json.hpp>'),
             ('runtime/core/pch/prelude.hpp', '#include "../../platform/cuda/api.hpp"'),
             ('tests/conformance/simulator_control.hpp', '#include <platform/driver.hpp>'),
             ('platform/sim/errors.cpp', '#include <cuda/abi_values.hpp>'),
             ('platform/sim/errors.cpp', '#include <platform/driver.hpp>'),
             ('runtime/front/runtime.cpp', '#include <driver_abi/sim_control.h>'),
             ('bindings/c/buffer.cpp', '#include <machines/record.hpp>'),
             ('bindings/trace/include/isthmus/nvtx.hpp', '#include <cuda.h>'),
             ('bindings/trace/include/isthmus/nvtx_streams.hpp', '#include <platform/driver.hpp>'),
             ('bindings/gstreamer/session.cpp', '#include <platform/driver.hpp>'),
             ('tools/command/main.cpp', '#include <platform/driver.hpp>')]
    right = [('runtime/streams/stream.cpp', '#include <platform/driver.hpp>'),
             ('runtime/streams/stream.cpp', '#include "operation.hpp"'),
             ('runtime/memory/memory_source.cpp', '#include "memory_source.hpp"'),
             ('runtime/concurrent/service.cpp', '#include <isthmus/concurrent/service.hpp>'),
             ('runtime/core/device_state.hpp', '#include "device_session.hpp"'),
             ('runtime/core/include/isthmus/buffer.hpp', '#include <isthmus/allocator.hpp>'),
             ('runtime/core/include/isthmus/detail/pack.hpp', '#include <isthmus/facts.hpp>'),
             ('runtime/core/pch/prelude.hpp', '#include "device_session.hpp"'),
             ('runtime/rules/access_rules.cpp', '#include <platform/capability_table.hpp>'),
             ('tests/conformance/simulator_control.hpp', '#include <driver_abi/sim_control.h>'),
             ('runtime/order/order_book.cpp', '#include "timed_lock.hpp"'),
             ('runtime/base/process.cpp', '#include <pthread.h>'),
             ('platform/cuda/abi_check.cpp', '#include <cuda.h>'), ('platform/cuda/api.cpp', '#include "abi.hpp"'),
             ('platform/driver_list.cpp', '#include "cuda/cuda_driver.hpp"'),
             ('platform/sim/pch/prelude.hpp', '#include "../access.hpp"'),
             ('platform/os/host_pages.cpp', '#include <isthmus/result.hpp>'),
             ('bindings/trace/include/isthmus/nvtx_streams.hpp', '#include <cuda.h>'),
             ('examples/cuda_memory_resource.cpp', '#include <cuda/memory_resource>'),
             ('examples/nvmm_frames.cpp', '#include <cudaEGL.h>'),
             ('bindings/gstreamer/session.cpp', '#include <machines/record.hpp>'),
             ('tools/command/main.cpp', '#include <CLI/CLI.hpp>')]
    unknown = [path for path, _ in wrong + right if not os.path.exists(os.path.join(root, path))]
    return ([f'not there: {path}' for path in unknown] +
            [f'not seen: {path}: {text}' for path, text in wrong if not refusals(path, text, rooms)] +
            [f'wrongly refused: {path}: {text}' for path, text in right if refusals(path, text, rooms)])


root = sys.argv[1]
if '--self-test' in sys.argv:
    found, files = self_test(root), 1
else:
    found, files = check_tree(root)
print('\n'.join(found) or f'{files} files keep to their corridors')
sys.exit(1 if found or files == 0 else 0)
