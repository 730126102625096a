// Claims the path of a Unix stream socket for one daemon and listens on it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

namespace petacq::daemon {

/// A listening socket and the lock that makes its path ours. Not thread-safe.
class ControlSocket {
  public:
    /// Takes the lock `path`.lock, replaces a stale socket, binds, gives the socket its mode and its group,
    /// and listens; nobody can connect before that. A group that it may not be given to is a warning in the
    /// log. Throws std::runtime_error, with a message of its own for: a path too long for a socket, a missing
    /// directory, another daemon listening or starting on it, something there that is not a socket.
    explicit ControlSocket(std::filesystem::path path, mode_t mode = 0660,
                           std::optional<gid_t> group = std::nullopt);
    ControlSocket(const ControlSocket&) = delete;
    ControlSocket& operator=(const ControlSocket&) = delete;
    /// Removes the socket file if it is still the one made here, then closes both.
    ~ControlSocket();

    /// Non-blocking; stays owned by this object.
    [[nodiscard]] int descriptor() const { return descriptor_; }

  private:
    void lock();
    void remove_stale();
    void listen();
    void give_to_group();
    void release() noexcept;

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
