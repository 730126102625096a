// The raw captures of several runs of one stream as that of one host: each datagram once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/wire.hpp"

namespace petacq::petlm {

/// Where the datagrams of a source came from.
struct DatagramOrigins {
    std::uint64_t several = 0;          ///< in more than one capture
    std::vector<std::uint64_t> only;    ///< [run] in its capture alone
    std::optional<std::uint64_t> lost;  ///< by all: missing from the sequence numbers; absent: it has none
};

struct UnitedCapture {
    std::map<std::uint16_t, DatagramOrigins> sources;  ///< by their ids
    DatagramOrigins others;                            ///< without a sound header, or with bare framing
    std::uint64_t datagrams = 0;
    std::vector<std::string> ended_early;  ///< [run] why its capture could not be read to its end; or empty
};

/// Writes the datagrams of the captures to `output`, in the order of their arrival. Two datagrams are the
/// same if source, sequence number and content are, and the clocks say that they arrived within two seconds;
/// one that a host has twice is there twice. The clocks of the hosts need not agree: the datagrams that both
/// have tell how far they are apart. Times are those of the first capture. Reads the captures twice; a
/// capture that ends within a packet counts up to there. Throws std::system_error.
UnitedCapture unite_captures(std::span<const std::filesystem::path> captures,
                             const std::filesystem::path& output, net::Framing framing,
                             net::FrameVersion version);

}  // namespace petacq::petlm
