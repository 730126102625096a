"""Records, which lie one after the other, as the columns of Arrow: one copy, and none behind it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.errors import PetacqError
from petacq.layout import Records, field_type
from petacq.optional import pyarrow_module

#: The key in the metadata of a schema under which stands, as JSON, what the records are.
METADATA_KEY = b"petacq"
#: Types of Arrow by their names. What pyarrow itself says of NumPy's needs pandas in some of its versions.
_NUMBERS = {f"{sign}int{bits}": f"<{sign or 'i'}{bits // 8}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_NUMBERS |= {"float": "<f4", "double": "<f8"}


def chosen(dtype: np.dtype[np.void], columns: Sequence[str] | None) -> list[str]:
    """All columns, or these. Raises PlmError for one that is not there."""
    names = list(dtype.names or ()) if columns is None else list(columns)
    for name in names:
        field_type(dtype, name)
    return names


def schema_of(dtype: np.dtype[np.void], names: Sequence[str], about: Mapping[str, Any]) -> Any:
    """A pyarrow.Schema. ``about``: what the records are, for its metadata."""
    arrow = pyarrow_module()
    fields = [arrow.field(name, _arrow_type(field_type(dtype, name)), nullable=False) for name in names]
    return arrow.schema(fields, {METADATA_KEY: json.dumps(about).encode()})


def arrays_of(column: Callable[[str], npt.NDArray[Any]], schema: Any) -> list[Any]:
    """A pyarrow.Array for each field of the schema: a view of what ``column`` returns, if that is contiguous."""
    return [_array(np.ascontiguousarray(column(field.name)), field.type) for field in schema]


def batch_of(records: Records, schema: Any) -> Any:
    """A pyarrow.RecordBatch: a copy of the records."""
    return pyarrow_module().RecordBatch.from_arrays(arrays_of(lambda name: records[name], schema), schema=schema)


def dtype_of(schema: Any, path: object) -> np.dtype[np.void]:
    """The type of records with these columns. Raises PetacqError for a column that is not of numbers."""
    return np.dtype([(field.name, *_numpy_type(field.type, f"{path}: column {field.name!r}")) for field in schema])


def values_of(array: Any) -> npt.NDArray[Any]:
    """The numbers of a pyarrow.Array without nulls, with the shape that they have in a record."""
    shape = [len(array)]
    while hasattr(array.type, "list_size"):
        shape.append(array.type.list_size)
        array = array.flatten()
    values: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False).reshape(shape)
    return values


def _arrow_type(dtype: np.dtype[Any]) -> Any:
    arrow = pyarrow_module()
    made = arrow.from_numpy_dtype(dtype.base)
    for count in reversed(dtype.shape):
        made = arrow.list_(arrow.field("item", made, nullable=False), count)
    return made


def _array(values: npt.NDArray[Any], kind: Any) -> Any:
    arrow = pyarrow_module()
    if values.ndim == 1:
        return arrow.Array.from_buffers(kind, len(values), [None, arrow.py_buffer(values)])
    inner = _array(values.reshape(-1, *values.shape[2:]), kind.value_type)
    return arrow.Array.from_buffers(kind, len(values), [None], children=[inner])


def _numpy_type(kind: Any, where: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    shape: tuple[int, ...] = ()
    while hasattr(kind, "list_size"):
        shape += (kind.list_size,)
        kind = kind.value_type
    found = _NUMBERS.get(str(kind))
    if found is None:
        raise PetacqError(f"{where} is of type {kind}: expected numbers")
    return np.dtype(found), shape
