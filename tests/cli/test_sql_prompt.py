"""The prompt of sql, on a pseudo-terminal: as somebody types."""

from __future__ import annotations

import os
import signal
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pyarrow as pa
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from kafkalog.cli.sql_prompt import NameCompleter, is_finished
from tests.support.log_builder import LogBuilder


@pytest.fixture
def prompt(tmp_path: Path) -> Iterator[pexpect.spawn]:
    LogBuilder(tmp_path / "logs", "orders-0").batch(("a", "one"), ("b", None)).write()
    child = pexpect.spawn(
        sys.executable,
        ["-m", "kafkalog", "sql", str(tmp_path / "logs")],
        # Nothing is asked of a terminal that cannot answer.
        env={
            "TERM": "xterm",
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "PATH": "/usr/bin:/bin",
        },
        encoding="utf-8",
        timeout=300,
        dimensions=(40, 200),
        # What a shell starts in the background begins so: Ctrl-C has to be taken all the same.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    yield child
    child.close(force=True)


def test_statements_are_answered_until_the_end(prompt: pexpect.spawn, tmp_path: Path) -> None:
    """One on two lines; a wrong one and an interrupted one do not end the prompt; the history is
    kept."""
    prompt.expect("views: records, ")
    prompt.expect("sql>")
    prompt.send("SELECT topic, count(*) AS n FROM records\r")
    prompt.send("GROUP BY topic;\r")
    prompt.expect(r"topic\s+n\s+orders\s+2\s")
    prompt.expect("sql>")
    prompt.send("SELECT nothing FROM records;\r")
    prompt.expect("there is no column nothing")
    _wait_until_keys_are_read(prompt, are_read=True)
    joined = ", ".join(f"records t{number}" for number in range(40))
    prompt.send(f"SELECT count(*) FROM {joined};\r")
    _wait_until_keys_are_read(prompt, are_read=False)
    _wait_for_a_second_of_processor(prompt)
    prompt.sendintr()
    prompt.expect("interrupted")
    prompt.expect("sql>")
    prompt.send("SELECT 6 * 7 AS answer;\r")
    prompt.expect(r"answer\s+42\s")
    prompt.expect("sql>")
    prompt.sendeof()
    prompt.expect(pexpect.EOF)
    prompt.close()
    assert prompt.exitstatus == 0
    history = (tmp_path / "state" / "kafkalog" / "sql_history").read_text()
    assert "GROUP BY topic;" in history


def _wait_until_keys_are_read(prompt: pexpect.spawn, *, are_read: bool) -> None:
    """Until Ctrl-C is a key, at the prompt, or a signal, while a statement runs."""
    while are_read is bool(termios.tcgetattr(prompt.child_fd)[3] & termios.ISIG):
        assert prompt.isalive()
        time.sleep(0.05)


def _wait_for_a_second_of_processor(prompt: pexpect.spawn) -> None:
    """The statement runs then: between the prompt and the statement a signal finds nobody."""
    spent = _processor_seconds(prompt.pid)
    while _processor_seconds(prompt.pid) < spent + 1:
        assert prompt.isalive()
        time.sleep(0.05)


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_names_of_views_and_columns_are_completed(prompt: pexpect.spawn) -> None:
    prompt.expect("sql>")
    prompt.send("SELECT count(*) AS n FROM record_k\t")
    prompt.expect("eys")
    prompt.send(";\r")
    prompt.expect(r"n\s+2\s")
    prompt.expect("sql>")
    prompt.send("exit\r")
    prompt.expect(pexpect.EOF)


def test_columns_are_those_of_the_views_that_are_named() -> None:
    schemas = {
        "records": pa.schema([("key", pa.binary()), ("keySize", pa.int32())]),
        "segments": pa.schema([("kind", pa.string())]),
    }
    completer = NameCompleter(lambda: schemas)

    def offered(text: str) -> list[str]:
        found = completer.get_completions(Document(text), CompleteEvent())
        return [completion.text for completion in found]

    assert offered("SELECT count(*) FROM records WHERE k") == ["key", "keySize"]
    assert offered("SELECT * FROM RECORDS WHERE KEYs") == ["keySize"]
    assert offered("SELECT * FROM se") == ["segments", "SELECT"]
    assert offered("SELECT k") == []


def test_enter_ends_a_statement_behind_its_semicolon() -> None:
    for finished in ("SELECT 1;", "SELECT ';';\n", "exit", "", "  "):
        assert is_finished(finished), finished
    for open_ in ("SELECT 1", "SELECT ';", "SELECT /* ;", "SELECT 1 -- ;"):
        assert not is_finished(open_), open_
