"""The steps that put segments in place of others, as values: `swap` takes them, and the script of
`--output` is printed from them. Why they are in this order says swap.py.

Names are bare file names of one partition directory. A step may be taken twice: what it renames is
not there any more then. Nothing relies on a name that no sync has forced to disk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from kafkalog.format.file_names import CLEANED_SUFFIX, SWAP_SUFFIX, LogFileKind

RENAME: Final = "rename"
REMOVE: Final = "remove"
SYNC: Final = "sync"


class Step(NamedTuple):
    """RENAME of `source` to `target`, REMOVE of `source`, or SYNC of the directory's names."""

    action: str
    source: str = ""
    target: str = ""


_SYNC: Final = Step(SYNC)


def swap_steps(names: Sequence[str], replaced: Sequence[str], end_offset: int) -> list[Step]:
    """Steps 3 to 5: files that lie there as `.cleaned`, for good, take the place of others.

    Of several segments the `names` begin with the last; `replaced` are in ascending order;
    `end_offset` is where the last new segment ends.
    """
    # Their order is what makes each state in between one that a loader can finish or undo by
    # itself.
    return [*_begin(names), *take_away(replaced, names, end_offset), *put_in_place(names)]


def _begin(names: Sequence[str]) -> Iterator[Step]:
    """Step 3: `.cleaned` → `.swap`. With the very last one a loader goes on instead of back."""
    *first, last = names
    for name in first:
        yield Step(RENAME, name + CLEANED_SUFFIX, name + SWAP_SUFFIX)
    # A loader that finds any `.cleaned` deletes every `.swap` at or above the lowest one, and goes
    # back. Synced here, a power cut cannot leave the last rename without those before it.
    if len({_base_digits(name) for name in names}) > 1:
        yield _SYNC
    # The point of no return. Before it a loader goes back to the sources, from here on it goes on
    # to the new segments.
    yield Step(RENAME, last + CLEANED_SUFFIX, last + SWAP_SUFFIX)
    yield _SYNC


def take_away(names: Iterable[str], swapped: Collection[str], end_offset: int) -> Iterator[Step]:
    """Step 4: files of segments go, in ascending order, for good.

    `swapped` are the names that have a `.swap`, `end_offset` is where the last of these ends. What
    begins below that a loader takes away by itself; of what does not, nothing may go before what is
    in front of it. Kafka's cleaner renames each to `.deleted` before: nothing ever comes back from
    that name, and what undo needs has a second one.
    """
    # Sources behind the end of the new segments a loader does not take away by itself: each goes,
    # synced, before the next, so that a value that is in an earlier one is never left with its
    # tombstone gone.
    behind = []
    for name in names:
        if name in swapped or int(_base_digits(name)) < end_offset:
            yield Step(REMOVE, name)
        else:
            behind.append(name)
    yield _SYNC
    # Logs alone need the order: an index without its log is nothing to a loader.
    logs = [name for name in behind if name.endswith(LogFileKind.LOG)]
    for name in logs:
        yield Step(REMOVE, name)
        yield _SYNC
    for name in behind:
        if name not in logs:
            yield Step(REMOVE, name)


def put_in_place(names: Iterable[str]) -> Iterator[Step]:
    """Step 5: `.swap` → final names."""
    # Each `.log` by itself, then the indexes: an index without its log is deleted by a loader, a
    # log without its index gets a new one.
    ascending = sorted(names, key=_base_digits)
    logs = [name for name in ascending if name.endswith(LogFileKind.LOG)]
    for name in logs:
        yield Step(RENAME, name + SWAP_SUFFIX, name)
        yield _SYNC
    for name in ascending:
        if name not in logs:
            yield Step(RENAME, name + SWAP_SUFFIX, name)
    yield _SYNC


def _base_digits(name: str) -> str:
    return name.partition(".")[0]
