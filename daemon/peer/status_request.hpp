// Asks another daemon for its status over HTTP.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <stop_token>

#include "config/http_url.hpp"
#include "daemon/peer/answer.hpp"

namespace petacq::daemon {

/// Runs `io` until the host has answered, at most for `limit`, and returns its answer or why there is none.
/// A caller that requests a stop must stop `io`, too; this function then returns at once. `io` may still have
/// work to do: the search for the address of the host cannot be interrupted.
PeerAnswer ask_status(boost::asio::io_context& io, const config::HttpUrl& url,
                      std::chrono::milliseconds limit, const std::stop_token& stopping);

}  // namespace petacq::daemon
