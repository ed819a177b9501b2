"""`kafkalog purge RUN`: remove what a run keeps for its undo."""

from __future__ import annotations

import argparse

from kafkalog.cli.output import ExitCode
from kafkalog.cli.undo import carry_out
from kafkalog.operations.purge import purge_run


def run(args: argparse.Namespace) -> ExitCode:
    """DONE if nothing of the run is kept any more."""
    return carry_out(args, purge_run)
