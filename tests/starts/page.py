"""The page `docs/broker-start.md`: what a broker makes of each state, and what `verify` says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.starts.disk import CONTRADICTIONS, State
from tests.starts.node import LOADS, LOSES, REFUSES
from tests.starts.rows import KAFKA_VERSION, Row, read_rows
from tests.starts.states import STATES

_RULE = """A file of such a disk says that the log was longer, or other, than it is now. A
broker does not look at that, starts, and gives offsets out again or serves what is left: what is
missing was lost before. `verify` names it as a warning where one file alone tells of it and others
know nothing of the kind, else as an error."""
PAGE = Path(__file__).resolve().parents[2] / "docs" / "broker-start.md"
_HEAD = f"""# What a broker's start makes of a disk, and what `verify` says of it

Each row is a log dir of Kafka {KAFKA_VERSION} (KRaft, one node, stopped in order) with one thing
wrong or odd. A real broker was started on it and looked at once it was up: offsets, records and
times of every log, leader epochs, producers, open transactions, committed offsets, topics,
settings, the records of the metadata log, renamed directories, and whether an appended record can
be read. What differs from the start of the same disk without the change is a loss, and so are
offsets without a record where nothing compacts. `kafkalog verify` was run on the disk before.
The two agree if it says an error where the broker does not start, an error or a warning where
something is lost, and no error where all is there.

Made by `python -m tests.starts.rows --broker`; the tests hold `verify` to every row, `make soak`
the broker too.
"""


def start_page() -> str:
    rows = read_rows()
    counts = Counter(row.broker for row in rows.values())
    counted = ", ".join(f"{counts[outcome]} {outcome}" for outcome in (LOADS, LOSES, REFUSES))
    differing = [state for state in STATES if not rows[state.name].agrees]
    lines = [
        _HEAD,
        f"{len(rows)} states: {counted}. Of {len(rows) - len(differing)} `verify` says what the "
        f"broker does, of {len(differing)} it does not.",
    ]
    lines += [f"* {_cell(state.name)}" for state in differing]
    area = None
    for state in STATES:
        if state.area != area:
            area = state.area
            lines += ["", f"## {area[0].upper()}{area[1:]}", ""]
            if area == CONTRADICTIONS:
                lines += [_RULE, ""]
            lines += ["| state | the broker | verify |", "|---|---|---|"]
        lines.append(_line(state, rows[state.name]))
    return "\n".join(lines) + "\n"


def _line(state: State, row: Row) -> str:
    broker = row.broker + (f": {row.what}" if row.what else "")
    if state.is_race:
        broker += f" ({state.why})"
    found = [f"{s}: {', '.join(kinds)}" for s, kinds in row.verify.items()]
    return f"| {_cell(row.state)} | {_cell(broker)} | {'; '.join(found) or 'nothing'} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
