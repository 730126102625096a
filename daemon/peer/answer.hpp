// The answer of the other host of a pair when it was asked for its status.
#pragma once

#include <cstddef>
#include <string>

namespace petacq::daemon {

/// The status document of a host with thousands of boards has a few MB.
inline constexpr std::size_t max_peer_status_bytes = std::size_t{16} << 20;

struct PeerAnswer {
    std::string failure;    ///< why it did not answer; empty: it did
    std::string run;        ///< the id of its run; empty: it has none
    std::string recording;  ///< the state of its strip: "recording", "no_data", ...
};

/// Reads a status document, of which it keeps no more than it needs. Text that is none is a failure.
PeerAnswer peer_answer_from(const std::string& status);
PeerAnswer peer_failure(std::string why);

}  // namespace petacq::daemon
