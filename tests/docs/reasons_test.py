#!/usr/bin/env python3
"""Every health reason stands in their order and is documented with what to do, and the tables of mistakes and symptoms name
only what there is.

reasons_test.py ROOT
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
# Problem{"code", ...}, add("code", ...), code = ... ? "code" : "code": wherever the daemon makes a reason.
MADE = re.compile(r"\b(?:Problem|NetworkFault|SourceTrouble|DetectorAdvice|add(?:_source|_share)?)\s*(?:\w+\s*)?"
                  r'[({]\s*"([a-z]+(?:_[a-z]+)+)"')
CHOSEN = re.compile(r"\bcode = [^;]*;")
WORD = re.compile(r'"([a-z]+(?:_[a-z]+)+)"')
ORDERED = re.compile(r'\bCodeRank\{"([a-z_]+)"')
REASON = re.compile(r"^### `(\w+)`\n((?:(?!#).*\n)*)", re.M)
ADVICE = re.compile(r"^- When: \S(?:.*\n)+?- What to do: \S", re.M)
CODE = re.compile(r"`([a-z]+(?:_[a-z]+)+)`")


def page(name):
    return (root / "docs" / name).read_text(encoding="utf-8")


def rows(text, heading):
    """The rows of all tables below the heading, each a list of cells."""
    section = text[text.index(f"\n## {heading}"):].split("\n## ", 2)[1]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def codes_of(cells):
    return {code for cell in cells for code in CODE.findall(cell)}


def made_in(file):
    text = file.read_text(encoding="utf-8")
    return set(MADE.findall(text)) | {code for choice in CHOSEN.findall(text) for code in WORD.findall(choice)}


files = [file for folder in ("daemon/status", "daemon/run", "daemon/system", "daemon") for file in (root / folder).glob("*.[ch]pp")]
made = set().union(*map(made_in, files))
raised = set().union(*(made_in(file) for file in files if file.name != "verdict.cpp"))
ordered = set(ORDERED.findall((root / "daemon/status/reason_order.cpp").read_text(encoding="utf-8")))
health = dict(REASON.findall(page("how-to/alarms.md")))
verdict = codes_of([page("reference/ledger.md").split("## The verdict on a run")[1].split("\n## ")[0]])
mistakes = rows(page("how-to/board.md"), "From the mistake to its cause")[2:]
symptoms = [row for heading in ("Nothing arrives", "Multicast and broadcast", "Some are lost")
            for row in rows(page("how-to/network.md"), heading)[2:]]

problems = [f"{code}: not in the order of daemon/status/reason_order.cpp" for code in sorted(raised - ordered)]
problems += [f"{code}: in the order of reasons, and nothing makes it" for code in sorted(ordered - raised)]
problems += [f"{code}: not in how-to/alarms.md" for code in sorted(made - set(health) - verdict)]
problems += [f"{code}: in alarms.md, and nothing makes it" for code in sorted(set(health) - made)]
problems += [f"{code}: alarms.md does not say what to do" for code, text in health.items() if not ADVICE.search(text)]
problems += [f"board.md: {row[0]}: {len(row)} cells, or an empty one" for row in mistakes if len(row) != 5 or not all(row)]
problems += [f"network.md: {row[0]}: {len(row)} cells" for row in symptoms if len(row) != 4]
problems += [f"network.md: there is no reason {code}" for code in sorted(codes_of([row[1] for row in symptoms]) - set(health))]
for row in mistakes:
    problems += [f"board.md: {row[0]}: there is no reason {code}"
                 for code in sorted(codes_of([row[1]]) - set(health) | codes_of([row[3]]) - verdict)]
if len(mistakes) < 20 or len(made) < 40:
    problems.append(f"{len(mistakes)} mistakes and {len(made)} reasons were found: the test reads the wrong thing")
print("\n".join(problems) or f"{len(health)} reasons, {len(mistakes)} mistakes, {len(symptoms)} symptoms")
sys.exit(bool(problems))
