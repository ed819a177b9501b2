"""`python -m kafkalog`, the same as the console script."""

from __future__ import annotations

import sys

from kafkalog.cli.main import main

sys.exit(main())
