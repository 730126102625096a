// Asks another daemon for its status over HTTP.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <stop_token>

#include "config/http_url.hpp"
#include "daemon/peer/answer.hpp"

namespace petacq::daemon {

/// Runs `io` until the host has answered, at most for `limit`, and returns its answer or why there is none.
/// Whoever requests a stop also stops `io`: then this function returns at once. If the system is still
/// looking for the name of the host, `io` keeps that search.
PeerAnswer ask_status(boost::asio::io_context& io, const config::HttpUrl& url,
                      std::chrono::milliseconds limit, const std::stop_token& stopping);

}  // namespace petacq::daemon
