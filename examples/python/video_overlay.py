#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the edges of a video over it: camera, Y4M file or generated frames → shared buffers → PyTorch on the GPU, or NumPy
on the CPU → a Y4M file. The same file runs with and without a GPU.

usage: video_overlay.py --input FILE.y4m --output OUT.y4m
       video_overlay.py --camera 0 --frames 300 --output OUT.y4m          (needs OpenCV)
       video_overlay.py --generate 640x480 --frames 60 --output OUT.y4m

Each frame lies in one buffer. On a machine whose CPU and GPU share memory nothing is copied; the last line tells how many
bytes were, and why the memory is what it is.
"""
import argparse
import sys

import numpy

import isthmus

IN_FLIGHT = 3         # frames: the CPU reads one while the GPU works on another
THRESHOLD = 24        # of the gradient, for an edge


def of_file(path):
    """The luma of each frame of a YUV4MPEG2 file, 8 bits, mono or 4:2:0."""
    with open(path, 'rb') as file:
        head = file.readline().decode('ascii', 'replace').split()
        if not head or head[0] != 'YUV4MPEG2':
            sys.exit(f'{path} is no YUV4MPEG2 file')
        fields = {word[0]: word[1:] for word in head[1:]}
        width, height, color = int(fields['W']), int(fields['H']), fields.get('C', '420')
        if color != 'mono' and (not color.startswith('420') or 'p' in color.replace('paldv', '').replace('mpeg2', '')
                                .replace('jpeg', '')):
            sys.exit(f'{path} has colour {color}; mono and 8-bit 4:2:0 are read')
        yield width, height
        more = 0 if color == 'mono' else 2 * ((width + 1) // 2) * ((height + 1) // 2)
        while file.readline():
            luma = file.read(width * height)
            if len(luma) < width * height:
                return
            file.read(more)
            yield numpy.frombuffer(luma, 'u1').reshape(height, width)


def of_camera(number):
    """The gray frames of a camera."""
    import cv2
    camera = cv2.VideoCapture(number)
    told = False
    while True:
        there, picture = camera.read()
        if not there:
            return
        gray = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
        if not told:
            yield gray.shape[1], gray.shape[0]
            told = True
        yield gray


def generated(width, height):
    """A bright square that moves over a gradient."""
    yield width, height
    ground = (numpy.arange(width)[None, :] * 64 // width + numpy.arange(height)[:, None] * 64 // height).astype('u1')
    size = max(min(width, height) // 4, 1)
    number = 0
    while True:
        frame = ground.copy()
        x, y = (7 * number) % max(width - size, 1), (5 * number) % max(height - size, 1)
        frame[y:y + size, x:x + size] = 200
        yield frame
        number += 1


def edges_with_numpy(pixels):
    """Sets the pixels on edges to white, in place."""
    value = pixels.astype('i2')
    across = numpy.abs(value[:, 1:] - value[:, :-1])[1:]
    down = numpy.abs(value[1:] - value[:-1])[:, 1:]
    pixels[1:, 1:][numpy.maximum(across, down) > THRESHOLD] = 255


def edges_with_torch(torch, pixels):
    """The same on the GPU."""
    value = pixels.to(torch.int16)
    across = (value[:, 1:] - value[:, :-1]).abs()[1:]
    down = (value[1:] - value[:-1]).abs()[:, 1:]
    pixels[1:, 1:].masked_fill_(torch.maximum(across, down) > THRESHOLD, 255)


def torch_for(device, runtime):
    """PyTorch, where it can work on this device."""
    if device.is_cpu or runtime.is_simulated:
        return None
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def work_on(buffer, stream, torch):
    """Finds the edges; with PyTorch the call does not wait."""
    if torch is None:
        with buffer.host('rw') as pixels:
            edges_with_numpy(numpy.asarray(pixels))
        return
    with torch.cuda.stream(torch.cuda.ExternalStream(stream.native_handle, device=stream.device.ordinal)):
        with buffer.device(stream, 'rw', name='edges') as pixels:
            edges_with_torch(torch, torch.from_dlpack(pixels))


def overlay(source, output, frames, machine):
    with isthmus.open(machine=machine) as runtime:
        device = runtime.default_device
        torch = torch_for(device, runtime)
        width, height = next(source)
        slots = [(device.allocate_shared((height, width), 'u1', host='reads_and_writes', device='reads_and_writes'),
                  device.create_stream()) for _ in range(IN_FLIGHT)]
        waiting = []
        output.write(f'YUV4MPEG2 W{width} H{height} F30:1 Ip A1:1 Cmono\n'.encode())

        def write_first():
            with waiting.pop(0).host('r') as pixels:   # waits for this frame's work alone
                output.write(b'FRAME\n')
                output.write(memoryview(pixels))
        count = 0
        for count, frame in zip(range(1, frames + 1), source):
            if len(waiting) == IN_FLIGHT:
                write_first()
            buffer, stream = slots[count % IN_FLIGHT]
            with buffer.host('w') as pixels:
                pixels[:] = frame
            work_on(buffer, stream, torch)
            waiting.append(buffer)
        while waiting:
            write_first()
        buffer = slots[0][0]
        copied = sum(one.staged_bytes for one, _ in slots)
        print(f'{count} frames of {width}x{height} on {device.name} by {"PyTorch" if torch else "NumPy"}, {copied} bytes '
              f'copied between CPU and GPU; {buffer.kind} memory: {buffer.explain}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument('--input', metavar='FILE.y4m')
    source.add_argument('--camera', type=int, metavar='N')
    source.add_argument('--generate', metavar='WIDTHxHEIGHT')
    parser.add_argument('--output', required=True, metavar='OUT.y4m')
    parser.add_argument('--frames', type=int, help='end after so many (generated ones: 60)')
    parser.add_argument('--machine', help='a simulated machine, such as orin')
    asked = parser.parse_args()
    if asked.input:
        frames = of_file(asked.input)
    elif asked.camera is not None:
        frames = of_camera(asked.camera)
    else:
        frames = generated(*map(int, asked.generate.split('x')))
    most = asked.frames if asked.frames is not None else (60 if asked.generate else sys.maxsize)
    with open(asked.output, 'wb') as output:
        overlay(frames, output, most, asked.machine)


if __name__ == '__main__':
    main()
