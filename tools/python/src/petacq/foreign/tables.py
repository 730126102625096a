"""Tables in ROOT files (with uproot) and HDF5 files (with h5py)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from petacq.errors import PetacqError
from petacq.foreign.sound import each_sound, sound

_AT_ONCE = 1 << 20


class Table:
    """Columns of a tree or of a group."""

    names: list[str]

    def pieces(self, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
        raise NotImplementedError


class _RootTree(Table):
    def __init__(self, tree: Any) -> None:
        self._tree = tree
        self.names = [str(key) for key in tree.keys()]

    def pieces(self, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
        for piece in self._tree.iterate(list(wanted), library="np", step_size=_AT_ONCE):
            yield dict(piece)


class _Hdf5Group(Table):
    """A data set for each column."""

    def __init__(self, group: Any) -> None:
        self._group = group
        self.names = [str(name) for name in group]

    def pieces(self, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
        columns = {name: self._group[name] for name in wanted}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise PetacqError(f"{self._group.file.filename}: expected columns of one length, found {lengths}")
        for begin in range(0, lengths[wanted[0]], _AT_ONCE):
            yield {name: column[begin : begin + _AT_ONCE] for name, column in columns.items()}


class _Hdf5Compound(Table):
    """One data set of compound values."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.names = list(dataset.dtype.names)

    def pieces(self, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
        for begin in range(0, len(self._dataset), _AT_ONCE):
            rows = self._dataset[begin : begin + _AT_ONCE]
            yield {name: rows[name] for name in wanted}


class _Sound(Table):
    """Another table, whose errors name the file."""

    def __init__(self, table: Table, expected: str) -> None:
        self._table, self._expected = table, expected
        self.names = table.names

    def pieces(self, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
        return each_sound(self._table.pieces(wanted), self._expected)


# Such as uproot writes by default since 5.7.
_TREES = ("TTree", "TNtuple", "ROOT::RNTuple")


def tables_in(path: str | os.PathLike[str]) -> dict[str, Table]:
    """By name. Raises PetacqError, OSError."""
    with open(path, "rb") as file:
        magic = file.read(8)
    if magic.startswith(b"root"):
        what, find = "ROOT", _in_root
    elif magic == b"\x89HDF\r\n\x1a\n":
        what, find = "HDF5", _in_hdf5
    else:
        raise PetacqError(f"{path}: expected a ROOT or HDF5 file")
    expected = f"{path}: expected a sound {what} file"
    with sound(expected):
        return {name: _Sound(table, expected) for name, table in find(path).items()}


def _in_root(path: str | os.PathLike[str]) -> dict[str, Table]:
    try:
        import uproot
    except ImportError as error:
        raise PetacqError("uproot is not installed, which reads ROOT files: pip install petacq[import]") from error
    root = uproot.open(path)
    if (size := os.path.getsize(path)) < root.file.fEND:
        raise PetacqError(f"{path}: expected a sound ROOT file of {root.file.fEND} bytes, found {size}")
    return {name: _RootTree(root[name]) for name, of in root.classnames(cycle=False).items() if of in _TREES}


def _in_hdf5(path: str | os.PathLike[str]) -> dict[str, Table]:
    try:
        import h5py
    except ImportError as error:
        raise PetacqError("h5py is not installed, which reads HDF5 files: pip install petacq[import]") from error
    found: dict[str, Table] = {}

    def look(name: str, node: Any) -> None:
        if isinstance(node, h5py.Group) and any(isinstance(part, h5py.Dataset) for part in node.values()):
            found[name] = _Hdf5Group(node)
        elif isinstance(node, h5py.Dataset) and node.dtype.names:
            found[name] = _Hdf5Compound(node)

    h5py.File(path, "r").visititems(look)
    return found
