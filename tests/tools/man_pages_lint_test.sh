#!/bin/sh
# Checks the format of the man pages: man_pages_lint_test.sh FOLDER. Exit status 77: neither mandoc nor groff is installed.
checked=
failed=0
cd "$1" || exit 1
for page in *.[158]; do
    if command -v mandoc >/dev/null; then
        checked=yes
        mandoc -T lint -W warning "$page" || failed=1
    fi
    if command -v groff >/dev/null; then
        checked=yes
        warnings=$(groff -mdoc -Tutf8 -ww -z "$page" 2>&1)
        [ -z "$warnings" ] || { echo "$page: $warnings"; failed=1; }
    fi
done
[ -n "$checked" ] || { echo "skipped: neither mandoc nor groff is installed"; exit 77; }
exit $failed
