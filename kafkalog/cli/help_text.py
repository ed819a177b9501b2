"""What `--help` says: of a verb what it does, whether it changes anything, whether it may run
beside a broker, its options in groups, and an example.
"""

from __future__ import annotations

import argparse
import textwrap

from kafkalog.cli.options import VERBS, Verb

_NAME_WIDTH = 10
_HELP_POSITION = 26
_MOST_WIDTH = 100


class VerbHelp(argparse.HelpFormatter):
    """Each line of a text is wrapped by itself, and one that is indented stays as it is."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=_HELP_POSITION)
        self._width = min(self._width, _MOST_WIDTH)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = []
        for line in text.splitlines():
            lines += [line] if line.startswith(" ") else textwrap.wrap(line, width) or [""]
        return "\n".join(lines)


def usage_of(verb: Verb, prog: str) -> str:
    """One line, however many options there are."""
    takes = f" {verb.usage_words}" if verb.usage_words else ""
    return f"{prog}{takes} [options]"


def help_of(verb: Verb, prog: str) -> tuple[str, str]:
    """(what stands above the options, what below)."""
    does = verb.does[0].upper() + verb.does[1:]
    description = "\n".join((f"{does}.", "", verb.changes, verb.beside))
    command = prog
    if verb.job is not None:
        command = f"spark-submit --properties-file spark_conf/packages.conf jobs/{verb.job}"
    elif prog != f"kafkalog {verb.name}":
        return description, ""
    return description, f"example:\n  {command} {verb.example}" if verb.example else ""


def general_help() -> str:
    """Of `kafkalog --help`: the verbs, a line each."""
    lines = [
        "usage: kafkalog VERB [options]",
        "",
        "Read, query, audit and compact Kafka's log segments on disk, without a broker.",
        "",
    ]
    for verb in VERBS:
        if verb.module is not None:
            wrapped = textwrap.wrap(verb.does, 80 - _NAME_WIDTH - 4)
            lines.append(f"  {verb.name:{_NAME_WIDTH}}  {wrapped[0]}")
            lines += [f"  {'':{_NAME_WIDTH}}  {line}" for line in wrapped[1:]]
    lines += [
        "",
        "Nothing is changed without --apply. kafkalog VERB --help says more of each;",
        "kafkalog --version tells the version, with --json what a bug report needs.",
    ]
    return "\n".join(lines) + "\n"
