# SPDX-License-Identifier: Apache-2.0
"""The console script `isthmus`: becomes the command that the wheel brings. `isthmus --machine orin caps` plays a machine
with the simulator of the wheel."""
from __future__ import annotations

import os
import pathlib
import sys


def main() -> None:
    """Replaces this process by the command."""
    path = pathlib.Path(__file__).parent / 'lib' / 'isthmus'
    if not path.exists():
        sys.exit(f'isthmus: this installation has no command ({path}): install the wheel, pip install isthmus')
    os.execv(path, ['isthmus', *sys.argv[1:]])


if __name__ == '__main__':
    main()
