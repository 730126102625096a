"""Numbers and times that make a loss look like another: each counter says what happened."""

import csv
import json
import os
import shutil

from datagrams import END_OF_STREAM, datagram, ends_stream, frames_of, moved, renumbered, sequence_of
from rows import row
from testbed import expect, wait_for

BOTH = (False, True)
NOTHING_LOST = {"datagrams.lost": 0, "datagrams.duplicate": 0}


def remove_directory(directory):
    """The daemon may be making a file in it."""
    def gone():
        shutil.rmtree(directory, ignore_errors=True)
        return not os.path.exists(directory)

    wait_for(gone, "the directory is removed")


def restart_numbers(stage, before=lambda number: []):
    """The numbers of board 2 restart at 0 after half a second; before(number): datagrams that it sends first."""
    first = []

    def edit(one):
        if one.source != 2:
            return [one.payload]
        number = sequence_of(one.payload)
        if one.time < 0.5:
            return [renumbered(one.payload, number + 5000)]
        out = [] if first else before(number)
        first.append(number)
        return out + [renumbered(one.payload, number - first[0])]

    stage.boards.play(edit=edit)


@row("a board's numbers restart at 0 in the middle", when="during", lists=BOTH, short=True,
     counters={**NOTHING_LOST, "datagrams.restarted": 1})
def numbers_restart(stage):
    restart_numbers(stage)


@row("a board's numbers restart at 0 after its end of stream", when="during",
     counters={**NOTHING_LOST, "datagrams.restarted": 1})
def numbers_restart_after_end(stage):
    restart_numbers(stage, lambda number: [datagram(2, 5000 + number, flags=END_OF_STREAM)])


@row("one datagram has a number 1,000 too high", when="during", lists=BOTH,
     counters={"datagrams.lost": lambda n: n <= 1, "datagrams.duplicate": 0})
def one_wild_number(stage):
    """The number that it should have had never comes."""
    wild = []

    def edit(one):
        if one.source != 2 or wild or one.time < 0.5:
            return [one.payload]
        wild.append(one)
        return [renumbered(one.payload, sequence_of(one.payload) + 1000)]

    stage.boards.play(edit=edit)


@row("the stream is sent a second time, after an end of stream", when="end", short=True,
     counters={"datagrams.accepted": lambda n: n > 0})
def stream_sent_twice(stage):
    """The second stream is not the quiet business of `duplicate`: health names it."""
    stage.boards.play()
    stage.settle()
    stage.boards.play(pace=4)
    stage.settle()
    wait_for(lambda: "stream_repeated" in [reason["code"] for reason in stage.daemon.status()["health"]["reasons"]],
             "health says that a stream is repeated")


@row("a number missing from before the run arrives in it, and another is lost", when="before",
     counters={"datagrams.lost": 1}, loses=10**6)
def early_number_arrives_late(stage):
    """`lost` of the run is 1; the rows of ledger.csv sum to it."""
    stage.stop()
    held, dropped = [], []

    def edit(one):
        if one.source != 4 or not frames_of(one.payload):
            return [one.payload]
        if not held and one.time > 0.02:
            held.append(one)
            return []
        if not dropped and one.time > 0.5:
            dropped.append(one)
            return []
        return [one.payload]

    stage.boards.play(end=0.06, edit=edit)
    stage.settle()
    stage.started = {"run": "late"}
    stage.start()
    stage.boards.send(4, held[0].payload)
    stage.boards.play(start=0.06, edit=edit)
    stage.settle()
    stage.stop()
    document = stage.site.run_json("late")
    expect(document["ledger"]["datagrams"]["lost"] == 1, f"lost is {document['ledger']['datagrams']['lost']}, expected 1")
    with open(os.path.join(stage.site.data, "late", "ledger.csv"), encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    column = next(key for key in rows[0] if key.endswith("lost"))
    total = sum(int(one[column] or 0) for one in rows)
    expect(total == 1, f"the rows of ledger.csv sum to lost {total}, expected 1")
    stage.live = stage.site.listmode("late")


@row("a copy of a datagram from before a restart of its board's numbers", when="during", lists=BOTH, short=True,
     counters={"datagrams.lost": 0, "datagrams.restarted": 1})
def copy_from_before_restart(stage):
    first, copies = [], []

    def edit(one):
        if one.source != 2:
            return [one.payload]
        number = sequence_of(one.payload)
        if one.time < 0.5:
            payload = renumbered(one.payload, number + 5000)
            if frames_of(payload):
                copies[:] = [payload]
            return [payload]
        first.append(number)
        out = [renumbered(one.payload, number - first[0])]
        return out + copies if len(first) == 5 else out

    stage.boards.play(edit=edit)


@row("every datagram is sent twice", when="during", lists=BOTH, counters={"datagrams.lost": 0,
     "datagrams.duplicate": lambda n: n > 100})
def every_datagram_twice(stage):
    stage.boards.play(edit=lambda one: [one.payload, one.payload])


@row("every tenth datagram of a board is lost", when="during", loses=10**6, short=True,
     counters={"datagrams.lost": lambda n: n > 10}, lists=BOTH)
def datagrams_lost(stage):
    stage.lost = 0

    def edit(one):
        if one.source == 1 and sequence_of(one.payload) % 10 == 5 and not ends_stream(one.payload):
            stage.lost += 1
            return []
        return [one.payload]

    stage.boards.play(edit=edit)
    stage.settle()
    lost = stage.daemon.status()["ledger"]["datagrams"]["lost"]
    expect(lost == stage.lost, f"lost is {lost}, expected {stage.lost}")


@row("a listed source first appears when all others have ended", when="end", lists=(True,),
     counters={"frames.late": 0}, patch={"watermark": {"source_timeout_ms": 5000}})
def last_to_come(stage):
    stage.boards.play(edit=lambda one: [] if one.source == 6 else [one.payload])
    stage.settle()
    for one in stage.boards.stream:
        if one.source == 6:
            stage.boards.send(6, one.payload)


@row("one board steps back by 0.5 s and stays there", when="during", lists=BOTH, loses=10**6,
     counters={"datagrams.lost": 0, "frames.late": lambda n: n is not None})
def one_board_steps_back(stage):
    """Its own pairs are lost and named; the others' are compared by the rows above."""
    stage.boards.play(edit=lambda one: [moved(one.payload, -32 * 10**9) if one.source == 3 and one.time > 0.5
                                        else one.payload])
    stage.settle()
    frames = stage.daemon.status()["ledger"]["frames"]
    expect(frames["late"] + frames["time_jump"] > 0, "neither frames.late nor frames.time_jump names the board's loss")


def disappears(what):
    def play(stage):
        stage.boards.play(end=0.5)
        directory = os.path.join(stage.site.data, "r")
        file = os.path.join(directory, "coincidences.plm")
        wait_for(lambda: stage.daemon.status()["ledger"]["pairs"]["written"] > 0, "records on the disk")
        what(directory, file)
        stage.boards.play(start=0.5)
        stage.settle()
        stage.stop()
        said = json.dumps([stage.answer, stage.daemon.status()])
        path = os.path.join(directory, "run.json")
        state = stage.site.run_json("r")["state"] if os.path.exists(path) else "gone"
        expect(state in ("failed", "gone"), f"the run is {state}")
        expect('"failure": null' not in said or '"failed"' in said, "neither stop nor the status says that the run failed")
        stage.done, stage.exits = True, (0, 74)

    return play


def _replace(_, file):
    os.rename(file, file + ".away")
    with open(file, "wb") as other:
        other.write(b"x")


for _name, _fault, _what in (
        ("run_directory_removed", "the directory of the run is removed", lambda directory, _: remove_directory(directory)),
        ("run_file_removed", "the list-mode file is removed", lambda _, file: os.remove(file)),
        ("run_file_replaced", "the list-mode file is replaced", _replace),
        ("run_file_truncated", "the list-mode file is truncated", lambda _, file: os.truncate(file, 100))):
    _play = disappears(_what)
    _play.__name__ = _name
    row(_fault, when="during", state="failed", short=_name == "run_file_removed")(_play)
