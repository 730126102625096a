"""The header that a PETSIRD file of a run must have, in the classes of the package."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.normalisation import Normalisation
from petacq.nuclide_codes import NUCLIDE_CODES
from petacq.petsird_blocks import Extras
from petacq.petsird_efficiencies import of_bins, pairs_of, rows_of
from petacq.petsird_events import Bins, Options
from petacq.run import Run
from petacq.scanner.petsird_types import PetsirdType, turned_about_z

HALF_LIGHT_MM_PER_PS = 0.299792458 / 2


def is_0_9(petsird: Any) -> bool:
    """Whether this is the package of PETSIRD 0.9.1, otherwise 0.12."""
    return not hasattr(petsird, "DICOMPatientInformation")


def has_delayeds(run: Run) -> bool:
    return run.coverage.coincidence.get("delay_ticks") is not None


def header_of(petsird: Any, run: Run, options: Options, bins: Bins, extras: Extras) -> Any:
    scanner = run.scanner
    tick_mm = scanner.tick_ps * HALF_LIGHT_MM_PER_PS
    if bins.tof_bin_ticks:
        tof = (np.arange(2 * bins.tof_half + 2) - bins.tof_half - 0.5) * (bins.tof_bin_ticks * tick_mm)
    else:
        tof = np.array([-1.0, 1.0]) * ((bins.window_ticks + 0.5) * tick_mm)
    materials = sorted({of.material or "crystals: not known" for of in bins.types})
    information = petsird.ScannerInformation(
        model_name=scanner.name,
        bulk_materials=[petsird.BulkMaterial(id=k, name=name) for k, name in enumerate(materials)],
        scanner_geometry=_geometry(petsird, bins, materials),
        tof_bin_edges=_table(petsird, bins, lambda a, b: petsird.BinEdges(edges=tof.astype(np.float32))),
        tof_resolution=_table(petsird, bins, lambda a, b: _tof_resolution_mm(options, a, b)),
        event_energy_bin_edges=[petsird.BinEdges(edges=bins.energy_edges) for _ in bins.types],
        energy_resolution_at_511=[_f32(options.energy_resolution or of.energy_resolution or 0.0) for of in bins.types],
        detection_efficiencies=_efficiencies(petsird, run, options, bins),
    )
    if extras.singles:
        information.singles_histogram_level = petsird.SinglesHistogramLevelType.ALL
        edges = np.array(bins.pair_window, np.float32)
        information.singles_histogram_energy_bin_edges = [petsird.BinEdges(edges=edges) for _ in bins.types]
    _set_policies(petsird, information, run, options, bins)
    exam = _exam_0_9(petsird, run) if is_0_9(petsird) else _exam(petsird, run)
    exam.external_signals = [
        petsird.ExternalSignal(type=petsird.ExternalSignalTypeEnum[s.type], description=s.description, id=s.id)
        for s in extras.signals
    ]
    return petsird.Header(scanner=information, exam=exam)


def _f32(number: float) -> float:
    """What a reader gets back, so that headers can be compared."""
    return float(np.float32(number))


def _set_policies(petsird: Any, information: Any, run: Run, options: Options, bins: Bins) -> None:
    coincidence = run.coverage.coincidence
    policies = petsird.CoincidencePolicy
    policy = {
        "RemoveMultiples": policies.REJECT_HIGHER_MULTIPLES,
        "TakeAllGoods": policies.MULTIPLES_AS_ALL_COINCIDENCES,
    }.get(str(coincidence.get("multiples_policy")), policies.OTHER)
    if coincidence.get("window_mode") != "single" or {"window_mode", "multiples_policy"} & set(run.coverage.unknown):
        policy = policies.OTHER
    delayeds = options.delayeds and has_delayeds(run)
    information.prompt_event_policy = policy
    information.delayed_event_policy = policy
    if is_0_9(petsird):
        information.prompt_events_are_stored = True
        information.delayed_events_are_stored = delayeds
    else:
        information.collimator_type = "NONE"
        if not delayeds:
            information.delayed_event_policy = policies.NONE
    if bins.gamma_energy is not None:
        # A pair may have several gammas, and is a prompt, too.
        information.triple_event_policy = petsird.TripleEventPolicy.OTHER
        if is_0_9(petsird):
            information.triple_events_are_stored = True


def _date_time(petsird: Any, when: datetime) -> Any:
    return petsird.DateTime(round(when.timestamp() * 1000) * 1_000_000)


def _exam_0_9(petsird: Any, run: Run) -> Any:
    exam = petsird.ExamInformation(protocol=run.note or None)
    if subject := run.operator.get("subject"):
        exam.subject = petsird.Subject(id=str(subject))
    if run.start is not None:
        exam.start_of_acquisition = _date_time(petsird, run.start)
    return exam


def _exam(petsird: Any, run: Run) -> Any:
    exam = petsird.ExamInformation(modality="PT")
    exam.patient.patient_id = str(run.operator.get("subject", ""))
    if run.start is not None:
        exam.start_of_study = exam.start_of_acquisition = _date_time(petsird, run.start)
    if (said := run.coverage.activity) is not None:
        # The dose is that at the start time: the activity at the time of the assay.
        of = petsird.DICOMRadiopharmaceuticalInformation()
        of.radionuclide_code_sequence.code_meaning = said.nuclide
        if (code := NUCLIDE_CODES.get(said.nuclide)) is not None:
            of.radionuclide_code_sequence.coding_scheme_designator = code.scheme
            of.radionuclide_code_sequence.code_value = code.value
        if said.activity_MBq is not None:
            of.radionuclide_total_dose = _f32(said.activity_MBq)
        if (when := said.assay or run.start) is not None:
            of.radiopharmaceutical_start_date_time = of.radiopharmaceutical_stop_date_time = _date_time(petsird, when)
        exam.radiopharmaceuticals = [of]
    return exam


def _table(petsird: Any, bins: Bins, value: Callable[[PetsirdType, PetsirdType], Any]) -> list[list[Any]]:
    """A value for each pair of types of modules: of which the first is not the lower one, in 0.9.1 of all."""
    count = len(bins.types)
    return [
        [value(of, other) for other in bins.types[: count if is_0_9(petsird) else row + 1]]
        for row, of in enumerate(bins.types)
    ]


def _tof_resolution_mm(options: Options, a: PetsirdType, b: PetsirdType) -> float:
    """0: not known."""
    ps = options.tof_resolution_ps
    if ps is None and a.time_resolution_ps and b.time_resolution_ps:
        ps = math.hypot(a.time_resolution_ps, b.time_resolution_ps)
    return _f32((ps or 0.0) * HALF_LIGHT_MM_PER_PS)


def _geometry(petsird: Any, bins: Bins, materials: list[str]) -> Any:
    """A box for each crystal. In their own coordinates modules face along x."""

    def transform(matrix: npt.NDArray[Any]) -> Any:
        return petsird.RigidTransformation(matrix=matrix.astype(np.float32))

    corners = [(0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 1, 0), (1, 0, 0), (1, 0, 1), (1, 1, 1), (1, 1, 0)]
    replicated = []
    for of in bins.types:
        box = petsird.BoxShape(
            corners=[petsird.Coordinate(c=(np.array(corner) * of.box_mm).astype(np.float32)) for corner in corners]
        )
        elements = np.empty((of.elements, 3, 4))
        elements[:, :, :3] = turned_about_z(0.0)
        elements[:, :, 3] = of.corner_mm
        crystals = petsird.ReplicatedBoxSolidVolume(
            object=petsird.BoxSolidVolume(
                shape=box, material_id=materials.index(of.material or "crystals: not known")
            ),
            transforms=[transform(element) for element in elements],
        )
        module = petsird.DetectorModule(detecting_elements=crystals)
        modules = [transform(matrix) for matrix in of.matrices]
        replicated.append(petsird.ReplicatedDetectorModule(object=module, transforms=modules))
    return petsird.ScannerGeometry(replicated_modules=replicated)


def _efficiencies(petsird: Any, run: Run, options: Options, bins: Bins) -> Any:
    """Without a normalisation all 1, but for pairs of modules that were not in coincidence. (The package's own default
    for the factor is 0.)"""
    path = options.normalisation
    normalisation = None if path is None else Normalisation.load(path, run.scanner)
    least = run.coverage.coincidence.get("min_module_difference") or 0
    pairs = pairs_of(run.scanner, least, normalisation, bins)
    efficiencies = petsird.DetectionEfficiencies(
        method_description=_method(normalisation, pairs.of_normalisation), calibration_factor=1.0
    )
    if normalisation is not None and normalisation.activity_factor is not None:
        efficiencies.calibration_factor = _f32(1 / normalisation.activity_factor)
    of_each = of_bins(normalisation, bins)
    old = is_0_9(petsird)
    if not old or normalisation is not None or bins.gamma_energy is not None:
        efficiencies.detection_bin_efficiencies = [of if old else of.tolist() for of in of_each]
    # The functions of 0.12 fail where a table is left out.
    if pairs.groups is None or (old and run.scanner.is_ring and not least and normalisation is None):
        return efficiencies

    def modules(a: PetsirdType, b: PetsirdType) -> Any:
        table = pairs.table(a, b)
        if old:
            return table
        rows = table.tolist()
        return [row[: k + 1] for k, row in enumerate(rows)] if a is b else rows

    def values(a: PetsirdType, b: PetsirdType) -> Any:
        return [
            petsird.ModulePairEfficiencies(values=group if old else rows_of(group), sgid=k)
            for k, group in enumerate(pairs.groups(a, b) if pairs.groups else [])
        ]

    efficiencies.module_pair_sgidlut = _table(petsird, bins, modules)
    efficiencies.module_pair_efficiencies_vectors = _table(petsird, bins, values)
    return efficiencies


def _method(normalisation: Normalisation | None, with_pairs: bool) -> str:
    """Names the corrections that are in the efficiencies, and those that are not."""
    if normalisation is None:
        return "none: all equal"
    factor = normalisation.activity_factor
    calibrated = "calibration: none" if factor is None else f"calibration: activity factor {factor:.6g}"
    of_pairs = "transaxial and axial factors, solid angle"
    there = f"efficiencies of crystals, {of_pairs}" if with_pairs else "efficiencies of crystals"
    missing = "" if with_pairs else f"{of_pairs}, "
    return (
        f"normalisation: {there} (SHA-256 {normalisation.sha256}); {calibrated}; not in them: {missing}attenuation, "
        "scatter, randoms, dead time, decay"
    )
