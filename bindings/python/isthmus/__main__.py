# SPDX-License-Identifier: Apache-2.0
"""`python -m isthmus …` is the command `isthmus …`."""
from .command import main

main()
