// Claims the path of a Unix stream socket for one daemon and listens on it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

namespace petacq::daemon {

/// A listening socket, and the lock that reserves its path for this daemon. Not thread-safe.
class ListeningSocket {
  public:
    /// `name` says what it is in messages: "control socket". Takes the lock `path`.lock, removes a stale
    /// socket, binds, sets mode and group of the socket, and listens; no client can connect before that. If
    /// the group cannot be set, logs a warning. Throws std::runtime_error, with a message of its own for: a
    /// path too long for a socket, a missing directory, another daemon that listens or starts there,
    /// something there that is not a socket.
    ListeningSocket(const char* name, std::filesystem::path path, mode_t mode = 0660,
                    std::optional<gid_t> group = std::nullopt);
    ListeningSocket(const ListeningSocket&) = delete;
    ListeningSocket& operator=(const ListeningSocket&) = delete;
    /// Removes the socket file if it is still its own, then closes socket and lock.
    ~ListeningSocket();

    /// Another descriptor of the socket, for an acceptor, which closes what it is given. Non-blocking. Throws
    /// std::runtime_error.
    [[nodiscard]] int duplicate() const;

  private:
    [[nodiscard]] std::runtime_error failure(const std::string& message) const;
    [[nodiscard]] int stream_socket() const;
    [[nodiscard]] int try_connect() const;
    void lock();
    void remove_stale();
    void listen();
    void give_to_group();
    void release() noexcept;

    const char* const name_;
    std::filesystem::path path_;
    const mode_t mode_;
    const std::optional<gid_t> group_;
    int lock_ = -1;
    int descriptor_ = -1;
    bool bound_ = false;
    dev_t device_ = 0;
    ino_t inode_ = 0;
};

}  // namespace petacq::daemon
