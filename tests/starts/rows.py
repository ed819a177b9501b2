"""What a real broker made of each state, and what `verify` says of it: `rows.json`.

`python -m tests.starts.rows [PART OF A NAME…]` looks again at what `verify` says, with `--broker`
also at what the broker does, and writes both down. A row is right if they agree (`agrees`).
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kafkalog.checking.finding import Finding
from kafkalog.checking.request import VerifyRequest
from kafkalog.checking.run import verify_run
from kafkalog.checking.segment import check_segment
from kafkalog.checking.segment_report import SegmentReport, SegmentTask
from kafkalog.errors import KafkaLogError
from tests.starts.disk import Disk, State
from tests.starts.node import LOADS, LOSES, REFUSES, Node, Start
from tests.starts.states import STATES

KAFKA_VERSION = "4.3.1"
ROWS = Path(__file__).with_name("rows.json")
_MEMORY = Path("/dev/shm")
_SEVERITIES = ("error", "warning", "info")


@dataclass(frozen=True)
class Row:
    """`broker`: one of three outcomes; `what`: which loss, or why it does not start. `verify`: the
    kinds found, by severity.
    """

    state: str
    broker: str
    what: str
    verify: dict[str, list[str]]

    @property
    def verdict(self) -> str:
        return next((s for s in _SEVERITIES if self.verify.get(s)), "nothing")

    @property
    def agrees(self) -> bool:
        """An error for what does not start, at least a warning for a loss, and no error for what
        loads.
        """
        wanted = {
            REFUSES: {"error"},
            LOSES: {"error", "warning"},
            LOADS: {"warning", "info", "nothing"},
        }
        return self.verdict in wanted[self.broker]


def read_rows() -> dict[str, Row]:
    document = json.loads(ROWS.read_text(encoding="utf-8"))
    return {row["state"]: Row(**row) for row in document["rows"]}


def write_rows(rows: Iterable[Row]) -> None:
    lines = ",\n".join(json.dumps(asdict(row), ensure_ascii=False) for row in rows)
    ROWS.write_text(f'{{"kafka": "{KAFKA_VERSION}", "rows": [\n{lines}\n]}}\n', encoding="utf-8")


def scratch() -> tempfile.TemporaryDirectory[str]:
    """In memory where there is some; a node that was given up may still write into it."""
    where = _MEMORY if _MEMORY.is_dir() else None
    return tempfile.TemporaryDirectory(dir=where, ignore_cleanup_errors=True)


# -- what verify says ------------------------------------------------------------------------------

_sound: dict[tuple[bytes, ...], SegmentReport] = {}


def verified(disk: Disk) -> dict[str, list[str]]:
    """The kinds that `verify` finds, by severity; an error it ends with is one as well."""
    with scratch() as runs:
        request = VerifyRequest(tuple(map(str, disk.log_dirs)), run_dir=runs)
        try:
            run = verify_run(request, lambda tasks: map(_report, tasks), lambda _: None)
        except KafkaLogError as error:
            return {"error": [type(error).__name__]}
    return {s: kinds for s in _SEVERITIES if (kinds := _kinds(run.findings, s))}


def _kinds(findings: Iterable[Finding], severity: str) -> list[str]:
    return sorted({finding.kind for finding in findings if finding.severity == severity})


def _report(task: SegmentTask) -> SegmentReport:
    """Of files that are as in the sample the report is made once."""
    log = Path(task.path)
    beside = (".log", ".index", ".timeindex", ".txnindex")
    paths = [log.with_suffix(suffix) for suffix in beside]
    key = (
        log.name.encode(),
        *(path.read_bytes() if path.is_file() else b"-" for path in paths),
    )
    if key not in _sound:
        report = check_segment(task)
        if report.findings or report.holes:
            return report
        _sound[key] = report
    return replace(_sound[key], task=task)


# -- what the broker does --------------------------------------------------------------------------


def started(node: Node, state: State) -> Start:
    """The worst of some starts where a race decides."""
    for _ in range(7 if state.is_race else 0):
        if (start := _started(node, state)).outcome != LOADS:
            return start
    return _started(node, state)


def _started(node: Node, state: State) -> Start:
    with scratch() as root:
        return node.start(state.make(Path(root)))


def knowing_sound(node: Node) -> Node:
    with scratch() as root:
        node.know_sound(State("", "", lambda disk: None).make(Path(root)))
    return node


def tidied(what: str) -> str:
    """Without what differs from run to run, and without what is too long for a table."""
    what = re.sub(r"/[\w./-]*/(?:first|second)(?=[/ .,:\]']|$)", "…", what)
    what = re.sub(r"\b(?:java|org|com)\.[\w.$]+\.(\w+(?:Exception|Error))\b", r"\1", what)
    what = " ".join(what.split())
    return what if len(what) <= 160 else what[:157] + "…"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    rows = read_rows() if ROWS.exists() else {}
    chosen = [s for s in STATES if not options.names or any(n in s.name for n in options.names)]
    with Node() as node:
        if options.broker:
            knowing_sound(node)
        for state in chosen:
            with scratch() as root:
                found = verified(state.make(Path(root)))
            before = rows.get(state.name)
            if options.broker or before is None:
                start = started(node, state)
                row = Row(state.name, start.outcome, tidied(start.what), found)
            else:
                row = Row(state.name, before.broker, before.what, found)
            rows[state.name] = row
            if not row.agrees:
                print("differs:", row)  # noqa: T201 - for whoever records
            write_rows(rows[s.name] for s in STATES if s.name in rows)


if __name__ == "__main__":
    main()
