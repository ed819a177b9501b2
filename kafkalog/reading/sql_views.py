"""What SQL calls the views of a log, on any engine: the views of `views` under their names, and
narrow ones that leave keys, values and headers on the disk.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkalog.reading.option_table import OPTIONS
from kafkalog.reading.views import NARROW_VIEWS, VIEWS

# Name → (view, options of it).
SQL_VIEWS: dict[str, tuple[str, dict[str, str]]] = {
    "records": ("records", {"includeHeaders": "true"}),
    **{name: (view, {"columns": ",".join(names)}) for name, (view, names) in NARROW_VIEWS.items()},
    **{name: (name, {}) for name in VIEWS if name != "records"},
}


def options_for(view: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options that this view takes; those that no view knows stay, to be refused by name."""
    known = {name.lower(): option for name, option in OPTIONS.items()}
    return {
        name: text
        for name, text in options.items()
        if name.lower() not in known or view in known[name.lower()].takers
    }
