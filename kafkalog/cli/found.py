"""What verbs that look for what is wrong print of it, and their exit code."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kafkalog.cli.output import ExitCode, write_json
from kafkalog.cli.tables import Row, show_table


@dataclass(frozen=True, slots=True)
class Found:
    """document: for `--json`. rows, columns, chosen: of the table of findings, as `show_table`
    takes them; more: other tables behind it. explanations: a line a kind; is_failure: whether
    anything is worth an exit code."""

    document: Callable[[], dict[str, Any]]
    rows: Sequence[Row]
    columns: Sequence[str]
    chosen: Sequence[str]
    explanations: Sequence[str]
    summary: str
    is_failure: bool
    more: Sequence[Sequence[Row]] = ()


def show_found(args: argparse.Namespace, found: Found, tell: Callable[[str], None]) -> ExitCode:
    """As JSON alone, or as tables with their explanations; talk goes to `tell`."""
    if args.json:
        write_json(found.document())
    else:
        show_table(found.rows, found.columns, chosen=found.chosen, tell=tell)
        for rows in found.more:
            show_table(rows, is_main=False, tell=tell)
        for line in (*found.explanations, found.summary):
            tell(line)
    return ExitCode.FINDINGS if found.is_failure else ExitCode.DONE
