"""THE table of verbs, and what is looked up in it and in the table of their options: the parser,
the refusals and the documents' lists come from both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafkalog.cli.shared_options import SHARED_OPTIONS
from kafkalog.cli.verb_options import VERB_OPTIONS
from kafkalog.options import Option


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb; `module` has its `run(args)`, None where `job`, a script of jobs/, alone does it.

    takes: what stands behind the verb without an option, as `paths` of the parsed arguments.
    refuses: flags of Kafka's tool for the same that cannot be taken, and why.
    """

    name: str
    does: str
    module: str | None = None
    takes: str | None = None
    job: str | None = None
    refuses: Mapping[str, str] = field(default_factory=dict)


_JAVA_CLASS = "a Java class cannot be called from here"

VERBS = (
    Verb("compact", "plan log compaction; with --apply carry it out", "kafkalog.cli.compact"),
    Verb("segments", "list the segments below the log dirs", "kafkalog.cli.segments"),
    Verb("retain", "plan retention; with --apply delete what it allows", "kafkalog.cli.retain"),
    Verb(
        "audit",
        "what the policies in force make of the logs, and what blocks them",
        "kafkalog.cli.audit",
    ),
    Verb("cluster", "members, leaders, placement, drift", "kafkalog.cli.cluster"),
    Verb("verify", "check CRC, order and indexes; nothing is changed", "kafkalog.cli.verify"),
    Verb(
        "recover",
        "find indexes and snapshots that are not right; with --apply rebuild them",
        "kafkalog.cli.recover",
    ),
    Verb("sql", "SQL over all views", "kafkalog.query", takes="DIR"),
    Verb(
        "dump",
        "batches, records and entries of files",
        "kafkalog.cli.dump",
        takes="FILE",
        refuses={"--value-decoder-class": _JAVA_CLASS, "--key-decoder-class": _JAVA_CLASS},
    ),
    Verb(
        "why",
        "which rule keeps a partition or a record, and when it goes",
        "kafkalog.cli.why",
        takes="T-P",
    ),
    Verb(
        "salvage", "valid copies of damaged segments without the bad ranges", "kafkalog.cli.salvage"
    ),
    Verb("runs", "runs and what each still holds", "kafkalog.cli.held_runs", takes="RUN"),
    Verb("undo", "put the files a run replaced back", "kafkalog.cli.undo", takes="RUN"),
    Verb(
        "purge", "give the space of a run's replaced files back", "kafkalog.cli.purge", takes="RUN"
    ),
    Verb("export", "append or merge records into a Delta table", job="export_to_delta.py"),
)

OPTIONS: tuple[Option, ...] = (*SHARED_OPTIONS, *VERB_OPTIONS)


def verb_named(name: str) -> Verb:
    return next(verb for verb in VERBS if verb.name == name)


def options_of(verb: str) -> list[Option]:
    """The options that a verb takes, in the table's order."""
    return [option for option in OPTIONS if verb in option.takers]


def refusal_of(verb: Verb, flag: str) -> str | None:
    """Why a verb does not take a flag that somebody may think it does; None if nobody would."""
    if flag in verb.refuses:
        return f"{verb.name} takes no {flag}: {verb.refuses[flag]}"
    takers = sorted({taker for option in OPTIONS if option.name == flag for taker in option.takers})
    return f"{verb.name} takes no {flag}, which is for {', '.join(takers)}" if takers else None
