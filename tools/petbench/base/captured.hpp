// The datagrams of a capture.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "net/wire.hpp"

namespace petacq::bench {

/// Calls `take` with header and frames of each valid datagram of sequenced framing that has frames, in the
/// order of the capture. Throws as net::PcapReader does.
void for_each_captured(
    const std::string& capture, net::FrameVersion version,
    const std::function<void(const net::DatagramHeader&, std::span<const std::byte> frames)>& take);

}  // namespace petacq::bench
