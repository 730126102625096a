// petctl frames: what boards send, byte by byte. Returns the exit status.
#pragma once

#include <cstddef>
#include <string>

#include "daemon/control/client.hpp"
#include "tools/petctl/frames/board_format.hpp"
#include "tools/petctl/frames/dump.hpp"

namespace petacq::petctl {

/// What the operator asks for.
struct FramesAsked {
    std::size_t count = 0;  ///< most frames, and most datagrams
    std::string source;     ///< an id, or an address with or without a port; "": all
    bool as_json = false;
};

/// Throws config::Error.
DumpOptions dump_options(const FramesAsked& asked, const BoardFormat& format);

/// Samples of what the daemon receives, of which it has the beginnings. Waits up to that many seconds for
/// them.
int show_live_frames(daemon::ControlClient& client, const FramesAsked& asked, double seconds);
/// Datagrams of a capture. Throws OutputError if it cannot be read.
int show_captured_frames(const std::string& capture, const BoardFormat& format, const FramesAsked& asked);

}  // namespace petacq::petctl
