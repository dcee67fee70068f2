#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bindings/python/wheel_backend.py makes of pip's settings. Programs in place of meson and ninja keep their arguments
and name copies of a small library as what they built, so that a wheel is packed without a build.

usage: check_wheel_backend.py SOURCE_ROOT LIBRARY [unittest's arguments]; LIBRARY: libisthmus-python.so
"""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / 'bindings' / 'python'))
sys.dont_write_bytecode = True
import make_wheel  # noqa: E402
import wheel_backend  # noqa: E402

LIBRARY = pathlib.Path(sys.argv[2])
X86_64, AARCH64 = 62, 183
CROSS = '--cross-file=cross/aarch64-linux-gnu.ini'
# meson setup … BUILD …: makes the folder; meson introspect: tells targets and the version.
PROGRAM = '''#!{python}
import json, os, sys
folder = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(folder, 'log'), 'a') as log:
    log.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + '\\n')
if sys.argv[1] == 'setup':
    build = next(word for word in sys.argv[2:] if not word.startswith('-'))
    os.makedirs(os.path.join(build, 'kernels'), exist_ok=True)
    open(os.path.join(build, 'build.ninja'), 'w').close()
    with open(os.path.join(build, 'kernels', 'camera.fatbin'), 'wb') as image:
        image.write(bytes({image_bytes}))
elif sys.argv[1] == 'introspect':
    print(open(os.path.join(folder, 'project' if '--projectinfo' in sys.argv else 'targets')).read())
'''


def patched(target, machine, glibc):
    """A copy of the library, for this processor; its newest glibc version becomes this one."""
    data = bytearray(LIBRARY.read_bytes())
    struct.pack_into('<H', data, 18, machine)
    newest = max(number for family, number in make_wheel.Elf(LIBRARY).symbol_versions() if family == 'GLIBC')
    old, new = b'\0GLIBC_' + '.'.join(map(str, newest)).encode() + b'\0', b'\0GLIBC_' + glibc + b'\0'
    assert len(old) >= len(new) and data.count(old) >= 1
    target.write_bytes(data.replace(old, new.ljust(len(old), b'\0')))


class Backend(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix='isthmus-backend-')
        self.folder = pathlib.Path(self.temporary.name)
        self.programs = self.folder / 'bin'
        self.programs.mkdir()

    def tearDown(self):
        self.temporary.cleanup()

    def prepare(self, machine=AARCH64, glibc=b'2.35', image_bytes=4096):
        targets = []
        for name, target in wheel_backend.TARGETS.items():
            path = self.folder / 'built' / name
            path.parent.mkdir(parents=True, exist_ok=True)
            patched(path, machine, glibc)
            targets.append({'name': target, 'type': 'executable' if name == 'isthmus' else 'shared library',
                            'filename': [str(path)]})
        (self.programs / 'targets').write_text(json.dumps(targets))
        (self.programs / 'project').write_text(json.dumps({'version': '1.2.3'}))
        # No strip of the other processor: it would refuse the patched files.
        for name in ('meson', 'ninja', 'aarch64-linux-gnu-strip', 'strip'):
            text = PROGRAM.format(python=sys.executable, image_bytes=image_bytes)
            (self.programs / name).write_text(text if 'strip' not in name else '#!/bin/sh\n')
            (self.programs / name).chmod(0o755)
        return {**os.environ, 'PATH': f'{self.programs}:{os.environ["PATH"]}', 'PIP_DISABLE_PIP_VERSION_CHECK': '1',
                'PYTHONDONTWRITEBYTECODE': '1'}

    def calls(self, program):
        lines = [json.loads(line) for line in (self.programs / 'log').read_text().splitlines()]
        return [line[1:] for line in lines if line[0] == program]

    def setup_arguments(self):
        """Those behind the backend's own."""
        (words,) = [call for call in self.calls('meson') if call[0] == 'setup']
        at = words.index(wheel_backend.OPTIONS[0])
        self.assertEqual(words[at:at + len(wheel_backend.OPTIONS)], wheel_backend.OPTIONS)
        return words[at + len(wheel_backend.OPTIONS):]

    def direct(self, settings, environment, code=0):
        """The hook as a front end calls it; the wheel's name, or what was said."""
        text = (f'import sys, json\nsys.path.insert(0, {str(ROOT / "bindings" / "python")!r})\nimport wheel_backend\n'
                'print(wheel_backend.build_wheel(sys.argv[1], json.loads(sys.argv[2])))')
        done = subprocess.run([sys.executable, '-c', text, self.folder / 'wheels', json.dumps(settings)], text=True,
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout.splitlines()[-1] if code == 0 else done.stderr

    def pip(self, environment, *settings):
        said = subprocess.run([sys.executable, '-m', 'pip', '--version'], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        found = re.match(r'pip (\d+)\.(\d+)', said.stdout)
        if not found:
            self.skipTest(f'this Python has no pip (Debian: apt-get install python3-pip): {said.stdout.strip()[:200]}')
        if len(settings) > 1 and (int(found[1]), int(found[2])) < (23, 1):
            self.skipTest('pip before 23.1 keeps the last of repeated settings')
        arguments = [word for one in settings for word in ('--config-settings', one)]
        done = subprocess.run([sys.executable, '-m', 'pip', 'wheel', str(ROOT), '--no-deps', '--no-index', '--wheel-dir',
                               str(self.folder / 'wheels'), *arguments], text=True, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return [path.name for path in (self.folder / 'wheels').iterdir()]

    def test_pip_passes_a_cross_file_and_options_in_one_setting(self):   # keeps Y2
        names = self.pip(self.prepare(), f'setup-args={CROSS} -Dboard=true')
        self.assertEqual(self.setup_arguments(), [CROSS, '-Dboard=true'])
        self.assertEqual(names, ['isthmus-1.2.3-py3-none-manylinux_2_35_aarch64.whl'])
        (built,) = self.calls('ninja')
        self.assertEqual(len(built), 2 + len(wheel_backend.TARGETS))

    def test_pip_passes_repeated_settings(self):   # keeps Y2
        self.pip(self.prepare(), f'setup-args={CROSS}', 'setup-args=-Dboard=true', 'require-manylinux=yes')
        self.assertEqual(self.setup_arguments(), [CROSS, '-Dboard=true'])

    def test_the_cross_file_that_the_pages_name_is_there(self):
        self.assertIn(f'-C setup-args={CROSS}', (ROOT / 'docs' / 'python.md').read_text(encoding='utf-8'))
        self.assertTrue((ROOT / CROSS.partition('=')[2]).exists())

    def test_quotes_keep_an_argument_together(self):
        environment = self.prepare(X86_64)
        self.direct({'setup-args': '"-Dgpu_prebuilt=/a folder" -Dboard=true'}, environment)
        self.assertEqual(self.setup_arguments(), ['-Dgpu_prebuilt=/a folder', '-Dboard=true'])

    def test_a_wheel_to_publish_asks_for_glibc_2_35_at_most(self):   # keeps Y2
        wheel = self.direct({'require-manylinux': 'yes', 'require-gpu': 'yes'}, self.prepare(X86_64))
        self.assertEqual(wheel, 'isthmus-1.2.3-py3-none-manylinux_2_35_x86_64.whl')
        environment = self.prepare(X86_64, glibc=b'2.36')
        self.assertIn('needs GLIBC_2.36', self.direct({'require-manylinux': 'yes'}, environment, code=1))
        self.assertIn('2_36', self.direct({'require-manylinux': 'no'}, environment))

    def test_a_wheel_without_gpu_code_is_refused_where_it_is_required(self):   # keeps Y2
        environment = self.prepare(X86_64, image_bytes=40)
        self.assertIn('no GPU code', self.direct({'require-gpu': 'yes'}, environment, code=1))
        self.direct({'require-gpu': 'no'}, environment)
        self.direct({}, environment)

    def test_what_is_no_setting_is_refused(self):
        environment = self.prepare(X86_64)
        self.assertIn('no such setting: setup_args', self.direct({'setup_args': CROSS}, environment, code=1))
        self.assertIn('require-gpu=on: yes or no', self.direct({'require-gpu': 'on'}, environment, code=1))
        self.assertFalse((self.programs / 'log').exists())

    def test_a_folder_that_is_kept_is_configured_again(self):
        environment = self.prepare(X86_64)
        settings = {'build-dir': str(self.folder / 'kept')}
        self.direct(settings, environment)
        self.direct(settings, environment)
        setups = [call for call in self.calls('meson') if call[0] == 'setup']
        self.assertEqual([call[1] for call in setups], [str(self.folder / 'kept'), '--reconfigure'])
        shutil.rmtree(self.folder / 'kept')


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
