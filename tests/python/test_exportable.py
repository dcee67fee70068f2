# SPDX-License-Identifier: Apache-2.0
"""Buffers that leave as dma-bufs, where the driver exports them, and the refusal everywhere else."""
import fcntl
import mmap
import os

import pytest

import isthmus
from conftest import MACHINE

FEATURES = {'gpus_only': 'dma_buf', 'cpus_and_gpus': 'host_dma_buf'}


@pytest.mark.parametrize('seen_by', FEATURES)
def test_exportable_memory_leaves_as_a_dma_buf(device, stream, seen_by):   # keeps Y2, Y5
    can = device.capabilities
    if device.is_cpu or not can[FEATURES[seen_by]]:
        with pytest.raises(isthmus.Unsupported) as refused:
            device.allocate_exportable(4096, seen_by=seen_by)
        assert refused.value.remedy
        return
    try:
        buffer = device.allocate_exportable((3, 1000), 'u2', seen_by=seen_by)
    except isthmus.Unsupported:   # nor has it handles of device memory to share
        assert seen_by == 'gpus_only' and not can['virtual_memory']
        return
    assert buffer.shape == (3, 1000) and buffer.nbytes == 6000
    one, two = buffer.export_dma_buf(), buffer.reshaped(6000, 'u1').export_dma_buf()
    assert one >= 0 and two >= 0 and one != two
    assert fcntl.fcntl(one, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
    os.close(two)
    plain = device.allocate_shared((3, 1000), 'u2')
    stream.copy(plain, buffer)
    with plain.host('r') as scope:
        assert bytes(memoryview(scope)) == bytes(6000)   # zero from the start
    stream.fill(buffer, 0x0707)
    stream.synchronize()
    if MACHINE != 'here':   # a driver's dma-buf has no mapping for the CPU; the simulator's has
        with mmap.mmap(one, 6000, mmap.MAP_SHARED, mmap.PROT_READ) as memory:
            assert memory[:] == b'\7' * 6000
    os.close(one)
    buffer.close()


def test_other_buffers_are_refused(device):   # keeps Y2, Y5
    buffer = device.allocate_shared(4096)
    with pytest.raises(isthmus.Unsupported):
        buffer.export_dma_buf()
    with pytest.raises(isthmus.InvalidArgument, match='nobody'):
        device.allocate_exportable(4096, seen_by='nobody')
    buffer.close()
