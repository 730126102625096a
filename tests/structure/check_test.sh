#!/bin/sh
# check_test.sh SOURCE: the options of tools/check are those of its help, of its usage and of CONTRIBUTING.md.
set -eu
cd "$1"
status=0
usage=$(tools/check --no-such-option 2>&1) || status=$?
[ "$status" -eq 64 ] || { echo "exit status $status for an unknown option, expected 64"; exit 1; }
help=$(tools/check --help)
options=$(sed -n 's/^    \(--[a-z]*\))$/\1/p' tools/check)
echo "$options" | grep -qx -- --quick || { echo "no option --quick among: $options"; exit 1; }
for option in $options; do
    echo "$usage" | grep -q -- "$option\b" || { echo "the usage does not have $option: $usage"; exit 1; }
    [ "$option" = --help ] && continue
    echo "$help" | grep -q "^  tools/check $option\b" || { echo "the help does not have $option: $help"; exit 1; }
    grep -q "^| \`tools/check $option\b" CONTRIBUTING.md || { echo "CONTRIBUTING.md does not have $option"; exit 1; }
done
