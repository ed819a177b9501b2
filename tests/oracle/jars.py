"""Kafka's jars, pinned: which ones each release needs (`java/jars.lock`), and how they get here.

The jars come through the Ivy that pyspark ships and are checked against the lock's sha256. All
releases share one directory, so a jar that several of them need lies there once.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# the newest patch of each release whose rules kafkalog knows
RELEASES = {"4.1": "4.1.2", "4.2": "4.2.2", "4.3": "4.3.1", "4.4": "4.4.0"}
KAFKA_VERSION = RELEASES["4.3"]
COMPILER = "ecj"

HERE = Path(__file__).resolve().parent
IVY_SETTINGS = HERE / "java" / "ivysettings.xml"
LOCK_FILE = HERE / "java" / "jars.lock"

# organisation, module, revision; of a jar with a classifier the module is `name:classifier`
Module = tuple[str, str, str]
_MAKERS = {
    "jars.lock": "tests.oracle.setup",
    "zookeeper_jars.lock": "data.maker.zookeeper_jars",
    "spark_jars.lock": "tests.support.spark_jars",
}


def roots(needed_by: str) -> list[Module]:
    """What a release, or the compiler, needs by itself. Only the default release can run a whole
    broker with its tools; of the others the log classes and the messages are enough.
    """
    if needed_by == COMPILER:
        return [("org.eclipse.jdt", "ecj", "3.39.0")]
    # beside the broker the metadata shell, and a store for tiered topics that is a directory
    kafka = ["kafka_2.13", "kafka-tools", "kafka-shell", "kafka-storage:test", "kafka-clients:test"]
    if needed_by != KAFKA_VERSION:
        coordinators = [f"kafka-{name}-coordinator" for name in ("group", "share", "transaction")]
        kafka = ["kafka-storage", "kafka-metadata", *coordinators]
    # slf4j-api is 1.7 here: the slf4j2 binding of log4j would silently log nothing
    log_binding = ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3")
    return [*(("org.apache.kafka", module, needed_by) for module in kafka), log_binding]


class OracleUnavailableError(Exception):
    """Kafka cannot be run here; the message is one sentence that says what is missing."""


@dataclass(frozen=True, slots=True, order=True)
class LockedJar:
    """One line of `jars.lock`; `needed_by` are releases, or the compiler."""

    organisation: str
    module: str
    revision: str
    sha256: str
    needed_by: tuple[str, ...]

    @property
    def file_name(self) -> str:
        name, colon, classifier = self.module.partition(":")
        return f"{name}-{self.revision}{'-' if colon else ''}{classifier}.jar"


def read_lock(lock_file: Path = LOCK_FILE) -> list[LockedJar]:
    """The pinned jars, in the order of the file."""
    text = [line for line in lock_file.read_text().splitlines() if not line.startswith("#")]
    lines = (line.split() for line in text)
    return [
        LockedJar(organisation, module, revision, sha256, tuple(needed_by.split(",")))
        for organisation, module, revision, sha256, needed_by in lines
    ]


def locked_jars(needed_by: str) -> list[LockedJar]:
    return [jar for jar in read_lock() if needed_by in jar.needed_by]


def fetch_jars(java: Path, wanted: Iterable[LockedJar], target: Path, scratch: Path) -> None:
    """Those of the jars that `target` lacks; each appears there whole and checked, or not at all.

    OracleUnavailableError without a network, or where a jar is not the pinned one.
    """
    missing = [jar for jar in wanted if not (target / jar.file_name).is_file()]
    if not missing:
        return
    modules = [(jar.organisation, jar.module, jar.revision) for jar in missing]
    pattern = "[artifact]-[revision](-[classifier]).[ext]"
    _run_ivy(java, scratch, modules, pattern, transitive=False)
    wrong = [jar.file_name for jar in missing if _sha256(scratch / jar.file_name) != jar.sha256]
    if wrong:
        raise OracleUnavailableError(
            f"These jars are missing or not the ones in the lock: {', '.join(wrong)}."
        )
    target.mkdir(exist_ok=True)
    for jar in missing:
        (scratch / jar.file_name).rename(target / jar.file_name)


def resolve(
    java: Path,
    needed_by: str,
    scratch: Path,
    modules: Sequence[Module] | None = None,
    *,
    transitive: bool = True,
) -> list[LockedJar]:
    """The roots of a release, or the modules given instead, with all they need."""
    pattern = "[organisation]+[artifact](:[classifier])+[revision].[ext]"
    wanted = roots(needed_by) if modules is None else modules
    _run_ivy(java, scratch, wanted, pattern, transitive=transitive)
    found = []
    for jar in sorted(scratch.glob("*.jar")):
        organisation, module, revision = jar.name.removesuffix(".jar").split("+")
        found.append(LockedJar(organisation, module, revision, _sha256(jar), (needed_by,)))
        jar.unlink()
    return found


def write_lock(jars: Iterable[LockedJar], lock_file: Path = LOCK_FILE) -> int:
    """Writes a lock file, equal jars of several releases in one line; the number of lines."""
    users: dict[LockedJar, list[str]] = {}
    for jar in jars:
        key = LockedJar(jar.organisation, jar.module, jar.revision, jar.sha256, ())
        users.setdefault(key, []).extend(jar.needed_by)
    maker = _MAKERS[lock_file.name]
    head = f"# organisation module revision sha256 needed by; made by {maker} --relock\n"
    lines = (
        f"{jar.organisation} {jar.module} {jar.revision} {jar.sha256} {','.join(needed_by)}\n"
        for jar, needed_by in sorted(users.items())
    )
    lock_file.write_text(head + "".join(lines))
    return len(users)


@contextlib.contextmanager
def exclusive(cache: Path) -> Iterator[None]:
    """One process at a time works on the cache."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def scratch_directory(cache: Path) -> Iterator[Path]:
    """A directory on the cache's own disk, so that results are renamed into place."""
    with tempfile.TemporaryDirectory(dir=cache, prefix="scratch-") as scratch:
        yield Path(scratch)


def _run_ivy(
    java: Path, target: Path, modules: Sequence[Module], pattern: str, *, transitive: bool
) -> None:
    # To Ivy a jar with a classifier is another artifact of one dependency, not another dependency.
    classifiers: dict[Module, list[str]] = {}
    for organisation, name, revision in modules:
        name, _, classifier = name.partition(":")
        classifiers.setdefault((organisation, name, revision), []).append(classifier)
    lines = "".join(
        _dependency(module, found, transitive=transitive) for module, found in classifiers.items()
    )
    module = target / "ivy.xml"
    module.write_text(
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="kafkalog" module="oracle"/>'
        f'<configurations><conf name="all"/></configurations>\n<dependencies>\n{lines}'
        "</dependencies></ivy-module>\n"
    )
    command = [str(java), f"-Dkafkalog.poms={str(transitive).lower()}", "-cp", str(_ivy_jar())]
    command += ["org.apache.ivy.Main", "-settings", str(IVY_SETTINGS), "-ivy", str(module)]
    command += ["-cache", str(target / "cache"), "-retrieve", f"{target}/{pattern}"]
    command += ["-types", "jar", "bundle"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    log = target.parent / "ivy.log"
    log.write_text(done.stdout + done.stderr)
    # Ivy's exit code is 0 even after "unresolved dependency"
    if done.returncode != 0 or re.search("UNRESOLVED DEPENDENCIES|FAILED DOWNLOADS", done.stdout):
        raise OracleUnavailableError(
            "Kafka's jars could not be fetched from the Maven repository; "
            f"is there a network? The details are in {log}."
        )


def _dependency(module: Module, classifiers: Sequence[str], *, transitive: bool) -> str:
    """With the jars of these classifiers; an empty one is the module's own."""
    organisation, name, revision = module
    artifacts = [
        f'<artifact name="{name}" type="jar" ext="jar"'
        + (f' m:classifier="{classifier}"/>' if classifier else "/>")
        for classifier in classifiers
    ]
    return (
        f'<dependency org="{organisation}" name="{name}" rev="{revision}" conf="all-&gt;default" '
        f'transitive="{str(transitive and "" in classifiers).lower()}">'
        f"{''.join(artifacts) if any(classifiers) else ''}</dependency>\n"
    )


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    jars = [jar for folder in folders for jar in Path(folder).glob("jars/ivy-*.jar")]
    if not jars:
        raise OracleUnavailableError("pyspark, whose Ivy fetches Kafka's jars, is not installed.")
    return jars[0]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"
