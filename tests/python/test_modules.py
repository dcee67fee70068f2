# SPDX-License-Identifier: Apache-2.0
"""Modules: images from memory and files, declared parameters, launches; functions of Python that stand in for GPU code."""
import ctypes
import sys
import threading

import pytest

import isthmus
from conftest import MACHINE
from isthmus.kernels import StandIn

PTX = b'''.version 7.0
.target sm_75
.address_size 64
.visible .entry brighten(.param .u64 pixels, .param .u32 count, .param .s32 by)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %a<4>;
    ld.param.u64 %a0, [pixels];
    ld.param.u32 %r0, [count];
    ld.param.s32 %r1, [by];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p, %r5, %r0;
    @%p bra done;
    cvta.to.global.u64 %a1, %a0;
    cvt.u64.u32 %a2, %r5;
    add.s64 %a3, %a1, %a2;
    ld.global.u8 %r6, [%a3];
    add.s32 %r7, %r6, %r1;
    st.global.u8 [%a3], %r7;
done:
    ret;
}
'''
PARAMETERS = ('rw uint8', 'uint32', 'int32')


def brighten_on_cpu(shape, pixels, count, by):
    for at in range(count):
        pixels[at] = (pixels[at] + by) % 256


@pytest.fixture
def brighten(device):
    module = isthmus.kernels.module(device, PTX, stand_ins={'brighten': StandIn(brighten_on_cpu, *PARAMETERS)})
    return module.find('brighten', *PARAMETERS)


def filled(device, stream, count=1000, value=100):
    buffer = device.allocate_shared(count)
    stream.fill(buffer, value)
    return buffer


def content(buffer):
    with buffer.host('r') as scope:
        return scope.tobytes()


def test_an_entry_runs_from_memory_and_from_a_file(device, stream, tmp_path):   # keeps Y2
    (tmp_path / 'image.ptx').write_bytes(PTX)
    seen = []

    def stand_in(shape, pixels, count, by):
        seen.append((shape.grid, shape.block, shape.shared_bytes, count, by))
        brighten_on_cpu(shape, pixels, count, by)
    for image in (PTX, bytearray(PTX), tmp_path / 'image.ptx', str(tmp_path / 'image.ptx')):
        module = isthmus.kernels.module(device, image, stand_ins={'brighten': StandIn(stand_in, *PARAMETERS)})
        assert module.entries == ('brighten',) and 'brighten' in repr(module)
        kernel = module.find('brighten', *PARAMETERS)
        assert repr(kernel) == '<isthmus kernel brighten(rw uint8, uint32, int32) of a module>'
        module.close()   # the kernel keeps it
        buffer = filled(device, stream)
        kernel(stream, 4, 256, buffer, 1000, -20, shared_bytes=16)
        assert content(buffer) == bytes([80]) * 1000
    assert seen == ([] if MACHINE == 'here' else [((4, 1, 1), (256, 1, 1), 16, 1000, -20)] * 4)


def test_launches_are_ordered_and_refused_as_others(device, stream, brighten):   # keeps Y2
    buffer = filled(device, stream)
    for _ in range(20):
        brighten(stream, (4,), (256, 1), buffer, 1000, 1)
    with buffer.host('r') as scope:
        assert scope.tobytes() == bytes([120]) * 1000
        with pytest.raises(isthmus.InUse):
            brighten(stream, 4, 256, buffer, 1000, 1)
    assert content(buffer) == bytes([120]) * 1000


def test_entries_and_parameters_that_the_image_lacks_are_refused(device):
    module = isthmus.kernels.module(device, PTX, stand_ins={'brighten': StandIn(brighten_on_cpu, *PARAMETERS)})
    with pytest.raises(isthmus.InvalidArgument, match='darken'):
        module.find('darken', *PARAMETERS)
    for wrong in (PARAMETERS[:2], (*PARAMETERS, 'int32'), ('rw uint8', 'uint32', 'int64')):
        with pytest.raises(isthmus.InvalidArgument, match='brighten'):
            module.find('brighten', *wrong)
    for no_parameter in ('x uint8', 'rw', 'uint7', 'rw  uint8 ', ''):
        with pytest.raises(isthmus.InvalidArgument):
            module.find('brighten', no_parameter, 'uint32', 'int32')


def test_arguments_that_do_not_fit_are_refused_and_change_nothing(device, stream, brighten, numpy):   # keeps Y2
    buffer = filled(device, stream)
    wider, fixed = device.allocate_shared(250, 'u4'), device.adopt(bytes(1000))
    for arguments, words in (((buffer, 1000), 'takes 3 arguments, not 2'), ((buffer, buffer, 1), "'uint32'"),
                             ((7, 1000, 1), "'rw uint8'.*a buffer"), ((buffer, -1, 1), "'uint32'"),
                             ((buffer, 2**32, 1), "'uint32'"), ((buffer, 1000, 1.5), "'int32'"),
                             ((buffer, 1000, 'x'), "'int32'"), ((wider, 1000, 1), "a buffer of uint32.*reshaped"),
                             ((buffer, 1000, ctypes.c_int64(1)), 'argument 3'), ((fixed, 1000, 1), 'read-only')):
        with pytest.raises(isthmus.InvalidArgument, match=words):
            brighten(stream, 4, 256, *arguments)
    for grid, block in ((4, 0), (-1, 256), ((1, 1, 1, 1), 256), (4, 1 << 20), (1 << 40, 1)):
        with pytest.raises(isthmus.InvalidArgument):
            brighten(stream, grid, block, buffer, 1000, 1)
    brighten(stream, 0, 256, buffer, 1000, 1)   # no blocks: nothing runs
    assert content(buffer) == bytes([100]) * 1000
    with pytest.raises(isthmus.InvalidHandle, match='closed'):
        brighten.close()
        brighten(stream, 4, 256, buffer, 1000, 1)


def test_values_come_as_numbers_bytes_and_ctypes(device, stream, brighten, numpy):
    buffer = filled(device, stream)
    for count, by in ((numpy.uint32(1000), numpy.int8(1)), (ctypes.c_uint32(1000), (2).to_bytes(4, 'little')), (1000, True)):
        brighten(stream, 4, 256, buffer, count, by)
    assert content(buffer) == bytes([104]) * 1000


def test_registered_kernels_do_not_write_read_only_memory(device, stream, kernels):   # keeps Y2
    memory = bytes(64)
    fixed, out = device.adopt(memory), device.allocate_shared(16, 'f4')
    with pytest.raises(isthmus.InvalidArgument, match='read-only'):
        kernels.find('test.brighten')(stream, 64, fixed, 1)
    kernels.scale(stream, (16, 1), out, fixed.reshaped(16, 'f4'), 2.0, 16)   # reads it
    assert content(out) == bytes(64) and memory == bytes(64)


class Pair(ctypes.Structure):
    _fields_ = [('first', ctypes.c_int16), ('second', ctypes.c_double)]


STRUCTURED = b'''.version 7.0
.target sm_75
.address_size 64
.visible .entry pairs(.param .align 8 .b8 pair[16], .param .u64 half, .param .u64 words, .param .f32 by, .param .b16 small)
{
    ret;
}
'''


def test_structures_and_all_types_reach_a_stand_in(device, stream):
    if MACHINE == 'here':
        pytest.skip('a GPU runs the entry itself')
    seen = []

    def stand_in(shape, pair, half, words, by, small):
        seen.append((shape.grid, pair.first, pair.second, bytes(half[1]), words[3], by, small))
        words[3] = 5
    parameters = (Pair, 'r float16', 'rw int64', 'float32', 'float16')
    module = isthmus.kernels.module(device, STRUCTURED, stand_ins={'pairs': StandIn(stand_in, *parameters)})
    kernel = module.find('pairs', *parameters)
    assert 'Pair' in repr(kernel)
    half, words = device.allocate_shared(2, 'float16'), device.allocate_shared(4, 'i8')
    stream.fill(half, 17)   # 0x4c40
    stream.fill(words, 0)
    kernel(stream, (2, 3, 4), 32, Pair(-7, 0.5), half, words, 2.5, 1.5)
    with words.host('r') as scope:
        assert list(memoryview(scope)) == [0, 0, 0, 5]
    assert seen == [((2, 3, 4), -7, 0.5, (0x4c40).to_bytes(2, sys.byteorder), 0, 2.5, 1.5)]
    with pytest.raises(isthmus.InvalidArgument, match='Pair'):
        kernel(stream, 1, 32, 7, half, words, 2.5, 1.5)


def test_a_missing_stand_in_is_named(device):
    if MACHINE == 'here':
        pytest.skip('a GPU runs the entry itself')
    plain = isthmus.kernels.module(device, PTX)
    if device.is_cpu:
        with pytest.raises(isthmus.Unsupported, match='brighten'):
            plain.find('brighten', *PARAMETERS)
    else:
        plain.find('brighten', *PARAMETERS)                             # simulated machines run PTX
    module = isthmus.kernels.module(device, PTX, stand_ins={'brighten': StandIn(brighten_on_cpu, 'rw uint8')})
    with pytest.raises(isthmus.InvalidArgument, match='brighten'):
        module.find('brighten', *PARAMETERS)


def test_a_stand_in_outlives_what_python_drops(device, stream):   # keeps Y3
    if MACHINE == 'here':
        pytest.skip('a GPU runs the entry itself')
    import gc
    buffer, done = filled(device, stream), threading.Event()

    def stand_in(shape, pixels, count, by):
        brighten_on_cpu(shape, pixels, count, by)
        done.set()
    kernel = isthmus.kernels.module(device, PTX, stand_ins={'brighten': StandIn(stand_in, *PARAMETERS)}).find(
        'brighten', *PARAMETERS)
    kernel(stream, 4, 256, buffer, 1000, 1)
    del kernel, stand_in
    gc.collect()
    assert content(buffer) == bytes([101]) * 1000 and done.wait(10)


@pytest.mark.parametrize('what', ['module', 'adopted'])
def test_a_collection_in_a_stand_in_waits_for_nothing(device, what):   # keeps Y3
    if device.is_cpu or MACHINE == 'here':
        pytest.skip('its launches wait, or a GPU runs the entry itself')
    import gc
    import weakref

    class Holder(bytearray):
        pass
    stream, dropped, done, found = device.create_stream(), threading.Event(), threading.Event(), []

    def stand_in(shape, pixels, count, by):
        dropped.wait(30)
        found.append(gc.collect())   # on a thread of the library
        done.set()
    holder = Holder(4096)
    buffer = device.adopt(memoryview(holder)) if what == 'adopted' else filled(device, stream)
    kernel = isthmus.kernels.module(device, PTX, stand_ins={'brighten': StandIn(stand_in, *PARAMETERS)}).find(
        'brighten', *PARAMETERS)
    gc.collect()
    gc.disable()
    try:
        kernel(stream, 4, 256, buffer, 1000, 1)
        cycle = [kernel, buffer]   # their ends wait for the work that the stand-in is
        cycle.append(cycle)
        gone = weakref.ref(holder)
        del cycle, kernel, buffer, holder
        dropped.set()
        assert done.wait(30) and found[0] > 0
    finally:
        gc.enable()
    stream.synchronize()
    device.synchronize()
    assert gone() is None


@pytest.mark.parametrize('holder', ['sys', 'cycle', 'module'])
def test_the_interpreter_ends_while_stand_ins_run_and_wait(in_new_process, holder):   # keeps Y3
    if MACHINE == 'here':
        pytest.skip('a GPU runs the entry itself')
    said = in_new_process('''
        import atexit, threading
        from test_modules import PTX, PARAMETERS
        device = opened().default_device
        going, ends = threading.Event(), threading.Event()
        def stand_in(*arguments):
            going.set()
            ends.wait(30)
            print('over', flush=True)
        def used():
            stream, buffer = device.create_stream(), device.allocate_shared(64)
            module = isthmus.kernels.module(device, PTX, stand_ins={
                'brighten': isthmus.kernels.StandIn(stand_in, *PARAMETERS)})
            kernel = module.find('brighten', *PARAMETERS)
            if device.is_cpu:   # whose launches wait
                ends.set()
            for _ in range(4):
                kernel(stream, 1, 32, buffer, 64, 1)
            return [device, stream, buffer, module, kernel]
        things = used()
        assert going.wait(30)
        atexit.register(ends.set)
        if sys.argv[1] == 'sys':
            sys.things = things
        elif sys.argv[1] == 'cycle':
            things.append(things)
        if sys.argv[1] != 'module':
            del things, device
        print('end', flush=True)
    ''', holder)
    assert 'end' in said.split() and said.split().count('over') >= 1


def test_a_child_that_a_stand_in_forks_ends(in_new_process):   # keeps Y3
    if MACHINE != 'cpu':
        pytest.skip('the thread of a stand-in cannot go on in a child')
    said = in_new_process('''
        import os
        from test_modules import PTX, PARAMETERS
        device = opened().default_device
        buffer, children = device.allocate_shared(64), []
        def stand_in(*arguments):
            children.append(os.fork())
        module = isthmus.kernels.module(device, PTX, stand_ins={
            'brighten': isthmus.kernels.StandIn(stand_in, *PARAMETERS)})
        module.find('brighten', *PARAMETERS)(device.stream, 1, 32, buffer, 64, 1)
        if children[0] == 0:
            print(isthmus._library.glue_locked.isthmus_python_inside(), flush=True)
            sys.exit(0)
        os.waitpid(children[0], 0)
        print(isthmus._library.glue_locked.isthmus_python_inside())
    ''')
    assert said.split() == ['0', '0']


def test_an_exception_of_a_stand_in_is_reported_and_ends_nothing(device, stream, monkeypatch):   # keeps Y3
    if MACHINE == 'here':
        pytest.skip('a GPU runs the entry itself')
    import sys
    reported = []
    monkeypatch.setattr(sys, 'unraisablehook', lambda one: reported.append(repr(one.exc_value)))
    buffer = filled(device, stream)

    def stand_in(shape, pixels, count, by):
        raise RuntimeError('of the stand-in')
    kernel = isthmus.kernels.module(device, PTX, stand_ins={'brighten': StandIn(stand_in, *PARAMETERS)}).find(
        'brighten', *PARAMETERS)
    kernel(stream, 4, 256, buffer, 1000, 1)
    assert content(buffer) == bytes([100]) * 1000
    assert reported == ["RuntimeError('of the stand-in')"]


def test_images_that_are_none_are_refused(device, tmp_path):
    (tmp_path / 'text').write_text('no image')
    for image in (b'no image', b'\x7fELF no image', tmp_path / 'text'):
        with pytest.raises(isthmus.NoGpuCode):
            isthmus.kernels.module(device, image)
    with pytest.raises(isthmus.Error):
        isthmus.kernels.module(device, tmp_path / 'nothing.cubin')
