"""Plan retention; with --apply delete what it allows. The driver does it all: a deletion is a few
renames, so no Spark session is started and the driver must see the log dirs.

spark-submit --properties-file spark_conf/spark-defaults.conf jobs/apply_retention.py --log-dir DIR
"""

from __future__ import annotations

import sys

from kafkalog.cli.arguments import parse_verb_arguments
from kafkalog.cli.main import report_error
from kafkalog.cli.output import say, say_nothing
from kafkalog.cli.retain import run


def main(argv: list[str]) -> int:
    """Arguments, one call, one summary line; the exit code of `kafkalog retain`."""
    try:
        args = parse_verb_arguments("retain", argv, prog="apply_retention.py")
        # spark-submit merges a Python driver's stderr into its stdout: with --json nothing else is
        # said.
        return run(args, say_nothing if args.json else say)
    except Exception as error:
        return report_error(error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
