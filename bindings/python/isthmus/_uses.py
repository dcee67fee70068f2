# SPDX-License-Identifier: Apache-2.0
"""The names of uses and kinds of memory, and the structures of isthmus.h that they make."""
from __future__ import annotations

from typing import Any

from . import _structures as structures
from .errors import InvalidArgument

# In the order of ISTHMUS_USE_…, ISTHMUS_PREFER_… and ISTHMUS_KIND_…
USES = ('never', 'reads_once', 'reads_often', 'writes_once', 'writes_often', 'reads_and_writes')
PREFERENCES = ('throughput', 'latency')
KINDS = ('unknown', 'host', 'pinned', 'registered', 'write_combined', 'device', 'pool', 'managed', 'managed_pool', 'graph',
         'vmm', 'host_numa', 'imported')
SEEN_BY = ('cpus_and_gpus', 'gpus_only')


def _number(names: tuple[str, ...], name: str, what: str) -> int:
    try:
        return names.index(name)
    except ValueError:
        raise InvalidArgument(f'{name!r} is no {what}', 'one of ' + ', '.join(names)) from None


def kind_of(name: str) -> int:
    return _number(KINDS, name, 'kind of memory')


def shared_use(host: str, device: str, prefer: str = 'throughput', kind: str | None = None, alignment: int = 0) -> Any:
    """An isthmus_shared_use."""
    return structures.sized(structures.SharedUse, host=_number(USES, host, 'use'), device=_number(USES, device, 'use'),
                            prefer=_number(PREFERENCES, prefer, 'preference'), kind=kind_of(kind) if kind else 0,
                            alignment_bytes=alignment)


def exportable_options(seen_by: str) -> Any:
    """An isthmus_exportable_options."""
    return structures.sized(structures.ExportableOptions, seen_by=_number(SEEN_BY, seen_by, 'side of the memory'))
