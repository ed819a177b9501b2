"""A real single-node Kafka broker (KRaft) from the oracle's jars, on free ports.

    with running_broker(tmp_path / "broker") as broker:
        Producer({"bootstrap.servers": broker.bootstrap_servers})...
    broker.log_dir          # <directory>/data, closed cleanly

A `Broker` may be started, stopped, killed and started again over one directory; its cluster id and
ports stay. Its whole output is kept in `<directory>/broker.log`.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.oracle.setup import OracleRuntime, ensure_oracle

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
READY_LINE = "Kafka Server started"
# How long a client waits for an answer: only a broker that hangs is cut off.
CLIENT_WAIT_S = 300.0
SETTINGS: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "inter.broker.listener.name": "PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    # the cleaner and retention act within a second, and keep what they replaced
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.dedupe.buffer.size": "16777216",
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "100",
    "log.segment.delete.delay.ms": "600000",
}


# Who says an error where a node registers before its controller is ready, as on a busy machine.
_STARTING = (
    "(kafka.server.ControllerApis)",
    "(kafka.server.BrokerLifecycleManager)",
    "(kafka.server.NodeToControllerRequestThread)",
    "(org.apache.kafka.raft.",
)
# Ports that brokers of this process may have, up or not.
_given: deque[int] = deque(maxlen=500)
_MENDING = ("WARN", "orrupt", "Recovering unflushed", "Rebuilding", "Deleted", "Found file")


class BrokerFailedError(Exception):
    """The broker did not start, or died; the message has the end of its log."""


class Broker:
    """One broker over one directory; `settings` are laid over SETTINGS (`log.dirs` too), an empty
    one takes a setting away. `format_options` go to StorageTool.
    """

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        format_options: Sequence[str] = (),
    ) -> None:
        self.directory = directory.absolute()
        self._format_options = tuple(format_options)
        self.log_dir = self.directory / "data"
        self.log_file = self.directory / "broker.log"
        self._runtime: OracleRuntime = ensure_oracle()
        self._process: subprocess.Popen[bytes] | None = None
        self.port, self.controller_port = free_ports(2)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.settings = dict(SETTINGS) | {
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "listeners": (
                f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}"
            ),
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.log_dir),
        }
        self.settings.update(settings or {})

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self, timeout_s: float = 300.0) -> Broker:
        """Formats where needed, starts, and returns once the port answers.

        A directory of another broker (any `meta.properties`) is taken as it is.
        """
        if self._process is not None:
            raise BrokerFailedError("the broker is running already")
        properties = self._write_properties()
        log_dirs = [Path(d) for d in self.settings["log.dirs"].split(",")]
        if not all((d / "meta.properties").exists() for d in log_dirs):
            self._format(properties)
        skip = self.log_file.stat().st_size if self.log_file.exists() else 0
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._java("info", "-Xms256m", "-Xmx512m", "kafka.Kafka", str(properties)),
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                # its own session: an interrupted test run must not reach it before stop() does
                start_new_session=True,
            )
        try:
            self._await_ready(skip, time.monotonic() + timeout_s)
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self, timeout_s: float = CLIENT_WAIT_S) -> None:
        """Ends it as a service manager does (SIGTERM): leaves `.kafka_cleanshutdown`."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise BrokerFailedError(f"no clean stop in {timeout_s} s\n{self._tail(0)}") from None

    def kill(self) -> None:
        """Ends it as a power cut does (SIGKILL). The next start takes some 14 s."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def await_logs(self, *partitions: str) -> None:
        """Until there is a log of each (`topic-0`): topics are created before their logs are."""
        deadline = time.monotonic() + CLIENT_WAIT_S
        first = f"{0:020d}.log"
        while missing := [p for p in partitions if not (self.log_dir / p / first).exists()]:
            if time.monotonic() > deadline:
                raise BrokerFailedError(f"no logs of {missing}\n{self._tail(0)}")
            time.sleep(0.05)

    def tool(self, name: str, *arguments: str) -> list[str]:
        """The command of a class of Kafka's jars; only its errors are logged."""
        return self._java("error", name, *arguments)

    def _java(self, level: str, *arguments: str) -> list[str]:
        java = [str(self._runtime.java), f"-Doracle.loglevel={level}", "-XX:+UseSerialGC"]
        java += ["-XX:TieredStopAtLevel=1", "-Doracle.stream=SYSTEM_OUT"]
        return [*java, "-cp", self._runtime.class_path, *arguments]

    def _write_properties(self) -> Path:
        properties = self.directory / "server.properties"
        lines = (f"{name}={value}\n" for name, value in self.settings.items() if value)
        properties.write_text("".join(lines))
        return properties

    def format(self) -> None:
        """Its log dirs, without a start."""
        self._format(self._write_properties())

    def _format(self, properties: Path) -> None:
        arguments = ["kafka.tools.StorageTool", "format", "--ignore-formatted"]
        arguments += self._format_options
        done = subprocess.run(
            self._java("error", *arguments, "-t", CLUSTER_ID, "-c", str(properties)),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise BrokerFailedError(f"formatting failed\n{done.stdout}{done.stderr}")

    def _await_ready(self, skip: int, deadline: float) -> None:
        process = self._process
        if process is None:
            raise BrokerFailedError("the broker is not running")
        started = False
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise BrokerFailedError(f"exit code {process.returncode}\n{self._tail(skip)}")
            started = started or READY_LINE in self._tail(skip, whole=True)
            if started and _answers(self.port):
                return
            time.sleep(0.1)
        raise BrokerFailedError(f"not ready in time\n{self._tail(skip)}")

    def _tail(self, skip: int, *, whole: bool = False) -> str:
        text = self.log_file.read_bytes()[skip:].decode(errors="replace")
        return text if whole else "\n".join(text.splitlines()[-30:])


@contextlib.contextmanager
def running_broker(directory: Path, settings: Mapping[str, str] | None = None) -> Iterator[Broker]:
    """A started broker, stopped at the end (killed where the body failed)."""
    broker = Broker(directory, settings).start()
    try:
        yield broker
    except BaseException:
        broker.kill()
        raise
    broker.stop()


def complaints(log: str, topics: Iterable[str]) -> list[str]:
    """Lines of a broker's log with an error, or in which the loader mends a log of these topics."""
    ours = [f"partition={topic}-0" for topic in topics]
    return [
        line
        for line in log.splitlines()
        if (" ERROR " in line and not any(who in line for who in _STARTING))
        or " FATAL " in line
        or (any(name in line for name in ours) and any(word in line for word in _MENDING))
    ]


BrokerFactory = Callable[..., Broker]


@pytest.fixture
def broker_factory(tmp_path: Path) -> Iterator[BrokerFactory]:
    """`broker_factory(directory=None, settings=None)`: a started broker, killed after the test."""
    made: list[Broker] = []

    def start(directory: Path | None = None, settings: Mapping[str, str] | None = None) -> Broker:
        broker = Broker(directory or tmp_path / f"broker-{len(made)}", settings)
        made.append(broker)
        return broker.start()

    yield start
    for broker in made:
        broker.kill()


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on, below the range that outgoing connections are given.

    A broker that is down for a while would otherwise find its port lent to some client. Each
    process of a test run has a range of its own, and does not give a port again soon: between this
    look and a broker's start, and while it is down, another one would take its port for free.
    """
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 6
    ports: list[int] = []
    while len(ports) < count:
        port = 20_000 + 2_000 * number + random.SystemRandom().randrange(2_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            if port not in _given:
                _given.append(port)
                ports.append(port)
    return ports


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
    except OSError:
        return False
    return True


__all__ = [
    "CLIENT_WAIT_S",
    "Broker",
    "BrokerFactory",
    "BrokerFailedError",
    "broker_factory",
    "complaints",
    "free_ports",
    "running_broker",
]
