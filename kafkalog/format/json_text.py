"""One JSON object, as Kafka's small JSON files hold it, read without trust in its size or depth."""

from __future__ import annotations

import json
from typing import Any

from kafkalog.errors import CorruptCheckpointError
from kafkalog.format.limits import MAX_JSON_BYTES


def parse_json_object(data: bytes, path: str | None = None) -> dict[str, Any]:
    """The object that `data` is. Raises CorruptCheckpointError, with the byte position if it has
    one.
    """
    if len(data) > MAX_JSON_BYTES:
        raise CorruptCheckpointError(f"{len(data)} bytes, the limit is {MAX_JSON_BYTES}", path=path)
    try:
        value = json.loads(data.decode())
    except UnicodeDecodeError as error:
        raise CorruptCheckpointError("no UTF-8", path=path, position=error.start) from None
    except json.JSONDecodeError as error:
        raise CorruptCheckpointError(
            f"no JSON: {error.msg}", path=path, position=error.pos
        ) from None
    except (RecursionError, ValueError):  # nested too deep; an integer of thousands of digits
        raise CorruptCheckpointError("no JSON: nested too deep or too long", path=path) from None
    if not isinstance(value, dict):
        raise CorruptCheckpointError(f"JSON of type {type(value).__name__}, not object", path=path)
    return value


def whole_number(value: object, bits: int) -> int | None:
    """`value` if it is an integer of so many bits, else None."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if -(1 << (bits - 1)) <= value < 1 << (bits - 1) else None
