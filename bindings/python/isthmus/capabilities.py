# SPDX-License-Identifier: Apache-2.0
"""What a device can do, with the reason for each answer.

    device.capabilities['pageable_access']       # Capability: true or false, str() is the reason
    if device.capabilities['concurrent_managed']: ...
"""
from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from . import html


@dataclasses.dataclass(frozen=True)
class Capability:
    """An answer. bool() is the answer, str() the reason.

    state:  'no', 'yes', or 'probed' (yes, and it was tried)
    origin: 'attribute' (the driver said so), 'probe', 'absent' (nobody could be asked), 'refused'
    """

    name: str
    state: str
    origin: str
    reason: str

    def __bool__(self) -> bool:
        return self.state != 'no'

    def __str__(self) -> str:
        return self.reason


class Capabilities(Mapping[str, Capability]):
    """The capabilities of one device by name; a mapping that notebooks show as a table."""

    def __init__(self, device: str, all: dict[str, Capability]) -> None:
        self._device, self._all = device, all

    def __getitem__(self, name: str) -> Capability:
        try:
            return self._all[name]
        except KeyError:
            import difflib
            near = difflib.get_close_matches(name, self._all, 1)
            raise KeyError(f'{name!r} is no capability' + (f'; did you mean {near[0]!r}?' if near else '')) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __repr__(self) -> str:
        width = max(map(len, self._all), default=0)
        lines = [f'{name:<{width}}  {one.state:<6}  {one.reason}' for name, one in self._all.items()]
        return '\n'.join([f'Capabilities of {self._device}', *lines])

    def _repr_html_(self) -> str:
        return html.capability_table(f'Capabilities of {self._device}',
                                     [(name, one.state, one.reason) for name, one in self._all.items()])
