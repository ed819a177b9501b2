"""`jobs/compact_topics.py` again and again in one session: the words of a run come in as a line of
JSON with the file its output goes to, and its exit code goes out.

    PYSPARK_SUBMIT_ARGS="--master URL ... pyspark-shell" python -m tests.jobs.repeated_job
"""

from __future__ import annotations

import json
import os
import sys

from pyspark.sql import SparkSession

from kafkalog.job import run_job
from tests.jobs.submit import ROOT


def main() -> None:
    """Until there is no more to read."""
    sys.path.append(str(ROOT / "jobs"))
    from compact_topics import work

    # The next run finds the session of the one before.
    SparkSession.stop = lambda _: None  # type: ignore[method-assign]
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        words, output = json.loads(line)
        fd = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(fd, 1)
        os.close(fd)
        code = run_job("compact", "compact_topics.py", words, work)
        sys.stdout.flush()
        answers.write(f"{int(code)}\n")
        answers.flush()


if __name__ == "__main__":
    main()
