#!/usr/bin/env bash
# What `make docs` does: mkdocs in an environment of its own, then the pages, strictly.
set -euo pipefail
cd "$(dirname "$0")/.."

VENV=.cache/docs-venv
state=$(sha256sum requirements-docs.lock)
if [ "$(cat "$VENV/.done" 2>/dev/null)" != "$state" ]; then
  echo "docs: installing mkdocs" >&2
  .venv/bin/python -m venv --clear "$VENV"
  "$VENV/bin/python" -m pip install -q --disable-pip-version-check --require-hashes -r requirements-docs.lock >&2
  echo "$state" >"$VENV/.done"
fi
# the theme says every time that its next release will not be for mkdocs
export NO_MKDOCS_2_WARNING=1
"$VENV/bin/python" -m mkdocs build --strict
echo "docs: .cache/site/index.html"
