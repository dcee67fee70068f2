# SPDX-License-Identifier: Apache-2.0
"""Errors: each kind has a class, and its fields say what, why and what else."""
import math
import sys

import pytest

import isthmus
from conftest import opened


def test_an_error_has_code_id_message_and_remedy(device):
    buffer = device.allocate_shared(4)
    with buffer.host('w'), pytest.raises(isthmus.InUse) as told:
        buffer.host('w')
    error = told.value
    assert isinstance(error, isthmus.Error) and isinstance(error, RuntimeError)
    assert error.code is isthmus.Code.IN_USE and error.code == 4 and error.id[0].isalpha() and error.id[1:].isdigit()
    assert error.message and error.remedy and error.message in str(error) and error.remedy in str(error)
    assert error.driver_code == 0


@pytest.mark.parametrize('code', [code for code in isthmus.Code if code])
def test_every_code_makes_an_error_of_its_kind(code):
    from isthmus.errors import class_of
    error = class_of(code)('what', 'else', code=code, id='X001')
    assert error.code is code and error.message == 'what' and error.remedy == 'else' and error.id == 'X001'
    assert str(error) == 'what. Try: else'
    assert not isinstance(error, isthmus.ArrayAlive)


def test_a_code_of_a_newer_library_is_an_error_all_the_same():
    from isthmus.errors import class_of
    assert class_of(4711) is isthmus.Error and isthmus.Error('what', code=4711).code == 4711


@pytest.mark.parametrize('given, kind', [('timed_out', TimeoutError), ('out_of_memory', MemoryError),
                                         ('not_permitted', PermissionError), ('peer_lost', ConnectionError),
                                         ('invalid_argument', ValueError), ('not_ready', BlockingIOError)])
def test_pythons_own_kinds_catch_them(given, kind):
    from isthmus.errors import class_of
    assert issubclass(class_of(isthmus.Code[given.upper()]), kind)


def test_no_memory_is_a_memory_error(device):
    with pytest.raises(MemoryError) as told:
        device.allocate_shared(1 << 46)
    assert told.value.code is isthmus.Code.OUT_OF_MEMORY


@pytest.mark.parametrize('shape, dtype', [((-1,), 'u1'), (4, 'nothing'), (4, '>f4'), (4, object),
                                          (2**64 + 16, 'u1'), ((2**32, 2**32), 'u1'), ((0, 2**40, 2**40), 'u1'),
                                          (2**60, 'complex128')])
def test_wrong_shapes_and_types_are_refused(device, shape, dtype):
    with pytest.raises(isthmus.InvalidArgument):
        device.allocate_shared(shape, dtype)


def test_wrong_uses_are_refused_with_the_right_ones(device):
    with pytest.raises(isthmus.InvalidArgument, match='reads_once'):
        device.allocate_shared(4, host='sometimes')
    with pytest.raises(isthmus.InvalidArgument, match='pinned'):
        device.allocate(4, kind='pined')
    with pytest.raises(isthmus.InvalidArgument, match='throughput'):
        device.allocate_shared(4, prefer='both')


def test_numbers_that_c_would_take_modulo_a_power_of_two_are_refused(device, stream, kernels):   # keeps Y2
    buffer = device.allocate_shared(4)
    stream.fill(buffer, 1)
    for call in (lambda: device.allocate_shared(4, alignment=2**64 + 256), lambda: device.allocate_shared(4, alignment=-1),
                 lambda: opened(cpu_threads=2**32 + 1), lambda: isthmus.SharedRing(device, 4, slots=2**32 + 4),
                 lambda: kernels.find('test.brighten')(stream, 2**64 + 1, buffer, 1),
                 lambda: stream.wait(2**64 + 4096), lambda: stream.wait(-1), lambda: device.wrap_stream(2**64)):
        with pytest.raises(isthmus.InvalidArgument):
            call()
    for wrong in ('name', 1.5, None):
        with pytest.raises(TypeError):
            device.wrap_stream(wrong)
        with pytest.raises(TypeError):
            stream.wait(wrong)
    with buffer.host('r') as scope:
        assert scope.tobytes() == bytes([1] * 4)


def test_types_of_numpy_with_the_other_byte_order_are_refused(device, numpy):
    other = '>' if sys.byteorder == 'little' else '<'
    for given in (other + 'f4', numpy.dtype(other + 'f4')):
        with pytest.raises(isthmus.InvalidArgument, match='byte order'):
            device.allocate_shared(4, given)
    assert device.allocate_shared(4, numpy.dtype('f4')).dtype.name == 'float32'


def test_waits_of_every_length(device, stream):   # keeps Y3
    buffer = device.allocate_shared(4)
    stream.fill(buffer, 1)
    for wait in (math.inf, 1e300, 3600, True):
        stream.synchronize(wait)
        buffer.host('r', wait=wait).close()
    for wait in (math.nan, -math.inf, -1e-12):
        for call in (stream.synchronize, lambda wait: buffer.host('r', wait=wait)):
            with pytest.raises(isthmus.InvalidArgument, match='wait of'):
                call(wait)
    for limit in (0, math.nan, -1):
        with pytest.raises(isthmus.InvalidArgument):
            opened(wait_timeout=limit)
    with opened(wait_timeout=math.inf) as runtime:
        runtime.synchronize()


def test_a_short_wait_is_a_wait(device, stream, gate):
    if device.is_cpu:
        pytest.skip('its launches wait')
    buffer = device.allocate_shared(1, 'u4')
    gate.hold(stream, buffer)
    with pytest.raises(isthmus.TimedOut):
        stream.synchronize(1e-12)
    with pytest.raises(isthmus.NotReady):
        stream.synchronize(0)
    gate.open()
    stream.synchronize()


def test_what_is_no_buffer_is_refused_by_scopes(stream, numpy):
    with pytest.raises(TypeError, match='ndarray is no buffer'):
        stream.scope(isthmus.reads(numpy.zeros(4)))


def test_an_object_of_another_kind_is_refused(device, stream, kernels):   # keeps Y2
    """C takes one pointer for another."""
    buffer = device.allocate_shared(64)
    for call in (lambda: buffer.device(device, 'r'), lambda: buffer.device(buffer, 'r'), lambda: buffer.device(None, 'r'),
                 lambda: kernels.find('test.brighten')(device, 64, buffer, 1), lambda: isthmus.SharedRing(stream, 64),
                 lambda: isthmus.SharedReader('/nowhere', stream, connect=0), lambda: device.can_access(stream),
                 lambda: kernels.module(stream, b'.version 7.0')):
        with pytest.raises(TypeError, match='where a'):
            call()
    with buffer.device(stream, 'r') as scope:
        with pytest.raises(TypeError, match='where a Stream'):
            scope.joins(device)
