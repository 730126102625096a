// One source on the wire: a board sends its hits and tags in datagrams, through a network.
#pragma once

#include <cstdint>
#include <span>

#include "net/wire.hpp"
#include "tools/petsim/detector/detector.hpp"
#include "tools/petsim/random/random.hpp"
#include "tools/petsim/simulation/base/inverse_calibration.hpp"
#include "tools/petsim/simulation/base/options.hpp"
#include "tools/petsim/simulation/base/packet.hpp"
#include "tools/petsim/simulation/base/run_clock.hpp"
#include "tools/petsim/simulation/base/statistics.hpp"
#include "tools/petsim/simulation/board/dead_time.hpp"
#include "tools/petsim/simulation/board/open_datagram.hpp"
#include "tools/petsim/simulation/board/pile_up.hpp"
#include "tools/petsim/simulation/board/tag_schedule.hpp"
#include "tools/petsim/simulation/board/thermometers.hpp"
#include "tools/petsim/simulation/events/light_sum.hpp"
#include "tools/petsim/simulation/faults/board_resets.hpp"
#include "tools/petsim/simulation/faults/clock_jumps.hpp"
#include "tools/petsim/simulation/faults/corruption.hpp"
#include "tools/petsim/simulation/faults/network.hpp"
#include "tools/petsim/simulation/faults/silences.hpp"

namespace petacq::sim {

/// Asks its parts in the order of detector time.
class SourceStream {
  public:
    /// `number`: position among the sources. The options, the calibration, the detector and the output must
    /// outlive the stream. `detector`: the true one, if it made the hits.
    SourceStream(std::uint16_t number, const config::Source& source, const RunClock& clock,
                 const InverseCalibration& calibration, const Detector* detector, const Options& options,
                 TagSchedule tags, StreamOutput& output);

    /// Takes hits in order of raw time. Those before `limit` become final; the others wait. No hit may come
    /// later that would pile up on one of these.
    void take(std::span<const Hit> hits, std::uint64_t limit);
    /// Ends the stream: no hits come any more. Those before raw time `floor` are all there are; of tags,
    /// those before `end` of the simulation.
    void finish(std::uint64_t floor, std::uint64_t end);
    [[nodiscard]] const SourceStatistics& statistics() const { return statistics_; }

  private:
    std::span<const Hit> process(std::span<const Hit> hits, std::uint64_t limit);
    [[nodiscard]] bool takes(const Hit& hit);
    void append(const Hit& hit);
    void append_tag(const net::TagFrame& tag);
    void begin_datagram(std::uint64_t time);
    void advance(std::uint64_t time);
    void handle_event();
    void schedule();
    void complete(std::uint64_t at, bool end_of_stream);
    Packet seal(std::uint64_t at, bool end_of_stream);
    void transmit(Packet packet, bool spared);
    void leave_truth(const Packet& packet);

    const Options& options_;
    StreamOutput& output_;
    std::uint16_t number_;
    std::uint16_t id_;  // in the headers
    net::FrameVersion version_;
    bool sequenced_;
    Random random_;
    SourceStatistics statistics_;

    DeadTime dead_time_;
    PileUp pile_up_;
    Thermometers thermometers_;
    TagSchedule tags_;
    Silences silences_;
    BoardResets resets_;
    ClockJumps jumps_;
    OpenDatagram datagram_;
    Corruption corruption_;
    Network network_;

    // In ticks.
    std::uint64_t flush_;
    std::uint64_t heartbeat_;  // 0: none
    std::uint64_t skew_;
    double jitter_;
    std::uint64_t next_event_ = 0;
    std::uint64_t flush_at_ = never;
    std::uint64_t heartbeat_at_ = never;
    std::uint64_t last_key_ = 0;

    std::uint64_t sequence_ = 0;
    bool epoch_begins_ = true;
};

}  // namespace petacq::sim
