#!/usr/bin/env bash
# What `make setup` does: from a bare clone to a state in which every other target runs. Safe to repeat; each step is
# skipped when what it makes is there and was made from the same inputs.
set -euo pipefail
cd "$(dirname "$0")/.."

VENV=.venv
SAY="setup:"

say() { echo "$SAY $*" >&2; }
die() { say "$*"; exit 1; }

# apt_install PACKAGE WHAT: install it where we may, else say in one sentence what is missing.
apt_install() {
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "$2 is missing: installing $1"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >&2 && apt-get install -y -qq --no-install-recommends "$1" >&2 && return 0
    die "$2 is missing and 'apt-get install $1' failed: install it and run make again."
  fi
  die "$2 is missing: install it (Debian, Ubuntu: sudo apt-get install $1) and run make again."
}

# fingerprint FILE...: names and contents in one line.
fingerprint() { sha256sum "$@" 2>/dev/null | sha256sum | cut -d' ' -f1; }

# done_before NAME FINGERPRINT / mark_done NAME FINGERPRINT: a step and the inputs it was last done with.
done_before() { [ "$(cat "$VENV/.done-$1" 2>/dev/null)" = "$2" ]; }
mark_done() { echo "$2" >"$VENV/.done-$1"; }

find_python() {
  local candidate
  for candidate in ${KAFKALOG_PYTHON:-} python3.11 python3 python3.12 python3.13; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
}

make_venv() {
  [ -x "$VENV/bin/python" ] && "$VENV/bin/python" -c 'import pip' 2>/dev/null && return
  local python
  python=$(find_python)
  [ -n "$python" ] || apt_install python3 "Python 3.11 or newer"
  python=$(find_python)
  [ -n "$python" ] || die "Python 3.11 or newer is missing: install it and run make again."
  "$python" -c 'import venv, ensurepip' 2>/dev/null || apt_install python3-venv "Python's venv module"
  say "making $VENV with $("$python" --version)"
  "$python" -m venv --clear "$VENV" || die "'$python -m venv $VENV' failed: see the lines above."
}

pip_install() { "$VENV/bin/python" -m pip install -q --disable-pip-version-check "$@" >&2; }

install_packages() {
  local state
  state=$(fingerprint requirements.lock)
  if ! done_before packages "$state"; then
    say "installing the locked packages (some minutes on a new machine)"
    # The locked pip first: a distribution's own may be years older.
    awk '/^(packaging|pip|setuptools|wheel)==/ { on = 1 } on { print } !/\\$/ { on = 0 }' requirements.lock >"$VENV/.installer.lock"
    pip_install --require-hashes -r "$VENV/.installer.lock"
    pip_install --require-hashes -r requirements.lock
    mark_done packages "$state"
  fi
  state=$(fingerprint pyproject.toml)$(pwd)
  if ! done_before project "$state"; then
    # Editable, as one .pth line: Spark's search for data sources must see pyspark_kafkalog (see pyproject.toml).
    pip_install --no-deps --no-build-isolation -e .
    mark_done project "$state"
  fi
}

java_version() {
  local java=java
  if [ -n "${JAVA_HOME:-}" ]; then java=$JAVA_HOME/bin/java; fi
  "$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1
}

find_java() {
  local version
  version=$(java_version || true)
  if [ -z "$version" ]; then
    [ -z "${JAVA_HOME:-}" ] || die "JAVA_HOME=$JAVA_HOME holds no Java: set it to a Java 17 or unset it."
    apt_install openjdk-17-jre-headless "Java 17"
    version=$(java_version || true)
  fi
  [ "${version:-0}" -ge 17 ] ||
    die "Java 17 or newer is needed, but the first one found is ${version:-unknown}: set JAVA_HOME to a Java 17."
}

# Kafka's own jars and the small harness around them, for the tests that ask what Kafka would have written.
set_up_oracle() {
  local state
  [ -d tests/oracle ] || return 0
  state=$(find tests/oracle -type f -not -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum | sha256sum)
  if ! done_before oracle "$state"; then
    say "fetching Kafka's jars and compiling the oracle"
    "$VENV/bin/python" -m tests.oracle.setup >&2
    mark_done oracle "$state"
  fi
}

# Delta and Avro for the tests' Spark session, so that no test needs a network.
set_up_spark_jars() {
  local state
  [ -f tests/support/spark_jars.lock ] || return 0
  state=$(fingerprint tests/support/spark_jars.lock)
  if ! done_before spark-jars "$state"; then
    say "fetching Delta's and Avro's jars"
    "$VENV/bin/python" -m tests.support.spark_jars >&2
    mark_done spark-jars "$state"
  fi
}

# A browser for the tests of the page. They are skipped without one, so its absence stops nothing.
set_up_browser() {
  local name
  for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if command -v "$name" >/dev/null; then return 0; fi
  done
  if done_before browser tried; then return 0; fi
  (apt_install chromium "a browser for the tests of the audit's page") || say "its tests are skipped"
  mark_done browser tried
}

# A kernel is compiled when it is called first, and kept beside the source: once a machine, here.
warm_up_kernels() {
  local state
  state=$(find kafkalog/kernels kafkalog/native -name '*.py' -print0 | sort -z | xargs -0 sha256sum | sha256sum)
  if ! done_before kernels "$state"; then
    say "compiling the kernels"
    "$VENV/bin/python" -m kafkalog compile
    mark_done kernels "$state"
  fi
}

# What pip does for an installed wheel and not for an editable one. Python does it by itself, but not where
# PYTHONDONTWRITEBYTECODE is set, as in many containers; there each start would compile 200 modules anew.
compile_modules() { "$VENV/bin/python" -m compileall -q kafkalog jobs tests >&2; }

make_venv
install_packages
find_java
set_up_oracle
set_up_spark_jars
set_up_browser
warm_up_kernels
compile_modules
