"""Writes the schema of the installed package petsird, with which every file of its version begins: schema-VERSION.json."""

from importlib.metadata import version
from pathlib import Path

from petsird.protocols import PETSIRDWriterBase

path = Path(__file__).with_name(f"schema-{version('petsird')}.json")
path.write_text(PETSIRDWriterBase.schema + "\n", encoding="utf-8")
