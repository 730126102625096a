"""Senders whom nobody knows, and bytes that mean nothing."""

import random

from datagrams import datagram, frame
from rows import check, row
from testbed import TICKS_PER_S, expect, wait_for

BOTH = (False, True)


@row("datagrams of 65,436 ids", when="before", lists=(True,), counters={"datagrams.unknown_source": 65436 - 8},
     health="unknown")
def every_id(stage):
    unknown_sender = stage.unknown_sender()
    for source in range(8, 65436):
        unknown_sender.send(datagram(source, 0, [frame(1000), frame(2000)]))
        if source % 1000 == 0:
            stage.settle()
    stage.settle()
    stage.boards.play()


@row("a port scan: 500 senders of bare frames", when="before", framings=("bare",), lists=(True,), short=True,
     counters={"datagrams.unknown_source": 500})
def port_scan(stage):
    for port in range(500):
        unknown_sender = stage.unknown_sender()
        unknown_sender.send(frame(1000 + port))
        unknown_sender.socket.close()
    stage.settle()
    stage.boards.play()


@check("datagrams of 5,000 ids with anybody allowed: health says that the table of sources is full")
def full_table(stage):
    site = stage.new_site()
    daemon = stage.new_daemon(site)
    stage.daemon = daemon
    unknown_sender = stage.unknown_sender()
    for source in range(5000):
        unknown_sender.send(datagram(source, 0, [frame(1000)]))
        if source % 1000 == 0:
            stage.settle()
    stage.settle()
    status = daemon.status()
    expect(status["total"]["datagrams"]["accepted"] == 5000, "a sender was refused: none of them was believed")
    wait_for(lambda: "too_many_sources" in [reason["code"] for reason in daemon.status()["health"]["reasons"]],
             "health says that the table is full")


@row("500 ids seen, then 5,000 jumping datagrams a second", when="during", lists=BOTH,
     counters={"datagrams.dropped_no_buffer": 0, "datagrams.lost": lambda n: n in (0, None)})
def jumping_crowd(stage):
    unknown_sender, sent, generator = stage.unknown_sender(), [0], random.Random(1)

    def meanwhile(now):
        while sent[0] < 5000 * min(now, 1):
            number, source = divmod(sent[0], 500)
            ticks = generator.randrange(2**63)
            unknown_sender.send(datagram(100 + source, number, [frame(ticks), frame(ticks + 1000)]))
            sent[0] += 1

    stage.boards.play(meanwhile=meanwhile)


def where_garbage_counts(variant):
    """Who sends is known before the header where senders are known by address and port."""
    name = "unknown_source" if variant.listed and variant.framing == "bare" else "malformed"
    return {f"datagrams.{name}": lambda n: n > 0}


@row("garbage of all sizes at full speed", when="during", framings=("sequenced", "bare"), lists=BOTH, sockets=(1, 4),
     counters=where_garbage_counts)
def garbage(stage):
    generator, unknown_sender = random.Random(2), stage.unknown_sender()
    sizes = [0, 1, 15, 17, 33, 1471, 8973, 65507]
    noise = {size: generator.randbytes(size) for size in sizes}

    def meanwhile(_):
        unknown_sender.send(noise[generator.choice(sizes)], to=generator.randrange(4))

    stage.boards.play(meanwhile=meanwhile)


@row("heartbeats of an unknown id", when="during", lists=BOTH)
def unknown_heartbeats(stage):
    unknown_sender, number = stage.unknown_sender(), [0]

    def meanwhile(_):
        unknown_sender.send(datagram(4242, number[0]))
        number[0] += 1

    stage.boards.play(meanwhile=meanwhile)


@row("one sender copies a board's frames under another id", when="during", lists=(True,))
def copied_frames(stage):
    unknown_sender = stage.unknown_sender()

    def edit(one):
        if one.source == 2:
            unknown_sender.send(one.payload[:6] + (77).to_bytes(2, "big") + one.payload[8:])
        return [one.payload]

    stage.boards.play(edit=edit)


@row("a board sends the frames of another board's module", when="during", lists=(True,),
     counters={"frames.bad_address": lambda n: n == 2 * 20})
def wrong_module(stage):
    def edit(one):
        return [one.payload]

    stage.boards.play(end=0.5, edit=edit)
    last = max(one.payload[8:16] for one in stage.boards.stream if one.source == 0 and one.time < 0.5)
    number = int.from_bytes(last, "big")
    foreign = stage.listed()[4]["bdms"][0]
    shift = 20
    for i in range(shift):
        ticks = int((0.5 + i * 1e-6) * TICKS_PER_S)
        stage.boards.send(0, datagram(0, number + 1 + i, [frame(ticks, bdm=foreign), frame(ticks + 9, bdm=foreign)]))

    def later(one):
        if one.source != 0:
            return [one.payload]
        moved_on = int.from_bytes(one.payload[8:16], "big") + shift
        return [one.payload[:8] + moved_on.to_bytes(8, "big") + one.payload[16:]]

    stage.boards.play(start=0.5, edit=later)
