// IPv4 addresses and ports, and a table of them.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace petacq::net {

/// In host byte order.
struct Endpoint {
    std::uint32_t address = 0;
    std::uint16_t port = 0;

    // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the 0 of a comparison for a pointer.
    auto operator<=>(const Endpoint&) const = default;
};

/// "192.168.1.10:9601"
std::string to_text(Endpoint endpoint);

/// An IPv4 address in host byte order from dotted text. Throws std::runtime_error, whose message starts with
/// `what`: the purpose of the address.
std::uint32_t parse_address(const std::string& text, const std::string& what);

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
    struct Entry {
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

    std::vector<Entry> entries_;  // at most half full; a power of two
    std::size_t mask_;
    std::size_t size_ = 0;
};

}  // namespace petacq::net
