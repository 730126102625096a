"""Replays: every frame, the same bytes and the same ledger on any host at any speed."""

import json
import signal
import subprocess
import time

from datagrams import Sent, datagram, ends_stream, frame, moved, renumbered, write_capture, write_pcapng
from rows import check
from testbed import TICKS_PER_S, expect

MS = TICKS_PER_S / 1000


def ledger_of(listmode):
    return json.dumps(listmode.run["ledger"], sort_keys=True)


def replays_agree(stage, capture, times, *arguments, patch=None):
    """Replays a capture so often, some on a busy host: one SHA-256 and one ledger. Returns the last."""
    site = stage.new_site(patch)
    results, last = set(), None
    for number in range(times):
        with Disturbance(number % 2 == 1):
            last = site.replay(capture, f"n{number}", *arguments)
        results.add((last.sha, ledger_of(last)))
    shas = {sha for sha, _ in results}
    expect(len(shas) == 1, f"{len(shas)} different list-modes in {times} replays")
    expect(len(results) == 1, f"{len(results)} different ledgers in {times} replays")
    return last


class Disturbance:
    """Threads of this process that keep the processors busy."""

    def __init__(self, on):
        self.busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(3 * on)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.busy:
            process.kill()
            process.wait()


def without_ends(stream):
    return [one for one in stream if not ends_stream(one.payload)]


@check("a capture of one datagram with frames at 1, 15, 15.000003 and 21 ms", short=True)
def newest_frames(stage):
    ticks = [int(MS * t) for t in (1, 15, 15, 21)]
    ticks[2] += 192
    path = stage.new_site().path("one.pcap")
    write_capture(path, [Sent(0, 1, datagram(1, 0, [frame(t, bdm=b) for t, b in zip(ticks, (0, 0, 6, 0))]))])
    patch = {"watermark": {"max_disorder_us": 10000}, "energy": {"filter": False}}
    ledger = replays_agree(stage, path, 10, patch=patch).run["ledger"]
    expect(ledger["frames"]["received"] == 4, "the frames are not 4")
    expect(ledger["frames"]["late"] == 0, f"{ledger['frames']['late']} frames are late")
    expect(ledger["singles"]["decided"] == ledger["frames"]["accepted"], "not all accepted singles are decided")


@check("a capture without ends of stream: the newest frame is in the result", short=True)
def capture_without_ends(stage):
    _, stream = stage.programs.stream()
    path = stage.new_site().path("open.pcap")
    write_capture(path, without_ends(stream))
    last = replays_agree(stage, path, 6, "--whole")
    clean = stage.programs.reference(stage.programs.stream()[0])
    expect(last.run["ledger"]["frames"]["late"] == 0, "frames are late")
    expect(last.sha == clean.sha, "the list-mode differs from that with ends of stream")


@check("a capture with a common reset")
def capture_with_reset(stage):
    _, stream = stage.programs.stream(start=3600)
    back = -int(3600.5 * TICKS_PER_S) + 10**6
    numbers, out = {}, []
    for one in without_ends(stream):
        payload = one.payload
        if one.time >= 0.5:
            number = numbers[one.source] = numbers.get(one.source, -1) + 1
            payload = renumbered(moved(payload, back), number)
        out.append(one._replace(payload=payload))
    path = stage.new_site().path("reset.pcap")
    write_capture(path, out)
    replays_agree(stage, path, 6)
    replays_agree(stage, path, 4, "--whole")


FAULTS = ((), ("--loss", "0.01"), ("--duplicate", "0.01"), ("--reorder", "0.02"), ("--corrupt", "marker:0.02"),
          ("--corrupt", "time:0.01"), ("--corrupt", "length:0.01", "--corrupt", "magic:0.01"), ("--no-end-of-stream",),
          ("--clock-jump", "2@0.1:100000000000:20"), ("--silent", "5@0.1-0.2"))


@check("20 captures with petsim's faults in both framings, each replayed ten times, on an idle and on a busy host")
def captures_replayed_often(stage):
    for framing in ("sequenced", "bare"):
        for number, faults in enumerate(FAULTS):
            if framing == "bare":
                faults = faults[:2]  # it has no magic number
            site = stage.new_site()
            stage.programs.run(
                "petsim", "--crystals", "surface", "--scanner", site.path("scanner.json"), "--calibration", stage.programs.calibration, "--cylinder",
                "0,0,0,10,20,1", "--rate", "60000", "--duration-s", "0.3", "--sources", "8", "--seed", str(number), "--framing",
                framing, *faults, "--write", site.path("c.pcap"), "--summary", site.path("c.json"), "--quiet", "--threads", "1")
            patch = {"receive": {"framing": framing}}
            ledger = replays_agree(stage, site.path("c.pcap"), 10, "--whole", patch=patch).run["ledger"]
            with open(site.path("c.json"), encoding="utf-8") as file:
                frames = json.load(file)["total"]["expected"]["frames_received"]
            found = ledger["frames"]["received"]
            # Bare framing has no numbers by which a copy is known; petsim's sum is without copies.
            if framing == "sequenced" or "--duplicate" not in faults:
                expect(found == frames, f"{framing} {' '.join(faults)}: {found} frames, the capture has {frames}")
            expect(ledger["singles"]["decided"] == ledger["frames"]["accepted"], "not all accepted singles are decided")


@check("a raw capture of a corrupt stream, in which a frame begins with the magic", short=True)
def raw_capture_of_corruption(stage):
    site = stage.new_site({"listmode": {"write_raw": True}})
    daemon = stage.daemon = stage.new_daemon(site)
    stage.boards.connect(daemon.ports)
    stage.start()
    count = [0]

    def edit(one):
        count[0] += 1
        if count[0] % 40 or len(one.payload) < 64:
            return [one.payload]
        # A frame that looks like the header of the next datagram of the same source.
        following = datagram(one.source, int.from_bytes(one.payload[8:16], "big") + 1)
        return [one.payload[:32] + following + one.payload[48:]]

    stage.boards.play(edit=edit)
    stage.settle()
    stage.stop()
    live = site.listmode("r")
    again = site.replay(site.path("data", "r", "raw.pcap"), "again")
    expect(again.sha == live.sha, "the replay of raw.pcap has other records than the run")
    for part in ("frames", "singles"):
        there, here = live.run["ledger"][part], again.run["ledger"][part]
        differs = [k for k in there if there[k] != here.get(k) and not k.startswith("pending")]
        expect(not differs, f"{part}.{differs} differ between the run and its replay")


@check("pcapng: the capture as Wireshark writes it", short=True)
def wiresharks_format(stage):
    path, stream = stage.programs.stream()
    site = stage.new_site()
    write_pcapng(site.path("capture.pcapng"), stream)
    clean = stage.programs.reference(path)
    expect(site.replay(site.path("capture.pcapng"), "r", "--whole").sha == clean.sha, "other records than from pcap")


@check("a capture that is cut inside a packet", short=True)
def cut_capture(stage):
    with open(stage.programs.stream()[0], "rb") as file:
        content = file.read()
    site = stage.new_site()
    with open(site.path("cut.pcap"), "wb") as file:
        file.write(content[:len(content) // 2 - 7])
    done = stage.programs.run("petacqd", "--config", site.path("petacqd.json"), "--replay", site.path("cut.pcap"), "--run", "r",
                              check=False)
    state = site.run_json("r")["state"]
    expect((done.returncode == 0) == (state == "complete"), f"exit status {done.returncode}, but the run is {state}")


@check("one capture in two files, and the same in one")
def captures_in_parts(stage):
    path, stream = stage.programs.stream()
    site = stage.new_site()
    for part in (0, 1):
        write_capture(site.path(f"{part}.pcap"), [one for one in stream if one.source % 2 == part])
    both = site.replay(",".join(site.path(f"{part}.pcap") for part in (0, 1)), "r", "--whole")
    expect(both.sha == stage.programs.reference(path).sha, "other records than from one file")


@check("a replay that stands still for 0.3 s at a time")
def replay_interrupted(stage):
    path, _ = stage.programs.stream()
    site = stage.new_site()
    process = subprocess.Popen([stage.programs.path("petacqd"), "--config", site.path("petacqd.json"), "--replay", path, "--run",
                                "r", "--whole"], stderr=subprocess.DEVNULL)
    for _ in range(4):
        time.sleep(0.02)
        if process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            process.send_signal(signal.SIGCONT)
    expect(process.wait(60) == 0, "the replay fails")
    expect(site.listmode("r").sha == stage.programs.reference(path).sha, "other records than undisturbed")
