#include "tools/petsim/simulation/events/event_generator.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tools/petsim/simulation/events/calibration_read_out.hpp"
#include "tools/petsim/simulation/events/detector_read_out.hpp"
#include "tools/petsim/simulation/events/light_sum.hpp"

namespace petacq::sim {

namespace {

constexpr double hits_per_chunk = 16000;
constexpr double shortest_chunk_s = 20e-6;
constexpr double longest_chunk_s = 20e-3;

std::unique_ptr<ReadOut> read_out_of(const config::Scanner& scanner, const InverseCalibration& calibration,
                                     const Detector* detector, const UnitDrift& drift) {
    if (detector == nullptr) return std::make_unique<CalibrationReadOut>(calibration, drift);
    return std::make_unique<DetectorReadOut>(scanner, *detector, calibration, drift);
}

}  // namespace

EventGenerator::EventGenerator(const config::Scanner& scanner, const InverseCalibration& calibration,
                               const Options& options, const Detector* detector)
    : options_(options),
      finder_(scanner),
      movement_(options, scanner),
      response_(options, scanner, detector),
      emitters_(options, movement_, finder_, response_),
      decays_(options, scanner, movement_, finder_, emitters_, response_),
      noise_(options, calibration, detector),
      noisy_crystals_(options.faults.noisy_crystals),
      drift_(options, scanner),
      read_out_(read_out_of(scanner, calibration, detector, drift_)),
      order_(options, scanner),
      tick_s_(scanner.tick_ps * 1e-12),
      guard_ticks_(
          static_cast<std::int64_t>(std::ceil(response_.furthest_ticks() + drift_.furthest_ticks())) + 2),
      begin_(config::ticks_of(options.start_s, scanner) +
             static_cast<std::uint64_t>(std::max<std::int64_t>(read_out_->highest_offset(), 0) +
                                        guard_ticks_ + 1)),
      length_(config::ticks_of(options.duration_s, scanner)) {
    double rate = options.physics.intrinsic_hz * decays_.lutetium().count() +
                  options.physics.dark_hz * static_cast<double>(noise_.unit_count()) + noise_.crystals_hz();
    for (const Emitter& emitter : emitters_.all())
        rate += emitter.followed(emitter.source.activity_mbq * 1e6 * options.activity_scale *
                                 largest_share(emitter.source.curve));
    const double chunk_s =
        std::clamp(hits_per_chunk / std::max(rate, 1.0), shortest_chunk_s, longest_chunk_s);
    chunk_ticks_ = std::max<std::uint64_t>(static_cast<std::uint64_t>(chunk_s / tick_s_), 1);
    chunk_count_ = (length_ + chunk_ticks_ - 1) / chunk_ticks_;
}

double EventGenerator::seconds(std::uint64_t chunks) const {
    return static_cast<double>(std::min(chunks * chunk_ticks_, length_)) * tick_s_;
}

double EventGenerator::decays(std::uint64_t chunks) const {
    const double time = seconds(chunks);
    double sum = 0;
    for (const Emitter& e : emitters_.all())
        sum += emitters_.activity(e.source, 0, time) * time * e.positrons;
    return sum;
}

double EventGenerator::followed(std::uint64_t chunks) const {
    const double time = seconds(chunks);
    double sum = 0;
    for (const Emitter& e : emitters_.all())
        sum += e.followed(emitters_.activity(e.source, 0, time) * time);
    return sum;
}

std::uint64_t EventGenerator::raw_time_floor(std::uint64_t index) const {
    const std::uint64_t start = end_of(index);
    const auto earlier = guard_ticks_ + read_out_->highest_offset();
    return earlier >= 0 ? start - static_cast<std::uint64_t>(earlier)
                        : start + static_cast<std::uint64_t>(-earlier);
}

void EventGenerator::generate(std::uint64_t index, Chunk& chunk) const {
    chunk.index = index;
    chunk.counts = {};
    chunk.detections.clear();
    chunk.unsorted.clear();
    const std::uint64_t offset = index * chunk_ticks_;
    ChunkDraft draft{Random(options_.seed, Purpose::events, index), chunk, begin_, begin_ + offset};
    const auto length = static_cast<double>(std::min(chunk_ticks_, length_ - offset));
    const double from_s = static_cast<double>(offset) * tick_s_;
    draw_events(draft, from_s, length);
    // Drawn after everything else, which they do not change.
    noise_.add_crystals(draft, length, tick_s_);
    noisy_crystals_.add(draft, from_s, length, tick_s_);
    read_out_->read(draft);
    if (hits_several_crystals(options_)) join_deposits(chunk.unsorted);
    order_.sort(chunk);
}

// All processes are drawn as one with the sum of their rates, so that events come in order of time. Which
// process an event belongs to is drawn next: two per emitter (straight, scattered), then the backgrounds.
void EventGenerator::draw_events(ChunkDraft& draft, double from_s, double length) const {
    const double to_s = from_s + length * tick_s_;
    const std::vector<Emitter>& emitters = emitters_.all();
    std::vector<double> upto;
    double rate = 0;
    const auto add = [&](double r) { upto.push_back(rate += r); };
    for (const Emitter& emitter : emitters) {
        const double detectable = emitters_.activity(emitter.source, from_s, to_s) * emitter.detectable;
        add(detectable * (1 - emitter.scatter) * emitter.cosine_limit);
        add(detectable * emitter.scatter);
    }
    add(options_.physics.intrinsic_hz * decays_.lutetium().count());
    add(options_.physics.dark_hz * static_cast<double>(noise_.unit_count()));
    const double gap = rate > 0 ? 1 / (rate * tick_s_) : 0;
    double t = rate > 0 ? draft.random.exponential() * gap : length;
    for (; t < length; t += draft.random.exponential() * gap) {
        const double which = draft.random.uniform() * rate;
        std::size_t process = 0;
        while (process + 1 < upto.size() && which >= upto[process])
            ++process;
        if (process < 2 * emitters.size()) {
            decays_.emit(draft, emitters[process / 2], t, process % 2 != 0);
        } else if (process == 2 * emitters.size()) {
            decays_.decay_lutetium(draft, t);
        } else {
            noise_.add_dark(draft, t);
        }
    }
}

}  // namespace petacq::sim
