"""The line of progress."""

from __future__ import annotations

import io
import sys
from collections.abc import Generator

import pytest

from kafkalog.cli.progress import say_above, with_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def results(ended: list[str]) -> Generator[str, None, None]:
    try:
        yield from ("a", "b", "c")
    finally:
        ended.append("closed")


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
