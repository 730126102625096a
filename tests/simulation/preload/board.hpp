// A board: a source of datagrams, with a clock of its own and everything that its cable does to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "net/wire.hpp"
#include "tests/simulation/preload/random.hpp"

namespace petacq::simulation {

using Datagram = std::vector<std::byte>;

class Board {
  public:
    /// It has the module of its number.
    explicit Board(std::uint16_t source) : source_(source) {}

    /// One hit anywhere on the board at a time of the host, of an energy about 511 keV.
    void hit(std::int64_t at_ns, Random& random) { add_hit(at_ns, 1200, 1500, random); }
    /// One of a higher energy.
    void gamma(std::int64_t at_ns, Random& random) { add_hit(at_ns, 2600, 1200, random); }
    /// A tag of any kind and value.
    void tag(std::int64_t at_ns, Random& random);
    void forget_hits() {
        hits_.clear();
        tags_.clear();
    }
    /// The datagram that the board sends now. It holds all hits and tags since it last sent.
    Datagram datagram();
    /// A full datagram of hits that are all at this time.
    Datagram burst(std::int64_t at_ns, Random& random);

    // Faults, as a story names them
    void step(std::int64_t ns) { offset_ns_ += ns; }
    void drift(std::int64_t at_ns, std::int64_t ppm);
    void reset(std::int64_t at_ns);
    std::int64_t silent_until_ns = 0;
    bool on = true;
    std::uint64_t lose_one_in = 0;
    std::uint64_t double_one_in = 0;
    std::uint64_t delay_one_in = 0;
    std::uint64_t corrupt_one_in = 0;

  private:
    void add_hit(std::int64_t at_ns, std::uint64_t least_adc, std::uint64_t spread_adc, Random& random);
    [[nodiscard]] std::int64_t clock_ns(std::int64_t at_ns) const;

    std::uint16_t source_;
    std::uint64_t number_ = 0;
    std::int64_t offset_ns_ = 0;
    std::int64_t drift_from_ns_ = 0;
    std::int64_t drift_ppm_ = 0;
    std::vector<net::Frame> hits_;
    std::vector<net::TagFrame> tags_;
};

}  // namespace petacq::simulation
