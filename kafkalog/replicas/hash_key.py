"""The key that hosts share so that their digests of replicas can be compared: random bytes.

Whoever has it can try out which keys and values a digest was made of; without it nobody can. The
file is read where it is needed, and no plan, document or message has it.

    secret   uint64[2]: 16 bytes of BLAKE2b over the file, for SipHash
    check    16 bytes of BLAKE2b over the secret: two digests with the same one have the same key
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from kafkalog.errors import InvalidConfigError

SECRET_BYTES = 16
CHECK_BYTES = 16
_LEAST_BYTES = 16
_MOST_BYTES = 64 * 1024
_OF_SECRET, _OF_CHECK = b"kafkalog secret", b"kafkalog check"


def read_hash_key(path: str) -> bytes:
    """The secret that a file gives. InvalidConfigError for a file that cannot be read, or with
    fewer than 16 bytes or more than 64 KiB.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InvalidConfigError(f"--hash-key: {error.strerror}", path=path) from None
    if not _LEAST_BYTES <= len(content) <= _MOST_BYTES:
        raise InvalidConfigError(
            f"--hash-key: {len(content)} bytes or more, a key has {_LEAST_BYTES} to {_MOST_BYTES}: "
            "head -c 32 /dev/urandom makes one",
            path=path,
        )
    return hashlib.blake2b(content, digest_size=SECRET_BYTES, person=_OF_SECRET).digest()


def key_check(secret: bytes) -> bytes:
    """What tells whether two secrets are the same, and nothing else."""
    return hashlib.blake2b(secret, digest_size=CHECK_BYTES, person=_OF_CHECK).digest()
