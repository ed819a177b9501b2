"""The published JSON Schema (draft 2020-12) of the audit's document."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def audit_schema() -> dict[str, Any]:
    """audit.schema.json."""
    text = files("kafkalog.auditing").joinpath("audit.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
