"""Small files read whole, with a cap: a size on disk must not decide how much we allocate."""

from __future__ import annotations

import os
from pathlib import Path

from kafkalog.errors import RecordTooLargeError
from kafkalog.format.limits import MAX_SMALL_FILE_BYTES
from kafkalog.remote.paths import ManifestPath


def read_small_file(
    path: str | Path, max_bytes: int = MAX_SMALL_FILE_BYTES, *, first_bytes: int | None = None
) -> bytes:
    """The file's bytes, or its `first_bytes`. OSError as the system raises it, RecordTooLargeError
    above `max_bytes`; of remote storage also RemoteStorageError.
    """
    wanted = max_bytes + 1 if first_bytes is None else min(first_bytes, max_bytes + 1)
    if isinstance(path, ManifestPath):
        # Imported late: who reads a log dir only needs no codecs.
        from kafkalog.log.remote_file import read_remote_index

        return read_remote_index(path)[:wanted]
    # A named pipe in the file's place must not make us wait for a writer; a file does not mind.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        # What a read asks for is allocated: not the whole cap for a file of some hundred bytes.
        size = os.fstat(file.fileno()).st_size
        data = file.read(min(wanted, size + 1))
        if len(data) > size:  # it has grown meanwhile, or is no file that has a size
            data += file.read(wanted - len(data))
    if len(data) > max_bytes:
        raise RecordTooLargeError(f"more than {max_bytes} bytes", path=str(path))
    return data
