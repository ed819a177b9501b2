"""Parse arguments by the table in `options`, for verbs and for jobs.

    args = parse_arguments(["compact", "/data", "--topic", "orders"])
    args = parse_verb_arguments("compact", sys.argv[1:], prog="compact_topics.py")   # a job

A parsed argument is an attribute named as the option (`args.topic_partition`); repeatable ones are
lists, switches are bools, what was not given is the table's default. Log dirs are `args.log_dir`,
whether they were given by the option or behind the verb. Bad usage raises UsageError.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from kafkalog import __version__
from kafkalog.cli.help_text import VerbHelp, general_help, help_of, usage_of
from kafkalog.cli.options import VERBS, Verb, options_of, refusal_of, verb_named
from kafkalog.options import Option, did_you_mean


class UsageError(Exception):
    """The command was not understood; `usage` is the line that helps."""

    def __init__(self, reason: str, usage: str = "") -> None:
        super().__init__(reason)
        self.usage = usage


class VerbParser(argparse.ArgumentParser):
    """argparse that raises instead of leaving the process, that takes no abbreviations, and whose
    help is in groups.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=VerbHelp, **settings)

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self.format_usage().strip())


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments of `kafkalog VERB …`; `args.verb` is the verb.

    UsageError for anything that is unknown, contradictory or of another verb. `--help` and
    `--version` print and raise SystemExit(0), as argparse does.
    """
    parser = argparse.ArgumentParser(prog="kafkalog", add_help=False, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"kafkalog {__version__}")
    first = argv[0] if argv else None
    if first in ("-h", "--help", "help"):
        sys.stdout.write(general_help())
        parser.exit()
    if first == "--version" and list(argv[1:]) == ["--json"]:
        from kafkalog.cli.versions import version_text

        sys.stdout.write(version_text() + "\n")
        parser.exit()
    if first == "--version":
        parser.parse_args(argv)
    names = [verb.name for verb in VERBS if verb.module is not None]
    if first is None or first.startswith("-"):
        raise UsageError(f"a VERB is needed: {', '.join(names)}", "usage: kafkalog VERB [options]")
    _refuse_verb_of_a_job(first, argv[1:])
    if first not in names:
        near = did_you_mean(first, names)
        raise UsageError(f"there is no verb {first}{near}", f"verbs: {', '.join(names)}")
    return parse_verb_arguments(first, argv[1:])


def parse_verb_arguments(
    verb_name: str, argv: Sequence[str], *, prog: str | None = None
) -> argparse.Namespace:
    """The same options without the verb in front, for the job that does the verb's work."""
    verb = verb_named(verb_name)
    parser = verb_parser(verb, prog or f"kafkalog {verb.name}")
    # options may stand in front of a DIR and behind it
    args, unknown = parser.parse_known_intermixed_args(argv)
    _refuse_unknown(verb, unknown, parser)
    args.verb = verb.name
    return _checked(args, verb, parser)


def verb_parser(verb: Verb, prog: str) -> VerbParser:
    """The parser of one verb; completion asks it as well."""
    description, epilog = help_of(verb, prog)
    parser = VerbParser(
        prog=prog, usage=usage_of(verb, prog), description=description, epilog=epilog
    )
    add_options(parser, verb)
    return parser


def add_options(parser: argparse.ArgumentParser, verb: Verb) -> None:
    """What the verb takes, in the groups of its help."""
    groups: dict[str, argparse._ArgumentGroup] = {}
    if verb.positional is not None:
        title = verb.groups[0][0]
        groups[title] = parser.add_argument_group(title)
        groups[title].add_argument("paths", nargs="*", metavar=verb.positional, help=verb.names)
    for title, options in verb.groups:
        group = groups.get(title) or parser.add_argument_group(title)
        for option in options:
            _add_option(group, option, option.does_in(verb.name))


def _add_option(group: argparse._ArgumentGroup, option: Option, does: str) -> None:
    does = does.replace("%", "%%")
    if option.takes is None:
        group.add_argument(option.name, action="store_true", help=does)
        return
    group.add_argument(
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


def _refuse_verb_of_a_job(name: str, words: Sequence[str]) -> None:
    for verb in VERBS:
        if verb.name == name and verb.module is None:
            if {"-h", "--help"} & set(words):
                verb_parser(verb, str(verb.job)).parse_args(["--help"])
            raise UsageError(f"{name} needs Spark: spark-submit jobs/{verb.job}")


def _refuse_unknown(verb: Verb, unknown: Sequence[str], parser: argparse.ArgumentParser) -> None:
    """What an option that is not this verb's is for, where it is any verb's."""
    own = [option.name for option in options_of(verb.name)]
    for word in unknown:
        flag = word.partition("=")[0]
        refusal = refusal_of(verb, flag)
        if refusal is not None:
            parser.error(refusal)
        if flag.startswith("-"):
            parser.error(f"{verb.name} takes no {flag}{did_you_mean(flag, own)}")
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")


def _checked(
    args: argparse.Namespace, verb: Verb, parser: argparse.ArgumentParser
) -> argparse.Namespace:
    if verb.has_log_dirs and verb.takes != "RUN":
        named = args.paths[verb.words_in_front :]
        args.log_dir = [*named, *args.log_dir]
        args.paths = args.log_dir if verb.takes == "DIR" else args.paths[: verb.words_in_front]
        has_other = (verb.takes == "DIR" and getattr(args, "zookeeper_dir", None)) or getattr(
            args, "rebuild_metadata", False
        )
        if not args.log_dir and not has_other:
            parser.error(f"{verb.name} needs a log dir: DIR behind the verb, or --log-dir DIR")
    if getattr(args, "format", None) == "csv" and getattr(args, "json", False):
        parser.error("--json or --format csv, not both")
    takes_all = getattr(args, "in_place", False)
    if getattr(args, "apply", False) and not takes_all and not getattr(args, "topic", True):
        parser.error("--apply needs --topic (--topic '*' for all)")
    return args
