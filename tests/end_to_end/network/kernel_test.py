#!/usr/bin/env python3
"""What the kernel discards is named in health, by the doctor and in the metrics: in a network of its own.

usage: kernel_test.py BIN_DIRECTORY SOURCE_DIRECTORY
Exits with 77 where a network namespace is not permitted.
"""
import atexit
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from control import status_of  # noqa: E402  (found by the line above)

BIN, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
PORT = 9711


def enter_network():
    """Starts itself again, alone on a loopback of its own."""
    if os.environ.get("PETACQ_OWN_NETWORK"):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        subprocess.run(["ip", "route", "add", "224.0.0.0/4", "dev", "lo"], check=True)
        return
    unshare = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
    try:
        permitted = subprocess.run(unshare + ["ip", "link", "set", "lo", "up"], capture_output=True).returncode == 0
    except FileNotFoundError:
        permitted = False
    if not permitted:
        print("skipped: a network namespace is not permitted")
        sys.exit(77)
    os.execvpe("unshare", unshare + [sys.executable] + sys.argv, dict(os.environ, PETACQ_OWN_NETWORK="1"))


def packet(destination, port, payload, checksum=0, length=None):
    udp = struct.pack(">HHHH", 4000, port, length or 8 + len(payload), checksum) + payload
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, socket.inet_aton("127.0.0.1"),
                       socket.inet_aton(destination)) + udp


class Site:
    def __init__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="petacq-kernel-"))
        atexit.register(self.end)
        self.run("petcal", "make", "--scanner", SOURCE / "config/examples/small.scanner.json", "--output", "cal.h5")
        (self.directory / "data").mkdir()
        self.configuration = {
            "scanner": str(SOURCE / "config/examples/small.scanner.json"), "calibration": "cal.h5", "data_dir": "data",
            "receive": {"sockets": [{"address": "127.0.0.1", "port": PORT}]},
            "coincidence": {"window_ticks": 320, "delay_ticks": 6400},
            "control": {"socket": "control.sock"}, "http": {"listen": "127.0.0.1:9712"},
            "health": {"min_disk_free_bytes": 0}}
        (self.directory / "petacqd.json").write_text(json.dumps(self.configuration))
        self.daemon = subprocess.Popen([BIN / "petacqd", "--config", "petacqd.json"], cwd=self.directory,
                                       stderr=(self.directory / "log").open("w"))
        self.wait(lambda: self.petctl("status").returncode == 0, "the daemon answers")
        self.petctl("start", "--run", "faults")

    def run(self, program, *arguments):
        return subprocess.run([str(BIN / program)] + [str(a) for a in arguments], cwd=self.directory,
                              capture_output=True, text=True)

    def petctl(self, *arguments):
        return self.run("petctl", "--socket", self.directory / "control.sock", *arguments)

    def status(self):
        return status_of(self.directory / "control.sock")

    def reasons(self):
        return {r["code"]: r["message"] for r in self.status()["health"]["reasons"]}

    def wait(self, condition, what):
        end = time.monotonic() + 60
        while not condition():
            if time.monotonic() > end or self.daemon.poll() is not None:
                sys.exit(f"FAILED: waiting until {what}\n" + (self.directory / "log").read_text()[-2000:] +
                         self.petctl("status").stdout)
            time.sleep(0.05)

    def end(self):
        if getattr(self, "daemon", None):
            self.daemon.kill()
            self.daemon.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


class Sender:
    """Sends one packet again and again, a thousand times a second."""

    def __init__(self, destination, bytes_):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.destination, self.bytes, self.on = destination, bytes_, True
        self.thread = threading.Thread(target=self.send)

    def send(self):
        while self.on:
            self.socket.sendto(self.bytes, (self.destination, 0))
            time.sleep(0.001)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.on = False
        self.thread.join()
        self.socket.close()


def main():
    enter_network()
    site = Site()
    payload = bytes(64)
    faults = [
        ("udp_checksum_errors", "UdpInCsumErrors", "127.0.0.1",
         packet("127.0.0.1", PORT, payload, checksum=0x1234), ["wrong UDP checksums", "send 0"]),
        ("udp_no_port", "UdpNoPorts", "127.0.0.1", packet("127.0.0.1", 9799, payload), ["nobody listens"]),
        ("multicast_ignored", "UdpIgnoredMulti", "224.0.0.1", packet("224.0.0.1", PORT, payload),
         ["multicast_group"]),
        ("udp_length_errors", "UdpInErrors", "127.0.0.1", packet("127.0.0.1", PORT, payload, length=4000),
         ["plus 8 bytes"]),
    ]
    for code, counter, destination, bytes_, words in faults:
        with Sender(destination, bytes_):
            site.wait(lambda: code in site.reasons(), f"health says {code}")
            reasons = site.reasons()
            for word in words + [counter]:
                assert word in reasons[code], reasons
            assert "kernel_drops" not in reasons, reasons
            doctor = site.petctl("doctor", "--seconds", "2")
            assert doctor.returncode != 0 and counter in doctor.stdout, doctor.stdout
            assert "nothing in" in doctor.stdout, doctor.stdout
            assert "socket buffers" not in doctor.stdout, doctor.stdout
        assert site.status()["network"][counter] > 0
        metrics = urllib.request.urlopen("http://127.0.0.1:9712/metrics").read().decode()
        assert f'petacqd_kernel_network_total{{counter="{counter}"}}' in metrics, metrics
    print("all faults are named")


main()
