// A place with everything a daemon needs, daemons in it, and simulated scanners that send to them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "daemon/control_client.hpp"
#include "gpu/types.hpp"
#include "tests/end_to_end/process.hpp"

namespace petacq::test {

/// Directory with scanner, calibration, configuration, data directory and control socket. Outlives daemons.
class Site {
  public:
    /// The configuration is that of small.json, fit for tests, and the JSON merge patch on top.
    explicit Site(const nlohmann::json& patch = nlohmann::json::object());

    /// Writes the configuration anew.
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

/// A petacqd that answers.
class Daemon {
  public:
    /// Waits until it does; throws std::runtime_error with what it said when it ends instead. `program`:
    /// instead of petacqd.
    explicit Daemon(const Site& site, const std::string& name = "petacqd", const std::string& program = "");

    /// Of each socket, in the order of the configuration.
    [[nodiscard]] const std::vector<std::uint16_t>& ports() const { return ports_; }
    /// HOST:PORT of the first socket.
    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(ports_.front()); }

    /// Where it serves HTTP.
    [[nodiscard]] std::uint16_t http_port() const;

    nlohmann::json start(const std::string& run);
    /// The ledger of the run and how it ended.
    nlohmann::json stop();
    nlohmann::json call(const std::string& method,
                        const nlohmann::json& parameters = nlohmann::json::object());
    nlohmann::json status() { return call("status"); }
    /// The message of its refusal; "" when it does not refuse.
    std::string refusal(const std::string& method,
                        const nlohmann::json& parameters = nlohmann::json::object());
    /// Waits until the status is as wanted; false when it does not become so.
    template <class Condition>
    bool until(Condition condition) {
        return eventually([&] { return condition(status()); });
    }
    /// Waits until it has received that many datagrams since it started.
    bool received(std::uint64_t datagrams);
    /// SIGTERM; its exit status.
    int terminate();
    [[nodiscard]] std::string log() const { return process_.errors(); }
    Process& process() { return process_; }

  private:
    const std::filesystem::path socket_;
    Process process_;
    std::vector<std::uint16_t> ports_;
    std::unique_ptr<daemon::ControlClient> client_;
};

/// "" when the CUDA back-end can be used here, else why not: "CUDA cannot be used: ...".
std::string no_cuda_reason();

/// Scanner and calibration of the site, a source in the middle of it, then the arguments.
std::vector<std::string> petsim_arguments(const Site& site, const std::vector<std::string>& arguments);
/// Runs petsim to its end; its summary. Throws when it fails. `name`.truth is its truth file, `name`.json its
/// summary, in the directory of the site.
nlohmann::json simulate(const Site& site, const std::vector<std::string>& arguments,
                        const std::string& name = "petsim");
/// About 110,000 frames in half a second, from four sources, to the daemon.
std::vector<std::string> short_stream(const Daemon& daemon, const std::vector<std::string>& more = {});

/// The records of a list-mode file, every whole block of it.
std::vector<gpu::Coincidence> coincidences_of(const std::filesystem::path& file);
std::vector<gpu::Single> singles_of(const std::filesystem::path& file);
/// The payload as it is in the file.
std::string payload_of(const std::filesystem::path& file);

}  // namespace petacq::test
