"""Many runs as one: chosen by what is known of them, their records as one table."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from petacq.arrow.columns import batch_of, chosen, schema_of
from petacq.arrow.parquet import difference_of, write_parquet
from petacq.errors import PetacqError, RunError
from petacq.layout import Records
from petacq.optional import pyarrow_module
from petacq.plm import PlmFile
from petacq.plm_files import PlmFiles, PlmSet
from petacq.run import Run
from petacq.run_list import ListedRun, list_runs

if TYPE_CHECKING:
    import pyarrow

Kind = Literal["coincidences", "singles", "triples", "tags", "seconds"]

#: What the operator said of a run.
_SAID = ("nuclide", "activity_MBq", "activity_at_start_MBq", "assay_utc", "bed_mm", "subject")


class Dataset:
    """Runs, and their records as one sequence: run by run, in the order of their starts.

    ``runs``: a data directory, several, or runs of ``petacq.list_runs``. Nothing but ``run.json`` is read before records are
    asked for. Raises RunError as ``petacq.list_runs``, and for two runs of the same name.
    """

    #: As ``petacq.list_runs`` has them.
    runs: tuple[ListedRun, ...]

    def __init__(self, runs: str | os.PathLike[str] | Iterable[str | os.PathLike[str] | ListedRun]) -> None:
        listed: list[ListedRun] = []
        for one in [runs] if isinstance(runs, (str, os.PathLike)) else runs:
            listed += [one] if isinstance(one, ListedRun) else list_runs(one)
        listed.sort(key=lambda run: (run.start.timestamp() if run.start else float("-inf"), run.id))
        names: dict[str, Path] = {}
        for run in listed:
            if run.id in names:
                raise RunError(f"two runs of the name {run.id}: {names[run.id]} and {run.path}")
            names[run.id] = run.path
        self.runs = tuple(listed)

    def __repr__(self) -> str:
        return f"<Dataset of {len(self.runs)} runs>"

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        """Each run, opened."""
        return (run.open() for run in self.runs)

    @cached_property
    def facts(self) -> list[dict[str, Any]]:
        """What is known of each run: ``id``, ``path``, ``state`` and so on as in ``ListedRun``, ``scanner`` (its name), ``note``,
        and what the operator said: ``nuclide``, ``activity_MBq``, ``activity_at_start_MBq``, ``assay_utc``, ``bed_mm``, ``subject`` and
        ``keys``, a dict. None: not known. A DataFrame of it is a table of the runs."""
        return [_facts(run) for run in self.runs]

    def where(self, test: Callable[[dict[str, Any]], object] | None = None, /, **equal: Any) -> Dataset:
        """The runs whose facts are these, and for which ``test``, called with the facts of a run, is true. A list, tuple or set
        of values: one of them. ``keys``: has these keys with these values.

        Raises PetacqError for a name that is no fact."""
        chosen_runs = []
        for run, facts in zip(self.runs, self.facts):
            if unknown := [name for name in equal if name not in facts]:
                raise PetacqError(f"{unknown[0]!r} is no fact of a run: expected one of {', '.join(facts)}")
            if all(_fits(facts[name], wanted) for name, wanted in equal.items()) and (test is None or test(facts)):
                chosen_runs.append(run)
        return Dataset(chosen_runs)

    def blocks(self, kind: Kind = "coincidences") -> Iterator[tuple[Run, Records]]:
        """Each block of records with its run, as ``blocks()`` of a file gives it."""
        for run, records in self._opened(kind):
            for block in records.blocks():
                yield run, block

    def arrow_reader(self, kind: Kind = "coincidences", columns: Sequence[str] | None = None) -> pyarrow.RecordBatchReader:
        """The records block by block, as a pyarrow.RecordBatchReader. The first column is ``run``, the id of the run, coded as a
        dictionary; the others are those of the records, or ``columns`` of them.

        Raises ImportError without pyarrow; RunError for a dataset without runs and for runs without such records, with another
        tick or with other fields than the first; PlmError for a column that is not there."""
        arrow = pyarrow_module()
        # Before any is read.
        opened = list(self._opened(kind))
        if not opened:
            raise RunError("a dataset without runs has no records")
        first, dtype = opened[0][1], opened[0][1].dtype
        for run, records in opened:
            if records.tick_ps != first.tick_ps:
                raise RunError(
                    f"{run.path}: has ticks of {records.tick_ps:g} ps, {first.path} of {first.tick_ps:g} ps: choose runs of one scanner"
                )
            if records.dtype != dtype:
                raise RunError(f"{run.path}: its {kind} have other fields than those in {first.path}: choose runs of one scanner")
        about: dict[str, Any] = {"kind": kind, "tick_ps": first.tick_ps}
        if unknown := list(dict.fromkeys(text for _, records in opened for text in records.untold)):
            about["unknown"] = unknown
        of_records = schema_of(dtype, chosen(dtype, columns), about)
        ids = arrow.array([run.id for run in self.runs], arrow.string())
        field = arrow.field("run", arrow.dictionary(arrow.int32(), arrow.string()), nullable=False)
        schema = arrow.schema([field, *of_records], of_records.metadata)

        def batches() -> Iterator[Any]:
            for number, (_, records) in enumerate(opened):
                for block in records.blocks():
                    of_run = arrow.DictionaryArray.from_arrays(arrow.array(np.full(len(block), number, np.int32)), ids)
                    yield arrow.RecordBatch.from_arrays([of_run, *batch_of(block, of_records).columns], schema=schema)

        return arrow.RecordBatchReader.from_batches(schema, batches())

    def to_arrow(self, kind: Kind = "coincidences", columns: Sequence[str] | None = None) -> pyarrow.Table:
        """All of it as a pyarrow.Table. Raises as ``arrow_reader``."""
        return self.arrow_reader(kind, columns).read_all()

    def to_parquet(
        self,
        directory: str | os.PathLike[str],
        kind: Kind = "coincidences",
        columns: Sequence[str] | None = None,
        incomplete: bool = False,
    ) -> list[Path]:
        """Writes ``run=ID/KIND.parquet`` for each run, which programs that read Parquet take as one table with the column ``run``
        (Hive partitions). A run whose file is there is left as it is: a later call adds the runs that are new.

        Returns the files that it wrote. Raises OSError, and as ``arrow_reader``; before it writes any, RunError for a run that is
        still running or lacks records, unless ``incomplete``, and for a file whose rows or columns are not those of its run."""
        new = []
        for one, (run, records) in zip(self.runs, self._opened(kind)):
            if not incomplete and run.state == "running":
                raise RunError(f"{run.path}: is still running; expected runs that have ended, or incomplete=True")
            if not incomplete and not records.complete:
                raise RunError(f"{run.path}: lacks {kind} ({records.missing[0]}); expected all of them, or incomplete=True")
            path = Path(directory) / f"run={one.id}" / f"{kind}.parquet"
            reader = records.arrow_reader(columns)
            if not path.exists():
                new.append((path, reader))
            elif difference := difference_of(path, reader.schema, len(records)):
                raise RunError(f"{path}: {difference}, as {run.path} has; if you remove the file, it is written anew")
        for path, reader in new:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_parquet(path, reader.schema, reader)
        return [path for path, _ in new]

    def _opened(self, kind: Kind) -> Iterator[tuple[Run, PlmFile | PlmSet | PlmFiles]]:
        for run in self:
            records = getattr(run, kind)
            if records is None:
                raise RunError(f"{run.path}: a run without {kind}")
            yield run, records


def _facts(listed: ListedRun) -> dict[str, Any]:
    facts: dict[str, Any] = dict(vars(listed))
    try:
        run = listed.open()
        scanner, said, note = run.metadata.get("scanner"), run.operator, run.note
    except PetacqError:  # the state says that it cannot be read
        scanner, said, note = None, {}, ""
    facts |= {"scanner": scanner.get("name") if isinstance(scanner, Mapping) else None, "note": note or None}
    facts |= {name: said.get(name) for name in _SAID}
    keys = said.get("keys")
    return facts | {"keys": dict(keys) if isinstance(keys, Mapping) else {}}


def _fits(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(name in found and _fits(found[name], value) for name, value in wanted.items())
    if isinstance(wanted, Collection) and not isinstance(wanted, (str, bytes)):
        return found in wanted
    return bool(found == wanted)
