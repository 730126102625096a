"""Tables in ROOT files (with uproot) and HDF5 files (with h5py)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from petacq.errors import PetacqError

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
        for begin in range(0, len(columns[wanted[0]]), _AT_ONCE):
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


def tables_in(path: str | os.PathLike[str]) -> dict[str, Table]:
    """By name. Raises PetacqError, OSError."""
    with open(path, "rb") as file:
        magic = file.read(8)
    found: dict[str, Table] = {}
    if magic.startswith(b"root"):
        try:
            import uproot
        except ImportError as error:
            raise PetacqError("uproot is not installed, which reads ROOT files: pip install petacq[import]") from error
        try:
            root = uproot.open(path)
            found = {name: _RootTree(root[name]) for name, of in root.classnames(cycle=False).items() if of in ("TTree", "TNtuple")}
        except Exception as error:  # uproot has many kinds
            raise PetacqError(f"{path}: expected a sound ROOT file: {error}") from error
    elif magic == b"\x89HDF\r\n\x1a\n":
        try:
            import h5py
        except ImportError as error:
            raise PetacqError("h5py is not installed, which reads HDF5 files: pip install petacq[import]") from error
        file = h5py.File(path, "r")

        def look(name: str, node: Any) -> None:
            if isinstance(node, h5py.Group) and any(isinstance(part, h5py.Dataset) for part in node.values()):
                found[name] = _Hdf5Group(node)
            elif isinstance(node, h5py.Dataset) and node.dtype.names:
                found[name] = _Hdf5Compound(node)

        file.visititems(look)
    else:
        raise PetacqError(f"{path}: expected a ROOT or HDF5 file")
    return found
