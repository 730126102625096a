"""Hosts that are network namespaces, each with a name and a disk of its own, on the network of the boards and another.

enter() moves the program into namespaces of its own, which are the boards and the switches. The kernel removes all of
it when the program ends, however it ends: nothing has a name outside. Hosts' processes start as over ssh: LAUNCHER HOST
COMMAND.
"""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path("/run")  # of this program alone: in memory
DISKS = ROOT / "disks"  # DISKS/NAME: the disk of a host
SEEN = ROOT / "seen"  # on a host: SEEN/NAME is the disk of NAME if it can read that
LOCAL = ROOT / "local"  # on a host: its own disk
BOARDS, CLUSTER = "10.77.0", "10.78.0"  # the first bytes of their addresses
ENTERED = "PETACQ_TEST_ENTERED"
NAMESPACES = ["unshare", "--map-root-user", "--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child"]

LAUNCHER = """#!/bin/sh
# As ssh: launch HOST COMMAND. The command has the network and the name of the host, and the disks that it may read.
host=$1; shift
case $host in
{cases}
*) echo "launch: no host $host" >&2; exit 255;;
esac
# The mounts of process 1: this may be called on another host.
exec nsenter --target 1 --mount ip netns exec "$host" unshare --uts --mount sh -c '
    set -e
    hostname "$1"
    mount --bind {disks}/"$1" {local}
    for name in $2; do mount --bind {disks}/"$name" {seen}/"$name"; done
    mount -t tmpfs none {disks}
    cd {local}
    exec sh -c "$3"' launch "$host" "$seen" "$*"
"""


def unusable():
    """Why this system has no such hosts; empty: it has."""
    missing = [program for program in ("unshare", "nsenter", "ip") if shutil.which(program) is None]
    if missing:
        return f"no {', '.join(missing)}; tools/setup --cluster installs iproute2"
    tried = subprocess.run([*NAMESPACES, "sh", "-c", f"""
        ip link add type veth && ip link add type bridge && mount -t tmpfs none {ROOT} && ip netns add one &&
        ip netns exec one true"""], capture_output=True, text=True)
    return "" if tried.returncode == 0 else f"network namespaces are not allowed: {tried.stderr.strip()}"


def enter():
    """Starts this program again in the first namespaces, unless it is there."""
    if ENTERED not in os.environ:
        sys.stdout.flush()
        os.execvpe(NAMESPACES[0], [*NAMESPACES, sys.executable, "-B", *map(os.path.abspath, sys.argv[:3]),
                                   *sys.argv[3:]], {**os.environ, ENTERED: "1"})


def shell(*commands):
    for command in commands:
        subprocess.run(shlex.split(command), check=True)


class Network:
    """The hosts `names`, on the networks `boards` and `cluster`, at BOARDS.1 and CLUSTER.1 and on. Their names belong to
    the cluster. `path`: where their programs are."""

    def __init__(self, names, path):
        self.names = names
        shell(f"mount -t tmpfs none {ROOT}", "mount -t tmpfs none /dev/shm", "ip link set lo up",
              "ip link add boards type bridge", f"ip address add {BOARDS}.254/24 dev boards", "ip link set boards up",
              "ip link add cluster type bridge", "ip link set cluster up")
        for directory in (DISKS, SEEN, LOCAL, ROOT / "tmp"):
            directory.mkdir()
        for number, name in enumerate(names, 1):
            (DISKS / name).mkdir()
            (SEEN / name).mkdir()
            shell(f"ip netns add {name}", f"ip -n {name} link set lo up")
            for switch, subnet in (("boards", BOARDS), ("cluster", CLUSTER)):
                shell(f"ip link add {switch}{number} type veth peer name {switch} netns {name}",
                      f"ip link set {switch}{number} master {switch} up",
                      f"ip -n {name} address add {subnet}.{number}/24 dev {switch}", f"ip -n {name} link set {switch} up")
        # Names come from this file alone: no name server can be reached.
        (ROOT / "nsswitch").write_text("hosts: files\n")
        (ROOT / "hosts").write_text("127.0.0.1 localhost\n" +
                                    "".join(f"{CLUSTER}.{number} {name}\n" for number, name in enumerate(names, 1)))
        shell(f"mount --bind {ROOT}/nsswitch /etc/nsswitch.conf", f"mount --bind {ROOT}/hosts /etc/hosts")
        self.environment = os.environ | {
            "PATH": f"{path}:{os.environ['PATH']}", "TMPDIR": str(ROOT / "tmp"), "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def boards_address(self, name):
        return f"{BOARDS}.{self.names.index(name) + 1}"

    def sent(self, switch):
        """Bytes that the hosts have sent on a network."""
        links = json.loads(subprocess.run(["ip", "-j", "-s", "link", "show", "master", switch], check=True,
                                          capture_output=True).stdout)
        return sum(link["stats64"]["rx"]["bytes"] for link in links)

    def launcher(self, seen=None):
        """The path of a launcher. `seen`: {host: the hosts whose disks it can read}; None: each its own."""
        seen = seen or {name: [name] for name in self.names}
        cases = "\n".join(f'{host}) seen="{" ".join(disks)}";;' for host, disks in seen.items())
        path = ROOT / f"launch{len(list(ROOT.glob('launch*')))}"
        path.write_text(LAUNCHER.format(cases=cases, disks=DISKS, local=LOCAL, seen=SEEN))
        path.chmod(0o755)
        return path

    def start(self, host, *command, launcher, **options):
        """The process of a command on a host."""
        return subprocess.Popen([launcher, host, "exec " + shlex.join(map(str, command))], env=self.environment, **options)
