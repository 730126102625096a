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

    /// One hit anywhere on the board at a time of the host.
    void hit(std::int64_t at_ns, Random& random);
    void forget_hits() { hits_.clear(); }
    /// The datagrams that the board sends now. They hold all hits since it last sent.
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
    [[nodiscard]] std::int64_t clock_ns(std::int64_t at_ns) const;

    std::uint16_t source_;
    std::uint64_t number_ = 0;
    std::int64_t offset_ns_ = 0;
    std::int64_t drift_from_ns_ = 0;
    std::int64_t drift_ppm_ = 0;
    std::vector<net::Frame> hits_;
};

}  // namespace petacq::simulation
