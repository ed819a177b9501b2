"""Shell examples, run by bash as they stand; each `kafkalog` in them is called in this process.

A process of its own for each of some fifty commands would import the same libraries fifty times.
The command on the path of the example is a script: it leaves its arguments in a folder, names the
folder on one pipe, waits on another one for the exit code, and prints what the call printed.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from kafkalog.cli.main import main

_COMMAND = """#!/bin/bash
call=$(mktemp -d "{folder}/call-XXXXXX")
mkfifo "$call/exit"
printf '%s\\0' "$PWD" "$@" > "$call/words"
echo "$call" > "{folder}/calls"
read -r code < "$call/exit"
cat "$call/stderr" >&2
cat "$call/stdout"
exit "$code"
"""


def run_shell(
    text: str, cwd: Path, folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a script of bash to its end; `folder` is for what is in between, and a new one."""
    folder.mkdir()
    programs = Path(sys.executable).parent
    command = folder / "kafkalog"
    command.write_text(_COMMAND.format(folder=folder), "utf-8")
    command.chmod(0o755)
    os.mkfifo(folder / "calls")
    path = os.pathsep.join([str(folder), str(programs), os.environ["PATH"]])
    words = ["bash", "-euo", "pipefail", "-c", text]
    with (folder / "printed").open("w+", encoding="utf-8") as printed:
        shell = subprocess.Popen(
            words, cwd=cwd, env={**os.environ, **environment, "PATH": path},
            stdout=printed, stderr=subprocess.STDOUT,
        )  # fmt: skip
        with _environment(environment):
            for call in _calls(shell, folder / "calls"):
                _answer(call)
        printed.seek(0)
        return subprocess.CompletedProcess(words, shell.wait(), printed.read())


def _calls(shell: subprocess.Popen[bytes], pipe: Path) -> Iterator[Path]:
    """The folders that are named on the pipe, until the shell ends."""
    named = os.open(pipe, os.O_RDWR)  # open for writing, too: it has no end between two calls
    ended = os.pidfd_open(shell.pid)
    try:
        waiting = select.poll()
        waiting.register(named, select.POLLIN)
        waiting.register(ended, select.POLLIN)
        while named in (ready := dict(waiting.poll())) or ended not in ready:
            if named in ready:
                # a name is written at once, being shorter than PIPE_BUF
                yield from map(Path, os.read(named, 4096).decode().splitlines())
    finally:
        os.close(named)
        os.close(ended)


def _answer(call: Path) -> None:
    """Call `kafkalog` as the script in that folder was, and let the script go on."""
    directory, *argv = (call / "words").read_bytes().decode().split("\0")[:-1]
    with (
        (call / "stdout").open("w", encoding="utf-8") as stdout,
        (call / "stderr").open("w", encoding="utf-8") as stderr,
        contextlib.chdir(directory),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        code = main(argv)
    (call / "exit").write_text(f"{code}\n", "utf-8")


@contextlib.contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
