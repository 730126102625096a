#!/bin/sh
# The example units of an alarm, and the scripts that they run: alarm_test.sh EXAMPLES_OF_ALARM
set -eu
examples=$(cd "$1" && pwd)
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
fail() {
    echo "$*" >&2
    exit 1
}

mkdir "$directory/spool"
# shellcheck disable=SC2016 # the script expands them
printf '#!/bin/sh\n[ ! -e %s/down ] || exit 3\n{ cat; echo " $PETACQ_CODE|$PETACQ_MESSAGE|$1"; } >>%s/told\n' \
    "$directory" "$directory" >"$directory/tell"
chmod +x "$directory/tell"
for code in source_silent kernel_drops; do
    echo "{\"code\": \"$code\"}" |
        PETACQ_CODE=$code PETACQ_MESSAGE="a = b \$(touch $directory/run) 'c'" "$examples/spool" "$directory/spool"
done
touch "$directory/down"
! "$examples/deliver" "$directory/spool" "$directory/tell" me || fail "a command that fails is no failure"
[ "$(find "$directory/spool" -name '*.json' | wc -l)" = 2 ] || fail "what was not delivered is gone"
rm "$directory/down"
"$examples/deliver" "$directory/spool" "$directory/tell" me
[ -z "$(ls -A "$directory/spool")" ] || fail "what was delivered is still there"
# shellcheck disable=SC2016 # as text
printf '{"code": "%s"}\n %s|a = b $(touch %s/run) '"'c'"'|me\n' \
    source_silent source_silent "$directory" kernel_drops kernel_drops "$directory" | cmp - "$directory/told"
[ ! -e "$directory/run" ] || fail "a message was run as a command"
"$examples/deliver" "$directory/spool" "$directory/tell" me # nothing to do

if ! command -v systemd-analyze >/dev/null; then
    echo "skipped: the units, since there is no systemd-analyze here"
    exit 77
fi
units="petacqd-alarm.path petacqd-alarm.service petacqd-gone.service"
for unit in $units; do
    sed "s#^ExecStart=/usr/share/petacqd/examples/alarm#ExecStart=$examples#" "$examples/$unit" >"$directory/$unit"
    grep -q "^ExecStart=$examples\|^\[Path\]" "$directory/$unit" || fail "$unit runs something else"
done
# shellcheck disable=SC2086 # a list of words
said=$(cd "$directory" && systemd-analyze verify --man=no --recursive-errors=no $units 2>&1) || fail "$said"
[ -z "$said" ] || fail "$said"
echo "$units: clean"
