"""Kafka's jars and our Java harness, ready to run: `python -m tests.oracle.setup`.

Maven and a JDK are not needed: see `jars.py` for the jars; the harness is compiled by the Eclipse
compiler, which runs on a JRE, once for each release, since classes moved between packages.
Everything lies under `.cache/oracle` in the project; a second call only looks whether it is there.
Several processes may call at once: one works, the others wait for it.

Without arguments the default release is made ready; the others follow when a test first asks for
them, or with `--all`. `--relock` resolves all of them anew and rewrites the lock.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.oracle.jars import (
    COMPILER,
    HERE,
    KAFKA_VERSION,
    LOCK_FILE,
    RELEASES,
    OracleUnavailableError,
    exclusive,
    fetch_jars,
    locked_jars,
    read_lock,
    resolve,
    scratch_directory,
    write_lock,
)

JAVA_MINIMUM = 17

PROJECT_ROOT = HERE.parents[1]
CACHE = PROJECT_ROOT / ".cache" / "oracle"
JARS = CACHE / "jars"
SOURCES = HERE / "java" / "src"
RESOURCES = HERE / "java" / "resources"

# The sources say where a class is in the default release; this is where others have it.
RECORD_CLASSES = (r"\bcommon\.record\.internal\.", "common.record.")
UTIL_CLASSES = (
    r"\bcommon\.utils\.(AppInfoParser|BufferSupplier|ByteBufferOutputStream|Exit)\b",
    r"common.utils.internals.\1",
)
MOVED_CLASSES: dict[str, tuple[str, str]] = {
    "4.1": RECORD_CLASSES,
    "4.2": RECORD_CLASSES,
    "4.4": UTIL_CLASSES,
}

# What needs a whole broker, with its line of Main: of other releases only the classes of the log
# are here.
BROKER_COMMAND = "StartCmd"
BROKER_RELEASE = "4.3"


@dataclass(frozen=True, slots=True)
class OracleRuntime:
    """What is needed to start a JVM with one release of Kafka and the harness on its class path."""

    java: Path
    classes: Path
    jars: tuple[Path, ...]

    @property
    def class_path(self) -> str:
        return os.pathsep.join(map(str, (self.classes, *self.jars)))


def ensure_oracle(line: str = "4.3") -> OracleRuntime:
    """The runtime of a release line (4.1 to 4.4), made first where it is not there yet.

    Raises OracleUnavailableError where Java or, on the first call, the network is missing.
    """
    java = find_java()
    release = RELEASES[line]
    needed = locked_jars(release)
    classes = CACHE / f"harness-{release}-{_stamp(line)}"
    runtime = OracleRuntime(java, classes, tuple(JARS / jar.file_name for jar in needed))
    if classes.is_dir() and all(jar.is_file() for jar in runtime.jars):
        return runtime
    with exclusive(CACHE):
        _require_version(java)
        with scratch_directory(CACHE) as scratch:
            fetch_jars(java, [*needed, *locked_jars(COMPILER)], JARS, scratch)
        if not classes.is_dir():
            _compile(line, runtime)
        _forget_old_ones(release, classes)
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


def relock() -> int:
    """Resolves every release with all it needs and rewrites the lock file; the number of jars."""
    java = find_java()
    _require_version(java)
    with exclusive(CACHE), scratch_directory(CACHE) as scratch:
        found = [
            jar
            for needed_by in (*RELEASES.values(), COMPILER)
            for jar in resolve(java, needed_by, scratch)
        ]
    return write_lock(found)


# -- compiling -----------------------------------------------------------------------------------


def _compile(line: str, runtime: OracleRuntime) -> None:
    with scratch_directory(CACHE) as scratch:
        sources, classes = scratch / "src", scratch / "classes"
        shutil.copytree(RESOURCES, classes)
        for file in _sources():
            if file.stem == BROKER_COMMAND and line != BROKER_RELEASE:
                continue
            target = sources / file.relative_to(SOURCES)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_as_in_release(file.read_text(), line))
        (compiler,) = locked_jars(COMPILER)
        command = [str(runtime.java), "-jar", str(JARS / compiler.file_name)]
        # no --release: a JRE has no ct.sym; the running Java's own modules are the platform
        command += ["-source", str(JAVA_MINIMUM), "-target", str(JAVA_MINIMUM), "-proc:none"]
        command += ["-nowarn", "-encoding", "UTF-8", "-d", str(classes), "-classpath"]
        command += [os.pathsep.join(map(str, runtime.jars)), str(sources)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise OracleUnavailableError(
                f"The Java harness does not compile for {line}:\n{done.stdout}{done.stderr}"
            )
        classes.rename(runtime.classes)


def _as_in_release(source: str, line: str) -> str:
    """The source with the packages of a release, and without a broker where it has none."""
    if line != BROKER_RELEASE:
        lines = source.splitlines(keepends=True)
        source = "".join(each for each in lines if BROKER_COMMAND not in each)
    return re.sub(*MOVED_CLASSES[line], source) if line in MOVED_CLASSES else source


def _require_version(java: Path) -> None:
    done = subprocess.run([str(java), "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', done.stderr + done.stdout)
    if found is None or int(found[1]) < JAVA_MINIMUM:
        raise OracleUnavailableError(
            f"{java} is too old or does not run: Kafka {KAFKA_VERSION} needs Java {JAVA_MINIMUM}."
        )


# -- small things --------------------------------------------------------------------------------


def _sources() -> list[Path]:
    return sorted(SOURCES.rglob("*.java"))


def _stamp(line: str) -> str:
    """Changes with everything the compiled harness of a release depends on."""
    digest = hashlib.sha256(f"{line} {MOVED_CLASSES.get(line)}".encode())
    for file in (LOCK_FILE, *_sources(), *sorted(RESOURCES.iterdir())):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _forget_old_ones(release: str, classes: Path) -> None:
    """Harnesses of the release made from other sources, and jars that are not locked any more."""
    for old in CACHE.glob(f"harness-{release}-*"):
        if old != classes:
            shutil.rmtree(old, ignore_errors=True)
    locked = {jar.file_name for jar in read_lock()}
    for jar in JARS.iterdir():
        if jar.name not in locked:
            jar.unlink(missing_ok=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.setup", description=__doc__)
    parser.add_argument("--all", action="store_true", help="every release, not only the default")
    parser.add_argument("--relock", action="store_true", help="resolve anew, rewrite the lock file")
    options = parser.parse_args(argv)
    try:
        if options.relock:
            sys.stdout.write(f"{relock()} jars locked in {LOCK_FILE}\n")
        for line in RELEASES if options.all else ("4.3",):
            runtime = ensure_oracle(line)
            sys.stdout.write(f"Kafka {RELEASES[line]} is ready: {runtime.classes}\n")
    except OracleUnavailableError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
