#include "tests/daemon/petctl_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace petacq::test {

using nlohmann::json;

std::string contents(const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

Petctl::Petctl(std::vector<std::string> arguments, const std::vector<std::string>& environment,
               const std::string& terminal) {
    arguments.insert(arguments.begin(), PETCTL_PROGRAM);
    std::vector<char*> argv;
    for (std::string& argument : arguments)
        argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::vector<std::string> kept = environment;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string text = *variable;
        const bool ours = text.starts_with("PETACQ_SOCKET=") || text.starts_with("NO_COLOR=") ||
                          text.starts_with("TERM=") || text.starts_with("LC_ALL=");
        if (!ours) kept.push_back(text);
    }
    std::vector<char*> envp;
    for (std::string& variable : kept)
        envp.push_back(variable.data());
    envp.push_back(nullptr);

    posix_spawn_file_actions_t actions{};
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_t attributes{};
    posix_spawnattr_init(&attributes);
    const std::string out = (directory_.path() / "out").string();
    const std::string err = (directory_.path() / "err").string();
    if (terminal.empty()) {
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT, 0600);
    } else {
        // The first terminal that the leader of a session opens becomes its controlling terminal.
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
        posix_spawn_file_actions_addopen(&actions, 0, terminal.c_str(), O_RDWR, 0);
        posix_spawn_file_actions_adddup2(&actions, 0, 1);
    }
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT, 0600);
    const int failed =
        ::posix_spawn(&process_, PETCTL_PROGRAM, &actions, &attributes, argv.data(), envp.data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) throw std::runtime_error(std::string("cannot start petctl: ") + std::strerror(failed));
}

Petctl::~Petctl() {
    if (process_ > 0) {
        ::kill(process_, SIGKILL);
        wait();
    }
}

int Petctl::wait() {
    siginfo_t ended{};
    if (::waitid(P_PID, static_cast<id_t>(process_), &ended, WEXITED) != 0)
        throw std::runtime_error("waitid");
    process_ = -1;
    return ended.si_code == CLD_EXITED ? ended.si_status : -ended.si_status;
}

int Petctl::wait(PseudoTerminal& terminal) {
    const bool ended = eventually([&] {
        terminal.read();
        siginfo_t found{};
        return ::waitid(P_PID, static_cast<id_t>(process_), &found, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               found.si_pid == process_;
    });
    if (!ended) throw std::runtime_error("petctl does not end");
    terminal.read();
    return wait();
}

void Petctl::kill(int signal) const {
    ::kill(process_, signal);
}

json full_status() {
    return json::parse(R"({
        "version": "0.1.0", "state": "running", "uptime_s": 3725.4, "backend": "cpu",
        "backend_choice": "asked for", "scanner": "small",
        "unheard_of": {"x": 1},
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
                     "dead_time_fraction": 0.01, "expected_randoms_per_s": 12, "health": "ok"}],
        "watermark_s": 12.345,
        "queues": {"free_batches": 60, "free_batches_low_water": 51, "batches": 64, "pending_singles": 1000,
                   "pending_singles_high_water": 2500, "writer_blocks": 1, "writer_high_water": 2,
                   "capture_batches": 3, "capture_high_water": 9}})");
}

}  // namespace petacq::test
