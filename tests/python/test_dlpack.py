# SPDX-License-Identifier: Apache-2.0
"""DLPack from scopes: both protocols, their flags and arguments, and strict consumers."""
import ctypes
import gc
import re

import pytest

import isthmus
from conftest import asks_for_versions
from isthmus import _structures as structures
from isthmus import dlpack


def name_of(capsule):
    return re.search('"(.*)"', repr(capsule))[1]


def versioned(capsule):
    return structures.DLManagedTensorVersioned.from_address(dlpack._get_pointer(capsule, dlpack.VERSIONED))


def test_the_version_asked_for_chooses_the_protocol(device):   # keeps Y2
    buffer = device.allocate_shared((3, 4), 'f4')
    with buffer.host('rw') as scope:
        assert name_of(scope.__dlpack__()) == 'dltensor'
        assert name_of(scope.__dlpack__(max_version=None)) == 'dltensor'
        assert name_of(scope.__dlpack__(max_version=(0, 8))) == 'dltensor'
        for version in ((1, 0), (1, 3), (2, 0)):
            capsule = scope.__dlpack__(max_version=version)
            assert name_of(capsule) == 'dltensor_versioned' and versioned(capsule).major == 1
            del capsule


def test_tensors_say_what_the_scope_is(device):
    buffer = device.allocate_shared((3, 4), 'f4')
    with buffer.host('rw') as scope:
        capsule = scope.__dlpack__(max_version=(1, 0))
        tensor = versioned(capsule).tensor
        assert (tensor.ndim, tensor.code, tensor.bits, tensor.lanes, tensor.byte_offset) == (2, 2, 32, 1, 0)
        assert [tensor.shape[0], tensor.shape[1], tensor.strides[0], tensor.strides[1]] == [3, 4, 4, 1]
        assert (tensor.device_type, tensor.device_id) == scope.__dlpack_device__() == (1, 0)
        assert versioned(capsule).flags == 0
        del capsule


def test_read_only_scopes_say_so_or_are_refused(device, numpy, from_dlpack):   # keeps Y2
    with device.allocate_shared(4).host('r') as scope:
        capsule = scope.__dlpack__(max_version=(1, 0))
        assert versioned(capsule).flags == dlpack.READ_ONLY
        del capsule
        with pytest.raises(BufferError, match='max_version'):
            scope.__dlpack__()
        if asks_for_versions(numpy):
            assert not from_dlpack(scope).flags.writeable
        else:
            with pytest.raises(BufferError, match='numpy.asarray'):
                from_dlpack(scope)


def test_a_copy_is_made_where_it_is_asked_for(device, numpy, from_dlpack):
    with device.allocate_shared(4).host('rw') as scope:
        scope[:] = b'abcd'
        capsule = scope.__dlpack__(max_version=(1, 0), copy=True)
        assert versioned(capsule).flags == dlpack.IS_COPIED
        assert versioned(capsule).tensor.data != scope._pointer
        del capsule
        if not asks_for_versions(numpy):
            return   # its from_dlpack() takes no copy=
        copy = from_dlpack(scope, copy=True)
        shared = from_dlpack(scope, copy=False)
        scope[0] = 0
        assert copy.tobytes() == b'abcd' and shared.tobytes() == b'\0bcd'
        del shared
    assert copy.tobytes() == b'abcd'   # and it outlives the scope


def test_other_devices_and_streams_are_refused(device):
    with device.allocate_shared(4).host('rw') as scope:
        scope.__dlpack__(dl_device=(1, 0))
        with pytest.raises(BufferError, match='device'):
            scope.__dlpack__(dl_device=(2, 0))
        with pytest.raises(BufferError, match='stream'):
            scope.__dlpack__(stream=1)


def test_a_capsule_that_nobody_consumes_lets_go(device, stream):   # keeps Y3
    buffer = device.allocate_shared(4)
    for version in (None, (1, 0)):
        capsule = buffer.host('rw').__dlpack__(max_version=version)
        with pytest.raises(isthmus.InUse):
            stream.fill(buffer, 0)
        del capsule
        stream.fill(buffer, 0)


def test_a_capsule_is_consumed_once(device, from_dlpack):
    class Again:
        def __init__(self, capsule):
            self.capsule = capsule

        def __dlpack__(self, **ignored):
            return self.capsule

        def __dlpack_device__(self):
            return 1, 0
    buffer = device.allocate_shared(4)
    capsule = buffer.host('rw').__dlpack__()
    array = from_dlpack(Again(capsule))
    with pytest.raises(Exception):
        from_dlpack(Again(capsule))
    del array, capsule
    buffer.host('rw').close()


def test_a_strict_consumer_takes_scopes(device, strict):   # keeps Y2
    buffer = device.allocate_shared((2, 3), 'f4')
    with buffer.host('w') as scope:
        scope[:] = b''.join(ctypes.c_float(value) for value in range(6))
    array = strict.from_dlpack(buffer.host('rw'))
    assert array.shape == (2, 3) and array.dtype == strict.float32 and float(strict.sum(array)) == 15
    del array
    gc.collect()
    buffer.host('w').close()


def test_the_array_apis_types_name_element_types(device, strict):
    assert str(device.allocate_shared(4, strict.int16).dtype) == 'int16'


def test_on_the_device_side_both_protocols_name_the_device(device, stream):   # keeps Y2
    buffer = device.allocate_shared((3, 4), 'f4')
    own = (1, 0) if device.is_cpu else (2, device.ordinal)
    with buffer.device(stream, 'rw') as scope:
        assert scope.__dlpack_device__() == own
        capsule = scope.__dlpack__(stream=None if device.is_cpu else -1, max_version=(1, 0))
        tensor = versioned(capsule).tensor
        assert (tensor.device_type, tensor.device_id, tensor.data) == (*own, scope.pointer)
        assert [tensor.shape[0], tensor.shape[1]] == [3, 4]
        assert name_of(scope.__dlpack__(stream=None if device.is_cpu else -1)) == 'dltensor'
        scope.__dlpack__(stream=None if device.is_cpu else -1, dl_device=own)
        with pytest.raises(BufferError):
            scope.__dlpack__(stream=None if device.is_cpu else -1, dl_device=(9, 0))
        if not device.is_cpu:
            with pytest.raises(BufferError, match='copy'):
                scope.__dlpack__(stream=-1, copy=True)
            for stream_number in (0, 2):
                with pytest.raises(BufferError, match='stream'):
                    scope.__dlpack__(stream=stream_number)
        else:
            with pytest.raises(BufferError, match='stream'):
                scope.__dlpack__(stream=1)
        del capsule


def test_bfloat16_goes_by_dlpack_alone(device):
    with device.allocate_shared(4, 'bfloat16').host('rw') as scope:
        capsule = scope.__dlpack__(max_version=(1, 0))
        assert (versioned(capsule).tensor.code, versioned(capsule).tensor.bits) == (4, 16)
        del capsule
        with pytest.raises(BufferError, match='bfloat16'):
            memoryview(scope)


def test_names_of_capsules_outlive_the_interpreters_objects(device, numpy, from_dlpack):   # keeps Y3
    """The interpreter's end drops them after the bytes of Python: the names are in the library in C."""
    with open('/proc/self/maps', encoding='ascii') as file:
        places = [tuple(int(end, 16) for end in line.split()[0].split('-')) for line in file
                  if 'libisthmus-python.so' in line]
    address_of = ctypes.pythonapi.PyCapsule_GetName
    address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object]

    class Producer:
        def __init__(self):
            self.array, self.capsules = numpy.zeros(64, 'u1'), []

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, **options):
            self.capsules.append(self.array.__dlpack__(**options))
            return self.capsules[-1]
    producer, buffer = Producer(), device.allocate_shared(16)
    with device.adopt(producer).host('r'), buffer.host('rw') as scope:
        capsules = [scope.__dlpack__(), scope.__dlpack__(max_version=(1, 0)), *producer.capsules]
        assert len(capsules) == 3
        for capsule in capsules:
            assert any(begin <= address_of(capsule) < end for begin, end in places), capsule
        del capsules, capsule
