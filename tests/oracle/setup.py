"""Kafka's jars and our Java harness, ready to run: `python -m tests.oracle.setup`.

Maven and a JDK are not needed. The jars come through the Ivy that pyspark ships, each one is
checked against `java/jars.lock` (sha256), and the harness is compiled by the Eclipse compiler,
which runs on a JRE. Everything lies under `.cache/oracle` in the project; a second call only reads
a stamp. Several processes may call at once: one works, the others wait for it.

`--relock` resolves the roots below anew with everything they depend on, and rewrites the lock.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

KAFKA_VERSION = "4.3.1"
ROOTS: tuple[tuple[str, str, str, str], ...] = (
    # (configuration, organisation, module, revision)
    ("kafka", "org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    ("kafka", "org.apache.kafka", "kafka-tools", KAFKA_VERSION),
    # slf4j-api is 1.7 here: the slf4j2 binding of log4j would silently log nothing
    ("kafka", "org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3"),
    ("ecj", "org.eclipse.jdt", "ecj", "3.39.0"),
)
JAVA_MINIMUM = 17

HERE = Path(__file__).resolve().parent
PROJECT_ROOT = HERE.parents[1]
CACHE = PROJECT_ROOT / ".cache" / "oracle"
SOURCES = HERE / "java" / "src"
RESOURCES = HERE / "java" / "resources"
IVY_SETTINGS = HERE / "java" / "ivysettings.xml"
LOCK_FILE = HERE / "java" / "jars.lock"


class OracleUnavailableError(Exception):
    """Kafka cannot be run here; the message is one sentence that says what is missing."""


@dataclass(frozen=True, slots=True)
class OracleRuntime:
    """What is needed to start a JVM with Kafka and the harness on its class path."""

    java: Path
    jars: Path
    classes: Path

    @property
    def class_path(self) -> str:
        return f"{self.classes}{os.pathsep}{self.jars}/*"


@dataclass(frozen=True, slots=True, order=True)
class LockedJar:
    """One line of `jars.lock`."""

    configuration: str
    organisation: str
    module: str
    revision: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.module}-{self.revision}.jar"

    def path(self, jars: Path) -> Path:
        return jars / self.configuration / self.file_name


def ensure_oracle() -> OracleRuntime:
    """The runtime, made first where it is not there yet.

    Raises OracleUnavailableError where Java or, on the first call, the network is missing.
    """
    java = find_java()
    jars_stamp = _digest([LOCK_FILE, IVY_SETTINGS])
    sources = sorted(SOURCES.rglob("*.java")) + sorted(RESOURCES.iterdir())
    classes_stamp = _digest([LOCK_FILE, *sources])
    jars, classes = CACHE / f"jars-{jars_stamp}", CACHE / f"classes-{classes_stamp}"
    runtime = OracleRuntime(java, jars / "kafka", classes)
    if jars.is_dir() and classes.is_dir():
        return runtime
    with _exclusive():
        if not jars.is_dir():
            _require_version(java)
            _fetch_jars(java, jars)
        if not classes.is_dir():
            _compile(java, jars, classes)
        _forget_others("jars-*", jars)
        _forget_others("classes-*", classes)
    return runtime


def find_java() -> Path:
    """JAVA_HOME's `java`, else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").is_file():
        return Path(home) / "bin" / "java"
    found = shutil.which("java")
    if found is None:
        raise OracleUnavailableError(
            f"No Java was found: install a Java {JAVA_MINIMUM} runtime (Debian: apt-get install "
            f"openjdk-{JAVA_MINIMUM}-jre-headless) or point JAVA_HOME at one."
        )
    return Path(found)


def read_lock() -> list[LockedJar]:
    """The pinned jars, in the order of the file."""
    lines = [line.split() for line in LOCK_FILE.read_text().splitlines()]
    return [LockedJar(*fields) for fields in lines if fields and not fields[0].startswith("#")]


# -- fetching ------------------------------------------------------------------------------------


def _fetch_jars(java: Path, target: Path) -> None:
    """Every locked jar into `target`, checked; appears there whole or not at all."""
    locked = read_lock()
    dependencies = [(j.configuration, j.organisation, j.module, j.revision) for j in locked]
    with _scratch() as scratch:
        jars = scratch / "jars"
        _run_ivy(java, scratch, dependencies, jars, transitive=False)
        wrong = [j.file_name for j in locked if _sha256(j.path(jars)) != j.sha256]
        if wrong:
            raise OracleUnavailableError(
                f"These jars are missing or not the ones in {LOCK_FILE.name}: {', '.join(wrong)}."
            )
        jars.rename(target)


def _run_ivy(
    java: Path,
    scratch: Path,
    dependencies: Sequence[tuple[str, str, str, str]],
    jars: Path,
    *,
    transitive: bool,
) -> None:
    confs = "".join(f'<conf name="{name}"/>' for name in sorted({d[0] for d in dependencies}))
    lines = "".join(
        f'<dependency org="{org}" name="{name}" rev="{rev}" conf="{conf}-&gt;default" '
        f'transitive="{str(transitive).lower()}"/>\n'
        for conf, org, name, rev in dependencies
    )
    module = scratch / "ivy.xml"
    module.write_text(
        '<ivy-module version="2.0"><info organisation="kafkalog" module="oracle"/>'
        f"<configurations>{confs}</configurations>\n<dependencies>\n{lines}</dependencies>"
        "</ivy-module>\n"
    )
    pattern = f"{jars}/[conf]/[artifact]-[revision].[ext]"
    if transitive:
        pattern = f"{jars}/[conf]/[organisation]+[artifact]+[revision].[ext]"
    command = [str(java), f"-Dkafkalog.poms={str(transitive).lower()}", "-cp", str(_ivy_jar())]
    command += ["org.apache.ivy.Main", "-settings", str(IVY_SETTINGS), "-ivy", str(module)]
    command += ["-cache", str(scratch / "cache"), "-retrieve", pattern, "-types", "jar", "bundle"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    log = CACHE / "ivy.log"
    log.write_text(done.stdout + done.stderr)
    # Ivy's exit code is 0 even after "unresolved dependency"
    if done.returncode != 0 or re.search("UNRESOLVED DEPENDENCIES|FAILED DOWNLOADS", done.stdout):
        raise OracleUnavailableError(
            f"Kafka {KAFKA_VERSION} could not be fetched from the Maven repository; "
            f"is there a network? The details are in {log}."
        )


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    roots = [] if spec is None else list(spec.submodule_search_locations or [])
    jars = [jar for root in roots for jar in Path(root).glob("jars/ivy-*.jar")]
    if not jars:
        raise OracleUnavailableError("pyspark, whose Ivy fetches Kafka's jars, is not installed.")
    return jars[0]


def relock() -> list[LockedJar]:
    """Resolves ROOTS with all they need, and rewrites the lock file."""
    java = find_java()
    _require_version(java)
    with _exclusive(), _scratch() as scratch:
        jars = scratch / "jars"
        _run_ivy(java, scratch, ROOTS, jars, transitive=True)
        found = sorted(_described(jar) for jar in jars.glob("*/*.jar"))
    head = (
        "# configuration organisation module revision sha256; made by tests.oracle.setup --relock\n"
    )
    body = (f"{j.configuration} {j.organisation} {j.module} {j.revision} {j.sha256}" for j in found)
    LOCK_FILE.write_text(head + "\n".join(body) + "\n")
    return found


def _described(jar: Path) -> LockedJar:
    organisation, module, revision = jar.name.removesuffix(".jar").split("+")
    return LockedJar(jar.parent.name, organisation, module, revision, _sha256(jar))


# -- compiling -----------------------------------------------------------------------------------


def _compile(java: Path, jars: Path, target: Path) -> None:
    with _scratch() as scratch:
        classes = scratch / "classes"
        shutil.copytree(RESOURCES, classes)
        command = [str(java), "-jar", str(next((jars / "ecj").glob("ecj-*.jar")))]
        # no --release: a JRE has no ct.sym; the running Java's own modules are the platform
        command += ["-source", str(JAVA_MINIMUM), "-target", str(JAVA_MINIMUM), "-proc:none"]
        command += ["-nowarn", "-encoding", "UTF-8", "-d", str(classes), "-classpath"]
        command += [os.pathsep.join(map(str, sorted((jars / "kafka").glob("*.jar"))))]
        command += [str(SOURCES)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise OracleUnavailableError(
                f"The Java harness does not compile:\n{done.stdout}{done.stderr}"
            )
        classes.rename(target)


def _require_version(java: Path) -> None:
    done = subprocess.run([str(java), "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', done.stderr + done.stdout)
    if found is None or int(found[1]) < JAVA_MINIMUM:
        raise OracleUnavailableError(
            f"{java} is too old or does not run: Kafka {KAFKA_VERSION} needs Java {JAVA_MINIMUM}."
        )


# -- small things --------------------------------------------------------------------------------


@contextlib.contextmanager
def _exclusive() -> Iterator[None]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    """A directory on the cache's own disk, so that results are renamed into place."""
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="scratch-") as scratch:
        yield Path(scratch)


def _forget_others(pattern: str, keep: Path) -> None:
    for old in CACHE.glob(pattern):
        if old != keep:
            shutil.rmtree(old, ignore_errors=True)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"


def _digest(files: Sequence[Path]) -> str:
    digest = hashlib.sha256(KAFKA_VERSION.encode())
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.setup", description=__doc__)
    parser.add_argument("--relock", action="store_true", help="resolve anew, rewrite the lock file")
    options = parser.parse_args(argv)
    try:
        if options.relock:
            sys.stdout.write(f"{len(relock())} jars locked in {LOCK_FILE}\n")
        runtime = ensure_oracle()
    except OracleUnavailableError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"Kafka {KAFKA_VERSION} is ready: {runtime.classes}, {runtime.jars}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
