// The server of the live tap: a Unix stream socket. docs/reference/tap.md describes the protocol.
//
// It has a thread of its own. That looks every few milliseconds for what the acquisition has left for the
// clients, so that the acquisition need not wake it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "daemon/tap/request.hpp"
#include "daemon/tap/tap.hpp"

namespace petacq::daemon {

struct TapServerOptions {
    std::filesystem::path socket;
    mode_t mode = 0660;
    std::optional<gid_t> group;
    std::size_t max_clients = 8;
};

/// Serves clients from construction until close().
class TapServer {
  public:
    /// `tap` outlives the server. Throws std::runtime_error if it cannot make the socket
    /// (daemon/system/sockets/listening_socket.hpp).
    TapServer(Tap& tap, TapSource source, const TapServerOptions& options);
    TapServer(const TapServer&) = delete;
    TapServer& operator=(const TapServer&) = delete;
    ~TapServer();

    /// Disconnects all clients and joins the server's thread. Idempotent. Do not call it from that thread.
    void close();

  private:
    class Implementation;
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace petacq::daemon
