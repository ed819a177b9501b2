"""Where runs are kept: a directory a run, named by its id.

 RUN_DIR/<run id>/run.json        schema, kind, runId, version, started, options; when it is done
                                  also finished and what the kind adds
 RUN_DIR/<run id>/journal.jsonl   of runs that change logs: what they planned and did
 RUN_DIR/<run id>/…               the kind's own files

`run.json` is written when a run begins and replaced when it ends: one without `finished` was cut
off. By default RUN_DIR is kafkalog/runs in the user's state directory (XDG_STATE_HOME, else
~/.local/state). It may not lie in a log dir: a broker does not start on a directory it does not
know.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafkalog.errors import InvalidConfigError
from kafkalog.runs import durable
from kafkalog.runs.journal import JOURNAL_FILE, time_text

SCHEMA = 1
RUN_FILE = "run.json"

_RUN_ID = re.compile(r"[A-Za-z0-9]{1,64}")
_MAX_RUN_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Run:
    """A run that was begun: its directory, and what `run.json` says."""

    path: Path
    facts: Mapping[str, Any]


def new_run_id() -> str:
    """A name no other run has; part of the names of its scratch files, so letters and digits
    only.
    """
    return secrets.token_hex(6)


def default_run_dir() -> Path:
    """kafkalog/runs in the user's state directory."""
    state = os.environ.get("XDG_STATE_HOME") or ""
    # The specification has relative paths ignored.
    home = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return home / "kafkalog" / "runs"


def command_for(verb: str, run_id: str, run_dir: str | Path | None) -> str:
    """`kafkalog undo RUN` or another verb's, as somebody types it: with `--run-dir` for a run that
    is kept elsewhere than by default."""
    is_elsewhere = run_dir is not None and Path(run_dir) != default_run_dir()
    place = f" --run-dir {shlex.quote(str(run_dir))}" if is_elsewhere else ""
    return f"kafkalog {verb} {run_id}{place}"


def check_run_dir(run_dir: Path, log_dirs: Iterable[str]) -> None:
    """InvalidConfigError for a run dir in one of the log dirs."""
    place = run_dir.resolve()
    for log_dir in log_dirs:
        if place.is_relative_to(Path(log_dir).resolve()):
            raise InvalidConfigError(f"--run-dir lies in the log dir {log_dir}", path=str(run_dir))


def begin_run(
    run_dir: Path, run_id: str, kind: str, *, version: str, started_ms: int, options: Any
) -> Run:
    """Make the run's directory and its first `run.json`. OSError where that cannot be done."""
    path = run_dir / run_id
    durable.make_directories(path)
    facts = {
        "schema": SCHEMA,
        "kind": kind,
        "runId": run_id,
        "version": version,
        "started": time_text(started_ms),
        "options": options,
    }
    _write(path, facts)
    return Run(path, facts)


def finish_run(run: Run, *, finished_ms: int, facts: Mapping[str, Any]) -> None:
    """Replace `run.json` by one that says how the run ended. OSError as `begin_run`."""
    _write(run.path, {**run.facts, "finished": time_text(finished_ms), **facts})


def find_run(run_dir: Path, run_id: str, kind: str) -> Run:
    """A finished run of this kind; InvalidConfigError if there is none of this id."""
    run = open_run(run_dir, run_id)
    if run.facts.get("kind") != kind:
        raise InvalidConfigError(f"run {run_id} is of {run.facts.get('kind')}, not of {kind}")
    if "finished" not in run.facts:
        raise InvalidConfigError(f"run {run_id} did not come to its end")
    return run


def open_run(run_dir: Path, run_id: str) -> Run:
    """A run of any kind, finished or not; InvalidConfigError if there is none of this id."""
    if not _RUN_ID.fullmatch(run_id):
        raise InvalidConfigError(f"{run_id!r} is not the id of a run")
    path = run_dir / run_id
    try:
        with (path / RUN_FILE).open("rb") as file:
            facts = json.loads(file.read(_MAX_RUN_BYTES))
    except FileNotFoundError:
        raise InvalidConfigError(
            f"no run {run_id} (`kafkalog runs` lists them; --run-dir, if it was given to the run)",
            path=str(run_dir),
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidConfigError(f"the run cannot be read: {error}", path=str(path)) from None
    if not isinstance(facts, dict) or facts.get("schema") != SCHEMA:
        raise InvalidConfigError("the run is of another version of kafkalog", path=str(path))
    return Run(path, facts)


def list_runs(run_dir: Path, *, with_file: str | None = None) -> tuple[list[Run], list[str]]:
    """All runs, the oldest first, and why the others cannot be read. None without a run dir.

    `with_file`: only those that have such a file; the others are not opened.
    """
    if not run_dir.is_dir():
        return [], []
    runs, problems = [], []
    # Names, not paths: a run dir may have ten thousand of them.
    with os.scandir(run_dir) as entries:
        names = sorted(e.name for e in entries if _RUN_ID.fullmatch(e.name) and e.is_dir())
    for name in names:
        if with_file is not None and not os.path.exists(f"{run_dir}/{name}/{with_file}"):  # noqa: PTH110
            continue
        if not any((run_dir / name / file).exists() for file in (RUN_FILE, JOURNAL_FILE)):
            continue  # it was cut off before it began
        try:
            runs.append(open_run(run_dir, name))
        except InvalidConfigError as error:
            problems.append(str(error))
    return sorted(runs, key=lambda run: (str(run.facts.get("started")), run.path)), problems


def _write(path: Path, facts: Mapping[str, Any]) -> None:
    durable.replace(path / RUN_FILE, (json.dumps(facts, indent=2) + "\n").encode())
