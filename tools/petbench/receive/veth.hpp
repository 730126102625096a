// Pairs of virtual Ethernet devices between two network namespaces: datagrams pass the kernel's receive path
// of a network card (single packets, NAPI, GRO), which loopback leaves out.
//
// Neither namespaces nor devices are known outside the process, so the kernel removes them when the process
// ends, however it ends.
#pragma once

#include <cstddef>
#include <string>

namespace petacq::bench {

/// A network namespace. It lasts as long as this object or anything that was opened in it.
class NetworkNamespace {
  public:
    /// A fresh one. Throws std::system_error.
    NetworkNamespace();
    ~NetworkNamespace();
    NetworkNamespace(const NetworkNamespace&) = delete;
    NetworkNamespace& operator=(const NetworkNamespace&) = delete;

    [[nodiscard]] int descriptor() const { return descriptor_; }

  private:
    int descriptor_;
};

/// As long as it lives, what the calling thread opens is opened in a namespace.
class Visit {
  public:
    /// Throws std::system_error.
    explicit Visit(const NetworkNamespace& place);
    ~Visit();
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

  private:
    int home_;
};

/// Device i of the senders' namespace leads to device i of the receivers' namespace. The kernel cuts what is
/// sent into packets of one datagram each, as if the sender were another host, and joins them again (GRO) on
/// their arrival.
class VethPairs {
  public:
    /// `payload`: of the datagrams; they are not fragmented. Throws std::system_error.
    VethPairs(unsigned pairs, std::size_t payload);

    /// IPv4 address of the receivers' device i.
    [[nodiscard]] static std::string address(unsigned i);
    [[nodiscard]] const NetworkNamespace& senders() const { return senders_; }
    [[nodiscard]] const NetworkNamespace& receivers() const { return receivers_; }

  private:
    const NetworkNamespace senders_;
    const NetworkNamespace receivers_;
};

}  // namespace petacq::bench
