#!/bin/sh
# Installs the packages into a clean system, tries them, purges them, and compares what is left with what was there. Then the
# same as an operator would, by the manual and with systemd running (operator_test.py), and what the tutorial says (newcomer_test.py).
#
#   package_test.sh PACKAGES SUITE         mmdebstrap makes the root
#   package_test.sh PACKAGES DIRECTORY     a copy of this root is taken
#
# PACKAGES: the directory in which tools/package has left petacqd, petacqd-mpi, perhaps petacqd-cuda, and the wheel.
# Needs root and mmdebstrap; otherwise the exit status is 77.
set -eu
here=$(dirname "$0")
package=$(echo "$1"/petacqd_*.deb)
mpi_package=$(echo "$1"/petacqd-mpi_*.deb)
cuda_package=$(echo "$1"/petacqd-cuda_*.deb)
wheel=$(echo "$1"/petacq-*.whl)
origin=$2
if [ "$(id -u)" -ne 0 ]; then
    echo "skipped: not root"
    exit 77
fi
work=$(mktemp -d)
root=$work/root
finish() {
    [ $? -eq 0 ] || tail -n 20 "$work/log" 2>/dev/null || true
    umount "$root/proc" 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap finish EXIT
if [ -d "$origin" ]; then
    cp -a "$origin" "$root"
elif command -v mmdebstrap >/dev/null; then
    mmdebstrap --quiet --variant=minbase --components="$("$here/../../tools/packaging/components" "$origin")" "$origin" "$root" >"$work/log" 2>&1
    cp /etc/resolv.conf "$root/etc"
else
    echo "skipped: no mmdebstrap here"
    exit 77
fi
mount -t proc proc "$root/proc"
inside() { chroot "$root" env DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
# The comparison ignores apt's caches and logs, and the backups of the user database.
files() {
    (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./run -o -path ./var/cache \
        -o -path ./var/log -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./root \) -prune -o -print |
        grep -v -e '^./etc/\(passwd\|group\|shadow\|gshadow\|subuid\|subgid\)-$' -e '^./etc/.pwd.lock$' | sort)
}
users() { sort "$root/etc/passwd" "$root/etc/group"; }
wanted() { eval "$2" || { echo "FAILED: $1" >&2; exit 1; }; echo "ok: $1"; }
has_mpi() { inside dpkg-query -W | grep -q openmpi; }
dependencies() { dpkg-deb -f "$1" Depends | tr ',' '\n' | sed 's/|.*//; s/(.*//; s/ //g'; }

cp "$package" "$root/package.deb"
cp "$mpi_package" "$root/package-mpi.deb"
# Dependencies first: only the changes by the package itself are compared.
inside apt-get update -q >"$work/log" 2>&1
inside apt-get install -q -y --no-install-recommends systemd-sysv dbus sudo adduser >>"$work/log" 2>&1
# shellcheck disable=SC2046 # a list of words
inside apt-get install -q -y --no-install-recommends --download-only $(dependencies "$package") >>"$work/log" 2>&1
downloaded=$(date +%s)
# shellcheck disable=SC2046 # a list of words
inside apt-get install -q -y --no-install-recommends $(dependencies "$package") >>"$work/log" 2>&1
files >"$work/files-before"
users >"$work/users-before"

inside dpkg -i /package.deb >>"$work/log" 2>&1
wanted "installs" true
# The first picture, as any user gets it. The user's files are in /tmp.
inside runuser -u nobody -- sh -c 'mkdir /tmp/newcomer && cd /tmp/newcomer && petacqd-demo' >"$work/demo" 2>&1 || { tail "$work/demo"; false; }
seconds=$(($(date +%s) - downloaded))
wanted "the first picture is there $seconds s after the download (at most 120)" \
    '[ -s "$root"/tmp/newcomer/petacqd-demo/data/demo-*/image/projections.png ] && [ "$seconds" -le 120 ]'
rm -r "$root/tmp/newcomer"
for program in petacqd petctl petsim petlm petcal petbench; do
    inside "$program" --version >/dev/null 2>&1 || inside "$program" --help >/dev/null || { echo "FAILED: $program" >&2; exit 1; }
done
wanted "the programs run" true
wanted "without MPI" '! has_mpi'
wanted "the user is there" "inside id petacq >/dev/null"
owned=$(inside find / -xdev -path /run -prune -o -user petacq -print)
wanted "and owns nothing but its state: $owned" '[ "$owned" = /var/lib/petacqd ]'
wanted "the service is not enabled" '! ls "$root"/etc/systemd/system/*/petacqd.* 2>/dev/null'
status=0
inside petacqd --check --config /etc/petacqd/petacqd.json >"$work/check" 2>&1 || status=$?
wanted "without a calibration it says so: $(cat "$work/check")" '[ $status -eq 78 ] && grep -q calibration.h5 "$work/check"'
inside petcal make --scanner /etc/petacqd/mouse.scanner.json --output /etc/petacqd/calibration.h5 >/dev/null
wanted "with one the configuration is good" "inside petacqd --check --config /etc/petacqd/petacqd.json >/dev/null"
wanted "the units are clean where they are" \
    "inside systemd-analyze verify --man=no --recursive-errors=no /lib/systemd/system/petacqd.service /lib/systemd/system/petacqd.socket /lib/systemd/system/petacqd-check.timer"

# An edited configuration survives upgrade and removal; a run survives a purge.
echo >>"$root/etc/petacqd/petacqd.json"
sum=$(md5sum <"$root/etc/petacqd/petacqd.json")
inside dpkg -i /package.deb >>"$work/log" 2>&1
wanted "an upgrade leaves an edited configuration" '[ "$(md5sum <"$root/etc/petacqd/petacqd.json")" = "$sum" ]'
inside dpkg -r petacqd >>"$work/log" 2>&1
wanted "so does a removal" '[ "$(md5sum <"$root/etc/petacqd/petacqd.json")" = "$sum" ]'
wanted "which takes the programs" '[ ! -e "$root/usr/bin/petacqd" ]'
mkdir "$root/var/lib/petacqd/a-run"
inside dpkg -P petacqd >"$work/purge" 2>&1
wanted "a purge leaves runs, and says so" '[ -d "$root/var/lib/petacqd/a-run" ] && grep -q "are kept" "$work/purge"'
rm -r "$root/var/lib/petacqd/a-run"

inside dpkg -i /package.deb >>"$work/log" 2>&1
inside petcal make --force --scanner /etc/petacqd/mouse.scanner.json --output /etc/petacqd/calibration.h5 >/dev/null
# The daemon has run: its charts have a history, as it is and half written.
touch "$root/var/lib/petacqd/.petacqd-history-scanner.json" "$root/var/lib/petacqd/.petacqd-history-scanner.json.tmp"
inside dpkg -P petacqd >"$work/purge" 2>&1
wanted "a purge without runs does not say that they are kept" '! grep "are kept" "$work/purge"'
files >"$work/files-after"
users >"$work/users-after"
wanted "a purge leaves no file" 'diff "$work/files-before" "$work/files-after"'
wanted "and no user" 'diff "$work/users-before" "$work/users-after"'

# The package for MPI, in the same way. Two ranks must find what petlm finds.
# shellcheck disable=SC2046 # a list of words
inside apt-get install -q -y --no-install-recommends $(dependencies "$mpi_package" | grep -v '^petacqd$') >>"$work/log" 2>&1
wanted "MPI comes with the package for it" has_mpi
files >"$work/files-before"
inside dpkg -i /package.deb /package-mpi.deb >>"$work/log" 2>&1
cp "$here/package_site.sh" "$here/package_mpi_test.sh" "$root"
wanted "petlm-mpi finds what petlm finds" 'inside sh /package_mpi_test.sh >"$work/mpi" 2>&1 || { cat "$work/mpi"; false; }'
rm "$root/package_site.sh" "$root/package_mpi_test.sh"
for file in share/man/man1/petlm-mpi.1.gz share/bash-completion/completions/petlm-mpi share/doc/petacqd/slurm/resort-mpi.sbatch; do
    wanted "$file is there" '[ -f "$root/usr/$file" ]'
done
wanted "petacqd is not removed without it" '! inside dpkg -r petacqd >>"$work/log" 2>&1'
inside dpkg -P petacqd-mpi >>"$work/log" 2>&1
wanted "it is removed without petacqd" '[ ! -e "$root/usr/bin/petlm-mpi" ] && inside petlm --help >/dev/null'
inside dpkg -P petacqd >>"$work/log" 2>&1
files >"$work/files-after"
wanted "and leaves no file" 'diff "$work/files-before" "$work/files-after"'
rm "$root/package-mpi.deb"

# The package for GPUs: its programs take the place of those of petacqd, and give it back.
if [ -f "$cuda_package" ]; then
    cp "$cuda_package" "$root/package-cuda.deb"
    files >"$work/files-before"
    inside dpkg -i /package.deb >>"$work/log" 2>&1
    wanted "petacqd holds nothing of CUDA" '! grep -l cudaErrorInsufficientDriver "$root"/usr/bin/pet*'
    sum=$(md5sum <"$root/usr/bin/petacqd")
    inside dpkg -i /package-cuda.deb >>"$work/log" 2>&1
    wanted "petacqd-cuda has another petacqd" '[ "$(md5sum <"$root/usr/bin/petacqd")" != "$sum" ]'
    cp "$here/package_site.sh" "$here/package_cuda_test.sh" "$root"
    wanted "which knows CUDA, and finds what the other one finds" \
        'inside sh /package_cuda_test.sh >"$work/cuda" 2>&1 || { cat "$work/cuda"; false; }'
    rm "$root/package_site.sh" "$root/package_cuda_test.sh"
    inside dpkg -i /package.deb /package-cuda.deb >>"$work/log" 2>&1
    wanted "an upgrade of both leaves both" \
        '[ "$(md5sum <"$root/usr/bin/petacqd")" != "$sum" ] && [ "$(md5sum <"$root/usr/bin/petacqd-cpu")" = "$sum" ]'
    inside dpkg -P petacqd-cuda >>"$work/log" 2>&1
    wanted "a removal gives the place back" \
        '[ "$(md5sum <"$root/usr/bin/petacqd")" = "$sum" ] && ! inside dpkg-divert --list | grep petacqd'
    inside dpkg -P petacqd >>"$work/log" 2>&1
    files >"$work/files-after"
    wanted "and leaves no file" 'diff "$work/files-before" "$work/files-after"'
    rm "$root/package-cuda.deb"
fi

# Newcomer's and operator's machines have no network: apt's cache holds the dependencies.
inside apt-get install -q -y --download-only /package.deb python3-venv python3-numpy >>"$work/log" 2>&1
rm "$root/package.deb"
umount "$root/proc"
python3 "$here/newcomer_test.py" "$root" "$package" "$wheel" "$here/../../docs/tutorials/first-run.md"
python3 "$here/operator_test.py" "$root" "$package" "$here/../../docs/how-to/operations.md"
