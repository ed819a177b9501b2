"""The processes of a ZooKeeper-era cluster: a ZooKeeper server, brokers of Kafka 3.9 that need one,
and the recorder that watches the live tree (java/Recorder.java).
"""

from __future__ import annotations

import contextlib
import json
import queue
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from data.maker.zookeeper_jars import ZooKeeperEra

JAVA_SOURCES = Path(__file__).with_name("java")
DEADLINE_S = 120.0

_LOGBACK = """<configuration>
<appender name="o" class="ch.qos.logback.core.ConsoleAppender"><encoder>
<pattern>%d %p %m%n</pattern></encoder></appender><root level="WARN"><appender-ref ref="o"/></root>
</configuration>
"""
_LOG4J = """log4j.rootLogger=INFO, o
log4j.appender.o=org.apache.log4j.ConsoleAppender
log4j.appender.o.layout=org.apache.log4j.PatternLayout
log4j.appender.o.layout.ConversionPattern=%d %p %m%n
"""


class ProcessFailedError(Exception):
    """A process ended by itself, or did not become ready in time."""


class JavaProcess:
    """A Java program with its whole output in a file; a subclass says how to run it, and when it is
    ready.
    """

    def __init__(self, era: ZooKeeperEra, directory: Path, name: str) -> None:
        self.era = era
        self.directory = directory.absolute()
        self.name = name
        self.output = self.directory / f"{name}.log"
        self.directory.mkdir(parents=True, exist_ok=True)
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, class_path: str, *arguments: str) -> None:
        logback = self._text_file("logback.xml", _LOGBACK)
        log4j = self._text_file("log4j.properties", _LOG4J)
        command = [str(self.era.java), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx384m"]
        command += [f"-Dlogback.configurationFile={logback}", f"-Dlog4j.configuration=file:{log4j}"]
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                [*command, "-cp", class_path, *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def stop(self) -> None:
        """As a service manager does."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait(DEADLINE_S)

    def kill(self) -> None:
        """As a power cut does."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def await_port(self, port: int) -> None:
        wait_for(lambda: answers(port), f"{self.name} to answer", self.check)

    def check(self) -> None:
        """ProcessFailedError if it ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            tail = "\n".join(self.output.read_text(errors="replace").splitlines()[-30:])
            raise ProcessFailedError(f"{self.name} ended\n{tail}")

    def _text_file(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text)
        return path


class ZooKeeperServer(JavaProcess):
    """A standalone server. Logs grow by 64 KiB instead of 64 MiB, and snapshots come often.

    compression: gz, snappy or nothing, of snapshots.
    """

    def __init__(self, era: ZooKeeperEra, directory: Path, compression: str = "") -> None:
        super().__init__(era, directory, "zookeeper")
        self._compression = compression
        self.port = free_port()
        self.data_dir = self.directory / "data"

    def start(self) -> ZooKeeperServer:
        settings = {
            "dataDir": self.data_dir,
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "tickTime": 1000,
            "admin.enableServer": "false",
            "preAllocSize": 64 if self._compression == "" else 4,
            "snapCount": 400,
            "snapshot.compression.method": self._compression,
            "extendedTypesEnabled": "true",
        }
        lines = "".join(f"{name}={value}\n" for name, value in settings.items())
        config = self._text_file("zoo.cfg", lines)
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self.run(self.era.zookeeper, main, str(config))
        self.await_port(self.port)
        return self


class EraBroker(JavaProcess):
    """A broker of Kafka 3.9; `settings` are laid over those below."""

    def __init__(
        self, era: ZooKeeperEra, directory: Path, broker_id: int, connect: str | None,
        settings: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(era, directory, f"broker-{broker_id}")
        self.broker_id = broker_id
        self.port = free_port()
        self.log_dir = self.directory / "data"
        self.settings: dict[str, object] = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": self.log_dir,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false",
            "auto.leader.rebalance.enable": "false",
            "log.cleaner.backoff.ms": 100,
            "log.cleaner.dedupe.buffer.size": 16777216,
            "log.segment.delete.delay.ms": 600000,
            "log.index.size.max.bytes": 4096,
            "replica.lag.time.max.ms": 4000,
            "controlled.shutdown.max.retries": 1,
        }
        if connect is not None:
            self.settings |= {
                "broker.id": broker_id,
                "zookeeper.connect": connect,
                "zookeeper.session.timeout.ms": 6000,
            }
        self.settings |= settings or {}

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self, *, is_awaited: bool = True) -> EraBroker:
        lines = "".join(f"{name}={value}\n" for name, value in self.settings.items())
        properties = self._text_file("server.properties", lines)
        skip = self.output.stat().st_size if self.output.exists() else 0
        self.run(self.era.kafka, "kafka.Kafka", str(properties))
        if is_awaited:
            wait_for(lambda: self._has_started(skip), f"{self.name} to start", self.check)
        return self

    def _has_started(self, skip: int) -> bool:
        return b" started (kafka.server" in self.output.read_bytes()[skip:] or (
            b"started" in self.output.read_bytes()[skip:] and answers(self.port)
        )


class Recorder:
    """The recorder, compiled when it is started; `lines` has everything it said so far."""

    def __init__(self, era: ZooKeeperEra, directory: Path, connect: str) -> None:
        classes = directory / "classes"
        compile_java(era, JAVA_SOURCES / "Recorder.java", classes)
        (directory / "silent.xml").write_text("<configuration/>")  # stdout is the recorder's own
        class_path = f"{classes}:{era.zookeeper}:{era.kafka}"
        self.lines: list[dict[str, Any]] = []
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        with (directory / "recorder.log").open("wb") as errors:
            self._process = subprocess.Popen(
                [
                    *(str(era.java), "-XX:+UseSerialGC", "-cp", class_path),
                    *(f"-Dlogback.configurationFile={directory}/silent.xml", "Recorder", connect),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
        threading.Thread(target=self._read, daemon=True).start()
        self._await("ready")

    def ask(self, request: str) -> dict[str, Any]:
        """Send a request; what it says of it, or that it is done."""
        self._send(request)
        said = self._answer()
        if said["what"] != "done":
            self._await("done")
        return said

    def tree(self) -> dict[str, Any]:
        """zxid and nodes of the tree as a client sees it."""
        return self.ask("tree")

    def values(self) -> dict[str, dict[str, Any]]:
        """The last value that was seen of each node; nodes that are gone are left out."""
        found: dict[str, dict[str, Any]] = {}
        for line in list(self.lines):
            if line["what"] == "value":
                found[line["path"]] = line
            elif line["what"] == "event" and line["type"] == "NodeDeleted":
                found.pop(line["path"], None)
        return found

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._send("quit")
        self._process.wait(DEADLINE_S)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _send(self, request: str) -> None:
        if self._process.stdin is not None:
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()

    def _read(self) -> None:
        for text in self._process.stdout or ():
            line = json.loads(text)
            if line["what"] in ("event", "value"):
                self.lines.append(line)
            else:
                self._answers.put(line)
        self._answers.put({"what": "ended"})

    def _answer(self) -> dict[str, Any]:
        said = self._answers.get(timeout=DEADLINE_S)
        if said["what"] == "ended":
            raise ProcessFailedError("the recorder ended, see recorder.log")
        return said

    def _await(self, what: str) -> None:
        while self._answer()["what"] != what:
            pass


def compile_java(era: ZooKeeperEra, source: Path, classes: Path) -> None:
    command = [str(era.java), "-jar", str(era.compiler), "-source", "17", "-target", "17"]
    command += ["-proc:none", "-nowarn", "-d", str(classes), "-classpath"]
    done = subprocess.run(
        [*command, f"{era.zookeeper}:{era.kafka}", str(source)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise ProcessFailedError(f"{source.name} does not compile\n{done.stdout}{done.stderr}")


def run_java(era: ZooKeeperEra, arguments: list[str]) -> str:
    """A tool of Kafka to its end; what it says."""
    done = subprocess.run(
        [str(era.java), "-XX:TieredStopAtLevel=1", "-cp", era.kafka, *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise ProcessFailedError(f"{arguments[0]} failed\n{done.stdout}{done.stderr}")
    return done.stdout


def wait_for(
    holds: Callable[[], bool], what: str, check: Callable[[], None] = lambda: None
) -> None:
    """Wait until a condition holds, DEADLINE_S at most."""
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        check()
        if time.monotonic() > deadline:
            raise ProcessFailedError(f"waited {DEADLINE_S:.0f} s in vain for {what}")
        time.sleep(0.1)


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
    except OSError:
        return False
    return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
