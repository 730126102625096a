// A control server with a handler under the test's command, on a socket in a directory of its own.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/control_client.hpp"
#include "daemon/control_server.hpp"

namespace petacq::test {

class TemporaryDirectory {
  public:
    TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory();
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

/// Waits until the condition holds; false after a time that only a broken program needs.
template <class Condition>
bool eventually(Condition condition, std::chrono::seconds patience = std::chrono::seconds(60)) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

/// Start answers at once; stop keeps its replies for the test to answer.
class FakeHandler final : public daemon::ControlHandler {
  public:
    void start(daemon::StartRequest request, daemon::Reply reply) override;
    void stop(daemon::Reply reply) override;
    nlohmann::json status() override;
    /// The `limit` runs before `before`, out of those set.
    void runs(daemon::RunsRequest request, daemon::Reply reply) override;
    /// What was set as the ledger, or a refusal of run "missing".
    void ledger(std::optional<std::string> run, daemon::Reply reply) override;

    /// Waits for a stop request and takes its reply.
    daemon::Reply take_stop();
    daemon::StartRequest last_start();
    void set_status(nlohmann::json document);
    /// An array of runs, the latest last, and the ledger answer.
    void set_runs(nlohmann::json runs);
    void set_ledger(nlohmann::json answer);
    [[nodiscard]] std::uint64_t status_calls() const { return status_calls_; }
    [[nodiscard]] std::uint64_t stops() const { return stops_; }

  private:
    std::mutex mutex_;
    std::condition_variable stop_arrived_;
    std::vector<daemon::Reply> waiting_;
    daemon::StartRequest last_start_;
    nlohmann::json status_ = {{"state", "idle"}};
    nlohmann::json runs_ = nlohmann::json::array();
    nlohmann::json ledger_;
    std::atomic<std::uint64_t> status_calls_{0};
    std::atomic<std::uint64_t> stops_{0};
};

/// Runs from construction to close(), which also shows that nothing keeps the io_context busy afterwards.
class TestServer {
  public:
    explicit TestServer(daemon::ControlOptions options = {});
    TestServer(const TestServer&) = delete;
    TestServer& operator=(const TestServer&) = delete;
    ~TestServer() { close(); }

    void close();
    [[nodiscard]] std::filesystem::path socket() const { return directory_.path() / "control.sock"; }
    /// Lets other users reach the socket.
    void open_directory() const;
    [[nodiscard]] daemon::ControlStatistics statistics() const { return server_->statistics(); }
    FakeHandler handler;

  private:
    TemporaryDirectory directory_;
    boost::asio::io_context io_;
    std::unique_ptr<daemon::ControlServer> server_;
    std::thread thread_;
};

/// Sends one line and reads one.
nlohmann::json ask(daemon::ControlClient& client, std::string_view line);

}  // namespace petacq::test
