// The datagram that a board is filling: frames of hits and tags, what the daemon makes of them, and their
// truth.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/wire.hpp"
#include "tools/petsim/detector/detector.hpp"
#include "tools/petsim/simulation/base/hit.hpp"
#include "tools/petsim/simulation/base/inverse_calibration.hpp"
#include "tools/petsim/simulation/base/options.hpp"
#include "tools/petsim/simulation/base/packet.hpp"
#include "tools/petsim/simulation/faults/clock_jumps.hpp"

namespace petacq::sim {

class OpenDatagram {
  public:
    /// What is passed by reference or pointer must outlive it. `detector`: the true one, if it made the hits.
    OpenDatagram(const Options& options, const InverseCalibration& calibration, const Detector* detector,
                 double tick_ps, StreamOutput& output);

    [[nodiscard]] bool empty() const { return count_ == 0; }
    [[nodiscard]] bool full() const { return count_ == capacity_; }
    /// Before the first frame; `shift`: of all its times.
    void begin(const ClockShift& shift);
    /// `hits`: how many the frame holds.
    void add(const Hit& hit, std::uint16_t hits, std::int16_t temperature_16ths);
    void add(const net::TagFrame& tag);
    /// Prefetches what add() needs first.
    void prefetch(const Hit& hit) const {
        if (convert_all_) calibration_.prefetch(hit.unit, {hit.x, hit.y});
    }
    /// The datagram, without a header but with room for it; empty again. Without frames it is a heartbeat.
    Packet take();
    /// Of its frames in their order, until the next begin(); empty if no truth is wanted.
    [[nodiscard]] std::span<TruthRecord> truth() { return truth_; }

  private:
    std::byte* next_frame() {
        return buffer_.data() + header_ + static_cast<std::size_t>(count_) * net::frame_bytes;
    }
    [[nodiscard]] TruthRecord truth_of(const Hit& hit, const net::Frame& frame,
                                       const Conversion& found) const;
    [[nodiscard]] std::int64_t true_offset(std::uint32_t crystal) const;

    const Options& options_;
    const InverseCalibration& calibration_;
    const Detector* detector_;
    StreamOutput& output_;
    double tick_ps_;
    /// Frames may convert to another crystal than that of their hit, or to none.
    bool convert_all_;
    std::size_t header_;      // bytes
    std::uint32_t capacity_;  // frames
    std::vector<std::byte> buffer_;
    ClockShift shift_;
    std::uint32_t count_ = 0;
    std::uint32_t tags_ = 0;  // of these
    std::array<std::uint16_t, 5> by_status_{};
    std::vector<TruthRecord> truth_;
};

}  // namespace petacq::sim
