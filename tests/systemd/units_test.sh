#!/bin/sh
# systemd-analyze finds the units clean and hardened: units_test.sh DIRECTORY_OF_THE_UNITS
set -eu
if ! command -v systemd-analyze >/dev/null; then
    echo "skipped: no systemd-analyze here"
    exit 77
fi
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
units="petacqd.service petacqd.socket petacqd-check.service petacqd-check.timer"
for unit in $units; do
    cp "$1/$unit" "$directory"
done

# Multicast and placement ask the kernel which interface has an address.
grep -q '^RestrictAddressFamilies=.*AF_NETLINK' "$directory/petacqd.service" || {
    echo "petacqd.service may not use netlink: no interface would be known by its address" >&2
    exit 1
}

# Exposure 1.6; the threshold is ten times that.
for unit in petacqd.service petacqd-check.service; do
    systemd-analyze security --offline=true --no-pager --threshold=16 "$directory/$unit" >"$directory/exposure" || {
        grep -v '✓' "$directory/exposure"
        echo "$unit is too exposed" >&2
        exit 1
    }
    tail -n 1 "$directory/exposure"
done

# The units can be verified without an installed program.
sed -i "s#^\(Exec[A-Za-z]*\)=[^ ]*/petacqd[^ ]*#\1=/bin/true#" "$directory/petacqd.service" "$directory/petacqd-check.service"
# shellcheck disable=SC2086 # a list of words
said=$(cd "$directory" && systemd-analyze verify --man=no --recursive-errors=no $units 2>&1) || {
    echo "$said"
    exit 1
}
if [ -n "$said" ]; then
    echo "$said"
    echo "systemd-analyze verify reports problems" >&2
    exit 1
fi
echo "$units: clean"
