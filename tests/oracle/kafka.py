"""Kafka's own log code from Python: one JVM (`serve`) for thousands of calls, milliseconds each.

    with Kafka() as kafka:
        kafka.write(log_dir / "orders-0", script, now_ms=..., config={"segment.bytes": "900"})
        kafka.clean(log_dir, "orders-0", now_ms=..., config={"cleanup.policy": "compact"})

Answers are the harness's JSON objects as they are. A call that fails inside Kafka raises
KafkaFailedError with Kafka's own words; the JVM goes on.
"""

from __future__ import annotations

import json
import select
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.oracle.setup import ensure_oracle

Answer = dict[str, Any]
Config = Mapping[str, str]

# Kafka's default of 128 MiB costs 40 ms of zeroing a call; this still holds 157,000 keys
MAP_BYTES = 4 << 20
CALL_TIMEOUT_S = 600.0


class KafkaFailedError(Exception):
    """Kafka's code threw; `answer` has error, cause and the top of the stack."""

    def __init__(self, arguments: list[str], answer: Answer) -> None:
        super().__init__(f"{arguments[0]}: {answer['cause']} at {answer['at'][:3]}")
        self.answer = answer


class Kafka:
    """The JVM of one release line (4.1 to 4.4). One call at a time; not to be shared between
    threads.
    """

    def __init__(self, line: str = "4.3", heap: str = "512m", log_level: str = "error") -> None:
        runtime = ensure_oracle(line)
        self.line = line
        # not closed here: the JVM writes to it as long as it lives
        self._stderr = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [
                # small logs: the second compiler would take more time than it saves
                *(str(runtime.java), f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
                f"-Doracle.loglevel={log_level}",
                *("-cp", runtime.class_path, "oracle.Main", "serve"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        self._pending = b""

    def __enter__(self) -> Kafka:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the JVM; safe to call twice."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._stderr.close()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def call(self, *arguments: str) -> Answer:
        """One command of the harness with its raw arguments."""
        stdin = self._process.stdin
        if stdin is None or stdin.closed:
            raise RuntimeError("the oracle's JVM is closed")
        stdin.write(json.dumps(arguments).encode() + b"\n")
        stdin.flush()
        answer: Answer = json.loads(self._read_line(arguments[0]))
        if "error" in answer:
            raise KafkaFailedError(list(arguments), answer)
        return answer

    def _read_line(self, command: str) -> bytes:
        stdout = self._process.stdout
        if stdout is None:
            raise RuntimeError("the oracle's JVM has no stdout")
        while b"\n" not in self._pending:
            ready, _, _ = select.select([stdout], [], [], CALL_TIMEOUT_S)
            piece = stdout.read1(1 << 20) if ready else b""  # type: ignore[attr-defined]
            if not piece:
                self._process.kill()
                self._stderr.seek(0)
                words = self._stderr.read().decode(errors="replace")[-4000:]
                raise RuntimeError(f"the oracle's JVM died or hung in {command}\n{words}")
            self._pending += piece
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    # -- commands --------------------------------------------------------------------------------

    def write(
        self,
        partition_dir: Path,
        script: Iterable[Mapping[str, Any]],
        *,
        now_ms: int,
        config: Config,
        high_watermark: str | int = "leo",
        producer_expiry_ms: int | None = None,
    ) -> Answer:
        """Appends a script (scripts.py has its language); also keeps the checkpoint files.

        The answer's `now` is the clock at the end; source files get their mtimes from it.
        """
        text = "\n".join(json.dumps(line, separators=(",", ":")) for line in script)
        return self.call(
            *("write", "--dir", str(partition_dir), "--script-text", text),
            *("--now", str(now_ms), "--hw", str(high_watermark)),
            *_config(config),
            *_expiry(producer_expiry_ms),
        )

    def clean(
        self,
        log_dir: Path,
        partition: str,
        *,
        now_ms: int,
        config: Config,
        high_watermark: str | int = "checkpoint",
        obey_ratio: bool = False,
        producer_expiry_ms: int | None = None,
        map_bytes: int = MAP_BYTES,
    ) -> Answer:
        """One round of the cleaner; the answer's only element of `rounds`, with `skipped`.

        Without `obey_ratio` a round runs whenever there is a cleanable byte. `map_bytes` is the
        size of the offset map.
        """
        answer = self.call(
            *("clean", "--log-dir", str(log_dir), "--topic-partition", partition),
            *("--now", str(now_ms), "--hw", str(high_watermark), "--map-bytes", str(map_bytes)),
            *(["--obey-ratio"] if obey_ratio else []),
            *_config(config),
            *_expiry(producer_expiry_ms),
        )
        result: Answer = answer["rounds"][0]
        return result

    def open_once(
        self,
        log_dir: Path,
        partition: str,
        *,
        now_ms: int,
        config: Config,
        producer_expiry_ms: int | None = None,
    ) -> Answer:
        """Opens and closes a log as after a clean stop: removes stray snapshots, trims indexes.

        Do it before copying a directory that is then to be compared; it cleans nothing.
        """
        return self._load(
            log_dir, partition, now_ms, config, producer_expiry_ms, clean_shutdown=True
        )

    def recover(
        self,
        log_dir: Path,
        partition: str,
        *,
        now_ms: int,
        config: Config,
        producer_expiry_ms: int | None = None,
        recovery_point: int = 0,
    ) -> Answer:
        """Loads a log as after a crash, from the recovery point on. Rewrites indexes: give it a
        copy.
        """
        return self._load(
            log_dir, partition, now_ms, config, producer_expiry_ms,
            clean_shutdown=False, recovery_point=recovery_point,
        )  # fmt: skip

    def _load(
        self,
        log_dir: Path,
        partition: str,
        now_ms: int,
        config: Config,
        producer_expiry_ms: int | None,
        *,
        clean_shutdown: bool,
        recovery_point: int = 0,
    ) -> Answer:
        return self.call(
            *("recover", "--log-dir", str(log_dir), "--topic-partition", partition),
            *("--now", str(now_ms), "--recovery-point", str(recovery_point)),
            *(["--clean-shutdown"] if clean_shutdown else []),
            *_config(config),
            *_expiry(producer_expiry_ms),
        )

    def retain(
        self,
        log_dir: Path,
        partition: str,
        *,
        now_ms: int,
        config: Config,
        high_watermark: str | int = "leo",
        delete_records_before: int | None = None,
        producer_expiry_ms: int | None = None,
        uploaded: int | None = None,
        passes: int = 1,
    ) -> Answer:
        """Passes of retention: `deleted` and `remaining` base offsets. `uploaded`: of a broker
        with tiered storage, the last offset of the log that is there, -1 for nothing.
        """
        before = [] if delete_records_before is None else [str(delete_records_before)]
        return self.call(
            *("retain", "--log-dir", str(log_dir), "--topic-partition", partition),
            *("--now", str(now_ms), "--hw", str(high_watermark), "--passes", str(passes)),
            *(["--delete-records-before", *before] if before else []),
            *([] if uploaded is None else ["--uploaded", str(uploaded)]),
            *_config(config),
            *_expiry(producer_expiry_ms),
        )

    def dump(self, partition_dir: Path, *, records: bool = True) -> Answer:
        """Every `.log` file: `segments` of `batches` (all header fields) of `records`."""
        return self.call(
            "dump", "--dir", str(partition_dir), "--records", "true" if records else "false"
        )

    def dump_file(self, log_file: Path) -> list[Answer]:
        """The batches of one `.log` file, as in dump()."""
        segments = self.call("dump", "--file", str(log_file))["segments"]
        batches: list[Answer] = segments[0]["batches"]
        return batches

    def fetch(
        self,
        log_dir: Path,
        partition: str,
        *,
        now_ms: int,
        config: Config,
        offset: int | None = None,
        timestamp: int | None = None,
        max_bytes: int = 1 << 20,
    ) -> Answer:
        """Loads a log as after a clean stop and reads it as a read_committed consumer would:
        `batches` (first and last offset) from `offset` on, `aborted` (producer id, first offset),
        `lastStableOffset`; `offsetForTime` of `timestamp`. Give it a copy.
        """
        return self.call(
            *("fetch", "--log-dir", str(log_dir), "--topic-partition", partition),
            *("--now", str(now_ms), "--max-bytes", str(max_bytes)),
            *([] if offset is None else ["--offset", str(offset)]),
            *([] if timestamp is None else ["--timestamp", str(timestamp)]),
            *_config(config),
        )

    def snapshot(self, snapshot_file: Path) -> list[Answer]:
        """The entries of a producer snapshot."""
        entries: list[Answer] = self.call("snapshot", "--file", str(snapshot_file))["producers"]
        return entries

    def encode(self, cases: Iterable[tuple[str, int, Mapping[str, Any]]]) -> list[Answer]:
        """Generated messages (class, version, fields as JSON): `bytes` in hex, and the `json` that
        Kafka's converter makes of what it reads back from them.
        """
        text = "\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
        messages: list[Answer] = self.call("encode", "--cases-text", text)["messages"]
        return messages

    def message_types(self, enum: str) -> list[Answer]:
        """The record types of a generated enum: `name`, `id`, `lowest-` and
        `highestSupportedVersion`.
        """
        types: list[Answer] = self.call("message-types", "--enum", enum)["types"]
        return types

    def lock(self, log_dir: Path) -> bool:
        """Takes the `.lock` as a broker does, until `unlock`; False if somebody else holds it."""
        return bool(self.call("lock", "--log-dir", str(log_dir))["taken"])

    def unlock(self) -> None:
        """Gives up what `lock` took."""
        self.call("unlock")

    def dump_log_segments(self, partition_dir: Path) -> Answer:
        """Kafka's DumpLogSegments over every file: `suspicious` lines, `stderr`, `lines`."""
        return self.call(
            *("dumplog", "--dir", str(partition_dir)),
            *("--print-data-log", "--deep-iteration", "--quiet"),
        )


class Kafkas:
    """The JVMs of several releases, each started when it is first asked for, or has died."""

    def __init__(self) -> None:
        self._running: dict[str, Kafka] = {}

    def __enter__(self) -> Kafkas:
        return self

    def __exit__(self, *_: object) -> None:
        for kafka in self._running.values():
            kafka.close()
        self._running.clear()

    def of(self, line: str) -> Kafka:
        """The JVM of a release line (4.1 to 4.4)."""
        if line not in self._running or not self._running[line].is_alive:
            self._running[line] = Kafka(line)
        return self._running[line]


def _config(config: Config) -> list[str]:
    return [word for name, value in config.items() for word in ("--config", f"{name}={value}")]


def _expiry(milliseconds: int | None) -> list[str]:
    return [] if milliseconds is None else ["--producer-expiry-ms", str(milliseconds)]
