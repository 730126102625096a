// A control server whose handler the test controls, on a socket in a temporary directory.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "daemon/control/client.hpp"
#include "daemon/control/server.hpp"
#include "tests/support/configuration.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temporary_directory.hpp"

namespace petacq::test {

/// Answers start at once; keeps the replies of stop for the test.
class FakeHandler final : public daemon::ControlHandler {
  public:
    void start(daemon::StartRequest request, daemon::Reply reply) override;
    void stop(daemon::StopRequest request, daemon::Reply reply) override;
    std::shared_ptr<const std::string> status() override;
    /// The `limit` runs before `before`.
    void runs(daemon::RunsRequest request, daemon::Reply reply) override;
    /// The ledger set by the test; refuses the run "missing".
    void ledger(std::optional<std::string> run, daemon::Reply reply) override;
    /// Nothing has changed.
    void reload(daemon::Reply reply) override;
    /// Refuses the run "complete".
    void acknowledge(std::string run, daemon::Reply reply) override;
    /// The answer set by the test, and what was asked for.
    void history(daemon::HistoryRequest request, daemon::Reply reply) override;
    /// Refuses the text "refused".
    void mark(std::string text, daemon::Reply reply) override;

    /// Waits for a stop request and takes its reply.
    daemon::Reply take_stop();
    daemon::StartRequest last_start();
    daemon::StopRequest last_stop();
    void set_status(nlohmann::json document);
    /// While the lock lives, the server stands still at the next status.
    [[nodiscard]] std::unique_lock<std::mutex> hold_status() { return std::unique_lock(mutex_); }
    /// An array of runs, the latest last, and the ledger answer.
    void set_runs(nlohmann::json runs);
    void set_ledger(nlohmann::json answer);
    void set_history(nlohmann::json answer);
    daemon::HistoryRequest last_history();
    [[nodiscard]] std::uint64_t status_calls() const { return status_calls_; }
    [[nodiscard]] std::uint64_t stops() const { return stops_; }

  private:
    std::mutex mutex_;
    std::condition_variable stop_arrived_;
    std::vector<daemon::Reply> waiting_;
    daemon::StartRequest last_start_;
    daemon::StopRequest last_stop_;
    nlohmann::json status_ = {{"state", "idle"}};
    nlohmann::json runs_ = nlohmann::json::array();
    nlohmann::json ledger_;
    nlohmann::json history_;
    daemon::HistoryRequest last_history_;
    std::atomic<std::uint64_t> status_calls_{0};
    std::atomic<std::uint64_t> stops_{0};
};

/// Runs from construction to close(), which also checks that the io_context becomes idle.
class TestServer {
  public:
    explicit TestServer(config::Control options = configuration_with().control,
                        std::chrono::milliseconds stall_timeout = patience);
    TestServer(const TestServer&) = delete;
    TestServer& operator=(const TestServer&) = delete;
    ~TestServer() { close(); }

    void close();
    void tell_subscribers();
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
