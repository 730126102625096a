"""The tables of docs/explanation/coincidence-rules.md."""

import re

import compare

OPEN, CLOSE = "<!-- tools/referee --write -->", "<!-- end of tools/referee -->"


def table(names, rows):
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def count(number):
    return f"{number:,}"


def per_second(singles, seconds):
    return f"{singles / seconds / 1e6:.3g}"


def change(step, row):
    if step not in row["steps"]:
        return "–"
    lost, gained = row["steps"][step]
    return f"-{count(lost)} +{count(gained)}" if lost or gained else "0"


def agreement(result):
    """The programs and the reference."""
    rows = [(f"`{row['set']}`", f"`{row['mode']}`", f"`{row['policy']}`", count(row["pairs"]), count(row["trues"]), count(row["different"]))
            for row in result["programs"]]
    return table(("set", "window mode", "policy", "pairs", "of one annihilation", "pairs that differ"), rows)


def of_gate(result):
    rows = [(f"`{row['set']}`", f"`{row['mode']}`", f"`{row['policy']}`", count(row["ours"]), count(row["gate"]), count(row["both"]),
             *(change(step, row) for step in compare.STEPS), count(row["unexplained"])) for row in result["gate"]]
    return table(("set", "window mode", "policy", "pairs here", "of GATE", "in both", *compare.STEPS, "without a cause"), rows)


def of_chunks(result):
    rows = [(f"`{row['set']}`", str(row["multi_window"]), f"`{row['policy']}`", count(row["size"]), count(row["chunks"]),
             count(row["missing"]), count(row["added"]), count(row["twice"])) for row in result["chunks"]]
    return table(("set", "`multi_window`", "policy", "`chunk_size`", "chunks", "pairs missing", "pairs added", "pairs twice"), rows)


def of_petsys(result):
    rows = [(f"`{row['set']}`", f"`{row['mode']}`", f"`{row['policy']}`", count(row["ours"]), count(row["petsys"]), count(row["both"]),
             count(row["divided"]), count(row["policy_refuses"]), count(row["only_ours"])) for row in result["petsys"]]
    return table(("set", "window mode", "policy", "pairs here", "of PETsys", "in both", "no candidate here", "refused by the policy",
                  "only here"), rows)


def speeds(result):
    """Of the largest set, in millions of singles per second of CPU time: all settings together, since one takes too little time."""
    largest = max(result["sets"], key=lambda one: one["singles"])
    rows = []
    for program, part, key in (("`petlm resort`", "programs", "programs_s"), ("GATE's sorter", "gate", "gate_s"),
                               ("reference", "programs", "reference_s")):
        seconds = sorted(row[key] for row in result[part] if row["set"] == largest["name"])
        if seconds:
            rows.append((program, len(seconds), per_second(largest["singles"] * len(seconds), sum(seconds)),
                         f"{per_second(largest['singles'], seconds[-1])} to {per_second(largest['singles'], seconds[0])}"))
    return table(("program", "settings", "in all", "slowest to fastest setting"), rows)


def sets(result):
    rows = [(f"`{one['name']}`", one["seed"], count(one["singles"]), "yes" if one["same"] else "no",
             *(f"`{result['sums'][name][:16]}`" for name in (f"{one['name']}.pcap", f"{one['name']}.singles.csv")))
            for one in result["sets"]]
    return table(("set", "seed", "singles", "a replay gives these singles", "SHA-256 of the capture", "of the singles"), rows)


def text_of(result):
    opengate = f"opengate {result['opengate']}" if result["opengate"] else "without opengate"
    parts = [
        f"One run on {result['machine']}; {result['program']}, {opengate}, Python {result['python']}.",
        "### The sets", sets(result),
        "### The programs and the reference", agreement(result)]
    if result["gate"]:
        parts += [
            "### GATE 10's offline sorter", of_gate(result),
            "### GATE 10's chunks", of_chunks(result)]
    parts += [
        "### PETsys", of_petsys(result),
        "### Speeds",
        "In millions of singles per second of CPU time (all threads), of the largest set; `petlm resort` with start, reading, writing.",
        speeds(result)]
    return "\n\n".join(parts)


def write(page, text):
    with open(page, encoding="utf-8") as file:
        old = file.read()
    new, found = re.subn(f"{re.escape(OPEN)}.*?{re.escape(CLOSE)}", lambda _: f"{OPEN}\n{text}\n{CLOSE}", old, flags=re.S)
    if found != 1:
        raise RuntimeError(f"{page}: expected the lines {OPEN} and {CLOSE} once")
    with open(page, "w", encoding="utf-8") as file:
        file.write(new)
