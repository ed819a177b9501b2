#!/usr/bin/env bash
# What `make matrix` does: the tests marked `matrix`, which are in tests/spark/test_releases.py (other modules need a newer Spark
# to be imported), on each release of Spark, the newest patch of each. pyspark lies in a
# folder of its own, .cache/matrix/RELEASE, which comes before .venv's packages; all else is shared. What a release that passed
# has, and what it refuses, goes into tests/spark/matrix, of which the documents' table is made.
# .ci/matrix.sh [RELEASE…] [-- ARGUMENTS OF PYTEST]: with those nothing is recorded
set -uo pipefail
cd "$(dirname "$0")/.."

RELEASES=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do RELEASES+=("$1"); shift; done
[ $# -gt 0 ] && shift
[ ${#RELEASES[@]} -gt 0 ] || RELEASES=(3.5.9 4.0.5 4.1.4 4.2.1 4.3.0)
export KAFKALOG_MATRIX=$PWD/.cache/matrix/results
mkdir -p "$KAFKALOG_MATRIX" tests/spark/matrix

.venv/bin/python -m tests.support.spark_jars --all

# install RELEASE FOLDER: pyspark and its own py4j. That pip calls this an error, because Delta's package in .venv is for another
# release, is of no matter: the tests take Delta's jars alone.
install() {
  [ -f "$2/.done" ] && return
  echo "matrix: installing pyspark $1" >&2
  rm -rf "$2"
  .venv/bin/python -m pip install -q --disable-pip-version-check --target "$2" "pyspark==$1" >&2 && touch "$2/.done"
}

# run_tests RELEASE FOLDER ARGUMENTS…: those of what Python itself deprecated since, and sockets that pyspark leaves to the
# collector, are no errors of ours.
run_tests() {
  local release=$1 folder=$2
  shift 2
  PYTHONPATH=$folder PYSPARK_PYTHON=$PWD/.venv/bin/python .venv/bin/python -m pytest -q -p no:cacheprovider -m matrix -W ignore::ResourceWarning \
    -W ignore::pytest.PytestUnraisableExceptionWarning -W "ignore:distutils Version classes:DeprecationWarning" -W "ignore:The distutils package:DeprecationWarning" \
    tests/spark/test_releases.py "$@"
}

failed=()
for release in "${RELEASES[@]}"; do
  folder=$PWD/.cache/matrix/$release
  found=$KAFKALOG_MATRIX/${release%.*}.json
  install "$release" "$folder" || exit 1
  echo "matrix: Spark $release" >&2
  rm -f "$found"
  if ! run_tests "$release" "$folder" "$@"; then
    failed+=("$release")
  elif [ $# -eq 0 ]; then
    cp "$found" tests/spark/matrix/
  fi
done
[ ${#failed[@]} -eq 0 ] || { echo "matrix: failed on ${failed[*]}" >&2; exit 1; }
echo "matrix: all of ${RELEASES[*]} passed" >&2
