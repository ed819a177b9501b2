"""What stands for a text or for bytes that `--redact` hides: a digest, the same for the same bytes,
so that rows can still be put together. Who can guess the bytes can find them.
"""

from __future__ import annotations

import hashlib

_DIGEST_BYTES = 8


def redacted(data: bytes) -> str:
    """`sha256:` and the first bytes of the digest."""
    return f"sha256:{hashlib.sha256(data).digest()[:_DIGEST_BYTES].hex()}"


def redacted_name(name: str) -> str:
    """Of a name that a client chose: a group, a transactional id, a client id."""
    return redacted(name.encode())
