# SPDX-License-Identifier: Apache-2.0
"""The runtime and its devices.

    with isthmus.open() as runtime:
        device = runtime.default_device          # the first GPU, otherwise the CPU
        buffer = device.allocate_shared((480, 640), 'u1')

A runtime is closed when the `with` ends, or when its object is dropped. Buffers, streams and arrays that live on keep
what they need, so that the order in which objects are dropped does not matter.
"""
from __future__ import annotations

import json
import os
from collections.abc import Iterator
from ctypes import byref, c_char_p
from types import TracebackType
from typing import Any

from . import _structures as structures
from . import html, simulator
from ._handles import OfThisProcess, Owner, Share, free_of, handle_of, owned
from ._library import c, call, drop_released, text, text_of
from ._types import count_of, dtype_of, number_of, shape_of, wait_of
from ._uses import exportable_options, kind_of, shared_use
from .adopt import adopted
from .buffers import Buffer
from .capabilities import Capabilities, Capability
from .errors import Forked, InvalidArgument, InvalidHandle
from .streams import Stream


class Device(OfThisProcess):
    """A GPU, or the CPU; a runtime has them. Any thread may use it."""

    __slots__ = ('_runtime', '_pointer', '_runtime_share', '__weakref__')
    _handle_kind = 'Device'

    def __init__(self, runtime: Runtime, pointer: int) -> None:
        self._runtime, self._pointer, self._runtime_share = runtime, pointer, runtime._live

    @property
    def _handle(self) -> int:
        if self._runtime.closed:
            raise InvalidHandle(f"the runtime of the device '{self.name}' is closed", 'use it inside its `with`')
        return self._pointer

    def _wait_limit(self, wait: float | None) -> float:
        """The seconds that a wait may take; for None the runtime's limit."""
        if wait is None:
            return self._runtime._wait_timeout
        wait_of(wait)   # raises for a negative one
        return wait

    # ---- what it is

    @property
    def name(self) -> str:
        """The product's name."""
        return text(c.isthmus_device_name(self._pointer))

    @property
    def is_cpu(self) -> bool:
        """Whether it is the CPU device."""
        return bool(c.isthmus_device_is_cpu(self._pointer))

    @property
    def ordinal(self) -> int:
        """CUDA's number of the device, as PyTorch and CuPy count; -1 for the CPU."""
        return int(c.isthmus_device_ordinal(self._pointer))

    @property
    def index(self) -> int:
        """Its place in `Runtime.devices`."""
        return int(c.isthmus_device_index(self._pointer))

    @property
    def model(self) -> str:
        """The class of machine: 'cpu', 'discrete', 'hmm', 'integrated', 'ats', 'c2c'."""
        return text(c.isthmus_model_name(c.isthmus_device_model(self._pointer)))

    @property
    def compute_capability(self) -> tuple[int, int] | None:
        """(9, 0) for the instructions of compute capability 9.0; None for the CPU."""
        if self.is_cpu:
            return None
        devices = self._runtime.described['devices']
        major, minor = next(one['compute_capability'] for one in devices if one['ordinal'] == self.ordinal)
        return major, minor

    @property
    def capabilities(self) -> Capabilities:
        """What it can do, by name, with reasons; notebooks show it as a table."""
        found = {}
        for number in range(c.isthmus_feature_count()):
            name = text(c.isthmus_feature_name(number))
            found[name] = Capability(name, text(c.isthmus_state_name(c.isthmus_device_feature_state(self._pointer, number))),
                                     text(c.isthmus_origin_name(c.isthmus_device_feature_origin(self._pointer, number))),
                                     text(c.isthmus_device_why(self._pointer, number)))
        return Capabilities(self.name, found)

    def can_access(self, buffer: Buffer) -> Capability:
        """Whether it may access a buffer, with the reason."""
        reason = c_char_p()
        answer = c.isthmus_device_can_access(self._pointer, handle_of(buffer, 'Buffer'), byref(reason))
        state, origin = {1: ('yes', 'attribute'), 0: ('no', 'attribute')}.get(answer, ('no', 'absent'))
        return Capability('can_access', state, origin, text(reason.value))

    # ---- memory

    def allocate_shared(self, shape: Any, dtype: Any = 'u1', *, host: str = 'reads_and_writes',
                        device: str = 'reads_and_writes', prefer: str = 'throughput', kind: str | None = None,
                        alignment: int = 0) -> Buffer:
        """Memory for CPU and GPU. This machine's capabilities and the uses decide which: `Buffer.explain` says why.

        shape, dtype: (480, 640), 'u1'; also NumPy's and the array API's types
        host, device: how each side uses it, for each content that is produced: 'never', 'reads_once', 'reads_often',
                      'writes_once', 'writes_often', 'reads_and_writes'
        prefer:       'throughput' or 'latency'
        kind:         insists on a kind ('pinned', 'managed', …), or raises `Unsupported`
        alignment:    of the first byte; 0: at least 256
        """
        sizes, elements = shape_of(shape), dtype_of(dtype)
        use = shared_use(host, device, prefer, kind, alignment)
        share = owned('buffer', c.isthmus_device_allocate_shared, self._handle, count_of(sizes) * elements.itemsize,
                      byref(use), first=self._runtime_share)
        return Buffer(share, self, sizes, elements)

    def allocate(self, shape: Any, dtype: Any = 'u1', *, kind: str = 'device') -> Buffer:
        """Memory of one kind: 'device', 'pinned', 'managed', … Raises `Unsupported` where the machine lacks it."""
        sizes, elements = shape_of(shape), dtype_of(dtype)
        share = owned('buffer', c.isthmus_device_allocate, self._handle, count_of(sizes) * elements.itemsize, kind_of(kind),
                      first=self._runtime_share)
        return Buffer(share, self, sizes, elements)

    def allocate_exportable(self, shape: Any, dtype: Any = 'u1', *, seen_by: str = 'gpus_only') -> Buffer:
        """Memory that other drivers (V4L2, displays, network cards) take as a dma-buf: `Buffer.export_dma_buf()`. It is
        zero, has whole pages, and is never kept for other buffers.

        seen_by: 'gpus_only', device memory, where `capabilities['dma_buf']` says yes, and on an integrated GPU
                 `capabilities['virtual_memory']`, too; 'cpus_and_gpus', pinned host memory, where
                 `capabilities['host_dma_buf']` does
        Raises `Unsupported` elsewhere, with what works instead.
        """
        sizes, elements = shape_of(shape), dtype_of(dtype)
        options = exportable_options(seen_by)
        share = owned('buffer', c.isthmus_device_allocate_exportable, self._handle, count_of(sizes) * elements.itemsize,
                      byref(options), first=self._runtime_share)
        return Buffer(share, self, sizes, elements)

    def adopt(self, source: Any) -> Buffer:
        """A buffer of the memory of another object, without copying: anything with `__dlpack__` (NumPy, PyTorch, CuPy,
        JAX) or the buffer protocol (bytearray, mmap, array), in C order. `source` is kept until the last use has ended.
        Read-only memory gives a buffer that both sides only read. Raises `InUse` where it overlaps another buffer."""
        return adopted(self, source)

    # ---- streams

    @property
    def stream(self) -> Stream:
        """The device's own stream."""
        return Stream(Share(c.isthmus_device_stream(self._handle), free_of('stream'), self._runtime_share), self)

    def create_stream(self, *, high_priority: bool = False) -> Stream:
        """Another stream, whose work runs beside that of others."""
        return Stream(owned('stream', c.isthmus_device_create_stream, self._handle, -1 if high_priority else 0,
                            first=self._runtime_share), self)

    def wrap_stream(self, handle: int) -> Stream:
        """A stream of other code by its CUstream, such as torch.cuda.current_stream().cuda_stream; 0 is the legacy default
        stream. The other code keeps it."""
        return Stream(owned('stream', c.isthmus_device_wrap_stream, self._handle, number_of(handle, 'a stream'),
                            first=self._runtime_share), self)

    def synchronize(self, wait: float | None = None) -> None:
        """Waits for all work of the device; `wait` in seconds, None: the runtime's limit."""
        call(c.isthmus_device_synchronize, self._handle, wait_of(wait))
        drop_released()

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Device) and self._pointer == other._pointer

    def __hash__(self) -> int:
        return hash(self._pointer)

    def __repr__(self) -> str:
        return f'<isthmus.Device {self.name!r}, {self.model}>'

    def _repr_html_(self) -> str:
        return self.capabilities._repr_html_()


class _Trace(Owner):
    """A recording; without a file it may record nothing."""

    __slots__ = ()

    def __init__(self, file: str | os.PathLike[str] | None) -> None:
        super().__init__(owned('trace', c.isthmus_trace_open, os.fsencode(file) if file is not None else None))


class Runtime(Owner):
    """All devices of this machine; made by `isthmus.open()`. The CPU device is always there, and the last one."""

    __slots__ = ('_trace', '_wait_timeout')

    def __init__(self, share: Share, trace: _Trace, wait_timeout: float) -> None:
        super().__init__(share)
        self._trace: _Trace | None = trace
        self._wait_timeout = wait_timeout   # seconds

    @property
    def devices(self) -> tuple[Device, ...]:
        """All devices; the CPU is the last."""
        handle = self._handle
        return tuple(Device(self, c.isthmus_runtime_device(handle, at))
                     for at in range(c.isthmus_runtime_device_count(handle)))

    @property
    def default_device(self) -> Device:
        """The first GPU that works, otherwise the CPU."""
        return Device(self, c.isthmus_runtime_default_device(self._handle))

    @property
    def cpu(self) -> Device:
        """The CPU device: the same programs run on it without a GPU."""
        return Device(self, c.isthmus_runtime_cpu(self._handle))

    @property
    def cuda_absence(self) -> str | None:
        """Why there is no CUDA device, or why some are missing; None: none is missing."""
        return text(c.isthmus_runtime_cuda_absence(self._handle)) or None

    @property
    def is_simulated(self) -> bool:
        """Whether the machine is a simulated one."""
        return bool(c.isthmus_runtime_is_simulated(self._handle))

    @property
    def described(self) -> dict[str, Any]:
        """What `isthmus caps --json` tells of the machine and its devices, without what that command derives."""
        return dict(json.loads(text_of(c.isthmus_runtime_capabilities_json, self._handle)))

    @property
    def counters(self) -> dict[str, int]:
        """What was counted since the runtime was opened: {'isthmus_uploaded_bytes_total': 0, …}, with
        '{device="0"}' behind the names of those of one device. Units are in the names."""
        return {name: int(value) for name, value in (line.rsplit(' ', 1) for line in self.counters_text().splitlines()
                                                     if not line.startswith('#'))}

    def counters_text(self) -> str:
        """The same with a sentence for each, in the text exposition format of Prometheus."""
        return text_of(c.isthmus_runtime_counters_text, self._handle)

    def synchronize(self, wait: float | None = None) -> None:
        """Waits for all work of all devices."""
        call(c.isthmus_runtime_synchronize, self._handle, wait_of(wait))
        drop_released()

    def __iter__(self) -> Iterator[Device]:
        return iter(self.devices)

    def __enter__(self) -> Runtime:
        self._live
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Gives up the runtime: its devices make nothing more. Buffers, streams and arrays work on, and the last of them
        ends it. A second time is harmless. Writes the trace, if there is one; raises where its file cannot be written. In
        a child of fork() it does nothing: the trace is the parent's."""
        super().close()
        drop_released()
        trace, self._trace = self._trace, None
        if trace is not None:
            try:
                call(c.isthmus_trace_close, trace._handle)
            except Forked:
                pass

    def __repr__(self) -> str:
        if self.closed:
            return '<isthmus.Runtime, closed>'
        names = ', '.join(repr(device.name) for device in self.devices)
        return f'<isthmus.Runtime with {names}{", simulated" if self.is_simulated else ""}>'

    def _repr_html_(self) -> str:
        if self.closed:
            return html.table('isthmus.Runtime, closed', [], [])
        return html.table('Devices' + (' of a simulated machine' if self.is_simulated else ''), ['', 'device', 'class'],
                          [[str(device.index), device.name, device.model] for device in self.devices])


def open(machine: str | None = None, *, cuda: bool = True, wait_timeout: float | None = None,
         cpu_threads: int = 0, trace: str | os.PathLike[str] | None = None) -> Runtime:
    """Opens the devices of this machine, or of a simulated one. A machine without a GPU or a driver is no error: there is
    the CPU device, and `Runtime.cuda_absence` says why.

    machine:      'orin', 'thor', 'h200', … (`isthmus.simulator.MACHINES`), or the file of a record: a simulated machine
                  instead of this one, for the whole process
    cuda:         False: the CPU device alone
    wait_timeout: the limit of waits without one, in seconds; None: 60
    cpu_threads:  that run kernels of the CPU device; 0: the thread that launches
    trace:        a file that `close()` writes what the runtime did into, for ui.perfetto.dev and `isthmus trace`; None:
                  the file that ISTHMUS_TRACE names in the environment, and without it nothing is recorded
    """
    limit = 60.0 if wait_timeout is None else wait_timeout
    if not wait_of(limit):
        raise InvalidArgument('a limit of 0 seconds for all waits', '`wait=0` at the waits that are meant, or None')
    library = simulator.selected(machine) if cuda else None
    recording = _Trace(trace)
    options = structures.sized(structures.RuntimeOptions, use_cuda=1 if cuda else 0,
                               cuda_library=library.encode() if library else None,
                               wait_timeout_ns=wait_of(limit), cpu_threads=cpu_threads, trace=recording._handle.handle)
    return Runtime(owned('runtime', c.isthmus_runtime_open, byref(options)), recording, limit)
