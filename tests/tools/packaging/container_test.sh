#!/bin/sh
# The command of an OCI image, as a container engine would start it, but without one: container_test.sh IMAGE.oci.tar
#
# Checks the sums of all blobs, unpacks the layers, and starts the command with the user, environment and directory of the image in
# namespaces of its own: no network but the loopback interface, nothing of the host. Exit status 77: no root here, or no namespaces.
set -eu
image=$1
if [ "$(id -u)" -ne 0 ] || ! unshare --mount --pid --fork --net --ipc --uts true 2>/dev/null; then
    echo "skipped: not root, or no namespaces"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
wanted() { eval "$2" || { echo "FAILED: $1" >&2; exit 1; }; echo "ok: $1"; }
mkdir "$work/image" "$work/root"
tar -x -f "$image" -C "$work/image"
(cd "$work/image/blobs/sha256" && for blob in *; do echo "$blob  $blob"; done | sha256sum --check --quiet)
wanted "blobs have the sums of their names" true
# What to start, as arguments of a shell; layers are unpacked on the way.
python3 - "$work" >"$work/command" <<'PYTHON'
import json, pathlib, shlex, subprocess, sys

work = pathlib.Path(sys.argv[1])
blob = lambda reference: work / "image/blobs" / reference["digest"].replace(":", "/")
manifest = json.loads(blob(json.loads((work / "image/index.json").read_bytes())["manifests"][0]).read_bytes())
for layer in manifest["layers"]:
    subprocess.run(["tar", "--extract", "--gzip", "--numeric-owner", "--same-permissions", "-f", blob(layer), "-C", work / "root"], check=True)
config = json.loads(blob(manifest["config"]).read_bytes())["config"]
inside = ["chroot", f"--userspec={config['User']}:{config['User']}", str(work / "root"), "env", "-i", *config["Env"],
          "sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", config["WorkingDir"], *config.get("Entrypoint", []), *config["Cmd"]]
print(shlex.join(inside))
PYTHON
cat >"$work/start" <<'START'
set -eu
ip link set lo up
mount -t proc proc "$1/proc"
mount -t tmpfs tmpfs "$1/dev"
for device in null zero full random urandom; do
    touch "$1/dev/$device"
    mount --bind "/dev/$device" "$1/dev/$device"
done
mkdir -m 1777 "$1/dev/shm"
mount -t tmpfs tmpfs "$1/dev/shm"
. "$2"
START
begin=$(date +%s)
status=0
unshare --mount --pid --fork --kill-child --net --ipc --uts --propagation private sh "$work/start" "$work/root" "$work/command" \
    >"$work/said" 2>&1 </dev/null || status=$?
[ $status -eq 0 ] || tail -n 30 "$work/said"
seconds=$(($(date +%s) - begin))
wanted "its command succeeds: $(sed -n 's/^petacqd-demo: //p' "$work/said")" '[ $status -eq 0 ]'
run=$(echo "$work"/root/var/lib/petacqd/petacqd-demo/data/demo-*)
wanted "nothing was lost" 'grep -q "^petacqd-demo: passed: .* nothing lost$" "$work/said"'
wanted "there is a picture of the source, $seconds s after its start (at most 120)" \
    '[ "$seconds" -le 120 ] && file -b "$run/image/projections.png" | grep -q "^PNG image data"'
wanted "and a report" '[ -s "$run/plot/report.html" ]'
wanted "all of it belongs to the user of the image" \
    '[ -z "$(find "$run" ! -uid "$(sed -n "s/^petacq:x:\([0-9]*\):.*/\1/p" "$work/root/etc/passwd")")" ]'
wanted "the image holds no lists of packages" '[ -z "$(find "$work/root/var/lib/apt/lists" -type f ! -name lock)" ]'
wanted "its user may make the control socket" '[ "$(stat -c %a "$work/root/run/petacqd")" = 755 ] && [ "$(stat -c %u "$work/root/run/petacqd")" -ne 0 ]'
case "$image" in
    *petacqd-cuda*) wanted "its programs know CUDA, and the image holds no driver" \
        'grep -q "CUDA cannot be used" "$work/said" && [ -z "$(find "$work/root" -name "libcuda.so*")" ]' ;;
esac
