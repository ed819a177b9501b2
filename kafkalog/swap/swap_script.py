"""The script that swaps written segments in by hand: `swap_template.sh` with the files in it.

Paths are quoted for a POSIX shell, whatever bytes they have; names of segment files are digits and
suffixes.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kafkalog.swap.output_dir import FileDigest, WrittenGroup
from kafkalog.swap.steps import Step, swap_steps

SCRIPT_FILE = "swap.sh"


@dataclass(frozen=True, slots=True)
class SwapOfPartition:
    """A partition as the script swaps it: where it is, its directory in the output, its groups."""

    path: str
    directory: str
    groups: tuple[WrittenGroup, ...]


@dataclass(frozen=True, slots=True)
class LinesOfLogDir:
    """(topic, partition, offset) of the lines to set in a log dir's cleaner checkpoint."""

    log_dir: str
    lines: tuple[tuple[str, int, int], ...]


def swap_script(
    run_id: str, partitions: Sequence[SwapOfPartition], log_dirs: Sequence[LinesOfLogDir]
) -> bytes:
    """The whole script; paths are absolute."""
    groups = [(each, group) for each in partitions for group in each.groups]
    group_calls = [
        _call(
            each.path,
            each.directory,
            _lines(group.sources),
            _lines(group.snapshots),
            _lines(group.files),
            _steps(swap_steps(_names(group.files), _names(group.sources), group.next_offset)),
            _steps(
                swap_steps(_last_first(_names(group.sources)), _names(group.files), sys.maxsize)
            ),
        )
        for each, group in groups
    ]
    # Each group goes in by its own steps and back by the same steps with both sides exchanged: the
    # script decides nothing.
    values = {
        "RUN": run_id,
        "GROUPS": "\n".join(group_calls),
        "GROUPS_BACK": "\n".join(reversed(group_calls)),
        "PARTITIONS": "\n".join(_call(each.path, each.directory) for each in partitions),
        "LOG_DIRS": "\n".join(
            _call(each.log_dir, str(number), "\n".join(f"{t} {p} {o}" for t, p, o in each.lines))
            for number, each in enumerate(log_dirs)
        ),
    }
    # With temporary files and random numbers, for who wants a script.
    from importlib.resources import files

    template = files("kafkalog.swap").joinpath("swap_template.sh").read_text("utf-8")
    # In one pass: a path may look like one of the names.
    return os.fsencode(re.sub("@([A-Z_]+)@", lambda found: values[found[1]], template))


def _call(*words: str) -> str:
    return '    "$1" ' + " ".join(shlex.quote(word) for word in words)


def _names(digests: Iterable[FileDigest]) -> list[str]:
    return [digest.name for digest in digests]


def _last_first(names: Sequence[str]) -> list[str]:
    """Of several segments the last one first, the files of each in their order."""
    return sorted(names, key=lambda name: -int(name.partition(".")[0]))


def _steps(steps: Iterable[Step]) -> str:
    """A line a step, as `take_steps` of the script reads them."""
    return "\n".join(f"{each.action} {each.source} {each.target}".rstrip() for each in steps)


def _lines(digests: Iterable[FileDigest]) -> str:
    return "\n".join(f"{digest.name} {digest.size} {digest.sha256}" for digest in digests)
