# SPDX-License-Identifier: Apache-2.0
"""The simulated machines that the wheel brings: a CUDA driver that plays recorded ones, from a Jetson Orin to a GB200.

It lies in lib/sim/ of this package, where no dynamic linker looks, and is opened on request only:
`isthmus.open(machine='orin')`, or `isthmus --machine orin …` on the command line. A process plays one machine.
"""
from __future__ import annotations

import os
import pathlib

from ._library import FOLDER
from .errors import InvalidArgument, NotPermitted, Unsupported

MACHINES = ('b300-hmm', 'gb10', 'gb200', 'gh200-cdmm', 'gh200-numa', 'h200', 'h200-x2', 'igx', 'no-gpu', 'old-driver',
            'orin', 'rtx-hmm', 'rtx-wsl2', 'station', 'thor')

_played: str | None = None     # what this process opened: a machine, or '' for the machine's own driver


def library() -> pathlib.Path:
    """The simulator's libcuda.so.1."""
    path = FOLDER / 'sim' / 'libcuda.so.1'
    if not path.exists():
        raise Unsupported(f'this installation has no simulator ({path})', 'pip install isthmus')
    return path


def selected(machine: str | None) -> str | None:
    """Selects the machine for this process; the path of its driver, None: the machine's own."""
    global _played
    if machine is None:
        _played = _played or ''
        return None
    if machine not in MACHINES and not os.path.exists(machine):
        raise InvalidArgument(f'there is no machine {machine!r}', 'a record\'s file, or one of ' + ', '.join(MACHINES))
    name = machine if machine in MACHINES else os.path.abspath(machine)
    if _played is not None and _played != name:
        raise NotPermitted(f"this process has opened {_played or 'its own machine'!r} before and cannot play {name!r}, too",
                           'one machine for a process: start another one')
    path = str(library())
    os.environ['ISTHMUS_SIM'] = name
    _played = name
    return path
