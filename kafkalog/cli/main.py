"""`kafkalog VERB …`: parse, call the verb's module, turn errors into exit codes."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from kafkalog.cli.arguments import UsageError, parse_arguments
from kafkalog.cli.completion import complete
from kafkalog.cli.display import set_display
from kafkalog.cli.help_text import usage_of
from kafkalog.cli.options import Verb, verb_named
from kafkalog.cli.output import ExitCode, finish_output, say
from kafkalog.cli.remote_cache import told_remote_cache
from kafkalog.errors import (
    CodeDiffersError,
    InvalidConfigError,
    KafkaLogError,
    LogChangedError,
    LogCleaningRefusedError,
    LogDirLockedError,
)
from kafkalog.format.meta_properties import META_PROPERTIES_FILE
from kafkalog.log.topic_partition import parse_partition_dir_name

_UNSAFE = (LogDirLockedError, LogChangedError, LogCleaningRefusedError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (see ExitCode); never raises but SystemExit(0)."""
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None and "_ARGCOMPLETE" in os.environ:
        complete()
    if argv is None:
        # Names this run to its workers (see `kernels.keeping`).
        os.environ["KAFKALOG_RUN"] = os.urandom(8).hex()
    verb: Verb | None = None
    try:
        if not words and (hint := log_dir_hint(Path())):
            raise UsageError(hint)
        args = parse_arguments(words)
        verb = verb_named(args.verb)
        set_display(args)
        with told_remote_cache(args):
            code = int(_loaded(str(verb.module), freeze=argv is None).run(args))
        finish_output()
    except KeyboardInterrupt:
        say("kafkalog: interrupted; run it again to go on")
        return ExitCode.FINDINGS
    except UsageError as error:
        if verb is not None and not error.usage:
            error.usage = f"usage: {usage_of(verb, f'kafkalog {verb.name}')}"
        return report_error(error)
    except Exception as error:
        return report_error(error)
    return code


def log_dir_hint(path: Path) -> str | None:
    """What to say to somebody who stands in a log dir and names no verb."""
    try:
        is_log_dir = (path / META_PROPERTIES_FILE).exists() or any(
            parse_partition_dir_name(entry.name) and entry.is_dir() for entry in path.iterdir()
        )
    except OSError:
        return None
    return "this is a log dir: kafkalog info . says what is in it" if is_log_dir else None


def _loaded(name: str, *, freeze: bool) -> ModuleType:
    """A verb's module. What it imports makes hundreds of thousands of objects and keeps them:
    looking among them for garbage took a quarter of a short command's time.

    `freeze`, in a process that is the command's alone, spares them the later looks and the last one
    at the end (1.25 s of CPU for `verify` of a small log, 0.94 s with it). Objects of a host that
    calls `main` are not ours to freeze.
    """
    if name in sys.modules or not gc.isenabled():
        return import_module(name)
    gc.disable()
    try:
        return import_module(name)
    finally:
        if freeze:
            gc.freeze()
        gc.enable()


def report_error(error: Exception) -> ExitCode:
    """Say what went wrong on stderr, and return the exit code for it; jobs use it as well."""
    if isinstance(error, UsageError):
        say(f"kafkalog: {error}")
        if error.usage:
            say(error.usage)
        return ExitCode.USAGE
    if isinstance(error, InvalidConfigError):
        say(f"kafkalog: {error}")
        return ExitCode.USAGE
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("pyspark"):
        say("kafkalog: this needs Spark: pip install 'pyspark>=3.5.3,<4.4' 'pandas<3'")
        return ExitCode.USAGE
    if isinstance(error, _UNSAFE):
        say(f"kafkalog: nothing was done: {error}")
        return ExitCode.UNSAFE
    if isinstance(error, CodeDiffersError):
        say(f"kafkalog: {error}")
        return ExitCode.UNSAFE
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        say(f"kafkalog: {error.filename}: {error.strerror}")
        return ExitCode.FINDINGS
    if isinstance(error, KafkaLogError | OSError):
        say(f"kafkalog: {error}")
        return ExitCode.FINDINGS
    say("kafkalog: this is a fault of kafkalog, please report it:")
    say("".join(traceback.format_exception(error)).rstrip())
    return ExitCode.FAULT
