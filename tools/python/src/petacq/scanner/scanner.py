"""The scanner: how crystals are numbered and where they are (docs/reference/geometry.md of petacqd has the drawing)."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.errors import ScannerError
from petacq.scanner.arrangement import Address, Integers, Millimetres
from petacq.scanner.comments import without_comments


@dataclass(frozen=True)
class Scanner:
    """A scanner description. y runs around the ring, z along the axis; lengths in mm.

    The axis of the scanner is z and its centre the origin; module 0 of the ring is centred on +x, and numbers rise
    counter-clockwise seen from +z. What takes crystal numbers takes arrays of them, too.

    This is a ring, the short form. ``load`` and ``from_json`` give an ArrangedScanner for the long form: it has no rings,
    and what counts them raises ScannerError there.
    """

    name: str
    tick_ps: float
    channels: int
    modules_y: int  #: modules (BDMs) of one channel around the ring
    modules_z: int
    blocks_y: int  #: blocks (DUs) of one module
    blocks_z: int
    crystals_y: int  #: crystals of one block
    crystals_z: int
    position_size: int
    ring_radius_mm: float
    crystal_pitch_y_mm: float
    crystal_pitch_z_mm: float
    crystal_length_mm: float
    block_gap_y_mm: float = 0.0
    block_gap_z_mm: float = 0.0
    module_gap_z_mm: float = 0.0
    frame_version: int = 1  #: of the frames that the boards send

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Scanner:
        """Reads a scanner description file. Raises ScannerError, OSError."""
        try:
            document = json.loads(without_comments(Path(path).read_text(encoding="utf-8-sig")))
            return cls.from_json(document)
        except ScannerError as error:
            raise ScannerError(f"{path}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise ScannerError(f"{path}: not JSON: {error}") from error

    @classmethod
    def from_json(cls, document: Any) -> Scanner:
        """From the JSON of a scanner description, as ``run.json`` holds it, too. Raises ScannerError."""
        if isinstance(document, Mapping) and ("modules" in document or "module_types" in document):
            from petacq.scanner.arranged_scanner import ArrangedScanner

            return ArrangedScanner(document)
        geometry = _object(document, "geometry")
        dimensions = _object(document, "dimensions")
        version = document.get("frame_version", 1)
        if version not in (1, 2) or isinstance(version, bool):
            raise ScannerError(f"frame_version: expected 1 or 2, found {version!r}")
        most_modules = 256 if version == 1 else 65536
        most_crystals = 256 if version == 1 else 65535  # of a block
        counts = {}
        for key in ("modules", "blocks", "crystals"):
            part = _object(geometry, key)
            if _count(part, "x", 1) != 1:
                raise ScannerError(f"{key}.x: expected 1 layer, found {part['x']}")
            most = {"modules": most_modules, "blocks": 16, "crystals": most_crystals}[key]
            counts[f"{key}_y"] = _count(part, "y", most=most)
            counts[f"{key}_z"] = _count(part, "z", most=most)
        lengths = {}
        for key in ("ring_radius_mm", "crystal_pitch_y_mm", "crystal_pitch_z_mm", "crystal_length_mm"):
            lengths[key] = _number(dimensions, key)
        for key in ("block_gap_y_mm", "block_gap_z_mm", "module_gap_z_mm"):
            lengths[key] = _number(dimensions, key, 0.0)
        scanner = cls(
            name=str(document.get("name", "")),
            tick_ps=_number(document, "tick_ps"),
            channels=_count(geometry, "channels", most=most_modules),
            position_size=_count(geometry, "position_size"),
            modules_y=counts["modules_y"],
            modules_z=counts["modules_z"],
            blocks_y=counts["blocks_y"],
            blocks_z=counts["blocks_z"],
            crystals_y=counts["crystals_y"],
            crystals_z=counts["crystals_z"],
            **lengths,
            frame_version=version,
        )
        for key, expected in (("bdm_count", scanner.bdm_count), ("du_count", scanner.du_count)):
            if _count(geometry, key, most=most_modules) != expected:
                raise ScannerError(f"geometry.{key}: expected {expected}, found {geometry[key]}")
        if scanner.crystals_per_du > most_crystals:
            raise ScannerError(f"crystals: expected at most {most_crystals} in a block, found {scanner.crystals_per_du}")
        most_in_all = 256 * 16 * 256 if version == 1 else 1 << 24
        if scanner.crystal_count > most_in_all:
            raise ScannerError(f"{scanner.crystal_count} crystals: expected at most {most_in_all}")
        return scanner

    @property
    def is_ring(self) -> bool:
        """Whether the description has the short form: one ring of equal modules in one layer."""
        return True

    # Counts

    @property
    def modules_in_ring(self) -> int:
        """Modules around the ring."""
        return self.channels * self.modules_y

    @property
    def bdm_count(self) -> int:
        """Modules (BDMs) of the scanner."""
        return self.modules_in_ring * self.modules_z

    @property
    def du_count(self) -> int:
        """Blocks (DUs) of a module."""
        return self.blocks_y * self.blocks_z

    @property
    def crystals_per_du(self) -> int:
        """Crystals of a block."""
        return self.crystals_y * self.crystals_z

    @property
    def crystals_per_module_y(self) -> int:
        """Crystals of a module around the ring."""
        return self.blocks_y * self.crystals_y

    @property
    def crystals_per_module_z(self) -> int:
        """Crystals of a module along the axis."""
        return self.blocks_z * self.crystals_z

    @property
    def crystals_in_ring(self) -> int:
        """Crystals around the ring."""
        return self.modules_in_ring * self.crystals_per_module_y

    @property
    def rings(self) -> int:
        """Rings of crystals along the axis."""
        return self.modules_z * self.crystals_per_module_z

    @property
    def crystal_count(self) -> int:
        """Crystals of the scanner."""
        return self.crystals_in_ring * self.rings

    # Numbering

    def address(self, crystal: npt.ArrayLike) -> Address:
        """Module (here a BDM), layer, column along y and row along z."""
        c = np.asarray(crystal, np.int64)
        column, row = self.in_ring(c) % self.crystals_per_module_y, self.ring(c) % self.crystals_per_module_z
        return Address(self.bdm(c), np.zeros_like(c), column, row)

    def in_ring(self, crystal: npt.ArrayLike) -> Integers:
        """Place around the ring, 0 to ``crystals_in_ring`` - 1."""
        return np.asarray(crystal, np.int64) % self.crystals_in_ring

    def ring(self, crystal: npt.ArrayLike) -> Integers:
        """Ring, 0 (lowest z) to ``rings`` - 1."""
        return np.asarray(crystal, np.int64) // self.crystals_in_ring

    def module(self, crystal: npt.ArrayLike) -> Integers:
        """Module around the ring, 0 to ``modules_in_ring`` - 1: what ``min_module_difference`` counts."""
        return self.in_ring(crystal) // self.crystals_per_module_y

    def bdm(self, crystal: npt.ArrayLike) -> Integers:
        """Module (BDM), 0 to ``bdm_count`` - 1."""
        return self.module(crystal) + self.ring(crystal) // self.crystals_per_module_z * self.modules_in_ring

    def du(self, crystal: npt.ArrayLike) -> Integers:
        """Block (DU) in its module, 0 to ``du_count`` - 1."""
        column = self.in_ring(crystal) % self.crystals_per_module_y // self.crystals_y
        row = self.ring(crystal) % self.crystals_per_module_z // self.crystals_z
        return column * self.blocks_z + row

    def local(self, crystal: npt.ArrayLike) -> Integers:
        """Number in its block."""
        return self.in_ring(crystal) % self.crystals_y * self.crystals_z + self.ring(crystal) % self.crystals_z

    def crystal(self, bdm: npt.ArrayLike, du: npt.ArrayLike, local: npt.ArrayLike) -> Integers:
        """The crystal with that local number in that block of that module."""
        b, d, n = (np.asarray(x, np.int64) for x in (bdm, du, local))
        in_ring = b % self.modules_in_ring * self.crystals_per_module_y + d // self.blocks_z * self.crystals_y
        ring = b // self.modules_in_ring * self.crystals_per_module_z + d % self.blocks_z * self.crystals_z
        crystal: Integers = in_ring + n // self.crystals_z + (ring + n % self.crystals_z) * self.crystals_in_ring
        return crystal

    def local_of_origin(self, origin: npt.ArrayLike) -> Integers:
        """The local number that an entry of the position table names (entries below ``crystals_per_du``)."""
        o = np.asarray(origin, np.int64)
        return o % self.crystals_z + (self.crystals_y - 1 - o // self.crystals_z) * self.crystals_z

    # Places

    @cached_property
    def tangential_mm(self) -> Millimetres:
        """``[in_ring]``: place of a crystal's centre along the face of its module, from the middle of the face."""
        y = np.arange(self.crystals_per_module_y)
        along = y * self.crystal_pitch_y_mm + y // self.crystals_y * self.block_gap_y_mm
        return np.tile(along - along[-1] / 2, self.modules_in_ring)

    @cached_property
    def axial_mm(self) -> Millimetres:
        """``[ring]``: z of a ring's crystals."""
        z = np.arange(self.rings)
        block = z // self.crystals_z
        module = block // self.blocks_z
        along = z * self.crystal_pitch_z_mm + (block - module) * self.block_gap_z_mm + module * self.module_gap_z_mm
        centred: Millimetres = along - along[-1] / 2
        return centred

    @cached_property
    def angle(self) -> Millimetres:
        """``[in_ring]``: radians from +x to the middle of a crystal's module."""
        module = np.arange(self.crystals_in_ring) // self.crystals_per_module_y
        return 2 * np.pi * module / self.modules_in_ring

    def positions_mm(self, depth_mm: npt.ArrayLike = 0.0) -> Millimetres:
        """``[crystal][x, y, z]``: the point of each crystal that lies ``depth_mm`` behind the centre of its front
        face. 0: the front face; ``sizes_mm()[:, 0] / 2``: the centre of the crystal. One depth for all, or one for each."""
        c, s = np.cos(self.angle), np.sin(self.angle)
        depth = np.broadcast_to(np.asarray(depth_mm, float), (self.crystal_count,))
        radius = self.ring_radius_mm + depth.reshape(self.rings, self.crystals_in_ring)
        out = np.empty((self.rings, self.crystals_in_ring, 3))
        out[:, :, 0] = radius * c - self.tangential_mm * s
        out[:, :, 1] = radius * s + self.tangential_mm * c
        out[:, :, 2] = self.axial_mm[:, None]
        return out.reshape(-1, 3)

    def sizes_mm(self) -> Millimetres:
        """``[crystal][length, size along y, size along z]``. In a ring the sizes are the pitches."""
        sizes = (self.crystal_length_mm, self.crystal_pitch_y_mm, self.crystal_pitch_z_mm)
        return np.tile(np.array(sizes), (self.crystal_count, 1))

    def axes(self) -> Millimetres:
        """``[crystal][axis][x, y, z]``: unit vectors outward, along y and along z of each crystal: the directions of its sizes."""
        outward = self.outward()
        out = np.zeros((self.crystal_count, 3, 3))
        out[:, 0] = outward
        out[:, 1, 0], out[:, 1, 1] = -outward[:, 1], outward[:, 0]
        out[:, 2, 2] = 1
        return out

    def outward(self) -> Millimetres:
        """``[crystal][x, y, z]``: unit vector along each crystal, away from the axis."""
        out = np.zeros((self.rings, self.crystals_in_ring, 3))
        out[:, :, 0] = np.cos(self.angle)
        out[:, :, 1] = np.sin(self.angle)
        return out.reshape(-1, 3)


def _object(document: Any, key: str) -> Mapping[str, Any]:
    part = document.get(key) if isinstance(document, Mapping) else None
    if not isinstance(part, Mapping):
        raise ScannerError(f"{key}: expected an object, found {part!r}")
    return part


def _count(part: Mapping[str, Any], key: str, default: int | None = None, most: int = 256) -> int:
    number = part.get(key, default)
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= most:
        raise ScannerError(f"{key}: expected an integer from 1 to {most}, found {number!r}")
    return number


def _number(part: Mapping[str, Any], key: str, default: float | None = None) -> float:
    number = part.get(key, default)
    allowed = isinstance(number, (int, float)) and not isinstance(number, bool) and math.isfinite(number)
    if not allowed or number is None or number < 0 or (default is None and number == 0):
        expected = "above 0" if default is None else "of at least 0"
        raise ScannerError(f"{key}: expected a number {expected}, found {number!r}")
    return float(number)
