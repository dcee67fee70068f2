# SPDX-License-Identifier: Apache-2.0
"""PyTorch and CuPy on a GPU: round trips without copies, DLPack both ways, a model fed by a ring of another process.

On a machine with a GPU:  ISTHMUS_TEST_MACHINE=here python -m pytest tests/python/test_hardware.py
It skips where the GPU, PyTorch or CuPy is missing; simulated machines have no CUDA runtime library.
"""
import os
import subprocess
import sys
import textwrap
import warnings

import pytest

import isthmus
from conftest import MACHINE

pytestmark = pytest.mark.skipif(MACHINE != 'here', reason='needs a GPU: ISTHMUS_TEST_MACHINE=here')
KINDS = [None, 'pinned', 'managed', 'device']
COUNT = 1 << 20


@pytest.fixture(autouse=True)
def gpu(device):
    if device.is_cpu:
        pytest.skip('there is no GPU')
    return device


@pytest.fixture
def torch(gpu):
    torch = pytest.importorskip('torch')
    if not torch.cuda.is_available():
        pytest.skip('this PyTorch sees no GPU')
    torch.zeros(1, device=f'cuda:{gpu.ordinal}')   # its context and streams are there
    return torch


@pytest.fixture
def cupy(gpu):
    cupy = pytest.importorskip('cupy')
    try:
        cupy.cuda.Device(gpu.ordinal).use()
    except Exception as problem:
        pytest.skip(f'this CuPy sees no GPU: {problem}')
    return cupy


def shared(device, shape, dtype, kind=None):
    try:
        return device.allocate_shared(shape, dtype, kind=kind)
    except isthmus.Unsupported as refusal:
        pytest.skip(str(refusal))


def first_values(device, stream, buffer, count):
    """By a copy: on a discrete GPU the host may not view the device memory that PyTorch and CuPy allocate."""
    reached = shared(device, buffer.shape, buffer.dtype)
    stream.copy(reached, buffer)
    with reached.host('r') as scope:
        return [scope[at] for at in range(count)]


def filled(buffer, numpy, turn=0):
    values = ((numpy.arange(COUNT) + turn) % 1000).astype('f4')
    with buffer.host('w') as scope:
        scope[:] = values
    return values


@pytest.mark.parametrize('kind', KINDS)
def test_torch_works_on_the_buffer_and_the_host_sees_it(device, stream, torch, numpy, kind):   # keeps Y2
    buffer = shared(device, COUNT, 'f4', kind)
    for turn in range(3):
        values = filled(buffer, numpy, turn)
        with buffer.device(stream, 'rw') as scope:
            tensor = torch.from_dlpack(scope)
            assert tensor.data_ptr() == scope.pointer and tensor.is_cuda and tensor.device.index == device.ordinal
            tensor.mul_(2).add_(1)   # on torch's current stream, which waited for ours
            del tensor
        with buffer.host('r') as scope:
            assert (numpy.asarray(scope) == values * 2 + 1).all()
    if buffer.path != 'stage':
        assert buffer.staged_bytes == 0


def test_nothing_is_copied_on_pinned_memory(device, stream, torch, numpy):   # keeps Y2
    buffer = shared(device, COUNT, 'f4', 'pinned')
    filled(buffer, numpy)

    def add_one():
        with buffer.device(stream, 'rw') as scope:
            tensor = torch.from_dlpack(scope)
            tensor.add_(1)
            del tensor
        torch.cuda.synchronize()
    add_one()   # the first turn loads torch's kernel into device memory
    before = torch.cuda.memory_allocated(device.ordinal)
    free, _ = torch.cuda.mem_get_info(device.ordinal)
    for _ in range(9):
        add_one()
    with buffer.host('r') as scope:
        assert scope[0] == 10
    assert buffer.staged_bytes == 0 and torch.cuda.memory_allocated(device.ordinal) == before
    assert free - torch.cuda.mem_get_info(device.ordinal)[0] < COUNT * 4   # no copy of the buffer lies in device memory


def test_torch_on_the_scopes_own_stream(device, torch, numpy):   # keeps Y2
    stream = device.create_stream()
    buffer = shared(device, COUNT, 'f4')
    values = filled(buffer, numpy)
    with torch.cuda.stream(torch.cuda.ExternalStream(stream.native_handle, device=device.ordinal)):
        with buffer.device(stream, 'rw') as scope:
            tensor = torch.from_dlpack(scope)
            for _ in range(20):
                tensor.add_(1)
            del tensor
    with buffer.host('r') as scope:
        assert (numpy.asarray(scope) == values + 20).all()


def test_torch_on_a_stream_of_its_own_is_waited_for(device, stream, torch, numpy):   # keeps Y2
    buffer = shared(device, COUNT, 'f4')
    values, theirs = filled(buffer, numpy), torch.cuda.Stream(device.ordinal)
    with torch.cuda.stream(theirs):
        with buffer.device(stream, 'rw') as scope:
            tensor = torch.from_dlpack(scope)
            for _ in range(200):
                tensor.add_(1)
            del tensor
    with buffer.host('r') as scope:
        assert (numpy.asarray(scope) == values + 200).all()


def test_torch_takes_host_scopes(device, torch, numpy):   # keeps Y2
    buffer = shared(device, COUNT, 'f4')
    values = filled(buffer, numpy)
    tensor = torch.from_dlpack(buffer.host('rw'))
    assert not tensor.is_cuda and tensor[5] == values[5]
    tensor[5] = -1
    with pytest.raises(isthmus.InUse):
        buffer.host('r')
    del tensor
    with buffer.host('r') as scope:
        assert scope[5] == -1


def test_tensors_of_torch_are_adopted(device, stream, torch, numpy):   # keeps Y2
    tensor = torch.arange(COUNT, dtype=torch.float32, device=f'cuda:{device.ordinal}')
    tensor.mul_(3)   # adoption is behind it
    buffer = device.adopt(tensor)
    assert buffer.shape == (COUNT,) and str(buffer.dtype) == 'float32'
    assert first_values(device, stream, buffer, 8)[7] == 21
    stream.fill(buffer, 0)
    stream.synchronize()
    assert float(tensor.sum()) == 0
    host = torch.ones(4096, dtype=torch.int32)
    adopted = device.adopt(host)
    with adopted.host('rw') as scope:
        scope[0] = 9
    adopted.close()
    device.synchronize()
    assert host[0] == 9


def test_a_tensor_that_lives_on_is_warned_of(device, stream, torch):   # keeps Y3
    buffer = shared(device, 64, 'f4')
    with pytest.warns(isthmus.ScopeWarning):
        with buffer.device(stream, 'rw') as scope:
            tensor = torch.from_dlpack(scope)
    buffer.close()
    del buffer, scope
    tensor.add_(1)   # its memory is there
    torch.cuda.synchronize()
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        del tensor


@pytest.mark.parametrize('face', ['dlpack', 'cuda_array_interface'])
@pytest.mark.parametrize('kind', KINDS)
def test_cupy_works_on_the_buffer_and_the_host_sees_it(device, stream, cupy, numpy, kind, face):   # keeps Y2
    buffer = shared(device, COUNT, 'f4', kind)
    values = filled(buffer, numpy)
    with buffer.device(stream, 'rw') as scope:
        with cupy.cuda.ExternalStream(scope.stream_handle, device.ordinal):
            array = cupy.from_dlpack(scope) if face == 'dlpack' else cupy.asarray(scope)
            assert array.data.ptr == scope.pointer and array.shape == (COUNT,)
            array *= 2
            array += 1
            del array
    with buffer.host('r') as scope:
        assert (numpy.asarray(scope) == values * 2 + 1).all()
    if buffer.path != 'stage':
        assert buffer.staged_bytes == 0


def test_arrays_of_cupy_are_adopted(device, stream, cupy):   # keeps Y2
    array = cupy.arange(COUNT, dtype='f4')
    array *= 3
    buffer = device.adopt(array)
    assert first_values(device, stream, buffer, 8)[7] == 21


def test_a_model_is_fed_from_a_ring_of_another_process(device, torch, tmp_path):   # keeps Y2
    source = f'''
        import sys; sys.path.insert(0, {os.path.dirname(__file__)!r})
        import isthmus, time
        from conftest import opened
        with opened() as runtime:
            with isthmus.SharedRing(runtime.cpu, (480, 640), 'u1', at=sys.argv[1], policy='wait', reader_deadline=60,
                                    writable=True) as ring:
                print('there', flush=True)
                sys.stdin.readline()
                for number in range(120):
                    with ring.frame() as frame, frame.host('w') as pixels:
                        pixels[:] = bytes([number]) * (480 * 640)
    '''
    producer = subprocess.Popen([sys.executable, '-c', textwrap.dedent(source), str(tmp_path / 'ring')], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert producer.stdout.readline().strip() == 'there'
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3, stride=2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
                                torch.nn.Flatten(), torch.nn.Linear(4, 2)).cuda(device.ordinal).eval()
    stream, staged, sums = device.create_stream(), 0, []
    with isthmus.SharedReader(tmp_path / 'ring', device) as reader, torch.inference_mode(), torch.cuda.stream(
            torch.cuda.ExternalStream(stream.native_handle, device=device.ordinal)):
        producer.stdin.write('\n')
        producer.stdin.flush()
        for frame in reader:
            with frame.device(stream, 'r') as scope:
                picture = torch.from_dlpack(scope)
                sums.append(picture[0, 0].clone())
                answer = model(picture.float()[None, None] / 255)
                del picture
            staged += frame.buffer.staged_bytes if frame.buffer.path == 'pass' else 0
            assert frame.finish()
        assert answer.shape == (1, 2)
    assert producer.wait(60) == 0
    assert [int(one) for one in sums] == list(range(120)) and staged == 0


def test_a_million_scopes_leave_nothing_behind(device, stream):   # keeps Y3
    if not os.environ.get('ISTHMUS_TEST_LONG'):
        pytest.skip('takes minutes: ISTHMUS_TEST_LONG=1')
    buffer = shared(device, 4096, 'u1', 'pinned')

    def some(count):
        for _ in range(count):
            with buffer.device(stream, 'rw') as scope:
                scope.__dlpack__(stream=-1)
            with buffer.host('r') as scope:
                memoryview(scope).release()

    def pages():
        with open('/proc/self/statm', encoding='ascii') as file:
            return int(file.read().split()[1])
    some(10000)
    before = pages()
    some(490000)
    assert pages() - before < 1024
