"""Random damage through every door (tests/damage) for as long as you like, or a number of mutations
of each format. Needs no Kafka.
"""

from __future__ import annotations

import logging
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.damage.doors import capped, check_all
from tests.damage.forging import random_damage
from tests.damage.formats import formats, try_mutations
from tests.damage.remote_formats import remote_formats, try_forged_manifests

CASES = 75
MUTATIONS_A_ROUND = 1000
_MEMORY = Path("/dev/shm")


def run_damage(seed: int, minutes: float) -> int:
    """Log dirs of 75 damaged partitions each, from `seed` on; how many promises were broken."""
    deadline = time.monotonic() + minutes * 60
    broken, tried = 0, 0
    while time.monotonic() < deadline:
        broken += try_damage(seed + tried)
        tried += 1
    sys.stdout.write(f"{tried * CASES} damaged files, {broken} broken promises\n")
    return broken


def try_damage(seed: int) -> int:
    """One log dir; says what is wrong, and with which seed."""
    logging.getLogger("kafkalog").setLevel(logging.ERROR)  # what is left out is meant to be
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as log_dir:
        wrong = check_all(Path(log_dir), random_damage(random.Random(seed), CASES))
    for line in wrong:
        sys.stdout.write(f"damage {seed}: {line}\n")
    return len(wrong)


def run_mutations(seed: int, count: int) -> int:
    """`count` seeded mutations of each format, a line a format and one for all; how many promises
    were broken.
    """
    total = broken = 0
    every = {**formats(), **remote_formats()}
    for name, format_ in every.items():
        found: list[str] = []
        for first in range(0, count, MUTATIONS_A_ROUND):
            with capped(300):
                part = min(MUTATIONS_A_ROUND, count - first)
                found += try_mutations(format_, seed + first, part)
        for line in found:
            sys.stdout.write(f"damage of {line}\n")
        sys.stdout.write(f"{name}: {count} mutations, {len(found)} broken promises\n")
        sys.stdout.flush()
        total, broken = total + count, broken + len(found)
    with capped(3000):
        forged = try_forged_manifests(seed, count)
    sys.stdout.write("".join(f"damage of {line}\n" for line in forged))
    sys.stdout.write(f"forged manifests: {count} mutations, {len(forged)} broken promises\n")
    total, broken = total + count, broken + len(forged)
    sys.stdout.write(f"{total} mutations of {len(every)} formats, {broken} broken promises\n")
    return broken
