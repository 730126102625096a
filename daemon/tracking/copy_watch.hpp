// Datagrams of bare framing that seem to have come twice: they have no numbers that would tell.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace petacq::daemon {

/// Recognises a datagram by the fingerprint of its payload (net::fingerprint_of), if the same source has sent
/// one with that fingerprint within the window: a capture on several interfaces, a mirrored port, or a
/// multicast group that is joined twice. What it finds is suspected only, and nothing is discarded for it:
/// the fingerprint of two datagrams that differ may be the same, and a board whose clock stands still sends
/// the same frames again.
///
/// Remembers the latest datagram of each place of a table, so that each costs one look, whatever the number
/// of sources: of those that came since, one in 16,384 hides it. Only the constructor allocates. One thread.
class CopyWatch {
  public:
    /// A copy that comes later on the steady clock, or in the time of a capture, is not found.
    static constexpr std::int64_t window_ns = 1'000'000'000;

    CopyWatch() : latest_(places) {}

    /// `source`: its index among the sources. Datagrams come in order of their arrival.
    bool is_copy(std::uint32_t source, std::uint64_t fingerprint, std::int64_t arrival_ns) {
        // The constant, 2^64 over the golden ratio, spreads the index over all bits.
        const std::uint64_t key = fingerprint ^ (std::uint64_t{source} + 1) * 0x9E3779B97F4A7C15ULL;
        Latest& latest = latest_[key % places];
        const bool copy = latest.key == key && arrival_ns - latest.arrival_ns <= window_ns;
        latest = {key, arrival_ns};
        return copy;
    }

  private:
    static constexpr std::size_t places = std::size_t{1} << 14;
    static_assert(std::has_single_bit(places));

    struct Latest {
        std::uint64_t key = 0;
        std::int64_t arrival_ns = INT64_MIN / 2;  // long before any
    };

    std::vector<Latest> latest_;  ///< [key % places]
};

}  // namespace petacq::daemon
