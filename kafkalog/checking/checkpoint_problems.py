"""How grave it is that a file at the root of a log dir cannot be read.

Source: Kafka LogManager.loadLogs.
"""

from __future__ import annotations

import re
from pathlib import Path

from kafkalog.checking.finding_kind import Severity
from kafkalog.format.checkpoints import RECOVERY_POINT_FILE

# Of an entry, not of version or count: a broker takes all recovery points for 0 and goes on.
_NO_NUMBER = re.compile(r"line (?!1:|2:)[0-9]+: .* is no number")


def checkpoint_severity(path: str, text: str) -> Severity | None:
    """Of the problem `text` of a root file; None for that of its kind."""
    is_reset = Path(path).name == RECOVERY_POINT_FILE and _NO_NUMBER.match(text)
    return Severity.WARNING if is_reset else None
