# SPDX-License-Identifier: Apache-2.0
"""Adoption: memory of other objects, how long they are kept, and who lets go of them."""
import array
import gc
import mmap
import threading
import weakref

import pytest

import foreign
import isthmus
from conftest import wait_until


class Owner(bytearray):
    """Can be watched."""


def test_buffers_of_python_are_used_in_place(device, stream):   # keeps Y2
    memory = bytearray(b'\1' * 4096)
    buffer = device.adopt(memory)
    assert buffer.shape == (4096,) and str(buffer.dtype) == 'uint8' and not buffer.readonly
    stream.fill(buffer, 6)
    with buffer.host('r') as scope:
        assert scope[0] == 6
    assert memory[0] == memory[4095] == 6
    buffer.close()


@pytest.mark.parametrize('source', [array.array('d', [1, 2, 3]), mmap.mmap(-1, 8192), memoryview(bytearray(64)).cast('H')])
def test_everything_with_the_buffer_protocol(device, source):
    buffer = device.adopt(source)
    view = memoryview(source)
    assert buffer.nbytes == view.nbytes and buffer.shape == view.shape and buffer.dtype.itemsize == view.itemsize
    view.release()
    buffer.close()
    device.synchronize()


def test_arrays_are_adopted_with_shape_and_type(device, stream, numpy):   # keeps Y2
    source = numpy.arange(24, dtype='f4').reshape(4, 6)
    buffer = device.adopt(source)
    assert buffer.shape == (4, 6) and str(buffer.dtype) == 'float32'
    with buffer.host('rw') as scope:
        scope[1, 1] = 100
    stream.synchronize()
    assert source[1, 1] == 100
    buffer.close()


def test_a_strict_array_is_adopted(device, strict):
    source = strict.asarray([[1, 2], [3, 4]], dtype=strict.int32)
    buffer = device.adopt(source)
    assert buffer.shape == (2, 2) and str(buffer.dtype) == 'int32'


def test_read_only_memory_gives_a_buffer_for_reading(device, stream):
    buffer = device.adopt(bytes(range(256)))
    assert buffer.readonly
    with buffer.host('r') as scope:
        assert scope.tobytes() == bytes(range(256))
    with buffer.device(stream, 'r') as scope:
        assert foreign.read_bytes(scope) == bytes(range(256))
    for use in (lambda: buffer.host('w'), lambda: buffer.device(stream, 'rw'), lambda: stream.fill(buffer, 0)):
        with pytest.raises(isthmus.InvalidArgument, match='read-only'):
            use()


def test_an_array_that_dlpack_refuses_is_adopted_by_its_buffer(device):   # keeps Y2
    class ReadOnlyBefore21(bytes):
        """As NumPy's read-only arrays before 2.1."""

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **_):
            raise BufferError('Cannot export readonly array since signalling readonly is unsupported by DLPack.')

    class Tensor:
        __dlpack_device__, __dlpack__ = ReadOnlyBefore21.__dlpack_device__, ReadOnlyBefore21.__dlpack__
    buffer = device.adopt(ReadOnlyBefore21(b'abcd'))
    assert buffer.readonly
    with buffer.host('r') as scope:
        assert scope.tobytes() == b'abcd'
    with pytest.raises(BufferError, match='readonly'):
        device.adopt(Tensor())


def test_the_object_is_kept_as_long_as_anything_uses_it(device, stream):   # keeps Y3
    memory = Owner(4096)
    gone = weakref.ref(memory)
    buffer = device.adopt(memory)
    del memory
    gc.collect()
    assert gone() is not None
    scope = buffer.host('r')
    buffer.close()
    gc.collect()
    assert gone() is not None
    scope.close()
    device.synchronize()
    assert wait_until(lambda: gone() is None)


def test_the_object_is_kept_by_tensors_and_work(device, stream, numpy):   # keeps Y3
    memory = Owner(4096)
    gone = weakref.ref(memory)
    buffer = device.adopt(memory)
    del memory
    kept = numpy.asarray(buffer.host('r'))
    buffer.close()
    del buffer
    gc.collect()
    assert gone() is not None and kept[0] == 0
    del kept
    device.synchronize()
    assert wait_until(lambda: gone() is None)


def test_threads_that_let_go_last_release(device):   # keeps Y3
    gone = []

    def work():
        memory = Owner(4096)
        gone.append(weakref.ref(memory))
        buffer = device.adopt(memory)
        del memory
        stream = device.create_stream()
        stream.fill(buffer, 1)
        del buffer   # the work still uses it
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    device.synchronize()
    assert wait_until(lambda: all(one() is None for one in gone))


def test_a_refused_adoption_lets_go_at_once(device, numpy):   # keeps Y3
    memory = Owner(4096)
    gone = weakref.ref(memory)
    buffer = device.adopt(memory)
    with pytest.raises(isthmus.InUse):
        device.adopt(memory)
    buffer.close()
    del memory
    device.synchronize()
    assert wait_until(lambda: gone() is None)
    source = numpy.zeros((8, 8))[:, ::2]
    with pytest.raises((isthmus.Unsupported, isthmus.InvalidArgument)):
        device.adopt(source)
    assert source.base is not None


def test_what_is_no_memory_is_refused(device):
    for source in (5, 'text', [1, 2], device.allocate_shared(4)):
        with pytest.raises(isthmus.InvalidArgument):
            device.adopt(source)
    with pytest.raises(isthmus.InvalidArgument, match='gaps'):
        device.adopt(memoryview(bytearray(16))[::2])


def test_tensors_of_the_device_are_adopted_in_order(device, stream):   # keeps Y2
    """A CUDA tensor of other code: here one that a device scope exported."""
    if device.is_cpu:
        pytest.skip('there is no CUDA device')
    first = device.allocate(4096, kind='device')
    stream.fill(first, 5)

    class Tensor:
        asked = []

        def __init__(self, scope):
            self.scope = scope

        def __dlpack_device__(self):
            return self.scope.__dlpack_device__()

        def __dlpack__(self, *, stream=None, **more):
            self.asked.append(stream)
            return self.scope.__dlpack__(stream=stream, **more)
    with first.device(stream, 'rw') as scope:
        try:
            second = device.adopt(Tensor(scope))
        except isthmus.InUse:
            second = None   # memory that this runtime has already: refused, and nothing is left
        assert Tensor.asked and Tensor.asked[0] == device.stream.native_handle
    del scope
    if second is not None:
        second.close()


@pytest.mark.parametrize('refusal', [TypeError, NotImplementedError])
def test_a_producer_of_the_old_protocol(device, numpy, from_dlpack, refusal):
    class Old:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **more):
            if more:
                raise refusal('max_version')
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return 1, 0
    source = numpy.arange(1024, dtype='i4')
    buffer = device.adopt(Old(source))
    with buffer.host('r') as scope:
        assert scope[1000] == 1000
    buffer.close()


def test_a_producer_that_fails_raises_its_error(device):
    class Broken:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **more):
            raise ValueError('mine')
    with pytest.raises(ValueError, match='mine'):
        device.adopt(Broken())
    Broken.__dlpack__ = lambda self, **more: 5
    with pytest.raises(BufferError, match='capsule'):
        device.adopt(Broken())
