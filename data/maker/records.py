"""The records of the samples, from fixed seeds."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

Headers = list[tuple[str, str | bytes | None]]
Record = tuple[bytes | None, bytes | None, Headers | None]


def varied(count: int, seed: str) -> Iterator[Record]:
    """Records with every kind of nothing: null and empty keys, values, header keys and values."""
    rng = random.Random(seed)
    for i in range(count):
        key = None if i % 17 == 0 else b"" if i % 19 == 0 else b"key-%04d" % rng.randrange(50)
        value: bytes | None = b"value %d " % i + b"abcdefgh" * rng.randrange(12)
        if i % 13 == 0 and key is not None:
            value = None
        elif i % 23 == 0:
            value = b""
        headers: Headers | None = None
        if i % 5 == 0:
            headers = [
                ("h1", b"v%d" % i),
                ("h-null", None),
                ("h1", b"dup"),
                ("hé", b"\xc3\xbc"),
                ("", b""),
            ]
        yield key, value, headers


def orders(count: int, seed: str) -> Iterator[Record]:
    rng = random.Random(seed)
    for i in range(count):
        customer = rng.randrange(60)
        order = {
            "order": f"{seed}-{i:05d}",
            "customer": f"customer-{customer:03d}",
            "amount": round(rng.uniform(3, 400), 2),
            "status": rng.choice(["new", "paid", "sent", "returned"]),
        }
        headers: Headers = [("source", rng.choice([b"web", b"app", b"shop"]))]
        yield b"customer-%03d" % customer, json.dumps(order).encode(), headers


def updates(prefix: str, count: int, keys: int, seed: str) -> Iterator[Record]:
    """A table of `keys` rows, changed `count` times; one change in twelve removes the row."""
    rng = random.Random(seed)
    for i in range(count):
        row = rng.randrange(keys)
        state = {"id": row, "revision": i, "balance": round(rng.uniform(-50, 5000), 2)}
        value = None if rng.random() < 1 / 12 else json.dumps(state).encode()
        headers: Headers | None = [("revision", b"%d" % i)] if i % 40 == 0 else None
        yield f"{prefix}-{row:04d}".encode(), value, headers
