# SPDX-License-Identifier: Apache-2.0
"""Frames that a GStreamer pipeline of another process publishes with isthmussink. $ISTHMUS_TEST_GST_PLUGINS names the folder
of the plugin that the build made."""
import hashlib
import os
import shutil
import subprocess

import pytest

import isthmus
from conftest import MACHINE

PLUGINS = os.environ.get('ISTHMUS_TEST_GST_PLUGINS')
FRAMES, WIDTH, HEIGHT = 9, 160, 120
BYTES = {'GRAY8': WIDTH * HEIGHT, 'NV12': WIDTH * HEIGHT * 3 // 2}


@pytest.fixture
def launch(tmp_path):
    """launch(pipeline): gst-launch-1.0, started, with the plugin of this build."""
    if not PLUGINS:
        pytest.skip('the GStreamer plugin is not built ($ISTHMUS_TEST_GST_PLUGINS)')
    for program in ('gst-launch-1.0', 'gst-inspect-1.0'):
        if not shutil.which(program):
            pytest.skip(f'no {program} (Debian: apt-get install gstreamer1.0-tools)')
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(('GST_', 'ISTHMUS_')) and name != 'LD_PRELOAD'}
    environment = kept | {'GST_PLUGIN_PATH_1_0': PLUGINS, 'GST_REGISTRY_1_0': str(tmp_path / 'registry.bin'),
                          'GST_REGISTRY_FORK': 'no', 'ISTHMUS_PROFILE': 'none'}
    for element in ('videotestsrc', 'isthmussink'):
        asked = subprocess.run(['gst-inspect-1.0', element], env=environment, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, check=False)
        if asked.returncode != 0 and element == 'videotestsrc':
            pytest.skip('no videotestsrc (Debian: apt-get install gstreamer1.0-plugins-base)')
        assert asked.returncode == 0, asked.stdout
    started = []

    def run(pipeline):
        process = subprocess.Popen(['gst-launch-1.0', '-q', *pipeline.split()], env=environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        started.append(process)
        return process
    yield run
    for process in started:
        process.kill()
        process.communicate()


def ended(process):
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said


def source(form):
    return (f'videotestsrc num-buffers={FRAMES} pattern=smpte horizontal-speed=3 ! '
            f'video/x-raw,format={form},width={WIDTH},height={HEIGHT}')


def digest(data):
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize('form', BYTES)
def test_frames_of_a_pipeline_are_those_of_its_source(form, launch, device, stream, tmp_path):   # keeps Y2, Y4
    raw, place = tmp_path / 'raw', tmp_path / 'meet'
    ended(launch(f'{source(form)} ! filesink location={raw}'))
    clip = raw.read_bytes()
    assert len(clip) == FRAMES * BYTES[form]
    wanted = [digest(clip[at:at + BYTES[form]]) for at in range(0, len(clip), BYTES[form])]
    assert len(set(wanted)) == FRAMES   # the picture moves
    where = 'device=cpu' if MACHINE in ('cpu', 'here') else f'machine={MACHINE}'
    sink = launch(f'{source(form)} ! isthmussink at={place} {where} sync=false policy=wait viewers=1 viewer-deadline=30000')
    on_host, on_device = [], []
    with isthmus.SharedReader(place, device, connect=30) as reader:
        assert reader.shape == ((HEIGHT, WIDTH) if form == 'GRAY8' else (BYTES[form],))
        own = device.allocate_shared(reader.shape, 'u1')
        for frame in reader:
            assert frame.missed == 0
            with frame.host('r') as pixels:
                on_host.append(digest(pixels.tobytes()))
            stream.copy(own, frame.buffer)   # the device of the reader reads the frame
            with own.host('r') as pixels:
                on_device.append(digest(pixels.tobytes()))
            assert frame.finish()
    ended(sink)
    assert on_host == wanted
    assert on_device == wanted


def test_a_pipeline_that_is_killed_is_lost(launch, device, tmp_path):   # keeps Y3
    place = tmp_path / 'meet'
    where = 'device=cpu' if MACHINE in ('cpu', 'here') else f'machine={MACHINE}'
    sink = launch(f'videotestsrc is-live=true ! video/x-raw,format=GRAY8,width={WIDTH},height={HEIGHT} ! '
                  f'isthmussink at={place} {where} viewers=1')
    with isthmus.SharedReader(place, device, connect=30) as reader:
        reader.next(wait=30).close()
        sink.kill()
        sink.wait()
        with pytest.raises(isthmus.PeerLost):
            for _ in range(1000):
                reader.next(wait=20).close()
