// petctl frames: what boards send, byte by byte. Returns the exit status.
#pragma once

#include <cstddef>
#include <string>

#include "daemon/control/client.hpp"
#include "tools/petctl/frames/board_format.hpp"
#include "tools/petctl/frames/dump.hpp"

namespace petacq::petctl {

/// `source`: an id, or an address with or without a port; "": all. Throws config::Error.
DumpOptions dump_options(std::size_t count, const std::string& source, const BoardFormat& format);

/// Samples of what the daemon receives, of which it has the beginnings. Waits up to that many seconds for
/// them.
int show_live_frames(daemon::ControlClient& client, std::size_t count, const std::string& source,
                     double seconds);
/// Datagrams of a capture. Throws OutputError if it cannot be read.
int show_captured_frames(const std::string& capture, const BoardFormat& format, std::size_t count,
                         const std::string& source);

}  // namespace petacq::petctl
