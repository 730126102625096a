// Asks another daemon for its status over HTTP.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <stop_token>

#include "config/http_url.hpp"
#include "daemon/peer/answer.hpp"

namespace petacq::daemon {

/// Runs `io`, and returns what was answered, or why nothing was, after `limit` at the latest, and at once if
/// a stop is requested and `io` is stopped. A search for the host that hangs goes on in `io`.
PeerAnswer ask_status(boost::asio::io_context& io, const config::HttpUrl& url,
                      std::chrono::milliseconds limit, const std::stop_token& stopping);

}  // namespace petacq::daemon
