"""Commands and configurations that are checked too little or too much."""

import json
import os

from rows import check
from testbed import TICKS_PER_S, expect, records_of


def accepted(stage, patch, scanner=None):
    """Whether --check accepts the configuration, and why not."""
    site = stage.new_site(patch)
    if scanner:
        with open(site.path("scanner.json"), encoding="utf-8") as file:
            document = json.load(file)
        scanner(document)
        site.write("scanner.json", document)
    done = stage.programs.run("petacqd", "--config", site.path("petacqd.json"), "--check", check=False)
    return done.returncode == 0, done.stderr.strip()


@check("--check of 5,000 source ids, with which the start fails", short=True)
def check_of_too_many_ids(stage):
    good, _ = accepted(stage, {"sources": {"accept_any": False, "ids": list(range(5000))}}
                       if "accept_any" in stage.programs.keys["sources"]["properties"]
                       else {"sources": {"ids": list(range(5000))}})
    expect(not good, "--check accepts 5,000 ids")


@check("--check of a data directory that does not exist", short=True)
def check_of_missing_directory(stage):
    good, _ = accepted(stage, {"data_dir": "nowhere"})
    expect(not good, "--check accepts a data directory that does not exist")


@check("a bad --run id", short=True)
def bad_run_id(stage):
    site = stage.new_site()
    done = stage.programs.run("petacqd", "--config", site.path("petacqd.json"), "--replay", stage.programs.stream()[0], "--run",
                              "a/b", check=False)
    expect(done.returncode == 64, f"exit status {done.returncode}, expected 64")


@check("resort of a run without energy filter with --lower-kev alone", short=True)
def resort_without_upper(stage):
    site = stage.new_site({"energy": {"filter": False, "upper_keV": 520}, "listmode": {"write_singles": True}})
    site.replay(stage.programs.stream()[0], "r", "--whole")

    def resort(name, *limits):
        stage.programs.run("petlm", "resort", os.path.join(site.data, "r"), "-o", site.path(name), *limits)
        return records_of(stage.programs, site.path(name))

    one, both = resort("one.plm", "--lower-kev", "400"), resort("both.plm", "--lower-kev", "400", "--upper-kev", "100000")
    expect(one == both, f"{both.total() - one.total()} records fewer than without an upper limit")


@check("resort with limits wider than those of the saved singles")
def resort_wider(stage):
    site = stage.new_site({"listmode": {"write_singles": True}})
    site.replay(stage.programs.stream()[0], "r", "--whole")
    done = stage.programs.run("petlm", "resort", os.path.join(site.data, "r"), "-o", site.path("wide.plm"), "--lower-kev", "300",
                              check=False)
    expect(done.returncode != 0, "resort accepts --lower-kev 300 of singles above 350")


@check("a scanner of two heads")
def two_heads(stage):
    def heads(document):
        document["geometry"].update({"channels": 2, "modules": {"y": 1, "z": 2}, "bdm_count": 4})
        document["dimensions"]["ring_radius_mm"] = 60

    good, why = accepted(stage, {"coincidence": {"min_module_difference": 1}, "calibration": "/nonexistent"}, heads)
    expect(good or "modules" not in why, why)


@check("cut from == to", short=True)
def cut_of_nothing(stage):
    site = stage.new_site()
    live = site.replay(stage.programs.stream()[0], "r", "--whole")
    done = stage.programs.run("petlm", "cut", live.path, "-o", site.path("none.plm"), "--from-ticks", str(int(TICKS_PER_S // 2)),
                              "--to-ticks", str(int(TICKS_PER_S // 2)), check=False)
    expect(done.returncode == 0, done.stderr.strip())


@check("a delay that is not longer than the window")
def short_delay(stage):
    good, why = accepted(stage, {"coincidence": {"window_ticks": 320, "delay_ticks": 320, "delayeds": "delayed_window"}})
    expect(good, why)


@check("delayed windows that the policy drops have a counter")
def dropped_delayed_windows(stage):
    site = stage.new_site({"coincidence": {"window_ticks": 1000000, "delay_ticks": 3000000, "max_multiplicity": 2}})
    ledger = site.replay(stage.programs.stream()[0], "r", "--whole").run["ledger"]
    named = [key for part in ledger.values() if isinstance(part, dict) for key, value in part.items()
             if "delayed" in key and key not in ("delayeds", "delayeds_found") and value]
    expect(named, "no counter of delayed windows is above 0")
