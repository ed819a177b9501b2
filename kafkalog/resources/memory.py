"""How much memory a worker may use for what (`--memory`).

The setting bounds the peak resident size of the process. What cannot be helped comes first: the
interpreter with its libraries, and one batch in several forms at once (as it is stored,
decompressed, encoded anew, compressed). The rest is the key map's, which goes to disk past it.
"""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass, replace
from pathlib import Path

from kafkalog.errors import InvalidConfigError
from kafkalog.format.constants import MAX_BATCH_BYTES
from kafkalog.texts import format_bytes

DEFAULT_MEMORY_BYTES = 512 * 1024 * 1024
LEAST_MEMORY_BYTES = 256 * 1024 * 1024

_MIB = 1024 * 1024
_PAGE_BYTES = resource.getpagesize()
# What a Spark worker holds that has loaded the libraries, and one of the command line when its work
# begins, which loads kernels later.
_USUAL_BASE_BYTES = 192 * _MIB
_COMMAND_LINE_BASE_BYTES = 48 * _MIB
# Chunk, decompressed records and what the codec returned them in.
_FORMS_OF_A_BATCH = 3
# Rows of headers, flags of a run, tables: what comes by the MiB.
_SMALL_THINGS_BYTES = 40 * _MIB
_LEAST_POOL_BYTES = 16 * _MIB
# Of what is available: the system keeps some of it free.
_PAGE_CACHE_SHARE = 0.9
# Of a batch whose records are compared: both sides as stored, decompressed, as columns, and slices
# of those.
_FORMS_OF_A_COMPARED_BATCH = 20


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """pool_bytes: hashed keys of the map; finished_bytes: output that waits for its turn, of the
    same memory, while the map leaves so much; max_batch_bytes: the largest batch, stored or not;
    max_compared_bytes: the same where its records are compared (`--verify deep`); kept_bytes: of
    each array that grows with the log, before it goes to disk; most_keys: held at once when buckets
    are merged; window_records: whose marks are held at once.
    """

    pool_bytes: int
    finished_bytes: int
    max_batch_bytes: int
    max_compared_bytes: int
    kept_bytes: int
    most_keys: int
    window_records: int

    def beside(self, held_bytes: int) -> MemoryBudget:
        """What is left of it while so many bytes of the map's are held for something else."""
        pool_bytes = max(self.pool_bytes - held_bytes, 0)
        most_keys = min(self.most_keys, _keys_at_once(pool_bytes))
        return replace(self, pool_bytes=pool_bytes, most_keys=most_keys)


def check_memory(memory_bytes: int) -> int:
    """The setting itself; InvalidConfigError for less than a worker can do with."""
    if memory_bytes < LEAST_MEMORY_BYTES:
        raise InvalidConfigError(
            f"memory of {format_bytes(memory_bytes)} is too little: "
            f"{format_bytes(LEAST_MEMORY_BYTES)} is the least, of which the interpreter with its "
            f"libraries takes up to {format_bytes(_USUAL_BASE_BYTES)}, and the forms of one batch "
            "(stored, decompressed, encoded anew) most of the rest"
        )
    return memory_bytes


def largest_batch(memory_bytes: int, max_batch_bytes: int = MAX_BATCH_BYTES) -> int:
    """The most bytes of a batch, stored or decompressed: 64 MiB of 512 MiB, and no more than
    `max_batch_bytes`."""
    return min(max_batch_bytes, (memory_bytes - _USUAL_BASE_BYTES) // 5)


def memory_budget(memory_bytes: int, max_batch_bytes: int = MAX_BATCH_BYTES) -> MemoryBudget:
    """What this process may use, for a worker that is to stay within `memory_bytes`."""
    return _budget_beside(_resident_bytes(), memory_bytes, max_batch_bytes)


def usual_budget(memory_bytes: int, max_batch_bytes: int, *, on_spark: bool) -> MemoryBudget:
    """What a worker will have that is still to be started."""
    base = _USUAL_BASE_BYTES if on_spark else _COMMAND_LINE_BASE_BYTES
    return _budget_beside(base, memory_bytes, max_batch_bytes)


def page_cache_bytes(meminfo: Path = Path("/proc/meminfo")) -> float:
    """What this host can keep of files in memory beside what runs now; 0 if it does not say."""
    try:
        lines = meminfo.read_text().splitlines()
        (kib,) = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
        return int(kib) * 1024 * _PAGE_CACHE_SHARE
    except (OSError, IndexError, ValueError):
        return 0.0


def _budget_beside(resident_bytes: int, memory_bytes: int, max_batch_bytes: int) -> MemoryBudget:
    """What may be used beside what the process holds already."""
    max_batch_bytes = largest_batch(memory_bytes, max_batch_bytes)
    left = memory_bytes - resident_bytes - _FORMS_OF_A_BATCH * max_batch_bytes
    pool_bytes = max(left - _SMALL_THINGS_BYTES, _LEAST_POOL_BYTES)
    return MemoryBudget(
        pool_bytes=pool_bytes,
        finished_bytes=memory_bytes // 5,
        max_batch_bytes=max_batch_bytes,
        max_compared_bytes=min(
            max_batch_bytes, (memory_bytes - _USUAL_BASE_BYTES) // _FORMS_OF_A_COMPARED_BATCH
        ),
        kept_bytes=max(memory_bytes // 64, _MIB),
        most_keys=_keys_at_once(pool_bytes),
        window_records=memory_bytes // 16 * 8,
    )


def _keys_at_once(pool_bytes: int) -> int:
    return max(pool_bytes // 64, 1 << 16)


def _resident_bytes() -> int:
    """What this process holds now, without what it may give back."""
    try:
        # Asked once a partition: of the two files that tell this is the one with seven numbers.
        fd = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        try:
            pages = int(os.read(fd, 256).split()[1])
        finally:
            os.close(fd)
    except (OSError, IndexError, ValueError):
        return _USUAL_BASE_BYTES
    return pages * _PAGE_BYTES or _USUAL_BASE_BYTES
