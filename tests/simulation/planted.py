"""Planted defects: small changes to the sources, each of which a check has to find.

A file planted/LIST.txt holds those of one part of the program. First it says by what they are to be found: `found_by stories`, or
`found_by PROGRAM FILTER` for the tests of a program. Then comes a paragraph for each defect:

    name late-by-one
    file daemon/tracking/watermark.cpp
    breaks a frame at the watermark is taken for a late one
     a line that stays, where it takes more than one to find the place
    -a line as it is
    +the line as planted

The lines must stand in the file, once; how far they are indented does not matter.
"""

import dataclasses
import hashlib
import os
import re

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "planted")
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class PlantedError(ValueError):
    """A list cannot be read, or a defect does not fit the sources."""


@dataclasses.dataclass(frozen=True)
class Defect:
    name: str
    of_list: str
    found_by: tuple  # ("stories",) or (program, filter)
    file: str
    breaks: str
    hunk: tuple  # lines with " ", "-" or "+" in front

    @property
    def digest(self):
        """Another one if the defect changes."""
        text = "\n".join((self.file, *self.found_by, *self.hunk))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def side(self, without):
        return [line[1:].strip() for line in self.hunk if line[0] != without]

    def plant(self, text):
        """The content of the file with the defect."""
        lines, old = text.split("\n"), self.side("+")
        bare = [line.strip() for line in lines]
        places = [i for i in range(len(lines) - len(old) + 1) if bare[i : i + len(old)] == old]
        if len(places) != 1:
            found = f"is there {len(places)} times" if places else "is not there any more"
            raise PlantedError(f"{self.name}: {self.file}: expected once, {found}: {' / '.join(old)}")
        place = places[0]
        indent = lines[place][: len(lines[place]) - len(bare[place])]
        lines[place : place + len(old)] = [indent + line for line in self.side("-")]
        return "\n".join(lines)


def _defect(of_list, found_by, paragraph):
    values, hunk = {}, []
    for line in paragraph:
        key, _, value = line.partition(" ")
        if line[0] in " +-":
            hunk.append(line)
        elif key in ("name", "file", "breaks") and value and key not in values and not hunk:
            values[key] = value
        else:
            raise PlantedError(f"{of_list}: expected name, file, breaks and lines with a blank, - or + in front, found: {line}")
    missing = {"name", "file", "breaks"} - values.keys()
    if missing or not NAME.fullmatch(values["name"]):
        raise PlantedError(f"{of_list}: expected a name of small letters, a file and what breaks, found: {paragraph[0]}")
    defect = Defect(values["name"], of_list, found_by, values["file"], values["breaks"], tuple(hunk))
    if defect.side("+") == defect.side("-") or not defect.side("+"):
        raise PlantedError(f"{defect.name}: its lines change nothing")
    return defect


def parse(text, of_list):
    """The defects of a list. Raises PlantedError."""
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    paragraphs = [[line for line in part.splitlines() if line] for part in re.split(r"\n\n+", text) if part.strip()]
    head = paragraphs[0] if paragraphs else [""]
    key, *found_by = head[0].split(" ", 2)
    if len(head) != 1 or key != "found_by" or (found_by != ["stories"] and len(found_by) != 2):
        raise PlantedError(f"{of_list}: expected found_by stories or found_by PROGRAM FILTER, found: {head[0]}")
    return [_defect(of_list, tuple(found_by), paragraph) for paragraph in paragraphs[1:]]


def read_all():
    """All defects, in the order of their lists. Raises PlantedError."""
    defects, names = [], set()
    for file_name in sorted(os.listdir(FOLDER)):
        with open(os.path.join(FOLDER, file_name), encoding="utf-8") as file:
            defects += parse(file.read(), file_name.removesuffix(".txt"))
    for defect in defects:
        if defect.name in names:
            raise PlantedError(f"{defect.name}: two defects have this name")
        names.add(defect.name)
    return defects


def chosen(defects, names):
    """Those with one of these names, or of one of these lists; all without names. Raises PlantedError."""
    known = {defect.name for defect in defects} | {defect.of_list for defect in defects}
    unknown = [name for name in names if name not in known]
    if unknown:
        lists = sorted({defect.of_list for defect in defects})
        raise PlantedError(f"no planted defect is called {', '.join(unknown)}; the lists are {', '.join(lists)}")
    return [defect for defect in defects if not names or defect.name in names or defect.of_list in names]


def check_all(source):
    """Raises PlantedError if one does not fit the sources."""
    for defect in read_all():
        try:
            with open(os.path.join(source, defect.file), encoding="utf-8") as file:
                defect.plant(file.read())
        except OSError as error:
            raise PlantedError(f"{defect.name}: {error}") from error
