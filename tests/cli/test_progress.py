"""The line of progress."""

from __future__ import annotations

import io
import os
import random
import re
import shlex
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator
from multiprocessing.sharedctypes import RawValue
from pathlib import Path
from tempfile import TemporaryDirectory

import pexpect
import pytest

from kafkalog.cli import progress
from kafkalog.cli.progress import say_above, with_progress
from kafkalog.format.file_names import log_file_name
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from kafkalog.log.pace import spend
from kafkalog.resources.process_pool import in_processes
from tests.support.log_builder import START_MS, LogBuilder


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def results(ended: list[str]) -> Generator[str, None, None]:
    try:
        yield from ("a", "b", "c")
    finally:
        ended.append("closed")


LARGE = (
    ["verify"],
    ["audit", "--contents"],
    ["compact", "--apply", "--topic", "big", "--force", "null-keys"],
    ["recover", "--topic", "big"],
)
# A line that does not move is noticed after so long.
WAIT_S = 300.0
SIZES = {"a": 3 << 20, "b": 1 << 20, "c": 4 << 20}


def test_a_terminal_sees_rate_time_left_and_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    found = []
    for result in with_progress(results([]), SIZES, str, "compact"):
        found.append(result)
        say_above(f"{result}: done")
    assert found == ["a", "b", "c"]
    shown = terminal.getvalue()
    assert "compact:  38%" in shown
    assert "3.00M/8.00M" in shown
    assert "B/s" in shown
    assert "<" in shown, "time left"
    assert "1 of 3 partitions" in shown
    for name in found:
        assert f"\r{name}: done\n" in shown or f"\n{name}: done\n" in shown, "a line of its own"


def test_without_a_terminal_there_are_plain_lines_only(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    for result in with_progress(results([]), SIZES, str, "compact"):
        say_above(f"{result}: done")
    assert stream.getvalue() == "a: done\nb: done\nc: done\n"


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_closed_early_it_closes_the_work(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    ended: list[str] = []
    shown = with_progress(results(ended), SIZES, str, "compact")
    assert next(shown) == "a"
    shown.close()  # type: ignore[attr-defined]
    assert ended == ["closed"]


def reading(parts: int) -> Generator[str, None, None]:
    """A run over the bytes of SIZES, `a` in so many reads; the line is asked for after each."""
    for _ in range(parts):
        spend(SIZES["a"] // parts)
        signal.raise_signal(signal.SIGALRM)
    yield from ("a", "b", "c")


def states(shown: str) -> set[str]:
    """What a line of progress has said: bytes done."""
    return set(re.findall(r"([0-9.]+[kMG]?)/[0-9.]+[MG]", shown))


def test_it_moves_within_a_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the timer of the system, for as long as it takes to be drawn."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    def reading() -> Iterator[str]:
        for number in range(15):
            spend(SIZES["a"] // 15)
            wait_until(lambda: len(states(terminal.getvalue())) > number)  # noqa: B023
        yield "a"

    assert next(iter(with_progress(reading(), SIZES, str, "verify"))) == "a"
    assert len(states(terminal.getvalue())) >= 15


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < until, "it does not move"
        time.sleep(0.002)


class SharedTerminal(Terminal):
    """Worker processes, which are forked, see how many states it has shown."""

    states = RawValue("i", 0)
    is_read = RawValue("b", False)

    def write(self, text: str) -> int:
        written = super().write(text)
        self.states.value = len(states(self.getvalue()))
        return written


def test_it_moves_with_what_worker_processes_read(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = SharedTerminal()
    terminal.states.value, terminal.is_read.value = 0, False
    monkeypatch.setattr(sys, "stderr", terminal)
    results = in_processes(["a", "b"], read_and_wait, 2, str)
    assert sorted(with_progress(results, SIZES, str, "verify")) == ["a", "b"]
    assert terminal.states.value >= 5


def read_and_wait(name: str) -> str:
    """Of `a` some reads, after each of which the driver draws its line again; `b` ends behind it,
    since the first result makes the driver guess anew how much there is to do.
    """
    shown, is_read = SharedTerminal.states, SharedTerminal.is_read
    if name == "b":
        wait_until(lambda: bool(is_read.value))
        return name
    for _ in range(5):
        before = shown.value
        spend(SIZES[name] // 5)
        wait_until(lambda: shown.value > before)  # noqa: B023
    is_read.value = True
    return name


def test_without_a_terminal_a_line_comes_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    list(with_progress(reading(15), SIZES, str, "verify"))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 15  # as often as the timer asked
    line = r"verify: [0-9.]+ (KiB|MiB) of 8.0 MiB \(\d+%\), .* a second, .* left; 0 of 3 partitions"
    assert all(re.fullmatch(line, each) for each in lines), lines
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_the_timer_asks_for_a_line_in_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_SAID_EVERY_S", 0.05)
    began = time.monotonic()

    def waiting() -> Iterator[str]:
        wait_until(lambda: stream.getvalue().count("\n") >= 3)
        yield from ("a", "b", "c")

    list(with_progress(waiting(), SIZES, str, "verify"))
    assert 3 <= len(stream.getvalue().splitlines()) <= (time.monotonic() - began) / 0.05


def test_it_never_goes_back_and_is_done_at_the_end_only(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_SHOWN_EVERY_S", 1000.0)  # only as `reading` asks
    # twice as much is read as was guessed
    list(with_progress(reading(15), SIZES, str, "compact", passes=0.1))
    shown = [int(text) for text in re.findall(r"(\d+)%", terminal.getvalue())]
    assert shown == sorted(shown)
    assert 100 not in shown[:-3]


@pytest.mark.thorough
@pytest.mark.parametrize("words", LARGE, ids=" ".join)
def test_a_partition_of_a_gibibyte_shows_ten_states_on_a_terminal(
    words: list[str], tmp_path: Path
) -> None:
    """On a pseudo-terminal, as people see it."""
    with TemporaryDirectory(dir="/dev/shm") as memory:
        log_dir = Path(memory, "logs")
        write_large_partition(log_dir, 1 << 30)
        settings = ["--config", "cleanup.policy=compact", "--workers", "1"]
        more = settings if words[0] in ("compact", "recover") else ["--workers", "1"]
        command = [sys.executable, "-m", "kafkalog", *words, str(log_dir), *more]
        out, code = pexpect.run(
            shlex.join([*command, "--run-dir", str(tmp_path / "runs")]),
            withexitstatus=True, timeout=600, env={**os.environ, "TERM": "xterm"},
        )  # fmt: skip
    text = out.decode()
    assert code in (0, 1), text[-2000:]
    assert len(states(text)) >= 10, text[-2000:]


def write_large_partition(log_dir: Path, size: int) -> None:
    """One segment of so many bytes, and an active one: the CRC of a batch does not cover where it
    stands."""
    values = random.Random(7)
    records = [Record(n, START_MS, b"%d" % n, values.randbytes(1000)) for n in range(1000)]
    batch = bytearray(pack_batch(records, producer_id=-1))
    directory = LogBuilder(log_dir, "big-0").batch(("k", "v")).write()
    for path in directory.glob("0*"):
        path.unlink()
    offset = 0
    with (directory / log_file_name(0)).open("wb") as file:
        while offset * len(batch) < size * 1000:
            batch[:8] = offset.to_bytes(8, "big")
            file.write(batch)
            offset += 1000
    batch[:8] = offset.to_bytes(8, "big")
    (directory / log_file_name(offset)).write_bytes(batch)
    (log_dir / "replication-offset-checkpoint").write_text(f"0\n1\nbig 0 {offset + 1000}\n")
    (log_dir / "recovery-point-offset-checkpoint").write_text(f"0\n1\nbig 0 {offset + 1000}\n")
