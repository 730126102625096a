// The physics: from decays to hits, in independent chunks of detector time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "config/scanner/scanner.hpp"
#include "tools/geometry/hit_finder.hpp"
#include "tools/petsim/detector/detector.hpp"
#include "tools/petsim/simulation/base/chunk.hpp"
#include "tools/petsim/simulation/base/inverse_calibration.hpp"
#include "tools/petsim/simulation/base/movement.hpp"
#include "tools/petsim/simulation/base/options.hpp"
#include "tools/petsim/simulation/events/crystal_response.hpp"
#include "tools/petsim/simulation/events/decays.hpp"
#include "tools/petsim/simulation/events/emitters.hpp"
#include "tools/petsim/simulation/events/hit_order.hpp"
#include "tools/petsim/simulation/events/noise.hpp"
#include "tools/petsim/simulation/events/read_out.hpp"
#include "tools/petsim/simulation/events/unit_drift.hpp"
#include "tools/petsim/simulation/faults/noisy_crystals.hpp"

namespace petacq::sim {

/// Generates chunks. Any thread may generate any chunk, and chunk i is always the same.
class EventGenerator {
  public:
    /// The options must have passed check(). With a true detector the calibration only numbers the crystals.
    /// Throws std::invalid_argument if the efficiency of a crystal exceeds 1. What is passed by reference or
    /// pointer must outlive the generator.
    EventGenerator(const config::Scanner& scanner, const InverseCalibration& calibration,
                   const Options& options, const Detector* detector);

    [[nodiscard]] std::uint64_t chunk_count() const { return chunk_count_; }
    void generate(std::uint64_t index, Chunk& chunk) const;
    /// No hit of chunk `index` or a later one has a raw time below this.
    [[nodiscard]] std::uint64_t raw_time_floor(std::uint64_t index) const;
    [[nodiscard]] const Movement& movement() const { return movement_; }
    [[nodiscard]] std::uint64_t end_ticks() const { return begin_ + length_; }
    /// Ticks at which the first `chunks` chunks end.
    [[nodiscard]] std::uint64_t end_of(std::uint64_t chunks) const {
        return begin_ + std::min(chunks * chunk_ticks_, length_);
    }
    /// Ticks at which decays begin: the start time, and late enough for every raw time to be positive.
    [[nodiscard]] std::uint64_t begin_ticks() const { return begin_; }
    /// Detector time of the first `chunks` chunks.
    [[nodiscard]] double seconds(std::uint64_t chunks) const;
    /// Mean number of positrons emitted in the first `chunks` chunks. Only those that could be detected are
    /// followed; the Poisson process leaves out the others.
    [[nodiscard]] double decays(std::uint64_t chunks) const;
    /// Mean number of those that are followed.
    [[nodiscard]] double followed(std::uint64_t chunks) const;

  private:
    void draw_events(ChunkDraft& draft, double from_s, double length) const;

    const Options& options_;
    geometry::HitFinder finder_;
    Movement movement_;
    CrystalResponse response_;
    Emitters emitters_;
    Decays decays_;
    Noise noise_;
    NoisyCrystals noisy_crystals_;
    UnitDrift drift_;
    std::unique_ptr<ReadOut> read_out_;
    HitOrder order_;
    double tick_s_;
    std::int64_t guard_ticks_;  ///< raw times are wrong by less, but for the offsets of the read-out
    std::uint64_t begin_;
    std::uint64_t length_;
    std::uint64_t chunk_ticks_;
    std::uint64_t chunk_count_;
};

}  // namespace petacq::sim
