"""Completion in a shell: verbs, options, words of an option, and topics of the log dirs given.

    eval "$(register-python-argcomplete kafkalog)"

The shell calls the command for each TAB: so nothing is read but names, no more than `_MOST_ENTRIES`
of a directory, and whatever goes wrong there is nothing to offer.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from kafkalog.cli.options import VERBS, Verb
from kafkalog.log.topic_partition import PartitionKind, parse_partition_dir_name

_MOST_ENTRIES = 50_000
_MOST_OFFERED = 500

Completer = Callable[..., list[str]]


def complete() -> None:
    """Offer what fits to the shell that asks, and leave the process; nothing where none asks."""
    import argcomplete

    argcomplete.autocomplete(_whole_parser(), always_complete_options=False)


def _whole_parser() -> argparse.ArgumentParser:
    """All verbs; argcomplete reads it."""
    from kafkalog.cli.arguments import add_options

    parser = argparse.ArgumentParser(prog="kafkalog")
    subparsers = parser.add_subparsers(dest="verb")
    line = os.environ.get("COMP_LINE", "").split()
    for verb in VERBS:
        if verb.module is not None:
            of_verb = subparsers.add_parser(verb.name)
            if verb.name in line:
                add_options(of_verb, verb)
                _add_completers(of_verb, verb)
    return parser


def _add_completers(parser: argparse.ArgumentParser, verb: Verb) -> None:
    words = {option.name: option.words for _, own in verb.groups for option in own if option.words}
    for action in parser._actions:
        name = action.option_strings[0] if action.option_strings else action.dest
        completer: Completer | None = None
        if name == "--topic":
            completer = topics
        elif name == "--topic-partition" or (name == "paths" and verb.takes == "T-P"):
            completer = topic_partitions
        elif name in words:
            completer = _one_of(words[name])
        if completer is not None:
            action.completer = completer  # type: ignore[attr-defined] # argcomplete's own


def _one_of(words: tuple[str, ...]) -> Completer:
    return lambda **_: list(words)


def topics(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """Topics of the log dirs on the command line that begin so."""
    found = {name.rpartition("-")[0] for name in _partitions(parsed_args)}
    return sorted(name for name in found if name.startswith(prefix))[:_MOST_OFFERED]


def topic_partitions(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """The same of partitions, as orders-3."""
    return sorted(n for n in set(_partitions(parsed_args)) if n.startswith(prefix))[:_MOST_OFFERED]


def _partitions(parsed_args: argparse.Namespace) -> Iterator[str]:
    """Names of the live partitions' directories."""
    given = [*(getattr(parsed_args, "log_dir", None) or ()), *_words(parsed_args)]
    for path in given:
        with suppress(OSError, TypeError, ValueError), os.scandir(path) as entries:
            for entry in islice(entries, _MOST_ENTRIES):
                name = parse_partition_dir_name(entry.name)
                if name is not None and name.kind is PartitionKind.LIVE:
                    yield entry.name


def _words(parsed_args: argparse.Namespace) -> list[str]:
    paths = getattr(parsed_args, "paths", None)
    return list(paths) if isinstance(paths, list) else []
