"""Programs for two processors write the same bytes (needs h5py): simulated captures, calibrations, replays with all kinds of
records, and what the tools make of them, but for pictures.

same_bytes_test.py PROGRAMS OTHER_PROGRAMS TREE: directories of programs, and the source tree."""

import os
import re
import shutil
import sys
import tempfile

import h5py

TREE = os.path.abspath(sys.argv[3])
sys.path.append(os.path.join(TREE, "tests", "end_to_end", "features"))

import acquisition  # noqa: E402
import covering  # noqa: E402

RUNS = 6
FORMATS = ("castor", "coinstruct", "csv", "hdf5", "stir")
# The time of day, and how long a program took.
OF_THE_HOST = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)?|^study (date|time) .*|^Seconds: .*", re.MULTILINE)


LEFT_OUT = ".png"  # drawn with the fonts of the system that the programs see: the values are in image.nii
CALIBRATIONS = ("own.h5", "petsys.h5")


class Chain:
    """One directory, in which programs of one kind make everything."""

    def __init__(self, programs, directory):
        os.mkdir(directory)
        self.site = acquisition.Site(os.path.abspath(programs), TREE, directory)

    def make(self, number, options):
        run = f"run-{number}"
        interval = ("--from-s", acquisition.FROM_S, "--to-s", acquisition.TO_S) if options["interval"] == "from-to" else ()
        self.site.replay(self.site.configure(options, run), self.site.capture(options)[0], "r", *interval)
        return os.path.join(run, "r")

    def tools(self, run, options):
        petlm = self.site.petlm
        of_run = os.path.dirname(run)

        def to(name):
            return f"{of_run}-{name}"

        petlm("verify", run)
        petlm("recover", run, "-o", to("recovered"))
        if options["singles"] == "yes":
            petlm("resort", run, "-o", to("resorted"), "--threads", 2)
            petlm("merge", "--singles", run, "-o", to("singles.plm"))
        if options["coincidences"] == "off":
            run = to("resorted")
        petlm("merge", run, "-o", to("merged.plm"))
        if options["gammas"] == "on":
            petlm("merge", "--triples", run, "-o", to("triples.plm"))
        if options["tags"] == "all":
            petlm("gate", run, "--channel", 1, "--bins", 3, "-o", to("gate"))
        for form in FORMATS:
            depth = ("--depth-mm", 0) if form in ("castor", "stir") else ()
            petlm("export", "--format", form, *depth, run, "-o", to(form + (".h5" if form == "hdf5" else "")))
        petlm("image", "--depth-mm", 0, "--voxel-mm", 8, "--backend", "cpu", "--threads", 1, run, "-o", to("image"))


def files_of(directory):
    return sorted(os.path.relpath(os.path.join(folder, name), directory)
                  for folder, _, names in os.walk(directory) for name in names if not name.endswith(LEFT_OUT))


def hdf5_content(path):
    """All that petacqd puts into the file. HDF5 itself writes the time of day beside it."""
    parts = []

    def add(name, item):
        parts.append(f"{name} {sorted((key, str(value)) for key, value in item.attrs.items())}\n".encode())
        if isinstance(item, h5py.Dataset):
            value = item[()]
            parts.append(f"{item.dtype} {item.shape}\n".encode() + (value if isinstance(value, bytes) else value.tobytes()))

    with h5py.File(path, "r") as opened:
        add("/", opened)
        opened.visititems(add)
    return b"".join(parts)


def content(directory, file):
    if file.endswith(".h5"):
        data = hdf5_content(os.path.join(directory, file))
    else:
        with open(os.path.join(directory, file), "rb") as opened:
            data = opened.read()
    if file.endswith(".plm"):  # the checksums of the descriptions, in which the time of day is
        data = bytearray(data)
        for start in (32, 36, len(data) - 20, len(data) - 4):
            data[start:start + 4] = bytes(4)
    return OF_THE_HOST.sub(b"", data.replace(os.fsencode(directory), b"SITE"))


def first_difference(one, other):
    at = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    return f"{len(one)} and {len(other)} bytes, different at {at}: {one[max(at - 40, 0):at + 40]!r}, {other[max(at - 40, 0):at + 40]!r}"


def compared(one, other):
    """The names of the files that differ, or are missing on one side."""
    names, others = files_of(one), files_of(other)
    wrong = sorted(set(names) ^ set(others))
    for file in wrong:
        print(f"{file}: only made by one of them")
    for file in sorted(set(names) & set(others)):
        if content(one, file) != content(other, file):
            print(f"{file}: {first_difference(content(one, file), content(other, file))}")
            wrong.append(file)
    return wrong


def main():
    rows = [{**row, "source": "replay", "sockets": 1, "interval": "from-to" if row["interval"] == "from-to" else "all"}
            for row in covering.covering_array()[:RUNS]]
    with tempfile.TemporaryDirectory() as directory:
        chains = [Chain(programs, os.path.join(directory, name)) for programs, name in zip(sys.argv[1:3], ("one", "two"))]
        one, other = (chain.site.directory for chain in chains)
        wrong = compared(one, other)
        for name in CALIBRATIONS:  # they hold the time of day, and runs the checksum of them
            shutil.copy(os.path.join(one, name), other)
        for chain in chains:
            for number, options in enumerate(rows, 1):
                chain.tools(chain.make(number, options), options)
        names = files_of(one)
        wrong += compared(one, other)
        kinds = {}
        for file in names:
            kinds[os.path.splitext(file)[1]] = kinds.get(os.path.splitext(file)[1], 0) + 1
        print(f"{len(names)} files of {len(rows)} runs, {len(wrong)} of them different; "
              + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())))
        sys.exit(1 if wrong or len(names) < 100 else 0)


main()
