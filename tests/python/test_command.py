# SPDX-License-Identifier: Apache-2.0
"""What else the wheel brings: the command, the simulator, types; and that no compiler and no NumPy is needed."""
import json
import os
import pathlib
import subprocess
import sys
from importlib import metadata

import pytest

import isthmus

PACKAGE = pathlib.Path(isthmus.__file__).parent


def ran(*arguments):
    command = pathlib.Path(sys.executable).parent / 'isthmus'
    if not command.exists():
        pytest.skip('the package is not installed')
    return subprocess.run([str(command), *arguments], text=True, capture_output=True, timeout=60, check=False,
                          env={name: value for name, value in os.environ.items() if name != 'PYTHONPATH'})


def test_the_command_runs_from_the_wheel():   # keeps Y2
    done = ran('--version')
    assert done.returncode == 0 and isthmus.__version__ in done.stdout


@pytest.mark.parametrize('machine', ['orin', 'gb200'])
def test_the_command_plays_machines_with_the_simulator_of_the_wheel(machine):   # keeps Y2
    done = ran('--machine', machine, 'caps', '--json')
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    done = ran('--machine', 'nothing', 'caps')
    assert done.returncode == 2 and machine in done.stderr   # known: …


def test_the_module_is_the_command_too():
    done = subprocess.run([sys.executable, '-m', 'isthmus', '--version'], text=True, capture_output=True, check=False)
    assert done.returncode == 0 and isthmus.__version__ in done.stdout


def test_the_machines_that_the_package_names_are_the_commands():
    done = ran('--machine', 'nothing', 'caps')
    for machine in isthmus.simulator.MACHINES:
        assert machine in done.stderr


def test_the_wheel_has_what_it_says(numpy):   # keeps Y2
    files = {str(path) for path in metadata.files('isthmus') or []}
    if not files:
        pytest.skip('the package is not installed')
    for name in ('py.typed', 'lib/libisthmus.so.0', 'lib/libisthmus-c.so.1', 'lib/libisthmus-python.so', 'lib/isthmus',
                 'lib/sim/libcuda.so.1'):
        assert f'isthmus/{name}' in files
    assert not any(name.endswith(('.h', '.hpp', '.pc', '.a', '.c')) for name in files)
    assert (metadata.metadata('isthmus')['Requires-Dist'] or '').endswith("extra == 'numpy'")
    assert PACKAGE.is_dir()


def test_libraries_of_another_version_are_refused_by_name(tmp_path):
    for name in ('libisthmus.so.0', 'libisthmus-c.so.1', 'libisthmus-python.so'):
        source = PACKAGE / 'lib' / name
        if not source.exists():
            pytest.skip('the package is not installed')
        (tmp_path / name).symlink_to(PACKAGE / 'lib' / ('libisthmus.so.0' if name == 'libisthmus-c.so.1' else name))
    for folder, words in ((tmp_path, 'older than this package'), (tmp_path / 'nothing', 'pip install isthmus')):
        done = subprocess.run([sys.executable, '-c', 'import isthmus'], text=True, capture_output=True, check=False,
                              env={**os.environ, 'ISTHMUS_PYTHON_LIBRARIES': str(folder)})
        assert done.returncode == 1 and 'ImportError' in done.stderr and words in done.stderr


def test_help_teaches():
    import pydoc
    for thing in (isthmus, isthmus.Buffer.host, isthmus.Device.allocate_shared, isthmus.views, isthmus.scopes,
                  isthmus.SharedReader, isthmus.Error):
        assert len(pydoc.render_doc(thing)) > 200
    for name in isthmus.__all__:
        assert getattr(isthmus, name).__doc__, name
