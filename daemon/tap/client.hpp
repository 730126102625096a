// One client of the tap: reads its request and sends it messages as fast as it takes them. Everything here
// runs in the thread of the server.
#pragma once

#include <array>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "daemon/system/logging.hpp"
#include "daemon/tap/message.hpp"
#include "daemon/tap/request.hpp"
#include "daemon/tap/tap.hpp"

namespace petacq::daemon {

class TapClient;

/// Shared by the server and its clients; each of them keeps it alive.
struct TapContext {
    TapContext(Tap& served, TapSource tap_source) : tap(served), source(std::move(tap_source)) {}

    Tap& tap;
    const TapSource source;
    std::unordered_set<std::shared_ptr<TapClient>> clients;
    RateLimit log_limit{std::chrono::seconds(10)};
};

class TapClient : public std::enable_shared_from_this<TapClient> {
  public:
    using Socket = boost::asio::local::stream_protocol::socket;

    TapClient(Socket socket, std::shared_ptr<TapContext> context);
    TapClient(const TapClient&) = delete;
    TapClient& operator=(const TapClient&) = delete;
    ~TapClient() = default;

    void start();
    void close();
    /// Sends the next message, if there is one and none is on its way.
    void go_on();
    /// When the client last took a message, or connected; nothing while one is on its way to it.
    [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> idle_since() const;
    /// Answers with an error and closes.
    void refuse(const std::string& why);

  private:
    template <class Step>
    void guarded(Step step);
    void read_request();
    void take_request(const std::string& line);
    void watch();
    [[nodiscard]] bool next_message();
    void say_run(TapMessage type);
    void write_message();
    /// Writes, and disconnects a client that takes nothing for a time. Then calls `done`.
    template <class Buffers, class Done>
    void write(const Buffers& buffers, Done done);
    void sent();

    Socket socket_;
    const std::shared_ptr<TapContext> context_;
    boost::asio::steady_timer deadline_;
    std::string input_;
    std::array<char, 512> waste_{};  ///< what a client sends besides its request
    bool input_ended_ = false;
    bool closed_ = false;

    std::shared_ptr<TapSubscription> subscription_;
    std::shared_ptr<const TapRun> run_;  ///< the one that the client knows of
    bool run_ended_ = true;              ///< and whether it knows that this has ended
    bool writing_ = false;
    std::chrono::steady_clock::time_point last_used_;
    TapPiece piece_;  ///< the next one to be sent, or the one on its way; without records: none
    std::vector<std::byte> records_;  ///< its records
    TapHeader header_;
    std::string text_;  ///< of the message on its way
};

}  // namespace petacq::daemon
