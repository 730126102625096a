"""The control thread answers whatever the disk, the configuration and the clients do."""

import json
import os
import random
import signal
import socket
import time

from datagrams import datagram, frame
from rows import check
from testbed import Failed, expect, wait_for

# The contract is 0.5 s; the margin is for the machine of the test.
PROMPT = float(os.environ.get("PETACQ_PROMPT_S", "1.0"))


def opened(stage, patch=None, environment=None):
    site = stage.new_site(patch)
    stage.site, stage.daemon = site, stage.new_daemon(site, environment)
    stage.boards.connect(stage.daemon.ports)
    return stage.daemon


def answers(daemon, what, seconds=1.5):
    """Asks for the status again and again for so long; the worst time to answer."""
    client, worst, end = daemon.new_client(), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        client.call("status")
        worst = max(worst, time.monotonic() - begin)
        time.sleep(0.05)
    client.close()
    expect(worst < PROMPT, f"status was answered after {worst:.2f} s while {what}")


@check("start while syncs take 2 s", short=True)
def start_with_slow_syncs(stage):
    from rows_disk import FaultyDisk

    disk = FaultyDisk(stage, "/data/")
    daemon = opened(stage, environment=stage.environment)
    disk.set("sync:slow=2000")
    other = daemon.new_client()
    other.ask("start", run="r")
    time.sleep(0.05)
    answers(daemon, "a run starts on a slow disk")
    disk.set("")
    expect("result" in other.answer(), "start fails")
    daemon.client.call("stop")


@check("SIGHUP with a FIFO as configuration", short=True)
def reload_of_a_fifo(stage):
    daemon = opened(stage)
    os.remove(stage.site.path("petacqd.json"))
    os.mkfifo(stage.site.path("petacqd.json"))
    daemon.signal(signal.SIGHUP)
    time.sleep(0.1)
    answers(daemon, "the configuration is a FIFO", 0.5)


@check("100 subscribers at 10 Hz with 1,024 sources")
def many_subscribers(stage):
    daemon = opened(stage)
    unknown_sender = stage.unknown_sender()
    for source in range(1024):
        unknown_sender.send(datagram(source, 0, [frame(1000), frame(2000)]))
    stage.settle()
    subscribers = [daemon.new_client() for _ in range(100)]
    for client in subscribers:
        client.socket.setblocking(True)
        client.ask("subscribe", interval_s=0.1)
    answers(daemon, "100 clients subscribe", 3)
    for client in subscribers:
        client.close()


@check("start with 4,096 sources")
def start_with_all_sources(stage):
    daemon = opened(stage)
    unknown_sender = stage.unknown_sender()
    for source in range(4096):
        unknown_sender.send(datagram(source, 0, [frame(1000), frame(2000)]))
        if source % 500 == 0:
            stage.settle()
    stage.settle()
    daemon.client.ask("start", run="r")
    answers(daemon, "4,096 sources are known", 3)
    expect("result" in daemon.client.answer(), "start fails")
    daemon.client.call("stop")


@check("start with a raw capture when the clock of all boards stands still", short=True)
def start_with_stuck_clock(stage):
    daemon = opened(stage, {"listmode": {"write_raw": True}})
    boards = stage.unknown_sender()
    for number in range(200):
        boards.send(datagram(1, number, [frame(10**9), frame(10**9)]))
    stage.settle()
    daemon.client.ask("start", run="r")
    daemon.client.socket.settimeout(10)
    expect("result" in daemon.client.answer(), "start is refused")
    daemon.client.call("stop")


@check("128 idle clients", short=True)
def idle_clients(stage):
    daemon = opened(stage)
    idle = []
    for _ in range(140):
        try:
            idle.append(daemon.new_client())
        except OSError:
            break

    def served():
        try:
            operator = daemon.new_client()
            operator.socket.settimeout(2)
            operator.call("status")
            operator.close()
            return True
        except (OSError, ValueError, Failed):  # refused
            return False

    wait_for(served, "an operator is served", 15)
    for client in idle:
        client.close()


@check("a run.json that is nested 100,000 deep", short=True)
def nested_run_json(stage):
    daemon = opened(stage)
    directory = os.path.join(stage.site.data, "deep")
    os.mkdir(directory)
    with open(os.path.join(directory, "run.json"), "w", encoding="utf-8") as file:
        file.write('{"run":"deep","state":"complete","ledger":' + '{"a":' * 100000 + "1" + "}" * 100001)
    for arguments in (["runs"], ["ledger", "--run", "deep"], ["ledger", "--file", directory]):
        done = stage.programs.run("petctl", "--socket", stage.site.path("control.sock"), *arguments, check=False)
        expect(done.returncode >= 0, f"petctl {arguments[0]} is killed by signal {-done.returncode}")
        expect(daemon.process.poll() is None, f"the daemon ends: {daemon.process.returncode}")
    for command in ("info", "verify"):
        done = stage.programs.run("petlm", command, directory, check=False)
        expect(done.returncode >= 0, f"petlm {command} is killed by signal {-done.returncode}")


@check("SIGUSR1 and SIGUSR2", short=True)
def user_signals(stage):
    daemon = opened(stage)
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE):
        daemon.signal(number)
        time.sleep(0.1)
        expect(daemon.process.poll() is None, f"{number.name} ends the daemon")
    daemon.status()


@check("a NUL in the id of a run")
def nul_in_a_run_id(stage):
    daemon = opened(stage)
    daemon.client.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "start", "params": {"run": "a\0b"}}))
    error = daemon.client.answer().get("error")
    expect(error, "the id is accepted")
    expect("NUL" in error["message"] or "b" in error["message"].split("a", 1)[-1], f"the message is cut: {error['message']}")


@check("HTTP requests that say Transfer-Encoding: xchunked", short=True)
def unknown_transfer_encoding(stage):
    daemon = opened(stage)
    with socket.create_connection(("127.0.0.1", daemon.http_port()), 10) as client:
        client.sendall(b"GET /status HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\nConnection: close\r\n\r\n")
        status = client.recv(64).split(b" ")[1]
    expect(status in (b"400", b"501"), f"answered with {status.decode()}")


@check("control over HTTP beyond loopback")
def control_beyond_loopback(stage):
    site = stage.new_site({"http": {"listen": "0.0.0.0:0", "allow_control": True, "control_token_file": "token"}})
    done = stage.programs.run("petacqd", "--config", site.path("petacqd.json"), "--check", check=False)
    expect(done.returncode != 0, "--check accepts it")


@check("460 mutated lines on the control socket", short=True)
def mutated_lines(stage):
    daemon, generator = opened(stage), random.Random(4)
    line = b'{"jsonrpc":"2.0","id":1,"method":"start","params":{"run":"x y","duration_s":2,"note":"n"}}'
    client = daemon.new_client()
    for _ in range(460):
        mutated = bytearray(line)
        for _ in range(generator.randrange(1, 6)):
            mutated[generator.randrange(len(mutated))] = generator.choice(b'{}[]",:\\0aZ\xff\x00-e')
        client.socket.sendall(bytes(mutated).replace(b"\n", b" ") + b"\n")
    client.close()
    wait_for(lambda: daemon.status()["state"] is not None, "the daemon answers")
