"""The picture of an audit's page in docs/guides/audit.md: `python -m tests.support.audit_picture`.

The page is made of the samples by `kafkalog audit`, and shown by the browser of the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from data.copy_samples import copy_sample
from tests.support.browser import headless

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "images" / "audit.png"
_AUDIT = ("audit", "--now", "2026-12-01", "--contents", "--log-dir")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        log_dir = copy_sample("broker", Path(folder, "logs"))
        page_file = Path(folder, "audit.html")
        subprocess.run(
            [sys.executable, "-m", "kafkalog", *_AUDIT, str(log_dir), "--report", str(page_file)],
            cwd=ROOT,
            env={**os.environ, "XDG_STATE_HOME": folder},
            stdout=subprocess.DEVNULL,
            check=False,  # findings are exit code 1
        )
        # not where this machine has its temporary files
        text = page_file.read_text(encoding="utf-8").replace(str(log_dir), "/var/lib/kafka/data")
        page_file.write_text(text, encoding="utf-8")
        with headless() as browser:
            page = browser.new_page(viewport={"width": 1100, "height": 1000})
            page.goto(page_file.as_uri())
            page.screenshot(path=PICTURE)


if __name__ == "__main__":
    main()
