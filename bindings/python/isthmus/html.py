# SPDX-License-Identifier: Apache-2.0
"""Tables for notebooks: what Jupyter shows for a runtime, a device and its capabilities."""
from __future__ import annotations

import html
from collections.abc import Iterable

_MARKS = {'yes': ('✓', '#1a7f37'), 'probed': ('✓', '#1a7f37'), 'no': ('–', '#8c959f')}


def table(title: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; all texts are escaped."""
    def cells(kind: str, texts: Iterable[str]) -> str:
        return ''.join(f'<{kind} style="text-align:left">{html.escape(text)}</{kind}>' for text in texts)
    body = ''.join(f'<tr>{cells("td", row)}</tr>' for row in rows)
    return (f'<table><caption style="text-align:left;font-weight:bold">{html.escape(title)}</caption>'
            f'<thead><tr>{cells("th", heads)}</tr></thead><tbody>{body}</tbody></table>')


def capability_table(title: str, rows: Iterable[tuple[str, str, str]]) -> str:
    """Rows of (name, state, reason)."""
    body = []
    for name, state, reason in rows:
        mark, color = _MARKS.get(state, (state, 'inherit'))
        body.append(f'<tr><td style="text-align:left"><code>{html.escape(name)}</code></td>'
                    f'<td style="color:{color}" title="{html.escape(state)}">{mark}</td>'
                    f'<td style="text-align:left">{html.escape(reason)}</td></tr>')
    return (f'<table><caption style="text-align:left;font-weight:bold">{html.escape(title)}</caption>'
            f'<thead><tr><th style="text-align:left">capability</th><th></th><th style="text-align:left">why</th></tr>'
            f'</thead><tbody>{"".join(body)}</tbody></table>')
