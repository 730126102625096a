"""Senders that lie about the time."""

import json
import os
import time

from datagrams import (END_OF_STREAM, datagram, ends_stream, frame, frames_of, moved, renumbered, sequence_of,
                       write_capture)
from rows import by_list, row
from testbed import TICKS_PER_S, expect, wait_for

WILD = 2**64 - 1
HOUR = int(3600 * TICKS_PER_S)
BOTH = (False, True)


def tagged(stage, source, sequence, frames):
    """Frames as a datagram of the framing of the row."""
    return b"".join(frames) if stage.variant.framing == "bare" else datagram(source, sequence, frames)


@row("an unknown sender's two frames of wrong markers with the time 2^64-1", when="before", framings=("sequenced", "bare"),
     lists=BOTH, sockets=(1, 4), short=True,
     counters=by_list({"datagrams.unknown_source": 1}, {"frames.bad_marker": 2}))
def wild_stranger_before(stage):
    stage.unknown_sender().send(tagged(stage, 999, 0, [frame(WILD, head=1), frame(WILD, head=1)]))
    stage.settle()
    stage.boards.play()


@row("a board's first datagram has a wild time", when="before", lists=BOTH, short=True,
     loses=lambda stage: 4 * stage.wild_frames, counters={"frames.time_jump": lambda n: n > 0})
def wild_first_datagram(stage):
    first = next(one for one in stage.boards.stream if frames_of(one.payload) > 1)
    stage.wild_frames = frames_of(first.payload)
    stage.boards.send(first.source, moved(first.payload, HOUR * 1000))
    stage.settle()
    stage.boards.play(edit=lambda one: [] if one is first else [one.payload])


@row("an unknown sender's datagram of time 0 before boards that stand at 3,600 s; the run has a duration", when="before",
     lists=BOTH, stream={"start": 3600, "seconds": 1.5}, short=True,
     counters=by_list({"datagrams.unknown_source": 1}, {}))
def time_zero_before(stage):
    stage.unknown_sender().send(datagram(999, 0, [frame(0), frame(0)]))
    stage.settle()
    stage.boards.play()
    stage.settle()
    wait_for(lambda: stage.daemon.status()["state"] == "idle", "the run ends by itself")
    document = stage.site.run_json("r")
    expect("duration" in document["stop_reason"], f"the run ends: {document['stop_reason']}")
    expect(document["ledger"]["closed"], f"the ledger does not close: {document['ledger']['open']}")
    found = stage.prefix(os.path.join(stage.site.data, "r", "coincidences.plm"))
    expect(found > 9000, f"the run has {found} records, about 10,000 are in one second")
    stage.done = True


time_zero_before.before = lambda stage: stage.started.update(duration_s=1.0)


@row("nine made-up ids with two datagrams each of the time 0", when="during", lists=BOTH, stream={"seconds": 2.0},
     counters=by_list({"datagrams.unknown_source": 18}, {}))
def nine_at_zero(stage):
    stage.boards.play(end=1.5)
    unknown_sender = stage.unknown_sender()
    for number in range(2):
        for source in range(100, 109):
            unknown_sender.send(datagram(source, number, [frame(0), frame(0)]))
    stage.boards.play(start=1.5)


@row("nine made-up ids, an hour ahead, with 3,492 datagrams", when="during", lists=(True,), short=True,
     stream={"start": 3600}, counters={"datagrams.unknown_source": lambda n: n > 3000})
def nine_an_hour_ahead(stage):
    unknown_sender, sent = stage.unknown_sender(), [0]

    def meanwhile(now):
        while sent[0] < 3492 * min(now, 1):
            number, source = divmod(sent[0], 9)
            ticks = 2 * HOUR + int(now * TICKS_PER_S)
            unknown_sender.send(datagram(100 + source, number, [frame(ticks), frame(ticks + 1000)]))
            sent[0] += 1

    stage.boards.play(meanwhile=meanwhile)


PAUSE = {"start": 3600, "seconds": 2.4, "rate": 30000, "pause": "0.4-2.0"}


def paused(stage, datagrams):
    """Somebody sends 2.5 datagrams a second while the boards pause."""
    stage.boards.play(end=0.45)
    unknown_sender = stage.unknown_sender()
    for payload in datagrams:
        unknown_sender.send(payload)
        time.sleep(0.4)
    stage.boards.play(start=1.98)


@row("the boards pause for 1.6 s while one sender sends 2.5 invalid datagrams a second", when="pause", lists=BOTH,
     stream=PAUSE, short=True, counters=by_list({"datagrams.unknown_source": 4}, {"frames.bad_marker": 8}))
def invalid_in_a_pause(stage):
    paused(stage, [datagram(999, n, [frame(5 * n, head=1), frame(0, head=1)]) for n in range(4)])


@row("the boards pause for 1.6 s while one sender sends valid frames of the time 0", when="pause", lists=BOTH, stream=PAUSE,
     counters=by_list({"datagrams.unknown_source": 4}, {}))
def time_zero_in_a_pause(stage):
    paused(stage, [datagram(999, n, [frame(1000 * n), frame(1000 * n + 10)]) for n in range(4)])


@row("a source lags by 0.4 s and is still sending when the others have ended", when="end", lists=BOTH, short=True)
def lagging_source_at_the_end(stage):
    """It begins in time: without a list, nobody waits for a source that has never been heard."""
    late = []

    def edit(one):
        if one.source != 7 or one.time < 0.1:
            return [one.payload]
        late.append(one)
        return []

    for step in range(11):
        stage.boards.play(start=step * 0.1, end=(step + 1) * 0.1 if step < 10 else 10, edit=edit)
        while late and (late[0].time < step * 0.1 - 0.4 or step == 10):
            stage.boards.send(7, late.pop(0).payload)


@row("the boards end in turns, each 0.3 s after the one before", when="end", lists=BOTH)
def ends_in_turns(stage):
    ends = []

    def edit(one):
        if not ends_stream(one.payload):
            return [one.payload]
        ends.append(one)
        return []

    stage.boards.play(edit=edit)
    for one in ends:
        stage.boards.send(one.source, one.payload)
        time.sleep(0.3)


@row("one board's clock stands still for 0.7 s", when="during", lists=BOTH, counters={"datagrams.lost": 0})
def stuck_clock(stage):
    """The clean result is that of a replay of what was sent."""
    stuck, sent = [], []

    def edit(one):
        if one.source == 5 and one.time > 0.3 and frames_of(one.payload):
            stuck.append(one.payload)
            one = one._replace(payload=one.payload[:16] + stuck[0][16:])
        sent.append(one)
        return [one.payload]

    stage.boards.play(edit=edit)
    stage.reference_of = stage.site.path("sent.pcap")
    write_capture(stage.reference_of, sent)


def first_half(stage):
    """The clean result is that of the first half of the stream: nothing from before a reset is lost."""
    half = [one for one in stage.boards.stream if one.time < 0.5]
    ends = [one._replace(time=0.6, payload=datagram(one.source, 2**40, flags=END_OF_STREAM))
            for one in {one.source: one for one in half}.values()]
    stage.reference_of = stage.site.path("before.pcap")
    write_capture(stage.reference_of, half + ends)


@row("all boards are reset at once", when="during", lists=BOTH, short=True, reason="reset", stream={"start": 3600})
def common_reset(stage):
    first_half(stage)
    stage.boards.play(end=0.5)
    numbers = {}

    def edit(one):
        number = numbers[one.source] = numbers.get(one.source, -1) + 1
        return [renumbered(moved(one.payload, -int(3600.5 * TICKS_PER_S) + 10**6), number)]

    stage.boards.play(start=0.5, edit=edit)


@row("all boards step back by 0.4 s, less than max_jump", when="during", lists=BOTH)
def common_step_back(stage):
    """Either it ends the run as a reset, or health and a counter name it."""
    first_half(stage)
    stage.boards.play(end=0.5)
    stage.boards.play(start=0.5, edit=lambda one: [moved(one.payload, -int(0.4 * TICKS_PER_S))])
    stage.settle()
    status = stage.daemon.status()
    if status["state"] == "idle":
        expect("reset" in stage.site.run_json("r")["stop_reason"], "the run ends for another reason")
        return
    named = {key: n for key, n in status["ledger"]["datagrams"].items() if "step" in key or "time" in key}
    expect(any(named.values()) or "clock" in json.dumps(status["health"]["reasons"]),
           f"no counter and no reason of health names the steps: {status['health']['reasons']}")
    stage.stop()
    stage.done = True


@row("the numbers of a board wrap at 2^64", when="during", lists=BOTH, counters={"datagrams.lost": 0,
     "datagrams.restarted": 0, "datagrams.duplicate": 0})
def numbers_wrap(stage):
    stage.boards.play(edit=lambda one: [renumbered(one.payload, sequence_of(one.payload) - 50)])
