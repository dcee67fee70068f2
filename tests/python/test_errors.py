# SPDX-License-Identifier: Apache-2.0
"""Errors: each kind has a class, and its fields say what, why and what else."""
import pytest

import isthmus


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


@pytest.mark.parametrize('shape, dtype', [((-1,), 'u1'), (4, 'nothing'), (4, '>f4'), (4, object)])
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
