# SPDX-License-Identifier: Apache-2.0
"""Frames over iceoryx2 (PyPI: iceoryx2), in payloads that CPU and GPU use in place.

    python iceoryx2_frames.py --machine orin          # one process publishes, and starts another that subscribes

The publisher adopts each slot of its data segment once, at the first frame that lies there; GPU and CPU then fill every
later frame in place. The subscriber adopts a sample for as long as it has it: its mapping can only be read, so that no
scope could say that the next sample in that slot is new.
"""
from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import time

import iceoryx2

import isthmus

BYTES = 160 * 120
PAGE = 4096


def service(name: str) -> tuple:
    """The node, which outlives its ports, and the service."""
    node = iceoryx2.NodeBuilder.new().create(iceoryx2.ServiceType.Ipc)
    made = node.service_builder(iceoryx2.ServiceName.new(name)).publish_subscribe(iceoryx2.Slice[ctypes.c_uint8])
    return node, (made.payload_alignment(iceoryx2.Alignment.new(PAGE)).enable_safe_overflow(False)
                  .subscriber_max_buffer_size(4).open_or_create())


def expected(number: int) -> bytes:
    """The first byte by the CPU, the others by the GPU."""
    return bytes([255 - number]) + bytes([number]) * (BYTES - 1)


# show: publish
class Slots:
    """Buffers over the slots of a publisher's data segment, each adopted once. Ends before the publisher."""

    def __init__(self, device: isthmus.Device) -> None:
        self.device, self.buffers = device, {}

    def buffer(self, sample) -> isthmus.Buffer:
        known = self.buffers.get(sample.payload_ptr)
        if known is None:
            payload = (ctypes.c_uint8 * BYTES).from_address(sample.payload_ptr)
            known = self.buffers[sample.payload_ptr] = self.device.adopt(payload)
        return known

    def close(self) -> None:
        for buffer in self.buffers.values():
            buffer.close()


def publish(publisher, slots: Slots, number: int) -> None:
    sample = publisher.loan_slice_uninit(BYTES)
    buffer = slots.buffer(sample)
    slots.device.stream.fill(buffer, number)          # the GPU writes into the payload
    with buffer.host('rw') as pixels:                 # waits for it; the CPU writes, too
        pixels[0] = 255 - number
    sample.assume_init().send()                       # the scope has ended: the content is in the payload's memory
# end


# show: receive
def receive(sample, device: isthmus.Device, own: isthmus.Buffer) -> bytes:
    """What the device reads in the payload."""
    payload = (ctypes.c_uint8 * BYTES).from_address(sample.payload_ptr)
    buffer = device.adopt(memoryview(payload).toreadonly())
    device.stream.copy(own, buffer)
    with own.host('r') as pixels:                     # waits for the copy
        seen = pixels.tobytes()
    buffer.close()                                    # before the sample goes back
    sample.delete()
    return seen
# end


def subscriber(arguments, device: isthmus.Device) -> None:
    node, opened = service(arguments.service)
    port = opened.subscriber_builder().create()
    print('ready', flush=True)
    own = device.allocate_shared(BYTES)
    until = time.monotonic() + 60
    for number in range(arguments.frames):
        while (sample := port.receive()) is None:
            if time.monotonic() > until:
                sys.exit(f'frame {number} did not come')
            time.sleep(0.001)
        if receive(sample, device, own) != expected(number):
            sys.exit(f'frame {number} is another one')
    print(f'{arguments.frames} frames read')
    port.delete()
    del node


def publisher(arguments, device: isthmus.Device) -> None:
    node, opened = service(arguments.service)
    port = opened.publisher_builder().initial_max_slice_len(BYTES).create()
    other = subprocess.Popen([sys.executable, __file__, '--subscribe', '--service', arguments.service, '--frames',
                              str(arguments.frames), '--machine', arguments.machine], stdout=subprocess.PIPE, text=True)
    slots = Slots(device)
    try:
        if other.stdout.readline().strip() != 'ready':
            sys.exit('the subscriber did not start')
        for number in range(arguments.frames):
            publish(port, slots, number)
            time.sleep(0.005)
        print(other.communicate(timeout=90)[0].strip())
    finally:
        other.kill()
        other.wait()
    print(f'{arguments.frames} frames in {len(slots.buffers)} adopted slots: {next(iter(slots.buffers.values())).explain}')
    slots.close()
    port.delete()
    del node
    if other.returncode != 0 or len(slots.buffers) >= arguments.frames:
        sys.exit('not all frames came, or slots were adopted again')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--machine', default='', help='a simulated machine, or cpu; default: this one')
    parser.add_argument('--frames', type=int, default=40)
    parser.add_argument('--service', default=f'isthmus/frames-{os.getpid()}')
    parser.add_argument('--subscribe', action='store_true', help='be the other process')
    arguments = parser.parse_args()
    iceoryx2.set_log_level(iceoryx2.LogLevel.Error)
    machine = arguments.machine
    with (isthmus.open(cuda=False) if machine == 'cpu' else isthmus.open(machine=machine or None)) as runtime:
        (subscriber if arguments.subscribe else publisher)(arguments, runtime.default_device)


if __name__ == '__main__':
    main()
