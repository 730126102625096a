"""kill -9 at random moments: every file is a prefix of the clean list-mode, and recover makes it sound."""

import os
import random

from rows import row
from testbed import Failed, expect


@row("kill -9 at random moments", when="during", sockets=(1,), short=True)
def killed(stage):
    generator = random.Random(9)
    stage.daemon.end()
    for number in range(stage.kills):
        moment = generator.random() * 0.35
        try:
            once(stage, moment)
        except Failed as failed:
            raise Failed(f"kill {number} after {moment:.3f} s of sending: {failed}") from failed
    stage.done = True
    stage.daemon = stage.new_daemon(stage.new_site())


def once(stage, moment):
    site = stage.new_site({"listmode": {"block_bytes": 4096, "sync_interval_ms": 20}, "watermark": {"max_disorder_us": 20000}})
    daemon = stage.new_daemon(site)
    stage.boards.connect(daemon.ports)
    daemon.client.call("start", run="r")
    stage.boards.play(end=moment)
    written = daemon.status()["ledger"]["pairs"]["written"]
    daemon.kill()
    directory = os.path.join(site.data, "r")
    found = stage.prefix(os.path.join(directory, "coincidences.plm"))
    expect(found >= written, f"{found} records are readable, {written} were written")
    stage.programs.run("petlm", "recover", directory)
    recovered = directory + ".recovered"
    expect(stage.prefix(os.path.join(recovered, "coincidences.plm")) == found, "recover loses records")
    done = stage.programs.run("petlm", "verify", os.path.join(recovered, "coincidences.plm"), check=False)
    expect(done.returncode == 0, "verify refuses what recover made: " + done.stdout)
    stage.sites.remove(site)
    site.remove()
