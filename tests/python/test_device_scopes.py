# SPDX-License-Identifier: Apache-2.0
"""Device scopes: other code's work on buffers. The foreign code is the driver's own functions (foreign.py)."""
import gc
import warnings

import pytest

import foreign
import isthmus

KINDS = ['pinned', 'device', 'managed']


def shared(device, kind, count=4096):
    try:
        return device.allocate_shared(count, 'u1', kind=None if device.is_cpu else kind)
    except isthmus.Unsupported as refusal:
        pytest.skip(str(refusal))


def fill_on_host(buffer, value):
    with buffer.host('w') as scope:
        scope[:] = bytes([value]) * buffer.nbytes


@pytest.mark.parametrize('kind', KINDS)
def test_foreign_work_sees_what_the_host_wrote_and_the_host_sees_its_work(device, stream, kind):   # keeps Y2
    buffer = shared(device, kind)
    for turn in range(3):
        fill_on_host(buffer, 10 + turn)
        with buffer.device(stream, 'rw') as scope:
            assert foreign.read_bytes(scope) == bytes([10 + turn]) * buffer.nbytes
            foreign.write_bytes(scope, 20 + turn)
        with buffer.host('r') as scope:
            assert scope.tobytes() == bytes([20 + turn]) * buffer.nbytes


def test_nothing_is_copied_that_the_machine_can_share(device, stream):   # keeps Y2
    buffer = shared(device, 'pinned')
    for turn in range(5):
        fill_on_host(buffer, turn)
        with buffer.device(stream, 'rw') as scope:
            foreign.write_bytes(scope, turn)
        with buffer.host('r') as scope:
            assert scope[0] == turn
    assert buffer.staged_bytes == 0 and buffer.path in ('pass', 'prefetch', 'attach')


def test_a_copied_buffer_counts_its_copies(device, stream):
    if device.is_cpu:
        pytest.skip('the CPU device copies nothing')
    buffer = shared(device, 'device')
    if buffer.path != 'stage':
        pytest.skip('this machine uses that kind in place')
    fill_on_host(buffer, 1)
    with buffer.device(stream, 'r') as scope:
        foreign.read_bytes(scope)
    assert buffer.staged_bytes == buffer.nbytes
    assert 'copies are made' in buffer.explain


def test_an_open_scope_refuses_what_conflicts(device, stream):
    buffer = device.allocate_shared(64)
    with buffer.device(stream, 'rw', name='my model'):
        for use in (lambda: buffer.host('r'), lambda: stream.fill(buffer, 0), lambda: buffer.device(stream, 'rw')):
            with pytest.raises(isthmus.InUse, match='my model'):
                use()
    buffer.host('r').close()


def test_an_open_host_scope_refuses_device_scopes(device, stream):
    buffer = device.allocate_shared(64)
    with buffer.host('w'):
        with pytest.raises(isthmus.InUse):
            buffer.device(stream, 'r')
    buffer.device(stream, 'r').close()


def test_several_buffers_are_one_claim(device, stream):
    a, b, c = (device.allocate_shared(64) for _ in range(3))
    fill_on_host(a, 5)
    with stream.scope(isthmus.reads(a), isthmus.writes(b), isthmus.updates(c), name='three') as (x, y, z):
        assert [one.mode for one in (x, y, z)] == ['r', 'w', 'rw'] and x.buffer is a
        for one in (y, z):
            foreign.write_bytes(one, 9)
        with pytest.raises(isthmus.InUse, match='three'):
            c.host('r')
    assert x.closed and y.closed and z.closed
    with b.host('r') as scope:
        assert scope.tobytes() == b'\x09' * 64
    with pytest.raises(isthmus.InvalidArgument):
        stream.scope()
    with pytest.raises(TypeError):
        stream.scope(a)


def test_closing_twice_is_harmless_and_use_behind_it_is_refused(device, stream):   # keeps Y3
    buffer = device.allocate_shared(64)
    scope = buffer.device(stream, 'rw')
    scope.close()
    scope.close()
    for use in (lambda: scope.pointer, lambda: scope.stream_handle, lambda: scope.__dlpack__(stream=-1), scope.__enter__,
                lambda: scope.joins(stream)):
        with pytest.raises(isthmus.InvalidHandle):
            use()
    assert 'closed' in repr(scope)


def test_an_exception_in_the_with_closes_the_scope(device, stream):
    buffer = device.allocate_shared(64)
    with pytest.raises(KeyError, match='mine'):
        with buffer.device(stream, 'w'):
            raise KeyError('mine')
    with buffer.host('w') as scope:
        scope[:] = bytes(64)


def test_a_dropped_scope_closes(device, stream):   # keeps Y3
    buffer = device.allocate_shared(64)
    scope = buffer.device(stream, 'rw')
    del scope
    buffer.host('w').close()


def test_a_tensor_that_is_the_scope_keeps_it_open(device, stream):   # keeps Y3
    buffer = device.allocate_shared(64)
    capsule = buffer.device(stream, 'rw').__dlpack__(stream=None if device.is_cpu else -1)
    gc.collect()
    with pytest.raises(isthmus.InUse):
        buffer.host('r')
    del capsule
    buffer.host('r').close()


def test_a_tensor_that_outlives_its_with_is_warned_of_and_keeps_the_memory(device, stream):   # keeps Y3
    buffer = device.allocate_shared(64)
    with pytest.warns(isthmus.ScopeWarning, match='1 tensor '):
        with buffer.device(stream, 'rw') as scope:
            capsule = scope.__dlpack__(stream=None if device.is_cpu else -1)
    buffer.host('r').close()   # the claim has ended
    buffer.close()
    del buffer, scope
    gc.collect()
    del capsule   # the memory goes here
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        with device.allocate_shared(64).device(stream, 'rw') as scope:
            scope.__dlpack__(stream=None if device.is_cpu else -1)


def test_on_the_cpu_numpy_works_in_the_scope(runtime, numpy, from_dlpack):   # keeps Y2
    device = runtime.cpu
    buffer = device.allocate_shared((4, 4), 'f4')
    with buffer.device(device.stream, 'w') as scope:
        numpy.asarray(scope)[:] = 2
        assert from_dlpack(scope)[0, 0] == 2
        with pytest.raises(AttributeError):
            scope.__cuda_array_interface__
        assert scope.stream_handle == 0
    with buffer.host('r') as scope:
        assert numpy.asarray(scope).sum() == 32


def test_the_array_interface_of_cuda(device, stream):   # keeps Y2
    if device.is_cpu:
        pytest.skip('there is no CUDA device')
    buffer = device.allocate_shared((4, 5), 'f2')
    with buffer.device(stream, 'r') as scope:
        interface = scope.__cuda_array_interface__
        assert interface == {'shape': (4, 5), 'typestr': '<f2', 'data': (scope.pointer, True), 'version': 3,
                             'strides': None, 'stream': stream.native_handle}
        assert scope.stream_handle == stream.native_handle and stream.__cuda_stream__() == (0, stream.native_handle)
        assert not hasattr(scope, '__array_interface__')


def test_a_consumers_stream_waits_and_is_waited_for(device, stream, kernels):   # keeps Y2
    if device.is_cpu:
        pytest.skip('there is no CUDA device')
    buffer = device.allocate_shared(1, 'u4', kind='pinned')
    theirs = foreign.new_stream(device)
    try:
        stream.fill(buffer, 0)
        kernels.churn(stream, 1, buffer, 1 << 25)   # 2^25 rounds; the scope comes behind it
        expected = None
        with buffer.device(stream, 'rw') as scope:
            capsule = scope.__dlpack__(stream=theirs)
            consumer = device.wrap_stream(theirs)
            del capsule
            foreign.current(device)
            import ctypes
            memory = (ctypes.c_ubyte * 4)()
            assert foreign.driver().cuMemcpyDtoHAsync_v2(memory, ctypes.c_uint64(scope.pointer), ctypes.c_size_t(4),
                                                         ctypes.c_void_p(theirs)) == 0
            assert foreign.driver().cuMemsetD8Async(ctypes.c_uint64(scope.pointer), ctypes.c_ubyte(7), ctypes.c_size_t(4),
                                                    ctypes.c_void_p(theirs)) == 0
            expected = memory
        with buffer.host('r') as scope:   # waits for their stream
            assert scope.tobytes() == b'\7\7\7\7'
        consumer.synchronize()
        assert bytes(expected) != b'\0\0\0\0'   # their copy ran behind the kernel
        del consumer
    finally:
        device.synchronize()
        foreign.end_stream(theirs)


def test_work_on_another_stream_is_told_by_joins(device, stream):
    buffer = device.allocate_shared(64, kind=None if device.is_cpu else 'pinned')
    other = device.create_stream()
    with buffer.device(stream, 'rw') as scope:
        scope.joins(other)
        scope.joins(other)
        foreign.write_bytes(scope, 4)
    with buffer.host('r') as scope:
        assert scope[0] == 4


def test_scopes_leave_nothing_behind(device, stream):   # keeps Y3
    buffer = device.allocate_shared(64, kind=None if device.is_cpu else 'pinned')

    def some(count):
        for _ in range(count):
            with buffer.device(stream, 'rw') as scope:
                scope.__dlpack__(stream=None if device.is_cpu else -1)
    gc.collect()
    gc.disable()
    try:
        some(10)
        before = len(gc.get_objects())
        some(500)   # without the collector: scopes are in no cycle
        assert len(gc.get_objects()) - before < 50
    finally:
        gc.enable()
