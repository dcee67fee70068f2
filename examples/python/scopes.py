#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The excerpts of docs/python.md. usage: scopes.py [MACHINE]"""
import sys

# show: first
import numpy

import isthmus

# end


def first_minute(machine):
    # show: minute
    with isthmus.open(machine=machine) as runtime:          # machine='orin': a simulated Jetson; None: this machine
        device = runtime.default_device                     # the first GPU, otherwise the CPU
        print(device.capabilities['pageable_access'])       # the reason; `if` asks for the answer
        buffer = device.allocate_shared((480, 640), 'u1', host='writes_often', device='reads_and_writes')
        print(buffer.kind, buffer.explain)
        with buffer.host('w') as pixels:                    # the CPU's turn
            pixels[:] = numpy.full((480, 640), 7, 'u1')
        device.stream.fill(buffer, 8)                       # the GPU's turn
        with buffer.host('r') as pixels:                    # waits for that work, and for nothing else
            assert numpy.asarray(pixels).sum() == 8 * 480 * 640
    # end


def host_scopes(device):
    # show: host
    buffer = device.allocate_shared((4, 6), 'f4')
    with buffer.host('w') as scope:                         # 'w' writes every element
        scope[:] = numpy.arange(24, dtype='f4').reshape(4, 6)
    with buffer.host('rw') as scope:                        # 'rw' reads and writes
        numpy.asarray(scope)[1:] *= 2
        scope[0, 0] = -1
        assert scope[1:, 0].tolist() == [12, 24, 36]        # slices are NumPy's
    kept = numpy.asarray(buffer.host('r'))                  # the scope lasts as long as the array
    try:
        device.stream.fill(buffer, 0)
    except isthmus.InUse as refusal:
        print(refusal)
    del kept
    device.stream.fill(buffer, 0)
    # end


def arrays_that_live_on(device):
    buffer = device.allocate_shared(16)
    # show: alive
    try:
        with buffer.host('w') as scope:
            array = numpy.asarray(scope)
            array[:] = 1
    except isthmus.ArrayAlive as refusal:                   # a BufferError: `array` could read what the GPU writes
        print(refusal)
    del array                                               # the scope ends here
    # end
    buffer.host('w').close()


def device_scopes(device):
    stream, a, b = device.stream, device.allocate_shared(64, 'f4'), device.allocate_shared(64, 'f4')
    # show: device
    with a.device(stream, 'rw', name='my model') as x:
        print(x.__dlpack_device__(), x.stream_handle)
    with stream.scope(isthmus.reads(a), isthmus.writes(b)) as (x, y):     # several buffers, one claim
        try:
            a.host('w')
        except isthmus.InUse as refusal:
            print(refusal)
    # end
    assert x.closed and y.closed


def adoption(device):
    # show: adopt
    frame = numpy.zeros((480, 640), 'u1')
    buffer = device.adopt(frame)                            # keeps `frame` until the last use has ended
    device.stream.fill(buffer, 5)
    with buffer.host('r') as pixels:
        assert pixels[0, 0] == 5
    buffer.close()
    device.synchronize()
    # end


def errors(device):
    buffer = device.allocate_shared(16)
    # show: errors
    try:
        with buffer.host('w'):
            buffer.host('w')
    except isthmus.InUse as error:
        print(error.code.name, error.id, error.remedy)      # IN_USE K010 let the other view go out of scope …
    # end


def main():
    machine = sys.argv[1] if len(sys.argv) > 1 else None
    first_minute(machine)
    with isthmus.open(machine=machine) as runtime:
        for device in runtime.devices:
            for part in (host_scopes, arrays_that_live_on, device_scopes, adoption, errors):
                part(device)
    print('done')


if __name__ == '__main__':
    main()
