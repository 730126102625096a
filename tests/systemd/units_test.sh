#!/bin/sh
# systemd-analyze finds the units clean and hardened: units_test.sh DIRECTORY_OF_THE_UNITS
set -eu
if ! command -v systemd-analyze >/dev/null; then
    echo "skipped: no systemd-analyze here"
    exit 77
fi
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cp "$1/petacqd.service" "$1/petacqd.socket" "$directory"

# Exposure 1.5; the threshold is ten times that.
systemd-analyze security --offline=true --no-pager --threshold=15 "$directory/petacqd.service" >"$directory/exposure" || {
    grep -v '✓' "$directory/exposure"
    echo "petacqd.service is too exposed" >&2
    exit 1
}
tail -n 1 "$directory/exposure"

# The unit can be verified without an installed program.
sed -i "s#^\(Exec[A-Za-z]*\)=[^ ]*/petacqd#\1=/bin/true#" "$directory/petacqd.service"
said=$(systemd-analyze verify --man=no --recursive-errors=no "$directory/petacqd.service" "$directory/petacqd.socket" 2>&1) || {
    echo "$said"
    exit 1
}
if [ -n "$said" ]; then
    echo "$said"
    echo "systemd-analyze verify reports problems" >&2
    exit 1
fi
echo "petacqd.service, petacqd.socket: clean"
