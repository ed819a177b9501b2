#!/usr/bin/env bash
# What `make matrix` does: the tests marked `matrix` on each release of Spark, the newest patch of each. pyspark lies in a
# folder of its own, .cache/matrix/RELEASE, which comes before .venv's packages; all else is shared.
# .ci/matrix.sh [RELEASE…] [-- ARGUMENTS OF PYTEST]
set -uo pipefail
cd "$(dirname "$0")/.."

RELEASES=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do RELEASES+=("$1"); shift; done
[ $# -gt 0 ] && shift
[ ${#RELEASES[@]} -gt 0 ] || RELEASES=(3.5.9 4.0.5 4.1.4 4.2.1 4.3.0)
export KAFKALOG_MATRIX=$PWD/.cache/matrix/results
mkdir -p "$KAFKALOG_MATRIX"

.venv/bin/python -m tests.support.spark_jars --all

failed=()
for release in "${RELEASES[@]}"; do
  folder=$PWD/.cache/matrix/$release
  if [ ! -f "$folder/.done" ]; then
    echo "matrix: installing pyspark $release" >&2
    rm -rf "$folder"
    .venv/bin/python -m pip install -q --disable-pip-version-check --target "$folder" "pyspark==$release" >&2 || exit 1
    touch "$folder/.done"
  fi
  echo "matrix: Spark $release" >&2
  # Of older releases: what Python itself deprecated since, and sockets that pyspark leaves to the collector.
  PYTHONPATH=$folder PYSPARK_PYTHON=$PWD/.venv/bin/python .venv/bin/python -m pytest -q -p no:cacheprovider -m matrix -W ignore::ResourceWarning \
    -W ignore::pytest.PytestUnraisableExceptionWarning -W "ignore:distutils Version classes:DeprecationWarning" -W "ignore:The distutils package:DeprecationWarning" \
    tests/spark tests/jobs "$@" || failed+=("$release")
done
[ ${#failed[@]} -eq 0 ] || { echo "matrix: failed on ${failed[*]}" >&2; exit 1; }
echo "matrix: all of ${RELEASES[*]} passed" >&2
