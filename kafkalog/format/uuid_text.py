"""UUIDs as Kafka writes them into text: url-safe base64 of 16 bytes, 22 characters, no padding.

Padding is accepted when it is read. Topic ids, directory ids and cluster ids have this form.

Source: Kafka Uuid.
"""

from __future__ import annotations

import base64
import re

ZERO_UUID = bytes(16)
# Ids below are reserved: unassigned, migrating, lost (KIP-858).
_RESERVED_IDS = 100

_UUID = re.compile(r"(?P<digits>[A-Za-z0-9_-]{22})(?:==)?")


def parse_uuid(text: str) -> bytes | None:
    """The 16 bytes of a base64 UUID, or None if `text` is none."""
    # Matched first: the decoder itself would take the characters + and / as well.
    match = _UUID.fullmatch(text)
    return base64.urlsafe_b64decode(match["digits"] + "==") if match else None


def is_reserved_directory_id(text: str) -> bool:
    """Whether a directory id is that of no log dir; so is what is no id."""
    number = parse_uuid(text)
    return number is None or int.from_bytes(number) < _RESERVED_IDS
