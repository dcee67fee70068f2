# SPDX-License-Identifier: Apache-2.0
"""isthmus joins the memory of CPU and GPU: one buffer, used by turns, copied only where the machine has to.

    import isthmus, numpy

    with isthmus.open() as runtime:                       # or isthmus.open(machine='orin'): a simulated Jetson
        device = runtime.default_device                   # the first GPU, otherwise the CPU
        stream = device.stream
        buffer = device.allocate_shared((480, 640), 'u1', host='writes_often', device='reads_and_writes')
        with buffer.host('w') as pixels:                  # the CPU's turn
            pixels[:] = 7
        with buffer.device(stream, 'rw') as pixels:       # the GPU's turn, by PyTorch, CuPy, Numba, …
            torch.from_dlpack(pixels).mul_(2)
        with buffer.host('r') as pixels:                  # waits for that work, and for nothing else
            print(numpy.asarray(pixels).sum())

What a machine can do and why: `device.capabilities`. Which memory was chosen and why: `buffer.explain`. Modules:

    isthmus.views     host scopes: NumPy, memoryview, the buffer protocol
    isthmus.scopes    device scopes: PyTorch, CuPy, Numba by DLPack and __cuda_array_interface__
    isthmus.adopt     buffers of memory that other objects own
    isthmus.streams   streams, events, copies
    isthmus.kernels   kernels by name
    isthmus.modules   ready-made GPU code, functions that stand in for it without a GPU
    isthmus.nvrtc     CUDA C++ compiled at run time, where NVRTC is installed
    isthmus.sharing   frames between processes
    isthmus.errors    what `except isthmus.InUse` catches
    isthmus.simulator the simulated machines
"""
from . import dlpack, errors, kernels, simulator
from ._library import c as _c
from ._library import text as _text
from .buffers import Buffer
from .capabilities import Capabilities, Capability
from .errors import (
    ArrayAlive,
    CaptureError,
    Code,
    DeviceLost,
    DriverError,
    Ended,
    Error,
    Forked,
    InUse,
    InvalidArgument,
    InvalidHandle,
    NoGpuCode,
    NotAccessible,
    NotOrdered,
    NotPermitted,
    NotReady,
    OutOfMemory,
    Overtaken,
    PeerBrokeRules,
    PeerLost,
    SystemFailed,
    TimedOut,
    Unsupported,
    WrongDevice,
)
from .runtime import Device, Runtime, open
from .scopes import DeviceScope, DeviceScopes, ScopeWarning, reads, updates, writes
from .sharing import ReaderFrame, RingFrame, SharedReader, SharedRing
from .streams import Event, Stream
from .views import HostScope

__version__: str = _text(_c.isthmus_version_text())

__all__ = [
    'ArrayAlive', 'Buffer', 'Capabilities', 'Capability', 'CaptureError', 'Code', 'Device', 'DeviceLost', 'DeviceScope',
    'DeviceScopes', 'DriverError', 'Ended', 'Error', 'Event', 'Forked', 'HostScope', 'InUse', 'InvalidArgument',
    'InvalidHandle', 'NoGpuCode', 'NotAccessible', 'NotOrdered', 'NotPermitted', 'NotReady', 'OutOfMemory', 'Overtaken',
    'PeerBrokeRules', 'PeerLost', 'ReaderFrame', 'RingFrame', 'Runtime', 'ScopeWarning', 'SharedReader', 'SharedRing',
    'Stream', 'SystemFailed', 'TimedOut', 'Unsupported', 'WrongDevice', 'dlpack', 'errors', 'kernels', 'open', 'reads',
    'simulator', 'updates', 'writes',
]
