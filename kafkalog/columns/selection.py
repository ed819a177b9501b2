"""Columns by their names, as somebody asks for them."""

from __future__ import annotations

from collections.abc import Sequence

from kafkalog.columns.column import Column
from kafkalog.columns.schemas import ERROR, ERROR_BYTES, ERROR_LENGTH
from kafkalog.errors import InvalidConfigError


def choose_columns(
    view: str, columns: Sequence[Column], names: Sequence[str], *, with_error: bool = False
) -> tuple[Column, ...]:
    """Those of a view's columns in the asked order, spelt as in the table; names match without
    case.

    `with_error` allows the columns of mode PERMISSIVE too: `error`, `errorBytes`, `errorLength`.
    InvalidConfigError names what is unknown or asked for twice, and lists what is there.
    """
    known = {c.name.lower(): c for c in columns}
    if with_error:
        for added in (ERROR, ERROR_BYTES, ERROR_LENGTH):
            known.setdefault(added.name.lower(), added)
    chosen: dict[str, Column] = {}
    for name in names:
        column = known.get(name.lower())
        if column is None:
            allowed = ", ".join(c.name for c in known.values())
            raise InvalidConfigError(
                f"column '{name}' is unknown in view '{view}'; available: {allowed}"
            )
        if column.name in chosen:
            raise InvalidConfigError(f"column '{name}' is asked for twice")
        chosen[column.name] = column
    if not chosen:
        raise InvalidConfigError(f"no column of view '{view}' is asked for")
    return tuple(chosen.values())
