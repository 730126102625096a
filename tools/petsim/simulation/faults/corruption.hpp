// Corrupted datagrams: a field of a frame or of the header is wrong, or the end is missing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tools/petsim/random/random.hpp"
#include "tools/petsim/simulation/base/inverse_calibration.hpp"
#include "tools/petsim/simulation/base/options.hpp"
#include "tools/petsim/simulation/base/packet.hpp"
#include "tools/petsim/simulation/base/truth.hpp"

namespace petacq::sim {

class Corruption {
  public:
    /// What is passed by reference must outlive it.
    Corruption(const Options& options, const InverseCalibration& calibration, double tick_ps);

    /// The field of a datagram that is to be corrupted, if any.
    std::optional<Field> draw(Random& random) const;
    /// Corrupts it, here and in the truth of its frames. Returns whether the datagram has the field: neither
    /// heartbeats nor tags have one of a frame.
    bool apply(Field field, Packet& packet, std::span<TruthRecord> truth, Random& random) const;

  private:
    static void break_datagram(Field field, Packet& packet, Random& random);
    void corrupt_frame(Field field, Packet& packet, std::span<TruthRecord> truth, Random& random) const;
    void change(net::Frame& frame, Field field, Random& random) const;
    [[nodiscard]] Conversion convert(const net::Frame& frame) const {
        return calibration_.convert(frame, options_.wire.head_marker, options_.wire.tail_marker);
    }

    const Options& options_;
    const InverseCalibration& calibration_;
    std::uint32_t lowest_time_bit_ = 0;  ///< flipping it makes a time wrong by a minute or more
};

}  // namespace petacq::sim
