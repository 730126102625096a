#include "tests/tools/petctl/petctl_process.hpp"

#include <stdexcept>

namespace petacq::test {

using nlohmann::json;

Petctl::Petctl(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
               const std::string& terminal)
    : process_(PETCTL_PROGRAM, arguments, directory_ / "petctl",
               {.environment = environment,
                .unset = {"PETACQ_SOCKET", "NO_COLOR", "TERM", "LC_ALL"},
                .terminal = terminal}) {}

int Petctl::wait(PseudoTerminal& terminal) {
    const bool ended = eventually([&] {
        terminal.read();
        return !process_.running();
    });
    if (!ended) throw std::runtime_error("petctl does not end");
    terminal.read();
    return process_.wait();
}

json full_status() {
    return json::parse(R"({
        "version": "0.1.0", "state": "running", "uptime_s": 3725.4, "backend": "cpu",
        "backend_choice": "asked for", "scanner": "small",
        "unheard_of": {"x": 1},
        "recording": {"state": "recording", "word": "RECORDING", "run_id": "mouse-7", "note": "evil \u001b[31m",
                      "text": "run mouse-7: 1 h 02 min of 2 h 00 min, 40 prompts, 1.84 GB, disk full in 1 d 10 h",
                      "elapsed_s": 3720, "requested_s": 7200, "prompts": 40, "bytes": 1840000000,
                      "disk_time_left_s": 123456, "since_utc": null, "command": null},
        "health": {"state": "degraded", "reasons": [
            {"code": "source_silent", "message": "source 3 is silent for 4.2 s: check its power and cable",
             "severity": "degraded", "since_s": 2.5},
            {"code": "disk_slow", "message": "the disk does not keep up", "severity": "failed"}]},
        "run": {"id": "mouse-7", "start_utc": "2026-01-31T12:00:00Z", "duration_s": 12.5, "note": "evil \u001b[31m",
                "capture": {"datagrams_offered": 1234600, "datagrams_written": 1234567, "datagrams_dropped": 33,
                            "bytes": 1840000000, "failure": null}},
        "rates": {"datagrams_per_s": 55000, "frames_per_s": 5234567, "singles_per_s": 4100000,
                  "prompts_per_s": 312000.5, "delayeds_per_s": 900, "bytes_per_s": 83753072,
                  "singles_raw_per_s": 5100000, "net_trues_per_s": 311100.5, "randoms_fraction": 0.00288,
                  "multiples_per_s": 77000, "expected_randoms_per_s": 912, "necr_per_s": 250000,
                  "necr_scatter_fraction": 0.187, "necr_scatter_fraction_from": "mouse phantom, May",
                  "lost_fraction": 0.0000021},
        "average": {"frames_per_s": 5000000, "prompts_per_s": null},
        "latency": {"samples": 100, "p50_ms": 12.345, "p99_ms": 40, "max_ms": 1515},
        "disk": {"path": "/data", "free_bytes": 1234567890123, "total_bytes": 4000000000000,
                 "write_bytes_per_s": 10000000, "time_left_s": 123456},
        "dead_time": {"model": "non-paralysable", "dead_time_ns": 120, "fraction": 0.034},
        "stages": [{"name": "receiver 0", "utilisation": 0.25, "state": "busy"},
                   {"name": "writer", "utilisation": 0, "state": "stalled"}],
        "ledger": {"datagrams": {"received": 1234567, "accepted": 1234567, "lost": 12, "duplicate": 0},
                   "frames": {"received": 100, "late": 3, "bad_time": 0, "accepted": 97},
                   "singles": {"decided": 97, "prompts": 80, "delayeds": 4, "unpaired": 13, "pending_at_end": 0},
                   "pairs": {"prompts_found": 40, "delayeds_found": 0, "written": 40, "write_failed": 0,
                             "in_queue": 0},
                   "saved_singles": {"found": 0, "written": 0, "write_failed": 0, "in_queue": 0},
                   "loss_known": true, "closed": true, "open": []},
        "sources": [{"id": 3, "address": "127.0.0.1:4000", "state": "silent", "frames_per_s": 1000000,
                     "datagrams_per_s": 10, "lost_per_s": 1.5, "lost_fraction": 0.13, "lost": 1234, "skew_us": -1.25, "last_seen_s": 4.2,
                     "health": "degraded", "reason": "silent for 4.2 s"},
                    {"id": 11, "state": "active"}],
        "modules": [{"bdm": 0, "singles_per_s": 1500, "mean_keV": 498.25, "peak_keV": 511, "temperature_C": 23.5,
                     "photopeak_keV": 505.52, "mean_dt_ns": -0.124, "prompts_per_single": 0.25, "dead_time_fraction": 0.01, "expected_randoms_per_s": 12, "health": "ok"}],
        "watermark_s": 12.345,
        "queues": {"free_batches": 60, "free_batches_low_water": 51, "batches": 64, "pending_singles": 1000,
                   "pending_singles_high_water": 2500, "writer_blocks": 1, "writer_high_water": 2,
                   "capture_batches": 3, "capture_high_water": 9}})");
}

}  // namespace petacq::test
