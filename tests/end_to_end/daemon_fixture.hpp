// A directory with everything that a daemon needs, daemons in it, and simulated scanners that send to them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "daemon/control/client.hpp"
#include "gpu/base/records.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"

namespace petacq::test {

/// Directory with scanner, calibration, configuration, data directory and control socket. Outlives the
/// daemons.
class Site {
  public:
    /// Writes a configuration fit for tests, changed by the JSON merge patch.
    explicit Site(const nlohmann::json& patch = nlohmann::json::object());
    /// `scanner_file`: the scanner in place of that of the examples. `time_offset_ticks`: the largest time
    /// offset of a crystal. 200 ticks are 3 ns; a hit in several crystals has no useful time then.
    Site(const nlohmann::json& patch, const std::filesystem::path& scanner_file,
         std::int32_t time_offset_ticks = 200);

    /// Replaces the configuration.
    void configure(const nlohmann::json& patch);

    [[nodiscard]] std::filesystem::path directory() const { return directory_.path(); }
    [[nodiscard]] std::string scanner() const { return (directory_ / "small.scanner.json").string(); }
    [[nodiscard]] std::string calibration() const { return (directory_ / "small.h5").string(); }
    [[nodiscard]] std::string configuration() const { return (directory_ / "petacqd.json").string(); }
    [[nodiscard]] std::filesystem::path socket() const { return directory_ / "control.sock"; }
    [[nodiscard]] std::filesystem::path run(const std::string& id) const { return directory_ / "data" / id; }
    [[nodiscard]] nlohmann::json run_json(const std::string& id) const;

  private:
    TemporaryDirectory directory_;
};

/// A running petacqd.
class Daemon {
  public:
    /// Starts `program` (petacqd if empty) and waits until it answers. Throws std::runtime_error with its log
    /// if it ends instead.
    explicit Daemon(const Site& site, const std::string& name = "petacqd", const std::string& program = "");

    /// The port of each socket, in the order of the configuration.
    [[nodiscard]] const std::vector<std::uint16_t>& ports() const { return ports_; }
    /// HOST:PORT of the first socket.
    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(ports_.front()); }

    /// The port on which it serves HTTP.
    [[nodiscard]] std::uint16_t http_port() const;

    nlohmann::json start(const std::string& run);
    /// Stops the run; its ledger and the reason of its end.
    nlohmann::json stop();
    nlohmann::json call(const std::string& method,
                        const nlohmann::json& parameters = nlohmann::json::object());
    nlohmann::json status() { return call("status"); }
    /// With a new connection.
    void connect_again() { client_ = std::make_unique<daemon::ControlClient>(socket_); }
    /// The message with which the daemon refuses the call; "" if it accepts it.
    std::string refusal(const std::string& method,
                        const nlohmann::json& parameters = nlohmann::json::object());
    /// Waits until the condition holds for the status; false if it does not in time.
    template <class Condition>
    bool until(Condition condition) {
        return eventually([&] { return condition(status()); });
    }
    /// Waits until the daemon has received that many datagrams since it started.
    bool received(std::uint64_t datagrams);
    /// Sends SIGTERM; the exit status.
    int terminate();
    [[nodiscard]] std::string log() const { return process_.errors(); }
    Process& process() { return process_; }

  private:
    const std::filesystem::path socket_;
    Process process_;
    std::vector<std::uint16_t> ports_;
    std::unique_ptr<daemon::ControlClient> client_;
};

/// Why the CUDA back-end cannot be used here ("CUDA cannot be used: ..."); "" if it can.
std::string no_cuda_reason();
/// The same for two GPUs, numbers 0 and 1.
std::string no_two_gpus_reason();

/// Runs petctl on the control socket of the site.
Outcome petctl(const Site& site, std::vector<std::string> arguments);

/// Arguments for petsim: scanner and calibration of the site, a source in the middle, then `arguments`.
std::vector<std::string> petsim_arguments(const Site& site, const std::vector<std::string>& arguments);
/// Runs petsim to its end and returns its summary. Throws if it fails. Writes the truth to `name`.truth and
/// the summary to `name`.json in the directory of the site.
nlohmann::json simulate(const Site& site, const std::vector<std::string>& arguments,
                        const std::string& name = "petsim");
/// Runs petsim with the scanner and the calibration of the site and `arguments`, on all cores and without
/// truth, and replays what it sends as the run. For scans that are long. Returns the run directory. Throws if
/// one fails.
std::string simulated_run(const Site& site, const std::vector<std::string>& arguments,
                          const std::string& run);
/// Arguments for a stream of about 110,000 frames in half a second, from four sources, to the daemon.
std::vector<std::string> short_stream(const Daemon& daemon, const std::vector<std::string>& more = {});

/// Replays the raw capture of a run as the run `name`. Throws std::runtime_error if that fails.
void replay_of(const Site& site, const std::string& run, const std::string& name);

/// A daemon takes the runs "one" and "two", which start and stop while four sources send.
void two_runs_within_a_stream(const Site& site);

/// The payload of the coincidences of a run of that stream in which nothing else happens.
std::string undisturbed_payload(const std::vector<std::string>& more);

/// The records of all whole blocks of a list-mode file.
gpu::RecordVector<gpu::Coincidence> coincidences_of(const std::filesystem::path& file);
gpu::RecordVector<gpu::Single> singles_of(const std::filesystem::path& file);
/// The payload of the blocks, byte by byte.
std::string payload_of(const std::filesystem::path& file);

}  // namespace petacq::test
