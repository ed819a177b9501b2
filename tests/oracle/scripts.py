"""Random logs for the oracle: `random_scenario(seed)`, the same one for the same seed, always.

A scenario is a topic configuration and some rounds. Each round appends lines to the log, in the
language of the harness's `write`:

    {"records": [{"offset", "ts", "key", "value", "headers"}], "codec", "pid", "sequence", ...}
    {"roll": true}   {"advance_ms": n}   {"log_start": n}   {"truncate": n}

and is then cleaned at `clean_at_ms`. Keys and values are base64 text, as the harness reads them.
What a round may append depends on where the last one left the log, so the lines come from
`Scenario.next_round(log_end_offset, now_ms)`.
"""

from __future__ import annotations

import base64
import random
from dataclasses import dataclass, field
from typing import Any

Line = dict[str, Any]

START_MS = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BATCH_OVERHEAD = 61
# a record's lengths, deltas and attributes; generous, so that estimates are never too small
RECORD_OVERHEAD = 30
LEGACY_OVERHEAD = 12


@dataclass
class Round:
    """One append and the cleaning after it. `high_watermark` None = the checkpointed one;
    `cleaner_checkpoint` None = as the last round left it; `retains`: old segments go afterwards.
    """

    lines: list[Line]
    config: dict[str, str]
    clean_after_ms: int
    high_watermark: int | None
    cleaner_checkpoint: int | None
    retains: bool


@dataclass
class Producer:
    """An idempotent or transactional producer: its next sequence, whether it has fallen silent."""

    producer_id: int
    epoch: int = 0
    sequence: int = 0
    idle: bool = False
    transactional: bool = False
    in_transaction: bool = False


@dataclass
class Scenario:
    """One partition's whole history; `codecs` has more than "none" where bytes may differ."""

    seed: int
    random: random.Random
    topic: str
    partition: int
    rounds: int
    config: dict[str, str]
    producer_expiry_ms: int
    codecs: tuple[str, ...]
    keyless: bool
    keys: list[bytes]
    tombstone_share: float
    header_share: float
    hole_share: float
    odd_timestamp_share: float
    append_time_share: float
    max_records: int
    max_batches: int
    max_value: int
    producers: list[Producer] = field(default_factory=list)
    transactional_share: float = 0.0
    bumps_epochs: bool = False
    leader_epoch: int = 0
    legacy_share: float = 0.0
    dedupe_buffer_size: int | None = None

    @property
    def partition_name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def compressed(self) -> bool:
        return self.codecs != ("none",)

    @property
    def segment_bytes(self) -> int:
        return int(self.config["internal.segment.bytes"])

    def next_round(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> Round:
        """The next lines for a log that ends at `log_end_offset`, whose clock is at `now_ms`."""
        rnd = self.random
        next_offset, clock, lines = log_end_offset, now_ms, list[Line]()
        if log_end_offset > log_start_offset and rnd.random() < 0.04:
            next_offset = rnd.randint(log_start_offset, log_end_offset)
            lines.append({"truncate": next_offset})
        self._producers_move_on()
        for _ in range(rnd.randint(1, self.max_batches)):
            if rnd.random() < 0.06:
                lines.append({"roll": True})
            if rnd.random() < 0.2:
                step = rnd.choice((1, 50, 1000, 3_600_000))
                clock += step
                lines.append({"advance_ms": step})
            batch, next_offset = self._batch(next_offset, clock)
            lines.append(batch)
            if self.transactional_share:
                next_offset = self._maybe_end(lines, next_offset, clock)
        if self.keyless and rnd.random() < 0.6:
            # the round's last batch loses all its records, and is kept empty for its offset
            batch, next_offset = self._batch(next_offset, clock)
            for record in batch["records"]:
                record["key"] = None
            for name in ("pid", "producerEpoch", "sequence", "transactional"):
                batch.pop(name, None)
            lines += [batch, {"roll": True}]
        elif rnd.random() < 0.5:
            lines.append({"roll": True})
        if rnd.random() < 0.06:
            lines.append({"log_start": rnd.randint(log_start_offset, next_offset)})
        retention = int(self.config["delete.retention.ms"])
        wait = rnd.choice((0, 1, retention, retention + 1, max(0, retention - 1), 1000, 60_000))
        if rnd.random() < 0.08:
            wait += self.producer_expiry_ms
        high_watermark = None
        if rnd.random() < 0.12:
            high_watermark = rnd.randint(log_start_offset, next_offset)
        checkpoint = None
        if rnd.random() < 0.06:
            # mostly in the middle of things, now and then outside the log
            outside = (max(0, log_start_offset - 1), next_offset + 1)
            inside = [rnd.randint(log_start_offset, next_offset) for _ in range(3)]
            checkpoint = rnd.choice((*outside, *inside))
        retains = "retention.ms" in self.config and rnd.random() < 0.5
        return Round(lines, dict(self.config), wait, high_watermark, checkpoint, retains)

    def _producers_move_on(self) -> None:
        """Some producers restart (epoch bump), some fall silent, new ones come."""
        for producer in self.producers:
            if self.random.random() < 0.15 and not producer.in_transaction:
                producer.epoch, producer.sequence = producer.epoch + 1, 0
            producer.idle = producer.idle or self.random.random() < 0.1
        if self.producers and self.random.random() < 0.3:
            self.producers.append(
                self._new_producer(max(p.producer_id for p in self.producers) + 7)
            )

    def _new_producer(self, producer_id: int) -> Producer:
        is_transactional = self.random.random() < self.transactional_share
        return Producer(producer_id, transactional=is_transactional)

    def _maybe_end(self, lines: list[Line], next_offset: int, clock: int) -> int:
        """Some transactions end: markers with and without data before them, fencing ones too."""
        rnd = self.random
        for producer in self.producers:
            if not producer.transactional:
                continue
            if rnd.random() >= (0.25 if producer.in_transaction else 0.03):
                continue
            if self.bumps_epochs or rnd.random() < 0.05:
                producer.epoch, producer.sequence = producer.epoch + 1, 0
            lines.append(
                {
                    "control": rnd.choice(("commit", "abort")),
                    "pid": producer.producer_id,
                    "producerEpoch": producer.epoch,
                    "coordinatorEpoch": rnd.randint(0, 3),
                    "leaderEpoch": self.leader_epoch,
                    "ts": clock,
                    "baseOffset": next_offset,
                }
            )
            producer.in_transaction = False
            next_offset += 1
        return next_offset

    def _batch(self, next_offset: int, clock: int) -> tuple[Line, int]:
        rnd = self.random
        if rnd.random() < 0.03:
            self.leader_epoch += rnd.randint(1, 3)
        base = next_offset + (rnd.randint(1, 40) if rnd.random() < self.hole_share else 0)
        if self.hole_share and rnd.random() < 0.004:
            base += rnd.choice((2**31 - 3, 1_500_000_000))
        is_legacy = bool(self.legacy_share) and rnd.random() < self.legacy_share
        records, offset, room = list[Line](), base, self.segment_bytes - BATCH_OVERHEAD - 100
        for _ in range(rnd.randint(1, self.max_records)):
            record, size = self._record(offset, clock)
            room -= size + (LEGACY_OVERHEAD if is_legacy else 0)
            if room < 0 and records:
                break
            records.append(record)
            offset += 1 if rnd.random() >= self.hole_share else rnd.randint(1, 5)
        last = int(records[-1]["offset"])
        line: Line = {"codec": rnd.choice(self.codecs), "leaderEpoch": self.leader_epoch}
        line |= {"baseOffset": base, "records": records}
        if is_legacy:
            return self._legacy(line, clock), last + 1
        if rnd.random() < self.hole_share:
            last += rnd.randint(1, 9)
            line["lastOffset"] = last
        if rnd.random() < self.append_time_share:
            line |= {"timestampType": "append", "appendTime": clock}
        alive = [p for p in self.producers if not p.idle]
        if alive and rnd.random() < 0.8:
            producer = rnd.choice(alive)
            line |= {"pid": producer.producer_id, "producerEpoch": producer.epoch}
            line["sequence"] = producer.sequence
            producer.sequence += last - base + 1
            if producer.transactional:
                line["transactional"] = producer.in_transaction = True
        return line, last + 1

    def _legacy(self, line: Line, clock: int) -> Line:
        """The batch as magic 0 or 1: no producer, no headers, no zstd, its last record's offset."""
        rnd = self.random
        line["magic"] = rnd.choice((0, 1, 1))
        codecs = [codec for codec in self.codecs if codec != "zstd"] or ["none"]
        line["codec"] = rnd.choice(codecs)
        for record in line["records"]:
            record.pop("headers", None)
            if line["magic"] == 0:
                record["ts"] = -1
        if line["magic"] == 1 and rnd.random() < self.append_time_share:
            line |= {"timestampType": "append", "appendTime": clock}
        return line

    def _record(self, offset: int, clock: int) -> tuple[Line, int]:
        rnd = self.random
        key: bytes | None = rnd.choice(self.keys)
        if self.keyless and rnd.random() < 0.15:
            key = rnd.choice((None, b""))
        value: bytes | None = None
        if rnd.random() >= self.tombstone_share:
            value = b"" if rnd.random() < 0.05 else _value(rnd, self.max_value)
        record: Line = {"offset": offset, "ts": self._timestamp(clock)}
        record |= {"key": _text(key), "value": _text(value)}
        size = RECORD_OVERHEAD + len(key or b"") + len(value or b"")
        if rnd.random() < self.header_share:
            record["headers"] = headers = [_header(rnd) for _ in range(rnd.randint(1, 4))]
            size += sum(20 + 2 * len(name) + len(text or "") for name, text in headers)
        return record, size

    def _timestamp(self, clock: int) -> int:
        rnd = self.random
        if rnd.random() >= self.odd_timestamp_share:
            return clock
        odd = (-1, 0, 1, clock - rnd.randint(0, 10**7), clock + rnd.randint(0, 10**7))
        return rnd.choice((*odd, clock - 10**12, 2**62, 253_402_300_800_000))


def random_scenario(
    seed: int,
    *,
    keyless: bool = False,
    codec: str | None = None,
    transactional: bool = False,
    legacy: bool = False,
    bounded: bool = False,
    deleting: bool = False,
) -> Scenario:
    """The scenario of a seed. `codec` fixes the codec, `keyless` mixes in null and empty keys,
    `transactional` producers that commit, abort and leave transactions open, `legacy` batches of
    magic 0 and 1 beside newer ones; `bounded` cleans with an offset map that is often full;
    `deleting` lets old segments go between rounds.
    """
    rnd = random.Random(seed)
    codecs = rnd.choice((("none",),) * 6 + tuple((c,) for c in CODECS[1:]) + (CODECS,))
    scenario = Scenario(
        seed=seed,
        random=rnd,
        topic=rnd.choice(("t", "orders", "a.b_c-d", "x" * 200)),
        partition=rnd.choice((0, 0, 7, 123456)),
        rounds=rnd.choice((1, 2, 3, 4, 6)),
        config=_random_config(rnd),
        producer_expiry_ms=rnd.choice((60_000, 86_400_000, 86_400_000)),
        codecs=(codec,) if codec is not None else codecs,
        keyless=keyless,
        keys=_keys(rnd),
        tombstone_share=rnd.choice((0.0, 0.1, 0.3, 0.7)),
        header_share=rnd.choice((0.0, 0.0, 0.2)),
        hole_share=rnd.choice((0.0, 0.0, 0.1, 0.3)),
        odd_timestamp_share=rnd.choice((0.0, 0.0, 0.1, 0.5)),
        append_time_share=rnd.choice((0.0, 0.0, 0.0, 0.3, 1.0)),
        max_records=rnd.choice((1, 4, 12, 40)),
        max_batches=rnd.choice((4, 15, 40)),
        max_value=rnd.choice((8, 60, 300)),
    )
    if scenario.segment_bytes <= 2000:
        # files cost more time than batches: a few dozen small segments show what hundreds would
        scenario.max_batches = min(scenario.max_batches, 15)
    if rnd.random() < 0.6:
        scenario.producers = [Producer(1000 * n) for n in range(rnd.randint(1, 4))]
    if transactional:
        scenario.transactional_share = rnd.choice((0.5, 1.0))
        scenario.bumps_epochs = rnd.random() < 0.3
        scenario.producers = [scenario._new_producer(1000 * n) for n in range(rnd.randint(1, 5))]
        scenario.producers[0].transactional = True
    if legacy:
        scenario.legacy_share = rnd.choice((0.3, 0.7, 1.0, 1.0))
        if codec is None:
            scenario.codecs = rnd.choice((("none",), CODECS[1:4], CODECS))
        # plain messages have an index entry each, and Kafka asks for room once an append
        scenario.config.pop("segment.index.bytes", None)
    if bounded:
        entries = rnd.choice((1, 2, 3, rnd.randint(1, len(scenario.keys) + 1), 10, 30))
        scenario.dedupe_buffer_size = _map_bytes(entries) + rnd.choice((0, 0, 1, 23))
    if deleting:
        scenario.config |= {
            "cleanup.policy": rnd.choice(("compact", "compact,delete", "compact,delete")),
            "retention.ms": str(rnd.choice((-1, 100, 1000, 3_600_000))),
            "retention.bytes": str(rnd.choice((-1, 500, 1000, 2000))),
        }
    return scenario


def seed_scenario(seed: int) -> Scenario:
    """The scenario of a seed in tests and in the fuzzer: what is asked of random_scenario comes in
    every combination, keyless records in a tenth of them.
    """
    # a generator of its own, or a seed's log would hang together with what it is mixed with
    rnd = random.Random(f"mix {seed}")
    return random_scenario(
        seed,
        keyless=rnd.random() < 0.1,
        transactional=rnd.random() < 0.4,
        legacy=rnd.random() < 0.25,
        bounded=rnd.random() < 0.3,
        deleting=rnd.random() < 0.25,
    )


def _map_bytes(entries: int) -> int:
    """The least bytes of an offset map that is full with so many keys: 24 a slot, nine tenths of
    the slots used.
    """
    slots = entries
    while int(slots * 0.9) < entries:
        slots += 1
    return 24 * slots


def _random_config(rnd: random.Random) -> dict[str, str]:
    config = {
        "cleanup.policy": "compact",
        "internal.segment.bytes": str(rnd.choice((900, 2000, 5000, 20_000))),
        "index.interval.bytes": str(rnd.choice((0, 1, 200, 700, 4096))),
        "delete.retention.ms": str(rnd.choice((0, 1, 1000, 60_000, 86_400_000))),
        "min.cleanable.dirty.ratio": rnd.choice(("0.0", "0.0", "0.01", "0.3", "0.5")),
    }
    if rnd.random() < 0.15:
        config["min.compaction.lag.ms"] = str(rnd.choice((1, 1000, 60_000, 3_600_000)))
    if rnd.random() < 0.15:
        lag = int(config.get("min.compaction.lag.ms", "1"))
        config["max.compaction.lag.ms"] = str(lag + rnd.choice((1, 1000, 60_000)))
    if rnd.random() < 0.15:
        config["segment.ms"] = str(rnd.choice((1, 1000, 3_600_000)))
    if rnd.random() < 0.1:
        config["segment.index.bytes"] = str(rnd.choice((120, 240, 480)))
    return config


def _keys(rnd: random.Random) -> list[bytes]:
    count, longest = rnd.choice((1, 3, 12, 60, 300)), rnd.choice((4, 20, 150))
    width = max(2, (longest + 1) // 2)
    return [b"%d-" % n + rnd.randbytes(rnd.randint(0, width)) for n in range(count)]


def _value(rnd: random.Random, longest: int) -> bytes:
    size = rnd.randint(1, longest)
    return (
        rnd.randbytes(size)
        if rnd.random() < 0.3
        else (b"value %d " % rnd.randrange(99) * size)[:size]
    )


def _header(rnd: random.Random) -> tuple[str, str | None]:
    value = rnd.choice((None, b"", b"v", rnd.randbytes(rnd.randint(1, 30))))
    return rnd.choice(("", "h", "trace-id", "h\u00e9")), _text(value)


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
