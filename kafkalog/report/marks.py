"""Numbers and words as HTML, each with its value and where in the document it is from.

Plain functions, not macros: a page has some ten thousand of them.
"""

from __future__ import annotations

from markupsafe import Markup, escape

from kafkalog.report.figures import Figure, iso_text

_DASH = Markup('<span class="soft">–</span>')


def num(figure: Figure) -> Markup:
    """A figure in running text or in a cell."""
    if figure.value is None:
        return _DASH
    if not figure.at:
        return escape(figure.text)
    source = f'data-value="{escape(figure.value)}" data-at="{escape(figure.at)}"'
    iso = iso_text(figure.value) if figure.kind == "time" else ""
    if iso:
        return Markup(f'<time datetime="{iso}" {source}>{escape(figure.text)}</time>')
    return Markup(f"<span {source}>{escape(figure.text)}</span>")


def tip(figure: Figure, name: str) -> Markup:
    """What an SVG shape says when it is pointed at."""
    source = f'data-value="{escape(figure.value)}" data-at="{escape(figure.at)}"'
    return Markup(f"<title {source}>{escape(name)}: {escape(figure.text)}</title>")


def text(value: object, at: str) -> Markup:
    """Words of the document as they are."""
    return Markup(
        f'<span data-at="{escape(at)}" data-value="{escape(value)}">{escape(value)}</span>'
    )
