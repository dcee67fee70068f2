# SPDX-License-Identifier: Apache-2.0
"""NVRTC: a stand-in for libnvrtc, whose source is PTX already (fake_nvrtc.c), gives every answer; the real one compiles CUDA
C++ where it is installed, and a GPU runs it. On a machine with a GPU: ISTHMUS_TEST_MACHINE=here."""
import os
import pathlib
import shutil
import sys

import pytest

import isthmus
from conftest import MACHINE
from isthmus import nvrtc
from isthmus.kernels import StandIn
from test_modules import PARAMETERS, PTX, brighten_on_cpu, content, filled

SOURCE = '''
extern "C" __global__ void brighten(unsigned char* pixels, unsigned count, int by) {
    const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) pixels[at] += by;
}
template <typename T> __global__ void scale(T* values, T by) {
    values[threadIdx.x] *= by;
}
'''
STAND_INS = {'brighten': StandIn(brighten_on_cpu, *PARAMETERS)}


@pytest.fixture
def fake(monkeypatch):
    path = pathlib.Path(os.environ.get('ISTHMUS_TEST_KERNELS', '/nonexistent')).with_name('libfake_nvrtc.so')
    if not path.exists():
        pytest.skip('the stand-in for libnvrtc is not built')
    monkeypatch.setenv('ISTHMUS_NVRTC', str(path))
    return path


@pytest.fixture
def real(monkeypatch):
    monkeypatch.delenv('ISTHMUS_NVRTC', raising=False)
    try:
        return nvrtc.library()
    except isthmus.Unsupported as missing:
        pytest.skip(str(missing)[:200])


def test_source_becomes_a_module(device, stream, fake):   # keeps Y2
    module = isthmus.kernels.compile(device, PTX.decode(), options=['--use_fast_math'], stand_ins=STAND_INS,
                                     headers={'b.h': 'int x;', 'a.h': b'12345'}, name='mine.cu')
    major, minor = device.compute_capability or (7, 5)
    assert f'_{10 * major + minor}' in module.log and 'mine.cu includes a.h with 5 bytes' in module.log
    buffer = filled(device, stream)
    module.find('brighten', *PARAMETERS)(stream, 4, 256, buffer, 1000, 5)
    assert content(buffer) == bytes([105]) * 1000


def test_entries_are_found_by_their_names_in_cpp(device, fake):
    ptx = PTX.decode().replace('brighten', 'lowered_brighten')
    module = isthmus.kernels.compile(device, ptx, entries=['brighten'], stand_ins=STAND_INS)
    assert module.entries == ('lowered_brighten',)
    assert module.find('brighten', *PARAMETERS).name == 'brighten'
    with pytest.raises(isthmus.Error, match='INTERNAL'):
        isthmus.kernels.compile(device, ptx + '// no names', entries=['brighten'])


def test_what_does_not_compile_is_refused_with_the_compilers_words(device, fake):   # keeps Y2
    for text, options, kind, words in (
            ('#error', (), isthmus.NoGpuCode, r'kernels.cu\(1\): error'),
            ('', ('--wrong',), isthmus.InvalidArgument, 'unknown option --wrong'),
            ('no memory', (), isthmus.OutOfMemory, 'MEMORY'),
            ('no builtins', (), isthmus.Unsupported, 'libnvrtc-builtins'),
            ('', ('-arch=nothing',), isthmus.InvalidArgument, "'nothing'"),
            ('', '--use_fast_math', isthmus.InvalidArgument, 'a list')):
        with pytest.raises(kind, match=words):
            isthmus.kernels.compile(device, text, options=options)


def test_the_architecture_is_the_devices(device, fake, monkeypatch):
    capability = device.compute_capability
    number = 10 * capability[0] + capability[1] if capability else 0
    assert device.is_cpu == (capability is None)
    monkeypatch.setenv('FAKE_NVRTC_ARCHITECTURES', f'999 70 {number or 75}')
    assert nvrtc.architecture_of(device) == (f'sm_{number}' if number else 'compute_70')
    monkeypatch.setenv('FAKE_NVRTC_ARCHITECTURES', '70 72 999')
    assert nvrtc.architecture_of(device) == ('compute_72' if number else 'compute_70')   # the driver compiles it
    monkeypatch.setenv('FAKE_NVRTC_ARCHITECTURES', '998 999')
    if number:
        with pytest.raises(isthmus.Unsupported, match='99.8 and newer'):
            nvrtc.architecture_of(device)
    assert nvrtc.compiled('x', 'sm_75', options=['--gpu-architecture=compute_80']).log == 'for compute_80'


def test_without_nvrtc_the_remedy_is_said(device, monkeypatch):   # keeps Y2
    monkeypatch.setenv('ISTHMUS_NVRTC', '/nonexistent/libnvrtc.so.12')
    with pytest.raises(isthmus.Unsupported, match='/nonexistent/libnvrtc.so.12') as refused:
        isthmus.kernels.compile(device, SOURCE)
    assert 'pip install nvidia-cuda-nvrtc-cu12' in refused.value.remedy
    with pytest.raises(isthmus.Unsupported):   # a library without NVRTC's functions
        monkeypatch.setenv('ISTHMUS_NVRTC', 'libm.so.6')
        nvrtc.version()


def test_nvrtc_is_found_where_wheels_and_toolkits_have_it(fake, tmp_path, monkeypatch):
    monkeypatch.delenv('ISTHMUS_NVRTC')
    old, new, toolkit = (tmp_path / 'nvidia' / 'cuda_nvrtc' / 'lib', tmp_path / 'nvidia' / 'cu13' / 'lib',
                         tmp_path / 'toolkit' / 'lib64')
    for folder, names in ((old, ('libnvrtc.so.12', 'libnvrtc-builtins.so.12.9', 'libnvrtc.alt.so.12')),
                          (new, ('libnvrtc.so.13', 'libnvrtc-builtins.so.13.0')),
                          (toolkit, ('libnvrtc.so', 'libnvrtc.so.9', 'libnvrtc.so.12', 'libnvrtc.so.11.2'))):
        folder.mkdir(parents=True)
        for name in names:
            shutil.copy(fake, folder / name)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, 'nvidia', None)
    monkeypatch.delitem(sys.modules, 'nvidia')
    monkeypatch.setenv('CUDA_HOME', str(tmp_path / 'toolkit'))
    found = [path for path in nvrtc.candidates() if str(tmp_path) in path]
    assert found == [str(path) for path in (
        new / 'libnvrtc.so.13', old / 'libnvrtc.so.12', toolkit / 'libnvrtc.so.12', toolkit / 'libnvrtc.so.11.2',
        toolkit / 'libnvrtc.so.9', toolkit / 'libnvrtc.so')]
    assert nvrtc.version() == (12, 34)


def test_the_real_compiler_makes_what_the_device_loads(device, stream, real):   # keeps Y2
    module = isthmus.kernels.compile(device, SOURCE, entries=['scale<float>'], stand_ins={
        **STAND_INS, 'scale<float>': StandIn(lambda shape, values, by: values.__setitem__(0, by), 'rw float32', 'float32')})
    assert 'brighten' in module.entries and len(module.entries) == 2
    buffer = filled(device, stream)
    module.find('brighten', *PARAMETERS)(stream, 4, 256, buffer, 1000, 5)
    assert content(buffer) == bytes([105]) * 1000
    values = device.allocate_shared(32, 'f4')
    with values.host('w') as scope:
        for at in range(32):
            scope[at] = 1.0
    module.find('scale<float>', 'rw float32', 'float32')(stream, 1, 32, values, 0.5)
    with values.host('r') as scope:
        assert scope[0] == 0.5 and (MACHINE != 'here' or scope[31] == 0.5)
    with pytest.raises(isthmus.InvalidArgument):
        module.find('brighten', 'rw uint8', 'uint32')


def test_the_real_compilers_words_are_said(device, real):
    with pytest.raises(isthmus.NoGpuCode, match=r'mine.cu\(1\): error'):
        isthmus.kernels.compile(device, 'nonsense', name='mine.cu')
    with pytest.raises(isthmus.InvalidArgument, match='wrong'):
        isthmus.kernels.compile(device, SOURCE, options=['--wrong'])
    noisy = isthmus.kernels.compile(device, SOURCE + '__device__ int twice(int x) { int unused; return 2 * x; }',
                                    options=['--display-error-number'])
    assert isinstance(noisy.log, str)
