# SPDX-License-Identifier: Apache-2.0
"""Host scopes: the buffer protocol, NumPy, what closes them, what is refused meanwhile."""
import array
import ctypes
import gc
import sys

import pytest

import isthmus
from conftest import asks_for_versions

TYPES = ['bool', 'int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'int64', 'uint64', 'float16', 'float32', 'float64',
         'complex64', 'complex128']


@pytest.mark.parametrize('dtype', TYPES)
def test_arrays_make_the_round_trip(device, numpy, dtype):   # keeps Y2
    buffer = device.allocate_shared((3, 4, 5), dtype)
    values = (numpy.arange(60).reshape(3, 4, 5) % 2 if dtype == 'bool' else numpy.arange(60).reshape(3, 4, 5)).astype(dtype)
    with buffer.host('w') as scope:
        assert scope.shape == (3, 4, 5) and str(scope.dtype) == dtype and scope.nbytes == values.nbytes
        scope[:] = values
    with buffer.host('r') as scope:
        assert numpy.asarray(scope).dtype == dtype
        assert (numpy.asarray(scope) == values).all() and (scope[1:, 2] == values[1:, 2]).all()
        if asks_for_versions(numpy):
            assert (numpy.from_dlpack(scope) == values).all()
        assert scope.tobytes() == values.tobytes()


def test_memory_is_shared_and_not_copied(device, numpy, from_dlpack):   # keeps Y2
    buffer = device.allocate_shared(64, 'u1')
    with buffer.host('rw') as scope:
        view, other = numpy.asarray(scope), from_dlpack(scope)
        view[5] = 77
        assert other[5] == 77 and memoryview(scope)[5] == 77 and scope[5] == 77
        assert view.ctypes.data == other.ctypes.data
        del view, other


def test_without_numpy_memoryviews_do(device):
    buffer = device.allocate_shared((2, 3), 'i4')
    with buffer.host('w') as scope:
        scope[:] = array.array('i', range(6)).tobytes()
        scope[1, 2] = -9
        assert scope[1, 2] == -9 and len(scope) == 2
    with buffer.host('r') as scope, memoryview(scope) as view:
        assert view.tolist() == [[0, 1, 2], [3, 4, -9]] and view.readonly and view.format == 'i'


def test_numpy_is_imported_only_where_it_is_asked_for(in_new_process):
    said = in_new_process('''
        with opened() as runtime:
            buffer = runtime.default_device.allocate_shared((4, 4), 'f4')
            with buffer.host('w') as scope: scope[:] = bytes(64)
            with buffer.host('r') as scope: assert memoryview(scope).tolist()[0] == [0, 0, 0, 0]
        print('numpy' in sys.modules)''')
    assert said.strip() == 'False'


def test_use_after_close_raises(device):   # keeps Y3
    buffer = device.allocate_shared(8)
    with buffer.host('rw') as scope:
        scope[0] = 1
    assert scope.closed
    for use in (lambda: scope[0], lambda: memoryview(scope), lambda: scope.tobytes(), lambda: scope.__dlpack__(),
                scope.__enter__):
        with pytest.raises((isthmus.InvalidHandle, BufferError)):
            use()
    with pytest.raises(isthmus.InvalidHandle):
        scope[0] = 1
    scope.close()
    scope.close()
    assert 'closed' in repr(scope)


def test_an_array_that_outlives_its_with_is_an_error_and_keeps_the_scope_open(device, stream, numpy):   # keeps Y3
    buffer = device.allocate_shared(8)
    with pytest.raises(isthmus.ArrayAlive, match='until it is gone') as refused:
        with buffer.host('w') as scope:
            kept = numpy.asarray(scope)
    assert isinstance(refused.value, BufferError) and isinstance(refused.value, isthmus.InUse)
    kept[:] = 3
    with pytest.raises(isthmus.InUse):
        stream.fill(buffer, 1)
    del kept, refused
    stream.fill(buffer, 1)
    with buffer.host('r') as scope:
        assert scope.tobytes() == b'\1' * 8


def test_a_tensor_that_outlives_its_with_does_so_too(device, from_dlpack):   # keeps Y3
    buffer = device.allocate_shared(8)
    with pytest.raises(isthmus.ArrayAlive):
        with buffer.host('rw') as scope:
            kept = from_dlpack(scope)
    with pytest.raises(isthmus.InUse):
        buffer.host('w')
    del kept
    buffer.host('w').close()


def test_a_memoryview_that_outlives_its_with_does_so_too(device):   # keeps Y3
    buffer = device.allocate_shared(8)
    with pytest.raises(isthmus.ArrayAlive):
        with buffer.host('rw') as scope:
            kept = memoryview(scope)
    with pytest.raises(isthmus.InUse):
        buffer.host('w')
    kept.release()
    buffer.host('w').close()


def test_an_exception_in_the_with_is_told_and_not_the_array_that_lives(device, stream, numpy):   # keeps Y3
    buffer = device.allocate_shared(8)

    def work():
        with buffer.host('w') as scope:
            kept = numpy.asarray(scope)
            kept[:] = 1
            raise KeyError('mine')
    with pytest.raises(KeyError, match='mine') as told:
        work()
    with pytest.raises(isthmus.InUse):   # the traceback holds the array
        stream.fill(buffer, 0)
    del told
    gc.collect()
    stream.fill(buffer, 0)


@pytest.mark.parametrize('mode', ['r', 'rw'])
def test_a_scope_lives_as_long_as_the_array_made_of_it(device, stream, numpy, mode, request):   # keeps Y3
    buffer = device.allocate_shared((2, 4), 'f4')
    make = numpy.asarray if mode == 'r' else request.getfixturevalue('from_dlpack')
    array_of_it = make(buffer.host(mode))
    part = array_of_it[1]
    del array_of_it
    with pytest.raises(isthmus.InUse):
        stream.fill(buffer, 0)
    del part
    stream.fill(buffer, 0)
    view = numpy.asarray(buffer.host('rw'))
    with pytest.raises(isthmus.InUse):
        stream.fill(buffer, 0)
    del view
    stream.fill(buffer, 0)


def test_a_dropped_scope_closes(device, stream):   # keeps Y3
    buffer = device.allocate_shared(8)
    scope = buffer.host('w')
    with pytest.raises(isthmus.InUse):
        stream.fill(buffer, 0)
    del scope
    stream.fill(buffer, 0)


def test_reading_scopes_refuse_writes(device, numpy):
    buffer = device.allocate_shared(8)
    with buffer.host('r') as scope:
        with pytest.raises(isthmus.InvalidArgument, match="'r'"):
            scope[0] = 1
        with pytest.raises(isthmus.InvalidArgument, match="'r'"):
            scope[:] = bytes(8)
        with pytest.raises(TypeError):
            memoryview(scope)[0] = 1
        with pytest.raises(ValueError):
            numpy.asarray(scope)[0] = 1


def test_scopes_that_conflict_are_refused_and_readers_go_together(device):
    buffer = device.allocate_shared(8)
    with buffer.host('r'), buffer.host('r'):
        with pytest.raises(isthmus.InUse) as refused:
            buffer.host('w')
    assert refused.value.code is isthmus.Code.IN_USE and refused.value.id == 'K010' and refused.value.remedy
    with pytest.raises(isthmus.InvalidArgument, match='mode'):
        buffer.host('x')


def test_rows_are_a_part_of_their_own(device, numpy):
    buffer = device.allocate_shared((6, 4), 'i2')
    with pytest.raises(TypeError, match='slice'):
        buffer.host('r', rows=2)
    with buffer.host('w') as scope:
        scope[:] = numpy.zeros((6, 4), 'i2')
    with buffer.host('rw', rows=slice(1, 3)) as some, buffer.host('rw', rows=slice(3, 6)) as others:
        assert some.shape == (2, 4) and others.shape == (3, 4)
        some[:] = numpy.full((2, 4), 1, 'i2')
        others[:] = numpy.full((3, 4), 2, 'i2')
    with buffer.host('r') as scope:
        assert numpy.asarray(scope).sum(axis=1).tolist() == [0, 4, 4, 8, 8, 8]
    for rows in (slice(3, 3), slice(0, 6, 2), slice(7, 9)):
        with pytest.raises(isthmus.InvalidArgument):
            buffer.host('r', rows=rows)


def test_a_wrong_shape_is_refused_and_nothing_is_written(device, numpy):
    buffer = device.allocate_shared((2, 2))
    with buffer.host('w') as scope:
        scope[:] = bytes([1, 2, 3, 4])
        with pytest.raises(ValueError):
            scope[:] = numpy.zeros((3, 3), 'u1')
        with pytest.raises(ValueError):
            scope[:] = bytes(5)
        assert scope.tobytes() == bytes([1, 2, 3, 4])


def test_wait_zero_is_refused_while_the_device_works(device, stream, gate):
    if device.is_cpu:
        pytest.skip('work of the CPU device is over when the launch returns')
    buffer = device.allocate_shared(1, 'u4', kind='pinned')
    stream.fill(buffer, 0)
    gate.hold(stream, buffer)
    with pytest.raises(isthmus.NotReady):
        buffer.host('r', wait=0)
    with pytest.raises(isthmus.TimedOut):
        buffer.host('r', wait=0.001)
    with pytest.raises(isthmus.InvalidArgument):
        buffer.host('r', wait=-2)
    gate.open()
    stream.synchronize()
    buffer.host('r', wait=0).close()


def test_scopes_leave_nothing_behind(device):   # keeps Y3
    buffer = device.allocate_shared(4096)

    class MallocInfo(ctypes.Structure):   # mallinfo2(3)
        _fields_ = [(name, ctypes.c_size_t) for name in 'arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks '
                                                        'fordblks keepcost'.split()]
    info = ctypes.CDLL(None).mallinfo2
    info.restype = MallocInfo

    def sizes():
        gc.collect()
        return info().uordblks, sys.getallocatedblocks()

    def some(count):
        for _ in range(count):
            with buffer.host('rw') as scope:
                memoryview(scope).release()
            buffer.host('r').__dlpack__(max_version=(1, 0))
    some(2000)
    size, blocks = sizes()
    some(20000)
    more_size, more_blocks = (now - before for now, before in zip(sizes(), (size, blocks)))
    assert more_size < 200_000 and more_blocks < 200   # a scope that leaked has 100 bytes


def test_the_buffer_has_no_faces_of_its_own(device):   # keeps Y2
    buffer = device.allocate_shared(8)
    assert not hasattr(buffer, '__dlpack__') and not hasattr(buffer, '__cuda_array_interface__')
    with pytest.raises(TypeError):
        memoryview(buffer)


def test_numpy_makes_no_array_of_one_object(device, stream, numpy):   # keeps Y2
    buffer = device.allocate_shared(8)
    stream.fill(buffer, 3)
    with pytest.raises(TypeError, match='scope'):
        numpy.asarray(buffer)
    with pytest.raises(TypeError, match='scope'):
        numpy.sum(buffer)
    with buffer.device(stream, 'r') as scope:
        if device.is_cpu:
            assert numpy.asarray(scope).tolist() == [3] * 8
        else:
            with pytest.raises(TypeError, match='scope'):
                numpy.asarray(scope)


@pytest.mark.parametrize('dtype', ['f2', 'c8', 'c16'])
def test_arrays_of_types_without_memoryviews_need_no_dlpack(device, numpy, monkeypatch, dtype):   # keeps Y2
    monkeypatch.delattr(isthmus.HostScope, '__dlpack__')   # whose arrays are read-only before NumPy 2.2
    buffer, values = device.allocate_shared((2, 3), dtype), numpy.arange(6, dtype=dtype).reshape(2, 3)
    with buffer.host('w') as scope:
        scope[:] = values
    with buffer.host('rw') as scope:
        scope[1] *= 2
        scope[0, 0] = 9
    with buffer.host('r') as scope:
        read = numpy.asarray(scope)
        assert read.tolist() == [[9, 1, 2], [6, 8, 10]] and not read.flags.writeable
        with pytest.raises(isthmus.ArrayAlive):
            scope.close()
        del read
    with buffer.host('w'):
        pass


def test_bytes_become_bools(device, numpy):
    buffer = device.allocate_shared(4, 'bool')
    for source in (bytes([0, 1, 2, 255]), numpy.array([0, 1, 2, 255], 'u1'), numpy.array([0, 1, 2, -1], 'i1'),
                   numpy.array([0, 1, 2, 3]), numpy.array([False, True, True, True])):
        with buffer.host('w') as scope:
            scope[:] = source
        with buffer.host('r') as scope:
            assert scope.tobytes() == bytes([0, 1, 1, 1])


@pytest.mark.parametrize('shape', [0, (0, 4), ()])
def test_buffers_without_elements_or_dimensions(device, numpy, shape):
    buffer = device.allocate_shared(shape, 'i4')
    with buffer.host('w') as scope:
        scope[...] = numpy.zeros(shape, 'i4')
    with buffer.host('r') as scope:
        assert numpy.asarray(scope).shape == numpy.zeros(shape).shape
        assert not numpy.asarray(scope).flags.writeable
        assert scope.tobytes() == b'' if shape != () else scope[()] == 0
    with buffer.host('rw') as scope:
        from_dlpack = getattr(numpy, 'from_dlpack', numpy.asarray)   # of NumPy 1.22
        assert numpy.asarray(scope).shape == numpy.zeros(shape).shape == from_dlpack(scope).shape


def test_python_312_and_older_ones_have_the_buffer_protocol(device):
    with device.allocate_shared(4).host('rw') as scope:
        view = memoryview(scope)
        assert view.obj is not None and view.nbytes == 4
        view.release()
    assert sys.version_info >= (3, 10)
