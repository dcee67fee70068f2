# SPDX-License-Identifier: Apache-2.0
"""Kernels by name."""
import ctypes
import re

import pytest

import isthmus


def test_a_kernel_runs_by_name(device, stream, kernels):
    buffer = device.allocate_shared(1000)
    stream.fill(buffer, 10)
    kernels.find('test.brighten')(stream, 1000, buffer, 40)
    with buffer.host('r') as scope:
        assert scope.tobytes() == b'\x32' * 1000


def test_kernels_of_two_dimensions_and_of_several_types(device, stream, kernels, numpy):
    out, source = device.allocate_shared((3, 5), 'f4'), device.allocate_shared((3, 5), 'f4')
    with source.host('w') as scope:
        scope[:] = numpy.arange(15, dtype='f4').reshape(3, 5)
    assert kernels.scale.rank == 2
    kernels.scale(stream, (5, 3), out, source, 0.5, 5)
    with out.host('r') as scope:
        assert (numpy.asarray(scope) == numpy.arange(15).reshape(3, 5) / 2).all()


def test_kernels_are_listed_and_say_what_they_take(kernels):
    assert {'test.brighten', 'scale', 'churn', 'wait_for_gate'} <= set(kernels.names())
    assert re.search(r'View<.*> pixels, int by', repr(kernels.find('test.brighten')))
    assert [one.split()[-1] for one in kernels.scale.parameters] == ['out', 'in', 'by', 'width']


def test_wrong_launches_are_refused_and_change_nothing(device, stream, kernels):
    buffer = device.allocate_shared(16)
    stream.fill(buffer, 1)
    brighten = kernels.find('test.brighten')
    for arguments, words in (((buffer,), 'takes 2'), ((buffer, 'x'), 'by'), ((buffer, 2**40), 'by'), ((buffer, 1.5), 'by'),
                             ((3, buffer), 'pixels')):
        with pytest.raises(isthmus.InvalidArgument, match=words):
            brighten(stream, 16, *arguments)
    with pytest.raises(isthmus.InvalidArgument):
        brighten(stream, (1, 2, 3, 4), buffer, 1)
    with buffer.host('rw'), pytest.raises(isthmus.InUse):
        brighten(stream, 16, buffer, 1)
    with buffer.host('r') as scope:
        assert scope.tobytes() == b'\1' * 16


def test_values_may_come_as_bytes_and_ctypes(device, stream, kernels):
    buffer = device.allocate_shared(4)
    stream.fill(buffer, 0)
    kernels.find('test.brighten')(stream, 4, buffer, ctypes.c_int(3))
    kernels.find('test.brighten')(stream, 4, buffer, (4).to_bytes(4, 'little'))
    with buffer.host('r') as scope:
        assert scope.tobytes() == b'\7' * 4


def test_an_unknown_name_is_refused_with_the_near_one(kernels):
    with pytest.raises(isthmus.InvalidArgument, match="'test.brighten'"):
        kernels.find('test.brihten')
    with pytest.raises(AttributeError, match='no kernel'):
        kernels.nothing_like_it


def test_the_camera_kernels_are_in_the_wheel(device, stream):   # keeps Y2
    kernel = isthmus.kernels.find('camera.smooth')
    assert kernel.rank == 2 and 'camera.to_gray' in isthmus.kernels.names()
    assert isthmus.kernels.load_camera() == ()


def test_buffers_of_other_elements_are_refused(device, stream, kernels):   # keeps Y2
    brighten, scale = kernels.find('test.brighten'), kernels.find('scale')
    floats, bytes_of = device.allocate_shared(16, 'f4'), device.allocate_shared(64)
    stream.fill(floats, 0)
    with pytest.raises(isthmus.InvalidArgument, match='reshaped'):
        brighten(stream, 16, floats, 1)
    with pytest.raises(isthmus.InvalidArgument, match='a buffer of uint8'):
        scale(stream, (4, 4), floats, bytes_of, 1.0, 4)
    with floats.host('r') as scope:
        assert scope.tobytes() == bytes(64)
    brighten(stream, 64, floats.reshaped(64, 'u1'), 1)
    with floats.host('r') as scope:
        assert scope.tobytes() == bytes([1] * 64)
