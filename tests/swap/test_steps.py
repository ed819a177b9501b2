"""The steps of a swap as values, and the script that is printed from them."""

from __future__ import annotations

from kafkalog.swap.output_dir import FileDigest, WrittenGroup
from kafkalog.swap.steps import REMOVE, RENAME, SYNC, Step, swap_steps
from kafkalog.swap.swap_script import SwapOfPartition, swap_script

KINDS = (".log", ".index", ".timeindex")


def files(*bases: int) -> list[str]:
    return [f"{base:020d}{kind}" for base in bases for kind in KINDS]


def at(steps: list[Step], action: str, source: str) -> int:
    (found,) = (n for n, s in enumerate(steps) if (s.action, s.source) == (action, source))
    return found


def test_sources_behind_the_new_segment_go_one_by_one() -> None:
    """No value may outlive the tombstone behind it."""
    steps = swap_steps(files(0), files(0, 10, 20, 30), 20)
    gone = [at(steps, REMOVE, f"{base:020d}.log") for base in (0, 10, 20, 30)]
    assert gone == sorted(gone)
    for number in gone[2:]:
        assert steps[number - 1].action == steps[number + 1].action == SYNC
    assert steps[at(steps, RENAME, f"{0:020d}.log.swap") + 1].action == SYNC
    assert sum(step.action == REMOVE for step in steps) == 12


def test_of_several_new_segments_the_first_one_is_swapped_last() -> None:
    steps = swap_steps(files(20, 10, 0), files(0), 30)
    begun = [step.source for step in steps if step.target.endswith(".swap")]
    assert begun == [f"{name}.cleaned" for name in files(20, 10, 0)]
    last = at(steps, RENAME, begun[-1])
    assert steps[last - 1].action == steps[last + 1].action == SYNC
    placed = [step.target for step in steps if step.source.endswith(".log.swap")]
    assert placed == [f"{base:020d}.log" for base in (0, 10, 20)]


def test_the_script_takes_the_same_steps() -> None:
    old = tuple(FileDigest(name, 1, "ab") for name in files(0, 10, 20))
    new = tuple(FileDigest(name, 1, "cd") for name in files(0))
    group = WrittenGroup(0, 15, (0, 10, 20), old, (), new)
    place = SwapOfPartition("/logs/t-0", "./t-0", (group,))
    script = swap_script("r1", [place], []).decode()
    there = swap_steps(files(0), files(0, 10, 20), 15)
    back = swap_steps(files(20, 10, 0), files(0), 2**63)
    for steps in (there, back):
        lines = [" ".join(filter(None, (s.action, s.source, s.target))) for s in steps]
        assert "\n".join(lines) in script
