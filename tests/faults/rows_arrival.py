"""A process that stands still, a disk that stalls: nothing is lost while the buffers suffice."""

import signal

from rows import row
from testbed import expect

BOTH = (False, True)


def stopped(stage, seconds, begin):
    """Plays from `begin` on while the daemon stands still for so long, and lets it go on."""
    stage.daemon.signal(signal.SIGSTOP)
    stage.boards.play(start=begin, end=begin + seconds)
    stage.daemon.signal(signal.SIGCONT)


@row("SIGSTOP for 0.5 s", when="during", framings=("sequenced", "bare"), lists=BOTH, sockets=(1, 4), short=True,
     counters={"frames.late": 0})
def process_stands_still(stage):
    stage.need_socket_buffers()
    stage.boards.play(end=0.3)
    stopped(stage, 0.5, 0.3)
    stage.boards.play(start=0.8)


@row("SIGSTOP for 1.5 s at 300,000 frames/s", when="during", sockets=(4,), counters={"frames.late": 0},
     stream={"seconds": 2.0, "rate": 300000})
def process_stands_still_long(stage):
    stage.need_socket_buffers()
    stage.boards.play(end=0.3)
    stopped(stage, 1.5, 0.3)
    stage.boards.play(start=1.8)


@row("SIGSTOP for 1.5 s at 1,000,000 frames/s", when="during", sockets=(4,), counters={"frames.late": 0},
     stream={"seconds": 2.0, "rate": 1000000}, patch={"receive": {"batch_count": 160}})
def process_stands_still_fast(stage):
    """For an optimised build. 1.5 s are 24 MB, which wait in the socket buffers and then in the pool of 40 MiB."""
    process_stands_still_long(stage)


@row("stop is given while the process stands still; everything has arrived", when="end", sockets=(1, 4), lists=BOTH,
     short=True, counters={"frames.late": 0}, stream={"seconds": 2.0, "rate": 300000})
def stop_while_standing_still(stage):
    stage.need_socket_buffers()
    stage.boards.play(end=0.2)
    stage.daemon.signal(signal.SIGSTOP)
    stage.boards.play(start=0.2)
    stage.daemon.client.ask("stop")
    stage.daemon.signal(signal.SIGCONT)
    expect("result" in stage.daemon.client.answer(), "stop fails")
    stage.live = stage.site.listmode("r")


@row("the disk stalls for 1.5 s at a low rate", when="during", lists=BOTH, stream={"seconds": 2.0},
     patch={"listmode": {"block_bytes": 4096, "queue_blocks": 2}},
     counters={"datagrams.lost": 0, "datagrams.dropped_no_buffer": 0})
def disk_stalls(stage):
    stage.boards.play(end=0.3)
    stage.disk.set("write:slow=1500:once")
    before = stage.daemon.received()
    stage.boards.play(start=0.3, end=1.2)
    expect(stage.daemon.received() > before, "the status stands still while the acquisition waits for the disk")
    stage.boards.play(start=1.2)


@row("the disk stalls for 1.5 s, longer than the pool lasts", when="during", sockets=(1, 4), short=True,
     stream={"seconds": 2.0, "rate": 200000},
     patch={"listmode": {"block_bytes": 4096, "queue_blocks": 2}, "receive": {"batch_count": 8, "batch_bytes": 131072}},
     counters={"datagrams.lost": 0, "datagrams.dropped_no_buffer": 0, "datagrams.dropped_kernel": 0, "frames.late": 0})
def disk_stalls_longer(stage):
    """The pool of 1 MiB holds 0.3 s: the rest waits in the socket buffers."""
    stage.need_socket_buffers()
    stage.boards.play(end=0.3)
    stage.disk.set("write:slow=1500:once")
    stage.boards.play(start=0.3)


@row("syncs take 1 s each", when="during", counters={"datagrams.lost": 0})
def slow_syncs(stage):
    stage.disk.set("sync:slow=1000")
    stage.boards.play()
    stage.settle()
    stage.disk.set("")


def with_faulty_disk(stage):
    from rows_disk import FaultyDisk

    stage.disk = FaultyDisk(stage, "coincidences.plm")


disk_stalls.before = disk_stalls_longer.before = slow_syncs.before = with_faulty_disk


@row("four sockets, of which each in turn is behind: one board's datagrams come 50 ms late", when="during", sockets=(4,),
     counters={"frames.late": 0})
def uneven_sockets(stage):
    held = []

    def edit(one):
        if one.source % 4 != 1:
            return [one.payload]
        held.append(one)
        return []

    for step in range(20):
        stage.boards.play(start=step * 0.05, end=(step + 1) * 0.05 if step < 19 else 10, edit=edit)
        while held:
            stage.boards.send(held[0].source, held.pop(0).payload)
