"""What others do to the daemon beside its data: the service manager, clients that only look, people who write into its
directories, and text that is no text. And who is told."""

import json
import os
import socket
import subprocess
import sys

from rows import check
from rows_control import opened
from stage import Skipped
from testbed import expect, wait_for

LOOKERS = """
import os, socket, sys
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
held = []
for _ in range(int(sys.argv[2])):
    held.append(socket.socket(socket.AF_UNIX))
    held[-1].connect(sys.argv[1])
    held[-1].sendall(b'{"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"interval_s":3600}}\\n')
    held[-1].recv(1)
print("ready", flush=True)
sys.stdin.read()
"""


@check("the service manager reads nothing", short=True)
def full_notify_socket(stage):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        name = f"\0petacq-{os.getpid()}-{id(stage)}"
        manager.bind(name)
        other.setblocking(False)
        try:
            while True:
                other.sendto(b"FULL=1", name)
        except BlockingIOError:
            pass
        daemon = opened(stage, environment={"NOTIFY_SOCKET": "@" + name[1:], "WATCHDOG_USEC": "200000"})
        daemon.client.call("start", run="r")
        daemon.client.call("stop")
        expect(manager.recv(100) == b"FULL=1", "the daemon could write into a full socket")
        manager.setblocking(False)
        told = []

        def ready():
            try:
                while True:
                    told.append(manager.recv(4096))
            except BlockingIOError:
                return b"READY=1" in told

        wait_for(ready, "READY=1 comes when there is room again")
        expect(daemon.end() == 0, "the daemon does not end")


@check("128 clients that may only look", short=True)
def lookers(stage):
    if os.geteuid() != 0:
        raise Skipped("needs root, to act as another user")
    daemon = opened(stage, {"control": {"socket_mode": "0666", "group": "root"}})
    for folder in (stage.programs.work, stage.site.directory):
        os.chmod(folder, 0o755)
    path = stage.site.path("control.sock")
    with subprocess.Popen([sys.executable, "-c", LOOKERS, path, "127"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as crowd:
        try:
            expect(crowd.stdout.readline() == b"ready\n", "the crowd cannot look")
            for _ in range(3):
                daemon.new_client().call("status")
            daemon.new_client().call("start", run="r")
            done = stage.programs.run("petctl", "--socket", path, "stop", check=False)
            expect(done.returncode == 0, f"petctl stop: {done.stderr}")
        finally:
            crowd.kill()


@check("links and FIFOs where temporary files might be", short=True)
def planted_files(stage):
    daemon = opened(stage)
    daemon.client.call("start", run="r")
    victim = stage.site.path("victim")
    with open(victim, "w", encoding="utf-8") as file:
        file.write("precious")
    run = os.path.join(stage.site.data, "r")
    os.symlink(victim, os.path.join(run, "run.json.tmp"))
    os.mkfifo(os.path.join(stage.site.data, f".petacqd-history-{socket.gethostname()}.json.tmp"))
    daemon.client.call("stop")
    expect(daemon.end() == 0, "the daemon does not end")
    with open(victim, encoding="utf-8") as file:
        expect(file.read() == "precious", "the file that the link names was overwritten")
    expect(not os.path.islink(os.path.join(run, "run.json")), "run.json is a link")


@check("a command is told of health and recording", short=True)
def alarm(stage):
    site = stage.new_site()
    told = site.path("told")
    script = f'{{ cat; echo "$PETACQ_EVENT $PETACQ_CODE"; }} >> {told}'
    patch = {"alarm": {"command": ["/bin/sh", "-c", script], "min_interval_s": 3600},
             "health": {"min_disk_free_bytes": 2**60}}
    daemon = opened(stage, patch)

    def lines():
        if not os.path.exists(told):
            return []
        with open(told, encoding="utf-8") as file:
            return file.read().splitlines()

    wait_for(lambda: "raised disk_space_low" in lines(), "the command is told of the disk")
    facts = json.loads(next(line for line in lines() if line.startswith("{")))
    expect(facts["event"] == "raised" and facts["message"] and facts["host"], f"facts: {facts}")
    daemon.client.call("start", run="r")
    wait_for(lambda: any(line.startswith("recording ") for line in lines()), "the command is told of the recording")
    expect(lines().count("raised disk_space_low") == 1, "it was told twice within the interval")


@check("escape sequences in files and notes", short=True)
def escapes(stage):
    daemon = opened(stage)
    daemon.client.call("start", run="r", note="a\u202etxt.exe\u2028b")
    status = stage.programs.run("petctl", "--socket", stage.site.path("control.sock"), "status", "--full").stdout
    expect("\\u202etxt" in status and "\u202e" not in status and "\u2028" not in status, "petctl shows the mark itself")
    daemon.client.call("stop")
    expect(daemon.end() == 0, "the daemon does not end")
    run = os.path.join(stage.site.data, "r")
    with open(os.path.join(run, "run.json"), encoding="utf-8") as file:
        document = json.load(file)
    document["state"] = "complete\x1b]0;owned\x07\u009b2J\u202e"
    with open(os.path.join(run, "run.json"), "w", encoding="utf-8") as file:
        json.dump(document, file, ensure_ascii=False)
    for command in (["info", run], ["verify", run], ["export", "--format", "castor", "-o", stage.site.path("e"), run]):
        done = stage.programs.run("petlm", *command, check=False)
        text = done.stdout + done.stderr
        expect(not any(c in text for c in "\x1b\x07\u009b\u202e"), f"petlm {command[0]} prints escape sequences")


@check("the raw capture's disk takes 2 s a write", short=True)
def slow_capture(stage):
    from rows_disk import FaultyDisk

    disk = FaultyDisk(stage, "raw.pcap")
    daemon = opened(stage, {"listmode": {"write_raw": True}}, stage.environment)
    disk.set("write:slow=2000")
    daemon.client.call("start", run="r")
    stage.boards.play()
    stage.settle()
    daemon.client.call("stop")
    disk.set("")
    with open(os.path.join(stage.site.data, "r", "run.json"), encoding="utf-8") as file:
        run = json.load(file)
    expect(run["state"] == "complete", f"the run is {run['state']}")
    expect("too slow" in (run["capture"]["failure"] or ""), f"the capture says {run['capture']}")
    expect(run["capture"]["datagrams_dropped"] > 0, "no datagram is missing from the capture")


@check("an empty file as the last part of a run", short=True)
def empty_part(stage):
    daemon = opened(stage, {"listmode": {"split_bytes": 1048576}})
    daemon.client.call("start", run="r")
    stage.boards.play()
    stage.settle()
    daemon.client.call("stop")
    run = os.path.join(stage.site.data, "r")
    parts = sorted(name for name in os.listdir(run) if name.startswith("coincidences-"))
    open(os.path.join(run, f"coincidences-{len(parts) + 1:04}.plm"), "wb").close()
    for command in ("info", "dump", "verify"):
        done = stage.programs.run("petlm", command, run, check=False)
        expect(done.returncode == 0, f"petlm {command}: {done.returncode}: {done.stderr}")
    os.truncate(os.path.join(run, parts[-1]), 0)
    if len(parts) > 1:
        expect(stage.programs.run("petlm", "verify", run, check=False).returncode == 1, "petlm verify misses a lost part")
