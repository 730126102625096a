"""Disks that fail: the run stops as failed, and everything written so far is readable and right."""

import os
import time

from rows import row
from stage import Skipped
from testbed import expect, wait_for


class FaultyDisk:
    """libfaultydisk.so in the programs of a stage; set() switches faults on and off."""

    def __init__(self, stage, path):
        library = os.path.join(os.path.dirname(stage.programs.directory), "lib", "libfaultydisk.so")
        if not os.path.exists(library):
            raise Skipped("libfaultydisk.so is not built (it does not go with sanitizers)")
        self.control = os.path.join(stage.programs.work, f"disk-{id(stage)}")
        self.set("")
        stage.environment = {"LD_PRELOAD": library, "FAULTYDISK_PATH": path, "FAULTYDISK_CONTROL": self.control}

    def set(self, faults):
        with open(self.control + ".tmp", "w", encoding="utf-8") as file:
            file.write(faults)
        os.rename(self.control + ".tmp", self.control)


def fails(faults, begin=0.5, where="coincidences.plm"):
    """The disk fails from `begin` on: the run fails, and its records are a prefix of the clean ones."""

    def play(stage):
        stage.boards.play(end=begin)
        stage.disk.set(faults)
        stage.boards.play(start=begin)
        stage.settle()
        wait_for(lambda: stage.daemon.status()["state"] == "idle", "the run ends")
        stage.disk.set("")
        document = stage.site.run_json("r")
        expect(document["state"] == "failed", f"the run is {document['state']}")
        expect(document["ledger"]["closed"], f"the ledger does not close: {document['ledger']['open']}")
        expect(document["ledger"]["pairs"]["write_failed"] > 0 or where != "coincidences.plm", "pairs.write_failed is 0")
        stage.prefix(os.path.join(stage.site.data, "r", "coincidences.plm"))
        # The next run is not affected.
        stage.daemon.client.call("start", run="next")
        stage.daemon.client.call("stop")
        stage.done = True

    play.before = lambda stage: setattr(stage, "disk", FaultyDisk(stage, where))
    return play


def holds(faults):
    """The disk is slow or takes little at a time: nothing is lost."""

    def play(stage):
        stage.boards.play(end=0.3)
        stage.disk.set(faults)
        stage.boards.play(start=0.3)
        stage.settle()
        stage.disk.set("")

    play.before = lambda stage: setattr(stage, "disk", FaultyDisk(stage, "coincidences.plm"))
    return play


for _name, _fault, _play, _short in (
        ("disk_eio", "writes fail with EIO", fails("write:EIO"), True),
        ("disk_full", "writes fail with ENOSPC after 8 KiB, the last of them short", fails("write:ENOSPC:after=8192"), True),
        ("disk_sync_fails", "syncs fail with EIO", fails("sync:EIO"), False),
        ("disk_short_writes", "writes take 1,000 bytes at a time", holds("write:short=1000"), True),
        ("disk_slow_writes", "writes take 20 ms each", holds("write:slow=20"), False),
        ("disk_interrupted", "every other write is interrupted (EINTR)", holds("write:EINTR:every=2"), False)):
    _play.__name__ = _name
    row(_fault, when="during", short=_short)(_play)


@row("the disk is full when the run stops", when="end")
def disk_full_at_the_end(stage):
    stage.boards.play()
    stage.settle()
    time.sleep(0.3)
    stage.disk.set("write:ENOSPC")
    stage.stop()
    stage.disk.set("")
    state = stage.site.run_json("r")["state"]
    expect(state == "failed", f"the run is {state}")
    stage.prefix(os.path.join(stage.site.data, "r", "coincidences.plm"))
    stage.done, stage.exits = True, (0, 74)


disk_full_at_the_end.before = lambda stage: setattr(stage, "disk", FaultyDisk(stage, "coincidences.plm"))


@row("histograms.json cannot be written", when="end")
def histograms_fail(stage):
    """Stop and run.json say the same."""
    stage.disk.set("write:EIO,open:EIO")
    stage.boards.play()
    stage.settle()
    stage.stop()
    document, answer = stage.site.run_json("r"), stage.answer
    failed = "error" in answer or answer["result"].get("failure") is not None
    expect(failed == (document["state"] != "complete"), f"stop says {failed and 'failure' or 'success'}, run.json {document['state']}")
    stage.done, stage.exits = True, (0, 74)


histograms_fail.before = lambda stage: setattr(stage, "disk", FaultyDisk(stage, "histograms.json"))
