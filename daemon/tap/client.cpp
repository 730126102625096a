#include "daemon/tap/client.hpp"

#include <poll.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace petacq::daemon {

using boost::system::error_code;

namespace {

/// In which a client sends its request, or takes a part of what it is sent.
constexpr std::chrono::seconds patience{10};

bool other_end_closed(int descriptor) {
    pollfd state{descriptor, 0, 0};
    return ::poll(&state, 1, 0) > 0 && (state.revents & (POLLHUP | POLLERR)) != 0;
}

}  // namespace

TapClient::TapClient(Socket socket, std::shared_ptr<TapContext> context)
    : socket_(std::move(socket)), context_(std::move(context)), deadline_(socket_.get_executor()) {}

/// An exception (such as std::bad_alloc) closes this connection and no other.
template <class Step>
void TapClient::guarded(Step step) {
    if (closed_) return;
    try {
        step();
    } catch (const std::exception& error) {
        context_->log_limit.log(LogLevel::warning, "client", "tap: a client was disconnected: {}",
                                error.what());
        close();
    }
}

void TapClient::start() {
    context_->clients.insert(shared_from_this());
    last_used_ = std::chrono::steady_clock::now();
    deadline_.expires_after(patience);
    deadline_.async_wait([self = shared_from_this()](error_code stopped) {
        if (!stopped) self->close();
    });
    read_request();
}

void TapClient::close() {
    if (closed_) return;
    closed_ = true;
    if (subscription_) {
        context_->tap.unsubscribe(subscription_);
        context_->tap.counters().clients.fetch_sub(1, std::memory_order_relaxed);
    }
    deadline_.cancel();
    error_code ignored;
    socket_.close(ignored);
    context_->clients.erase(shared_from_this());
}

void TapClient::read_request() {
    boost::asio::async_read_until(socket_, boost::asio::dynamic_buffer(input_, TapRequest::max_bytes), '\n',
                                  [self = shared_from_this()](error_code error, std::size_t bytes) {
                                      self->guarded([&] {
                                          if (error == boost::asio::error::not_found) {
                                              return self->refuse("expected a line of at most " +
                                                                  std::to_string(TapRequest::max_bytes) +
                                                                  " bytes");
                                          }
                                          if (error) return self->close();
                                          self->take_request(self->input_.substr(0, bytes - 1));
                                      });
                                  });
}

void TapClient::take_request(const std::string& line) {
    TapRequest request;
    try {
        request = TapRequest::parse(line, context_->source);
    } catch (const std::invalid_argument& error) {
        return refuse(error.what());
    }
    deadline_.cancel();
    records_.resize(TapSubscription::piece_bytes);
    subscription_ = context_->tap.subscribe(request.kind, request.prescale);
    TapCounters& counters = context_->tap.counters();
    counters.clients.fetch_add(1, std::memory_order_relaxed);
    counters.accepted.add();
    text_ = tap_answer(request, context_->source) + '\n';
    write(boost::asio::buffer(text_), [this] { sent(); });
    watch();
}

/// A client says nothing more, but its end may close.
void TapClient::watch() {
    socket_.async_read_some(boost::asio::buffer(waste_),
                            [self = shared_from_this()](error_code error, std::size_t) {
                                self->guarded([&] {
                                    if (!error) return self->watch();
                                    // It may have closed only its sending side.
                                    self->input_ended_ = error == boost::asio::error::eof;
                                    if (!self->input_ended_) return self->close();
                                    self->go_on();
                                });
                            });
}

std::optional<std::chrono::steady_clock::time_point> TapClient::idle_since() const {
    if (closed_ || writing_) return std::nullopt;
    return last_used_;
}

void TapClient::refuse(const std::string& why) {
    context_->tap.counters().refused.add();
    context_->log_limit.log(LogLevel::warning, "refuse", "tap: a request was refused: {}", why);
    text_ =
        nlohmann::json{{"error", why}}.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + '\n';
    boost::asio::async_write(socket_, boost::asio::buffer(text_),
                             [self = shared_from_this()](error_code, std::size_t) { self->close(); });
}

void TapClient::go_on() {
    if (closed_ || !subscription_) return;
    if (input_ended_ && other_end_closed(socket_.native_handle())) return close();
    if (writing_) return;
    guarded([this] {
        if (next_message()) write_message();
    });
}

/// Fills header_, and text_ if the message is not a piece.
bool TapClient::next_message() {
    // Both are read before the queue: if it is empty then, no piece of an earlier run is still to come.
    const bool ended = run_ && run_->ended.load(std::memory_order_acquire);
    const std::shared_ptr<const TapRun> latest = context_->tap.latest_run();
    if (piece_.records == 0) piece_ = subscription_->take(records_);
    const std::shared_ptr<const TapRun> next = piece_.records != 0 ? piece_.run : latest;
    bool another = next && (!run_ || next->number > run_->number);
    // A run that ended before this client connected, or without a record for it.
    if (another && piece_.records == 0 && next->ended.load(std::memory_order_acquire)) another = false;
    if (!run_ended_ && (another || (piece_.records == 0 && ended))) {
        run_ended_ = true;
        say_run(TapMessage::run_ended);
        return true;
    }
    if (another) {
        run_ = next;
        run_ended_ = false;
        say_run(TapMessage::run_started);
        return true;
    }
    if (piece_.records == 0) return false;
    const std::byte* const records = records_.data();
    const std::uint64_t bytes = piece_.records * subscription_->record_bytes();
    header_ = {};
    header_.payload_bytes = static_cast<std::uint32_t>(bytes);
    header_.run = piece_.run->number;
    header_.first_record = piece_.first_record;
    header_.records = piece_.records;
    header_.first_time = time_of(records);
    header_.last_time = time_of(records + bytes - subscription_->record_bytes());
    header_.dropped = piece_.dropped;
    return true;
}

void TapClient::say_run(TapMessage type) {
    text_ = type == TapMessage::run_started ? run_->id : "";
    header_ = {};
    header_.type = type;
    header_.payload_bytes = static_cast<std::uint32_t>(text_.size());
    header_.run = run_->number;
    header_.dropped = piece_.records != 0 ? piece_.dropped : subscription_->dropped();
}

void TapClient::write_message() {
    const bool records = header_.type == TapMessage::records;
    const std::array<boost::asio::const_buffer, 2> message = {
        boost::asio::buffer(&header_, sizeof header_),
        records ? boost::asio::buffer(records_.data(), header_.payload_bytes) : boost::asio::buffer(text_)};
    write(message, [this] {
        if (header_.type == TapMessage::records) {
            context_->tap.counters().sent.add(header_.records);
            piece_ = {};
        }
        sent();
    });
}

template <class Buffers, class Done>
void TapClient::write(const Buffers& buffers, Done done) {
    writing_ = true;
    const auto progress = [self = shared_from_this()](error_code error, std::size_t) -> std::size_t {
        if (error || self->closed_) return 0;
        self->deadline_.expires_after(patience);
        self->deadline_.async_wait([self](error_code stopped) {
            if (stopped || !self->writing_ || self->deadline_.expiry() > std::chrono::steady_clock::now())
                return;
            self->guarded([] { throw std::runtime_error("it reads nothing"); });
        });
        return TapSubscription::piece_bytes;
    };
    boost::asio::async_write(socket_, buffers, progress,
                             [self = shared_from_this(), done](error_code error, std::size_t) {
                                 self->deadline_.cancel();
                                 if (error) return self->close();
                                 self->guarded(done);
                             });
}

void TapClient::sent() {
    writing_ = false;
    last_used_ = std::chrono::steady_clock::now();
    go_on();
}

}  // namespace petacq::daemon
