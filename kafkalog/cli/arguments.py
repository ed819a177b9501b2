"""Parse arguments by the table in `options`, for verbs and for jobs.

    args = parse_arguments(["compact", "--log-dir", "/data", "--topic", "orders"])
    args = parse_verb_arguments("compact", sys.argv[1:], prog="compact_topics.py")   # a job

A parsed argument is an attribute named as the option (`args.topic_partition`); repeatable ones are
lists, switches are bools, what was not given is the table's default. Bad usage raises UsageError.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from kafkalog import __version__
from kafkalog.cli.options import VERBS, Verb, options_of, refusal_of, verb_named
from kafkalog.options import Option


class UsageError(Exception):
    """The command was not understood; `usage` is the line that helps."""

    def __init__(self, reason: str, usage: str = "") -> None:
        super().__init__(reason)
        self.usage = usage


class _Parser(argparse.ArgumentParser):
    """argparse that raises instead of leaving the process, and that takes no abbreviations."""

    def __init__(self, **settings: object) -> None:
        super().__init__(allow_abbrev=False, **settings)  # type: ignore[arg-type] # argparse's own

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self.format_usage().strip())


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments of `kafkalog VERB …`; `args.verb` is the verb.

    UsageError for anything that is unknown, contradictory or of another verb. `--help` and
    `--version` print and raise SystemExit(0), as argparse does.
    """
    parser = _Parser(prog="kafkalog", description="Read, query and compact Kafka's log segments.")
    parser.add_argument("--version", action="version", version=f"kafkalog {__version__}")
    subparsers = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=_Parser)
    for verb in VERBS:
        if verb.module is not None:
            of_verb = subparsers.add_parser(verb.name, help=verb.does)
            if verb.name in argv:  # 230 options of all verbs are a tenth of the start
                _add_options(of_verb, verb)
    _refuse_verb_of_a_job(argv)
    args, unknown = parser.parse_known_args(argv)
    if args.verb is not None:
        _refuse_unknown(verb_named(args.verb), unknown, parser)
    elif unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    else:
        parser.error("a VERB is needed: " + ", ".join(v.name for v in VERBS if v.module))
    return _checked(args, parser)


def parse_verb_arguments(
    verb_name: str, argv: Sequence[str], *, prog: str | None = None
) -> argparse.Namespace:
    """The same options without the verb in front, for the job that does the verb's work."""
    verb = verb_named(verb_name)
    parser = _Parser(prog=prog or f"kafkalog {verb.name}", description=verb.does)
    _add_options(parser, verb)
    args, unknown = parser.parse_known_args(argv)
    _refuse_unknown(verb, unknown, parser)
    args.verb = verb.name
    return _checked(args, parser)


def _refuse_verb_of_a_job(argv: Sequence[str]) -> None:
    first = next((word for word in argv if not word.startswith("-")), None)
    for verb in VERBS:
        if verb.name == first and verb.job is not None:
            raise UsageError(f"{first} needs Spark: spark-submit jobs/{verb.job}")


def _refuse_unknown(verb: Verb, unknown: Sequence[str], parser: argparse.ArgumentParser) -> None:
    """What an option that is not this verb's is for, where it is any verb's."""
    for word in unknown:
        refusal = refusal_of(verb, word.partition("=")[0])
        if refusal is not None:
            parser.error(refusal)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")


def _add_options(parser: argparse.ArgumentParser, verb: Verb) -> None:
    if verb.takes is not None:
        parser.add_argument("paths", nargs="*", metavar=verb.takes)
    for option in options_of(verb.name):
        _add_option(parser, option, option.does_in(verb.name))


def _add_option(parser: argparse.ArgumentParser, option: Option, does: str) -> None:
    if option.takes is None:
        parser.add_argument(option.name, action="store_true", help=does)
        return
    parser.add_argument(
        option.name,
        metavar=option.takes,
        help=does,
        action="append" if option.is_repeatable else "store",
        type=_typed(option),
        default=[] if option.is_repeatable else option.default,
        required=option.is_required,
    )


def _typed(option: Option) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            return option.value(text)
        except ValueError as error:
            # argparse shows only this exception's own words.
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def _checked(args: argparse.Namespace, parser: argparse.ArgumentParser) -> argparse.Namespace:
    if getattr(args, "apply", False) and not args.topic:
        parser.error("--apply needs --topic (--topic '*' for all)")
    return args
