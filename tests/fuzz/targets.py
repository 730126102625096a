"""The fuzz targets: what each is about, and how it is run. tests/fuzz/NAME.cpp has the target (petlm/NAME.cpp if it is
about the files of a run as petlm reads them), seeds.py its seeds."""

from typing import NamedTuple


class Target(NamedTuple):
    about: tuple  # the files of the program whose coverage is told
    weight: int = 1  # how much more time it gets than others: it does more for one input
    longest: int = 0  # bytes; longer inputs reach nothing more, and take more time. 0: libFuzzer's choice


TARGETS = {
    "arrangement": Target(("config/scanner/long_form.cpp", "config/scanner/place_modules.cpp", "config/scanner/arrangement.cpp",
                           "config/scanner/layer_box.cpp", "tools/normalisation/pair_classes.cpp", "tools/normalisation/symmetry.cpp"),
                          weight=3, longest=6000),
    "calibration": Target(("config/calibration.cpp", "config/calibration_file.cpp", "config/hdf5/table.cpp")),
    "configuration": Target(("config/configuration.cpp", "config/base/json_schema.cpp", "config/base/json_file.cpp"), longest=6000),
    "control_token": Target(("daemon/control/control_token.cpp",), longest=600),
    "coverage": Target(("daemon/coverage/coverage.cpp", "daemon/coverage/coverage_json.cpp", "daemon/coverage/intervals.cpp"),
                       weight=2, longest=6000),
    "detector": Target(("tools/petsim/detector/detector.cpp", "tools/petsim/detector/detector_file.cpp")),
    "http": Target(("daemon/http/session.cpp", "daemon/http/session_answers.cpp", "daemon/http/checks.cpp"), weight=2, longest=2000),
    "import_files": Target(("tools/petlm/import/castor.cpp", "tools/petlm/import/csv.cpp", "tools/petlm/import/csv_columns.cpp",
                            "tools/petlm/import/line_reader.cpp", "tools/petlm/import/petsys.cpp", "tools/petlm/import/safir.cpp",
                            "tools/petlm/import/crystal_numbers.cpp"), weight=3, longest=2000),
    "import_hdf5": Target(("tools/petlm/import/hdf5.cpp",)),
    "json_rpc": Target(("daemon/control/json_rpc.cpp",), longest=1000),
    "layout": Target(("config/layout/layout.cpp", "net/foreign/plan.cpp", "net/foreign/roll_over.cpp", "net/foreign/translator.cpp"),
                     weight=2, longest=4000),
    "ledger_rows": Target(("tools/petlm/records/ledger_rows.cpp",), longest=1000),
    "listmode": Target(("daemon/listmode/reader.cpp", "daemon/listmode/file_reader.cpp", "daemon/listmode/format.cpp")),
    "nifti": Target(("tools/nifti/nifti.cpp",), longest=1000),
    "normalisation": Target(("tools/normalisation/normalisation.cpp", "tools/normalisation/pair_classes.cpp")),
    "pcap": Target(("net/pcap/packet_file.cpp", "net/pcap/pcap_packets.cpp", "net/pcap/pcap_reader.cpp")),
    "raw_tables": Target(("tools/petcal/raw_tables.cpp", "config/calibration.cpp"), longest=4000),
    "recover": Target(("tools/petlm/records/recovery/recover.cpp", "daemon/listmode/reader.cpp", "daemon/listmode/file_reader.cpp"),
                      weight=2),
    "scanner": Target(("config/scanner/scanner.cpp", "config/base/json_schema.cpp"), longest=4000),
    "seconds": Target(("daemon/seconds/reader.cpp", "daemon/seconds/record.cpp", "daemon/seconds/sums_reader.cpp",
                       "tools/petlm/records/seconds_check.cpp"), longest=16000),
    "spectra": Target(("config/spectra.cpp",)),
    "tags": Target(("tools/petlm/records/tags.cpp", "tools/petlm/records/scanner_angle.cpp", "config/scanner/rotation.cpp"),
                   weight=2, longest=8000),
    "tap": Target(("daemon/tap/request.cpp",), longest=400),
    "tracker": Target(("daemon/tracking",), weight=3, longest=400),
    "triples": Target(("tools/petlm/records/source.cpp", "tools/petlm/records/record_source.cpp",
                       "tools/petlm/records/third_photons.cpp"), longest=16000),
    "union": Target(("tools/petlm/union",), weight=2, longest=3000),
    "wire": Target(("net/receive/admission.cpp", "net/wire.cpp"), longest=1500),
}
