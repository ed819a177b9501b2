"""Small files read whole, with a cap: a size on disk must not decide how much we allocate."""

from __future__ import annotations

import os
from pathlib import Path

from kafkalog.errors import RecordTooLargeError
from kafkalog.format.limits import MAX_SMALL_FILE_BYTES
from kafkalog.remote.paths import ManifestPath
from kafkalog.remote.plain_object import read_object
from kafkalog.remote.stores import bucket_uri, store_of


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
    if (uri := bucket_uri(path)) is not None:
        data, size = read_object(uri, wanted)
        if len(data) > max_bytes:
            raise RecordTooLargeError(f"{size} bytes, more than {max_bytes}", path=uri)
        return data
    # A named pipe in the file's place must not make us wait for a writer; a file does not mind.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # What a read asks for is allocated: not the whole cap for a file of some hundred bytes.
        size = os.fstat(descriptor).st_size
        data = os.read(descriptor, min(wanted, size + 1))
        if len(data) != min(wanted, size):  # cut or grown meanwhile, or no file that has a size
            data += _read_on(descriptor, wanted - len(data))
    finally:
        os.close(descriptor)
    if len(data) > max_bytes:
        raise RecordTooLargeError(f"more than {max_bytes} bytes", path=str(path))
    return data


def _read_on(descriptor: int, most: int) -> bytes:
    """Up to so many bytes, to the file's end; nothing of a pipe that nobody writes to."""
    # The plain descriptor is the caller's, who closes it: of small files there are thousands, and a
    # file object for each is most of what reading them costs.
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return file.read(most) or b""


def size_of(path: str | Path) -> int | None:
    """How many bytes a file has, None where there is none; of a bucket as it was listed. Other
    errors as `read_small_file`."""
    uri = bucket_uri(path)
    try:
        if uri is not None:
            return store_of(uri).recall(uri).size
        return os.stat(path).st_size  # noqa: PTH116 - as often as there are segments
    except FileNotFoundError:
        return None


def is_there(path: str | Path) -> bool:
    """Whether there is such a file; of a bucket as it was listed, and RemoteStorageError."""
    return os.path.exists(path) if bucket_uri(path) is None else size_of(path) is not None  # noqa: PTH110
