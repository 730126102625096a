// Sends datagrams over UDP as fast as the kernel takes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace petacq::net {

/// Most datagrams of one GSO message: the limit of older kernels.
inline constexpr std::size_t max_segments = 64;

struct SenderOptions {
    std::string address = "127.0.0.1";  ///< destination (unicast or multicast)
    std::uint16_t port = 0;
    bool gso = true;  ///< hand runs of datagrams of equal size to the kernel as one, if it supports that
    std::size_t send_buffer_bytes = 4U << 20;
    /// IPv4 address to send IPv4 multicast from; empty: the system chooses.
    std::string multicast_interface = {};
};

/// A connected UDP socket. For one thread at a time.
class Sender {
  public:
    /// Throws std::runtime_error naming the destination and the reason.
    explicit Sender(const SenderOptions& options);
    ~Sender();
    Sender(const Sender&) = delete;
    Sender& operator=(const Sender&) = delete;

    /// Sends `payloads` in order, one datagram each, blocking while the socket is full. Payloads of one size
    /// that lie back to back in memory go out as one GSO send. Throws std::system_error on any error other
    /// than a refused connection: with UDP it is no error if no program listens yet.
    void send(std::span<const std::span<const std::byte>> payloads);

    [[nodiscard]] std::uint64_t datagrams_sent() const;
    [[nodiscard]] bool gso() const;  ///< whether GSO is in use
    [[nodiscard]] std::uint16_t local_port() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace petacq::net
