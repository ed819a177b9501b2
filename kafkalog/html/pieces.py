"""A heading, a map of parts, a table and notes, as one piece of HTML without any script.

Styles stand in the elements: a notebook keeps a style sheet out of, or over, the page around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, Template

# More rows than anybody reads make a notebook's file large; so do notes.
MOST_ROWS = 50
MOST_NOTES = 10
# A part of the map is a fifth of a pixel wide below this many.
MOST_PARTS = 500

_TEMPLATE = """\
<div style="font-family:sans-serif;font-size:13px">
<p style="margin:4px 0"><b>{{ piece.heading }}</b>{% if piece.summary %}: {{ piece.summary }}\
{% endif %}</p>
{%- if piece.parts %}
<div role="img" aria-label="{{ piece.map_label }}" \
style="display:flex;height:22px;margin:4px 0;border:1px solid #888">
{%- for part in piece.parts[:most_parts] %}
<span title="{{ part.label }}" style="flex:{{ part.weight }} 0 1px;min-width:1px;\
background:{{ colours[part.kind] }};border-right:1px solid #fff"></span>
{%- endfor %}
</div>
<p style="margin:4px 0">{% for name, kind in piece.legend %}\
<span style="background:{{ colours[kind] }};color:#fff;padding:0 4px">{{ name }}</span> \
{% endfor %}</p>
{%- endif %}
{%- if piece.columns %}
<table><thead><tr>{% for name in piece.columns %}<th>{{ name }}</th>{% endfor %}</tr></thead><tbody>
{%- for row in piece.rows[:most_rows] %}
<tr>{% for cell in row %}<td\
{% if cell is number %} style="text-align:right"{% endif %}>{{ shown(cell) }}</td>{% endfor %}</tr>
{%- endfor %}
</tbody></table>
{%- if piece.rows | length > most_rows %}
<p style="margin:4px 0">The first {{ most_rows }} of {{ piece.rows | length }} rows.</p>
{%- endif %}
{%- endif %}
{%- for note in piece.notes[:most_notes] %}
<p style="margin:4px 0;color:#a40000">{{ note }}</p>
{%- endfor %}
{%- if piece.notes | length > most_notes %}
<p style="margin:4px 0;color:#a40000">And {{ piece.notes | length - most_notes }} more.</p>
{%- endif %}
</div>
"""

# Dark enough for white text upon them (WCAG AA).
COLOURS = {"kept": "#2b6cb0", "active": "#2f7d32", "goes": "#b3261e", "rewritten": "#8a5a00"}

Cell = int | str


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the map: as wide as its `weight` (bytes, at least 1) among the others; `kind` is
    one of COLOURS.
    """

    label: str
    weight: int
    kind: str


@dataclass(frozen=True, slots=True)
class Piece:
    """What is shown of one value. `rows` are as long as `columns`; a number is set to the right."""

    heading: str
    summary: str = ""
    parts: Sequence[Part] = ()
    map_label: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Cell]] = ()
    notes: Sequence[str] = ()

    @property
    def legend(self) -> list[tuple[str, str]]:
        """The kinds of parts there are, in the order of COLOURS."""
        kinds = {part.kind for part in self.parts}
        return [(kind, kind) for kind in COLOURS if kind in kinds]


def render(piece: Piece) -> str:
    """The piece as HTML: at most MOST_ROWS rows, MOST_PARTS parts and MOST_NOTES notes of it."""
    return _template().render(
        piece=piece,
        colours=COLOURS,
        most_rows=MOST_ROWS,
        most_parts=MOST_PARTS,
        most_notes=MOST_NOTES,
        shown=_shown,
    )


def _shown(cell: Cell) -> str:
    return f"{cell:,}" if isinstance(cell, int) else cell


@cache
def _template() -> Template:
    return Environment(autoescape=True).from_string(_TEMPLATE)
