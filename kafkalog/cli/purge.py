"""`kafkalog purge RUN`: remove what a run keeps for its undo."""

from __future__ import annotations

import argparse

from kafkalog.cleaner.undo_run import purge_run
from kafkalog.cli.output import ExitCode
from kafkalog.cli.undo import carry_out


def run(args: argparse.Namespace) -> ExitCode:
    """DONE if nothing of the run is kept any more."""
    return carry_out(args, purge_run)
