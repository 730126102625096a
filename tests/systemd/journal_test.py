#!/usr/bin/env python3
"""The daemon's messages to the journal, whose socket the test provides in its own mount namespace.

  journal_test.py DIRECTORY_OF_PROGRAMS"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

programs = pathlib.Path(sys.argv[1])
examples = pathlib.Path(__file__).resolve().parents[2] / "config" / "examples"

if "PETACQ_JOURNAL_TEST" not in os.environ:
    unshare = shutil.which("unshare")
    command = [unshare, "--mount", "--propagation", "private"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    if unshare is None or subprocess.run(command + ["true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: no mount namespace of our own may be made here")
        sys.exit(77)
    os.environ["PETACQ_JOURNAL_TEST"] = "1"
    os.execv(unshare, command + [sys.executable] + sys.argv)

# The mounts are invisible outside.
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
os.makedirs("/run/systemd/journal")
journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
journal.bind("/run/systemd/journal/socket")
journal.settimeout(60)


def next_message():
    fields = {}
    for line in journal.recv(65536).decode().splitlines():
        name, value = line.split("=", 1)
        fields[name] = value
    return fields


def until(text):
    while True:
        message = next_message()
        messages.append(message)
        if text in message["MESSAGE"]:
            return message


def control(method, **parameters):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(site / "control.sock"))
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
        client.sendall(json.dumps(request).encode() + b"\n")
        return json.loads(client.makefile().readline())["result"]


messages = []
with tempfile.TemporaryDirectory(prefix="petacq-journal-") as name:
    site = pathlib.Path(name)
    shutil.copy(examples / "small.scanner.json", site)
    subprocess.run([programs / "petcal", "make", "--scanner", site / "small.scanner.json", "--output", site / "small.h5"],
                   check=True, stdout=subprocess.DEVNULL)
    (site / "data").mkdir()
    configuration = {
        "scanner": "small.scanner.json", "calibration": "small.h5", "data_dir": "data",
        "receive": {"sockets": [{"address": "127.0.0.1", "port": 0}], "batch_count": 8, "lock_memory": False},
        "coincidence": {"window_ticks": 320}, "pipeline": {"backend": "cpu", "threads": 1},
        "control": {"socket": "control.sock"}, "http": {"listen": ""}}
    (site / "petacqd.json").write_text(json.dumps(configuration))

    with open(site / "stderr", "wb") as stderr:
        stat = os.fstat(stderr.fileno())
        environment = dict(os.environ, JOURNAL_STREAM=f"{stat.st_dev}:{stat.st_ino}")
        daemon = subprocess.Popen([programs / "petacqd", "--config", site / "petacqd.json"], stderr=stderr, env=environment)
        try:
            ready = until(" ready: ")
            assert ready["PRIORITY"] == "6", ready
            assert ready["SYSLOG_IDENTIFIER"] == "petacqd", ready
            assert "PETACQ_RUN" not in ready, ready
            # The journal adds the time and the level itself.
            assert ready["MESSAGE"].startswith("petacqd "), ready

            control("start", run="r1")
            assert until("run r1 started")["PETACQ_RUN"] == "r1"
            (site / "petacqd.json").write_text("{")
            daemon.send_signal(signal.SIGHUP)
            refused = until("stays as it was")
            # Every line during a run names the run.
            assert refused["PRIORITY"] == "3" and refused["PETACQ_RUN"] == "r1", refused
            control("stop")
            assert until("run r1 complete")["PETACQ_RUN"] == "r1"
            daemon.send_signal(signal.SIGTERM)
            assert "PETACQ_RUN" not in until("petacqd stopped")
            assert daemon.wait(60) == 0
        finally:
            daemon.kill()
            daemon.wait()
    assert not (site / "stderr").read_text(), "what the journal has, stderr need not have"
    assert all("\x1f" not in message["MESSAGE"] for message in messages)

    # Errors before the log is open are lines with a priority.
    with open(site / "stderr", "wb") as stderr:
        stat = os.fstat(stderr.fileno())
        environment = dict(os.environ, JOURNAL_STREAM=f"{stat.st_dev}:{stat.st_ino}")
        done = subprocess.run([programs / "petacqd", "--config", site / "petacqd.json"], stderr=stderr, env=environment)
    assert done.returncode == 78
    assert (site / "stderr").read_text().startswith("<3>petacqd: "), (site / "stderr").read_text()

    # JOURNAL_STREAM names another file: the log does not go to the journal.
    with open(site / "stderr", "wb") as stderr:
        environment = dict(os.environ, JOURNAL_STREAM="1:1")
        done = subprocess.run([programs / "petacqd", "--config", site / "petacqd.json"], stderr=stderr, env=environment)
    assert (site / "stderr").read_text().startswith("petacqd: ")
print(f"{len(messages)} messages, with their fields")
