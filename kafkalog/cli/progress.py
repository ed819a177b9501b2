"""How far a run has come, on a terminal: bytes, rate and time left in one line, which stays below
what is said meanwhile. Where stderr is no terminal there is no such line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, nullcontext
from typing import TypeVar

from kafkalog.cli.output import say

Result = TypeVar("Result")
Key = TypeVar("Key")


def is_shown() -> bool:
    """Whether anybody sees it."""
    return sys.stderr.isatty()


def with_progress(
    results: Iterator[Result],
    sizes: Mapping[Key, int],
    key_of: Callable[[Result], Key],
    what: str,
) -> Iterator[Result]:
    """The same results; each brings the line on by the bytes that `sizes` has for its key. Closed
    before their end, this closes them.
    """
    with closing(results) if isinstance(results, Generator) else nullcontext():
        if not is_shown():
            yield from results
            return
        from tqdm import tqdm

        # Its thread would be there when worker processes are forked.
        tqdm.monitor_interval = 0
        with tqdm(
            total=sum(sizes.values()),
            desc=what,
            unit="B",
            unit_scale=True,
            unit_divisor=1024,
            leave=False,
            dynamic_ncols=True,
            file=sys.stderr,
        ) as line:
            for done, result in enumerate(results, 1):
                line.set_postfix_str(f"{done} of {len(sizes)} partitions", refresh=False)
                line.update(sizes.get(key_of(result), 0))
                yield result


def say_above(text: str) -> None:
    """One line of talk, above the line of progress if there is one."""
    if not is_shown():
        say(text)
        return
    from tqdm import tqdm

    with tqdm.external_write_mode(file=sys.stderr):
        say(text)
