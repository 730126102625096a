"""What must hold of the files of a run whose run.json is final."""

import csv
import json
import os
import warnings

import numpy as np
from petacq.errors import IncompleteWarning
from petacq.plm import PlmFile

RECORDS = {"coincidences": "pairs", "singles": "saved_singles", "triples": "triples", "tags": "tags"}


def failures(directory, description, files, whole, unsynced):
    """`files`: the records of each kind; None for a file that is not there. `whole`: nothing has disturbed the daemon in its life.
    `unsynced`: the run says that its files could not be synced, and the power went later."""
    ledger = description["ledger"]
    found = []
    for kind, section in RECORDS.items():
        if kind not in files:
            continue
        counts = ledger[section]
        if counts["in_queue"]:
            found.append(f"files: {counts['in_queue']} {kind} wait after the end of the run")
        there = 0 if files[kind] is None else len(files[kind])
        if there != counts["written"] and (whole or files[kind] is not None and not (unsynced and there < counts["written"])):
            found.append(f"files: {there} {kind}, {counts['written']} are said to be written")
    if whole and os.path.exists(os.path.join(directory, ".reserve")):
        found.append("files: .reserve is there after the end of the run")
    if description["state"] == "complete":
        found += _complete(directory, description, ledger)
    return found


def _complete(directory, description, ledger):
    if not ledger["closed"] or any(section.get("write_failed") for section in ledger.values() if isinstance(section, dict)):
        yield f"files: the run is complete, with the ledger {ledger}"
    negative = [name for section in ledger.values() if isinstance(section, dict) for name, count in section.items()
                if isinstance(count, int) and count >= 2**63]
    if negative:
        yield f"ledger: negative: {negative}"
    for entry in description["files"]:
        path = os.path.join(directory, entry["name"])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", IncompleteWarning)
                file = PlmFile(path, verify=True)
        except Exception as error:  # whatever a reader says
            yield f"files: {entry['name']}: {error}"
            continue
        if not file.complete or file.path.stat().st_size != entry["bytes"] or len(file) != entry["records"]:
            yield f"files: {entry['name']}: complete {file.complete}, {file.path.stat().st_size} bytes, {len(file)} records: {entry}"
        elif entry["kind"] == "seconds":
            yield from _seconds(file, description, ledger)
    # After a fault of the disk it may end early, and the run says so.
    stopped = any(reason["code"] == "ledger_series_incomplete" for reason in description["verdict"]["reasons"])
    gammas = description["configuration"]["gammas"] is not None  # those are not in the histograms
    for name, check, skipped in (("ledger.csv", _rows, stopped), ("histograms.json", _histograms, gammas)):
        if not skipped and os.path.exists(os.path.join(directory, name)):  # RunChecks tells that it is not there
            yield from check(os.path.join(directory, name), ledger)


def _seconds(file, description, ledger):
    if not len(file):
        return
    seconds = np.concatenate(list(file.blocks()))
    for name, counted in [("decided", ledger["singles"]["decided"]), ("prompts", ledger["singles"]["prompts"]),
                          ("delayeds", ledger["singles"]["delayeds"])]:
        if seconds[name].sum() != counted:
            yield f"seconds: {seconds[name].sum()} {name}, the run has {counted}"
    ends = seconds["start"] + seconds["length"]
    if (seconds["start"][1:] < ends[:-1]).any():
        yield "seconds: they overlap"
    live = seconds["module_live"]
    if (live > 1).any() or (live < 0).any():
        yield f"seconds: live: {live}"


def _rows(path, ledger):
    with open(path, encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    for column, name in enumerate(names[2:], 2):
        section, counter = name.split(".")
        if counter == "lost":  # it may become less, and what was dropped counts as lost
            continue
        total = sum(int(row[column]) for row in rows if row[column])
        if total != ledger[section][counter]:
            yield f"rows: {name}: {total}, the run has {ledger[section][counter]}"
    times = [(int(row[0]), int(row[1])) for row in rows]
    if any(begin != before for (_, before), (begin, _) in zip(times, times[1:])):
        yield f"rows: they do not follow one another: {times}"


def _histograms(path, ledger):
    frames = ledger["frames"]
    if frames["late"] or frames["time_jump"] or frames["bad_time"]:
        return  # the histograms have those, too
    with open(path, encoding="utf-8") as file:
        crystals = sum(json.load(file)["crystals"])
    if crystals != frames["accepted"]:
        yield f"histograms: {crystals} singles, {frames['accepted']} were accepted"
