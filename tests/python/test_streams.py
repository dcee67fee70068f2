# SPDX-License-Identifier: Apache-2.0
"""Streams, events, copies, and that waits let other Python threads run."""
import sys
import threading

import pytest

import isthmus


def test_copies_and_fills_are_in_the_order_of_the_stream(device, stream):
    a, b = device.allocate_shared(64), device.allocate_shared(64)
    stream.fill(a, 3)
    stream.copy(b, a)
    stream.fill(a, 4)
    event = stream.record()
    event.synchronize()
    assert event.finished and stream.finished
    with a.host('r') as first, b.host('r') as second:
        assert first.tobytes() == b'\4' * 64 and second.tobytes() == b'\3' * 64


@pytest.mark.parametrize('dtype, value', [
    ('bool', True), ('int8', -128), ('uint8', 255), ('int16', -300), ('uint16', 65535), ('int32', -5), ('uint32', 1 << 31),
    ('int64', -(1 << 63)), ('uint64', (1 << 64) - 1), ('float16', 0.5), ('float32', 1.25), ('float64', 0.1),
    ('float32', float('inf')), ('complex64', 1 - 2j), ('complex128', 0.1 + 3j), ('float32', 3)])
def test_fills_set_elements(device, stream, numpy, dtype, value):   # keeps Y2
    buffer = device.allocate_shared((5, 7), dtype)
    stream.fill(buffer, value)
    with buffer.host('r') as scope:
        assert scope.tobytes() == numpy.full((5, 7), value, dtype).tobytes()
    stream.fill(buffer, numpy.full(1, value, dtype)[0])   # a scalar of NumPy
    with buffer.host('r') as scope:
        assert scope.tobytes() == numpy.full((5, 7), value, dtype).tobytes()
    stream.fill(device.allocate_shared(0, dtype), value)


@pytest.mark.parametrize('value, bits', [(1, 0x3f80), (-2.5, 0xc020), (1 + 2**-8, 0x3f80), (1 + 3 * 2**-8, 0x3f82),
                                         (1 + 2**-8 + 2**-20, 0x3f81), (3.4e38, 0x7f80), (float('-inf'), 0xff80)])
def test_fills_round_to_bfloat16(device, stream, value, bits):
    buffer = device.allocate_shared(3, 'bfloat16')
    stream.fill(buffer, value)
    with buffer.host('r') as scope:
        assert scope.tobytes() == bits.to_bytes(2, sys.byteorder) * 3
    stream.fill(buffer, float('nan'))
    with buffer.host('r') as scope:
        assert int.from_bytes(scope.tobytes()[:2], sys.byteorder) & 0x7fff > 0x7f80


@pytest.mark.parametrize('dtype, value', [('uint8', -1), ('uint8', 256), ('int8', 128), ('int64', 1 << 63), ('float16', 1e6),
                                          ('float32', 1e39), ('complex64', 1e39j)])
def test_values_that_no_element_has_are_refused(device, stream, dtype, value):
    buffer = device.allocate_shared(4, dtype)
    with pytest.raises(isthmus.InvalidArgument, match=dtype):
        stream.fill(buffer, value)
    with pytest.raises(TypeError):
        stream.fill(buffer, 'text' if 'int' in dtype else [])
    if 'int' in dtype:
        with pytest.raises(TypeError):
            stream.fill(buffer, 1.5)


def test_wrong_copies_and_fills_are_refused(device, stream):
    a, b = device.allocate_shared(64), device.allocate_shared(32)
    with pytest.raises(isthmus.InvalidArgument, match='64'):
        stream.copy(b, a)
    with pytest.raises(isthmus.InvalidArgument, match='uint8'):
        stream.fill(a, 256)
    for other in (None, bytearray(64)):
        with pytest.raises(TypeError, match='adopt'):
            stream.copy(a, other)
        with pytest.raises(TypeError, match='adopt'):
            stream.copy(other, a)
        with pytest.raises(TypeError, match='adopt'):
            stream.fill(other, 1)


def test_streams_wait_for_events_and_streams(device, stream, kernels):
    other = device.create_stream(high_priority=True)
    buffer = device.allocate_shared(1, 'u4')
    stream.fill(buffer, 0)
    kernels.churn(stream, 1, buffer, 1 << 22)
    other.wait(stream.record())
    other.wait(stream)
    other.fill(buffer, 9)
    with buffer.host('r') as scope:
        assert memoryview(scope).tolist() == [9]


def test_streams_compare_by_what_they_are(device, stream):
    assert device.stream == device.stream and hash(device.stream) == hash(device.stream)
    assert device.stream != stream and stream != 5
    if not device.is_cpu:
        assert device.wrap_stream(stream.native_handle) == stream


def test_native_handles(device, stream):
    if device.is_cpu:
        with pytest.raises(isthmus.Unsupported):
            stream.native_handle
        with pytest.raises(isthmus.Unsupported):
            device.wrap_stream(1234)
        assert stream.record().native_handle == 0
    else:
        event = stream.record()
        assert stream.native_handle and event.native_handle
        device.create_stream().wait(event.native_handle)
        assert device.wrap_stream(0) == device.wrap_stream(0)   # the legacy default stream


def test_a_deadline_ends_a_wait_and_not_the_work(device, stream, gate):
    if device.is_cpu:
        pytest.skip('work of the CPU device is over when the launch returns')
    buffer = device.allocate_shared(1, 'u4', kind='pinned')
    gate.hold(stream, buffer)
    event = stream.record()
    assert not event.finished and not stream.finished
    with pytest.raises(isthmus.TimedOut) as late:
        stream.synchronize(wait=0.001)
    assert isinstance(late.value, TimeoutError)
    with pytest.raises(isthmus.NotReady):
        stream.synchronize(wait=0)
    gate.open()
    device.synchronize()
    assert event.finished


@pytest.mark.parametrize('waiting', ['stream', 'device', 'host scope'])
def test_waits_let_other_threads_run(device, stream, gate, waiting):   # keeps Y3
    buffer = device.allocate_shared(1, 'u4', kind=None if device.is_cpu else 'pinned')
    waits = {'stream': stream.synchronize, 'device': device.synchronize, 'host scope': lambda: buffer.host('r').close()}
    with gate.open_later():
        gate.hold(stream, buffer)   # on the CPU device the launch itself waits
        waits[waiting]()


def test_threads_use_streams_and_buffers_together(device):   # keeps Y3
    problems = []

    def work(number):
        try:
            stream = device.create_stream()
            for turn in range(50):
                buffer = device.allocate_shared(256)
                stream.fill(buffer, (number + turn) % 256)
                with buffer.host('r') as scope:
                    assert scope.tobytes() == bytes([(number + turn) % 256]) * 256
        except BaseException as problem:
            problems.append(problem)
    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
