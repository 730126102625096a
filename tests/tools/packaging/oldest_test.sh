#!/bin/sh
# The Python module with the oldest versions of what it needs, as pyproject.toml names them, from PyPI, and with the programs of a package:
#
#   oldest_test.sh PACKAGES [PART ...]    PACKAGES: where tools/package has left petacqd_*.deb; PART: listmode/plm, run, ...; without: all
#
# A version without a wheel for this Python is replaced by the oldest that has one.
set -eu
packages=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/../python"
project=../../../tools/python/pyproject.toml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
/usr/bin/python3 -m venv "$work/python"
pip() { "$work/python/bin/python3" -m pip --quiet --disable-pip-version-check "$@"; }
wanted=
# Of each name the first requirement: petsird of the newest format.
for requirement in $(grep -o '"[a-z][a-z0-9-]*[>=]=[0-9.]*"' "$project" | tr -d '"' | sed 's/>=/==/' | sort -t = -k 1,1 -u | grep -v '^setuptools'); do
    if ! pip download --no-deps --only-binary :all: --dest "$work/wheels" "$requirement" 2>"$work/log"; then
        oldest=$(sed -n 's/.*from versions: \([^,)]*\).*/\1/p' "$work/log")
        echo "$requirement has no wheel here; the oldest that has one: $oldest"
        requirement=${requirement%%==*}==$oldest
    fi
    wanted="$wanted $requirement"
done
# shellcheck disable=SC2086 # a list of words
pip install --only-binary :all: $wanted
pip list
dpkg-deb -x "$packages"/petacqd_*.deb "$work/root"
# Not those of other programs, of development and of exports.
others='(documented|typing|plot|notebook|jupyter|install|import|geometry/.*|exports/.*|listmode/hostile|live/bridges)_test[.]py'
# shellcheck disable=SC2046 # a list of words
[ $# -gt 0 ] || set -- $(find . -name '*_test.py' -printf '%P\n' | grep -v -x -E "$others" | sed 's/_test[.]py$//' | sort)
for part in "$@"; do
    status=0
    PETACQ_BIN=$work/root/usr/bin PYTHONDONTWRITEBYTECODE=1 "$work/python/bin/python3" run_tests.py "${part}_test.py" >"$work/log" 2>&1 || status=$?
    [ "$status" -eq 0 ] || { tail -n 40 "$work/log"; echo "FAILED: $part with the oldest versions" >&2; exit 1; }
    echo "ok: $part, $(sed -n 's/^Ran \(.* tests*\) in.*/\1/p' "$work/log")"
done
