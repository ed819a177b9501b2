"""Java programs of one file that call what Kafka's clients bring beside the oracle's jars."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.oracle.jars import (
    COMPILER,
    HERE,
    LockedJar,
    exclusive,
    fetch_jars,
    locked_jars,
    scratch_directory,
)
from tests.oracle.setup import CACHE, JARS, ensure_oracle


@contextmanager
def client_program(name: str, jars: Sequence[LockedJar]) -> Iterator[list[str]]:
    """The command of a class in `java/client`, compiled, with these jars beside the oracle's;
    OracleUnavailableError without Java or the jars."""
    oracle = ensure_oracle()
    compiler = locked_jars(COMPILER)
    with scratch_directory(CACHE) as scratch:
        with exclusive(CACHE):
            fetch_jars(oracle.java, [*jars, *compiler], JARS, scratch)
        paths = [*oracle.jars, *(JARS / jar.file_name for jar in jars)]
        class_path = os.pathsep.join(map(str, paths))
        compile_ = [str(oracle.java), "-jar", str(JARS / compiler[0].file_name)]
        compile_ += ["-source", "17", "-target", "17", "-proc:none", "-nowarn", "-encoding"]
        compile_ += ["UTF-8", "-d", str(scratch), "-classpath", class_path]
        compile_ += [str(HERE / "java" / "client" / f"{name}.java")]
        subprocess.run(compile_, check=True)
        yield [str(oracle.java), "-cp", os.pathsep.join([class_path, str(scratch)]), name]
