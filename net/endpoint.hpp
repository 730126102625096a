// Addresses and ports, and a table of them.
//
// An address is one number wherever datagrams pass. An IPv4 address is its own number, in host byte order. An
// IPv6 address gets one of 255.0.0.0/8, where no host of IPv4 lives, when this process first meets it; the
// number says nothing to other processes, and must not be written anywhere.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace petacq::net {

/// The port is in host byte order.
struct Endpoint {
    std::uint32_t address = 0;  ///< its number
    std::uint16_t port = 0;

    // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the 0 of a comparison for a pointer.
    auto operator<=>(const Endpoint&) const = default;
};

/// "192.168.1.10:9601", "[fd00::2]:9601"
std::string to_text(Endpoint endpoint);
/// "192.168.1.10", "fd00::2"
std::string address_text(std::uint32_t address);

/// Most IPv6 addresses of unknown senders and boards that get numbers of their own. Those that come later
/// share one, so that they cannot fill the memory; those of a configuration are not among them.
inline constexpr std::size_t max_met_addresses = 65536;

/// The number of an address that datagrams come from, or go to. IPv4-mapped ones are those of IPv4. Any
/// thread; takes a lock.
std::uint32_t number_of(const in6_addr& address);
/// Whether the number is one of an IPv6 address.
bool is_ipv6(std::uint32_t number);
/// The address with that number; an IPv4 address is mapped. All bits 0 for the number that late ones share.
in6_addr ipv6_of(std::uint32_t number);

/// The number of an address in text. Throws std::runtime_error, whose message starts with `what`: the purpose
/// of the address.
std::uint32_t parse_address(const std::string& text, const std::string& what);
/// The same for a system call, with port 0: also with the scope of a link-local address, "fe80::1%eth1".
sockaddr_storage parse_socket_address(const std::string& text, const std::string& what);
/// Whether the text is an address; fills it in if so.
bool is_address(const std::string& text, sockaddr_storage& address);
bool is_multicast(const sockaddr_storage& address);
void set_port(sockaddr_storage& address, std::uint16_t port);
socklen_t size_of(const sockaddr_storage& address);
Endpoint endpoint_of(const sockaddr_storage& address);

/// Numbers of senders: a hash table with a fixed room. Each operation takes a constant time on average, and
/// only the constructor allocates. Users that know senders by their address alone leave the port 0. Not
/// thread-safe.
class SenderTable {
  public:
    static constexpr std::uint16_t none = UINT16_MAX;

    /// `room`: most senders at a time.
    explicit SenderTable(std::size_t room);

    /// The number of the sender; `none` if it has none.
    [[nodiscard]] std::uint16_t find(Endpoint sender) const { return entries_[place_of(sender)].number; }
    /// The sender has no number yet, and there is room. `number` is not `none`.
    void insert(Endpoint sender, std::uint16_t number);
    /// Nothing happens if the sender has no number.
    void erase(Endpoint sender);

    [[nodiscard]] std::size_t size() const { return size_; }

  private:
    struct NumberedSender {
        Endpoint sender;
        std::uint16_t number = none;  // none: free
    };

    /// Where the search for the sender starts.
    [[nodiscard]] std::size_t home_of(Endpoint sender) const {
        // The constant, 2^64 over the golden ratio, spreads the key over all bits.
        std::uint64_t key = (std::uint64_t{sender.address} << 16 | sender.port) * 0x9E3779B97F4A7C15ULL;
        key ^= key >> 32;
        return key & mask_;
    }
    /// The place of the sender, or the free one where it belongs.
    [[nodiscard]] std::size_t place_of(Endpoint sender) const {
        std::size_t place = home_of(sender);
        while (entries_[place].number != none && entries_[place].sender != sender)
            place = (place + 1) & mask_;
        return place;
    }

    std::vector<NumberedSender> entries_;  // at most half full; a power of two
    std::size_t mask_;
    std::size_t size_ = 0;
};

}  // namespace petacq::net
