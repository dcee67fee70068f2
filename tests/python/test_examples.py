# SPDX-License-Identifier: Apache-2.0
"""The examples run on the machine of the tests, and without a GPU."""
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import MACHINE

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / 'examples' / 'python'
CLIP = ROOT.parent.parent / 'shared' / 'data' / 'pedestrians-384x288-60.y4m'
NAMED = [] if MACHINE in ('cpu', 'here') else ['--machine', MACHINE]

pytest.importorskip('numpy')


def ran(*arguments, expect=0):
    done = subprocess.run([sys.executable, *map(str, arguments)], text=True, capture_output=True, timeout=120, check=False,
                          env={**os.environ, 'PYTHONWARNINGS': 'error'})
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout


def frames_of(path, width, height):
    data = path.read_bytes()
    head, _, rest = data.partition(b'\n')
    assert head.startswith(b'YUV4MPEG2 W%d H%d ' % (width, height)) and head.endswith(b'Cmono')
    size = 6 + width * height
    assert len(rest) % size == 0 and all(rest[at:at + 6] == b'FRAME\n' for at in range(0, len(rest), size))
    return [rest[at + 6:at + size] for at in range(0, len(rest), size)]


def test_the_excerpts_of_the_page_run():
    said = ran(EXAMPLES / 'scopes.py', *NAMED[1:])
    assert said.endswith('done\n') and 'IN_USE K010' in said


def test_the_overlay_draws_edges_on_generated_frames(tmp_path):   # keeps Y2
    out = tmp_path / 'out.y4m'
    said = ran(EXAMPLES / 'video_overlay.py', '--generate', '64x48', '--frames', '9', '--output', out, *NAMED)
    assert said.startswith('9 frames of 64x48 on ')
    frames = frames_of(out, 64, 48)
    assert len(frames) == 9
    for number, frame in enumerate(frames):
        x, y = (7 * number) % 52, (5 * number) % 36
        assert frame[(y + 6) * 64 + x + 6] == 200           # inside of the square
        assert frame[(y + 12) * 64 + x + 6] == 255          # its lower edge
        assert frame.count(255) >= 20


def test_the_overlay_gives_the_same_on_every_machine(tmp_path):
    ran(EXAMPLES / 'video_overlay.py', '--generate', '33x17', '--frames', '5', '--output', tmp_path / 'a.y4m', *NAMED)
    first = ran(EXAMPLES / 'video_overlay.py', '--input', tmp_path / 'a.y4m', '--output', tmp_path / 'b.y4m', *NAMED)
    assert first.startswith('5 frames of 33x17')
    other = [] if NAMED else ['--machine', 'orin']
    ran(EXAMPLES / 'video_overlay.py', '--input', tmp_path / 'a.y4m', '--output', tmp_path / 'c.y4m', *other)
    assert (tmp_path / 'b.y4m').read_bytes() == (tmp_path / 'c.y4m').read_bytes()


def test_the_overlay_of_a_clip(tmp_path):
    if not CLIP.exists():
        pytest.skip(f'{CLIP.name} is not here')
    said = ran(EXAMPLES / 'video_overlay.py', '--input', CLIP, '--frames', '6', '--output', tmp_path / 'out.y4m', *NAMED)
    assert said.startswith('6 frames of 384x288') and len(frames_of(tmp_path / 'out.y4m', 384, 288)) == 6


def test_frames_over_iceoryx2():   # keeps Y2
    pytest.importorskip('iceoryx2', reason='iceoryx2 is not installed, and PyPI did not give it')
    if 'stall_threads' in os.environ.get('LD_PRELOAD', ''):
        pytest.skip('send() of iceoryx2 0.10 takes a sleep that a signal interrupts for an error')
    said = ran(EXAMPLES / 'iceoryx2_frames.py', '--frames', '40', '--machine', MACHINE if NAMED else 'cpu')
    read, adopted = said.strip().splitlines()[-2:]
    assert read == '40 frames read'
    assert adopted.startswith('40 frames in ') and int(adopted.split()[3]) <= 12, said


def test_what_is_no_video_is_refused(tmp_path):
    (tmp_path / 'text').write_text('hello')
    ran(EXAMPLES / 'video_overlay.py', '--input', tmp_path / 'text', '--output', tmp_path / 'out.y4m', expect=1)
