"""The scanner: where crystals are, and how they are numbered; and the import of geometry from files of other programs."""

from petacq.scanner.scanner import Scanner

__all__ = ["Scanner"]
