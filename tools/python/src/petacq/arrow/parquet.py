"""Records in a Parquet file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from petacq.arrow.columns import dtype_of, values_of
from petacq.errors import PetacqError
from petacq.layout import Records
from petacq.optional import pyarrow_module

_ROWS_OF_GROUP = 1 << 20


def write_parquet(path: Path, schema: Any, batches: Iterable[Any]) -> Path:
    """Raises FileExistsError if there is such a file. An error or an interruption leaves no part of it."""
    arrow = pyarrow_module()
    if path.exists():
        raise FileExistsError(f"{path} exists")
    partial = path.with_name(path.name + ".partial")
    # Few different numbers of crystals occur, but no time twice; the bytes of energies are alike, each with those of its place.
    floats = [field.name for field in schema if arrow.types.is_floating(field.type)]
    options = {
        "compression": "zstd",
        "use_dictionary": [name for name in schema.names[1:] if name not in floats],
        "use_byte_stream_split": floats,
    }
    try:
        with arrow.parquet.ParquetWriter(partial, schema, **options) as writer:
            group: list[Any] = []
            rows = 0
            for batch in batches:
                group.append(batch)
                rows += batch.num_rows
                if rows >= _ROWS_OF_GROUP:
                    writer.write_table(arrow.Table.from_batches(group, schema), row_group_size=rows)
                    group, rows = [], 0
            if group:
                writer.write_table(arrow.Table.from_batches(group, schema), row_group_size=rows)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def difference_of(path: Path, schema: Any, rows: int) -> str:
    """What a Parquet file has other than these columns and this number of rows; empty if it has these. Raises PetacqError for what is
    no Parquet file, OSError."""
    arrow = pyarrow_module()
    try:
        with arrow.parquet.ParquetFile(path) as file:
            found, found_rows = file.schema_arrow, file.metadata.num_rows
    except arrow.ArrowInvalid as error:
        raise PetacqError(f"{path}: expected a Parquet file: {error}") from error
    if not found.equals(schema):
        return f"has the columns {_columns(found)}; expected {_columns(schema)}"
    return "" if found_rows == rows else f"has {found_rows} rows; expected {rows}"


def _columns(schema: Any) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema)


def read_parquet(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> Records:
    """The records of a Parquet file, such as ``to_parquet`` writes, as a structured array; with ``columns`` only these.

    Raises ImportError without pyarrow, PetacqError for what is no Parquet file, for a column that is not there and for one
    that does not hold a number in each row, OSError."""
    arrow = pyarrow_module()
    source = Path(path)
    try:
        with arrow.parquet.ParquetFile(source) as file:
            schema = file.schema_arrow
            if unknown := [name for name in columns or () if name not in schema.names]:
                raise PetacqError(f"{source}: no column {unknown[0]!r}; it has {', '.join(schema.names)}")
            fields = [schema.field(name) for name in (schema.names if columns is None else columns)]
            out = np.empty(file.metadata.num_rows, dtype_of(fields, source))
            at = 0
            for batch in file.iter_batches(columns=[field.name for field in fields]):
                for field in fields:
                    array = batch.column(batch.schema.get_field_index(field.name))
                    if array.null_count:
                        raise PetacqError(f"{source}: column {field.name!r} has rows without a number")
                    out[field.name][at : at + len(array)] = values_of(array)
                at += batch.num_rows
    except arrow.ArrowInvalid as error:
        raise PetacqError(f"{source}: expected a Parquet file: {error}") from error
    return out
