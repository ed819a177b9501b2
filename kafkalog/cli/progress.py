"""How far a run has come: bytes, rate and time left. On a terminal one line that moves several
times a second and stays below what is said meanwhile, elsewhere a line every half minute.

What moves it between two results are the bytes that the run reads and writes (`log.pace`), in all
its processes. A run goes over its bytes more than once, how often is known only afterwards: it is
guessed first, then taken from what is done; so a line may slow down near the end, never go back.

A timer of the system asks for the line, not a thread: worker processes are forked meanwhile. Where
signals are not ours (another thread than the first one) the line moves with results alone.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from kafkalog.cli.output import say
from kafkalog.log.pace import counting
from kafkalog.texts import format_bytes, format_duration

Result = TypeVar("Result")
Key = TypeVar("Key")

# How often the line of a terminal is looked at. It is drawn again when it has moved by so large a
# part, so that a run of half a second is seen to move too, else when it has stood for so long.
_SHOWN_EVERY_S = 0.02
_SHOWN_PART = 1 / 100
_SHOWN_AFTER_S = 0.1
_SAID_EVERY_S = 30.0
# What is not done is not shown as done, whatever was guessed.
_MOST = 0.99


def is_shown() -> bool:
    """Whether there is a line that moves."""
    return sys.stderr.isatty()


def with_progress(
    results: Iterator[Result],
    sizes: Mapping[Key, int],
    key_of: Callable[[Result], Key],
    what: str,
    *,
    passes: float = 1.0,
    parts: str = "partitions",
) -> Iterator[Result]:
    """The same results. `sizes`: bytes by key; `passes`: how often a run goes over them, as a
    guess; `parts`: what a key is. Closed before their end, this closes them.
    """
    with (
        closing(results) if isinstance(results, Generator) else nullcontext(),
        counting() as counted,
    ):
        state = _State(counted, sum(sizes.values()), len(sizes), passes)
        line = _Line(state, what, parts) if is_shown() else _Talk(state, what, parts)
        with closing(line), _every(_SHOWN_EVERY_S if is_shown() else _SAID_EVERY_S, line.tell):
            for result in results:
                state.add(sizes.get(key_of(result), 0))
                line.result()
                yield result


@dataclass(slots=True)
class _State:
    counted: Callable[[], int]
    total: int
    parts: int
    passes: float
    done_bytes: int = 0
    done: int = 0
    shown: int = 0
    started: float = field(default_factory=time.monotonic)

    def add(self, size: int) -> None:
        """A part is done."""
        self.done_bytes += size
        self.done += 1
        if self.done_bytes:
            self.passes = max(self.counted() / self.done_bytes, 0.01)

    def position(self) -> int:
        """Bytes done; never less than before."""
        guess = min(int(self.counted() / self.passes), int(self.total * _MOST))
        self.shown = max(self.shown, self.done_bytes, guess)
        return self.shown


class _Shower(Protocol):
    def tell(self) -> None: ...
    def result(self) -> None: ...
    def close(self) -> None: ...


class _Line:
    """The line of a terminal."""

    def __init__(self, state: _State, what: str, parts: str) -> None:
        from tqdm import tqdm

        # Its thread would be there when worker processes are forked.
        tqdm.monitor_interval = 0
        self._state, self._parts = state, parts
        self._is_busy = False
        self._drawn_at = state.started
        self._bar: Any = tqdm(
            total=state.total,
            desc=what,
            unit="B",
            unit_scale=True,
            unit_divisor=1024,
            leave=False,
            dynamic_ncols=True,
            file=sys.stderr,
        )

    def tell(self) -> None:
        """By the timer, which may come in the middle of `result`."""
        if self._is_busy:
            return
        moved = self._state.position() - self._bar.n
        is_late = time.monotonic() - self._drawn_at >= _SHOWN_AFTER_S
        if is_late or moved >= self._state.total * _SHOWN_PART:
            self._move()

    def result(self) -> None:
        state = self._state
        self._bar.set_postfix_str(f"{state.done} of {state.parts} {self._parts}", refresh=False)
        self._move()

    def _move(self) -> None:
        self._is_busy = True
        try:
            self._bar.n = self._state.position()
            self._bar.refresh()
            self._drawn_at = time.monotonic()
        finally:
            self._is_busy = False

    def close(self) -> None:
        self._is_busy = True
        self._bar.close()


class _Talk:
    """Lines of their own, in a log or a pipe."""

    def __init__(self, state: _State, what: str, parts: str) -> None:
        self._state, self._what, self._parts = state, what, parts

    def tell(self) -> None:
        state = self._state
        position, seconds = state.position(), time.monotonic() - state.started
        rate = position / max(seconds, 1e-3)
        left_ms = int(1000 * (state.total - position) / rate) if rate else None
        left = "" if left_ms is None else f", {format_duration(left_ms // 1000 * 1000)} left"
        say(
            f"{self._what}: {format_bytes(position)} of {format_bytes(state.total)} "
            f"({position / max(state.total, 1):.0%}), {format_bytes(int(rate))} a second{left}; "
            f"{state.done} of {state.parts} {self._parts}"
        )

    def result(self) -> None:
        """Said with the next line."""

    def close(self) -> None:
        """Nothing is kept."""


@contextmanager
def _every(seconds: float, tell: Callable[[], None]) -> Iterator[None]:
    """Call it so often, in this thread, between two steps of Python."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_alarm(*_: object) -> None:
        # It may come while the same stream is written to, or when nobody reads it any more.
        with suppress(RuntimeError, OSError):
            tell()

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def line_of_bytes(what: str, total: int) -> Any:
    """A line of a terminal that its caller moves (`update`), lengthens (`total`) and closes; it
    comes after half a second.
    """
    from tqdm import tqdm

    tqdm.monitor_interval = 0
    return tqdm(
        total=total, desc=what, unit="B", unit_scale=True, unit_divisor=1024, leave=False,
        dynamic_ncols=True, delay=0.5, file=sys.stderr,
    )  # fmt: skip


def say_above(text: str) -> None:
    """One line of talk, above the line of progress if there is one."""
    if not is_shown():
        say(text)
        return
    from tqdm import tqdm

    with tqdm.external_write_mode(file=sys.stderr):
        say(text)
