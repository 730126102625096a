#include "tools/petsim/simulation/events.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "tools/petsim/simulation/options_check.hpp"

namespace petacq::sim {

namespace {

constexpr double mm_per_s = 299792458e3;
constexpr double hits_per_chunk = 16000;
constexpr double shortest_chunk_s = 20e-6;
constexpr double longest_chunk_s = 20e-3;

// An exponential up to twelve times its mean.
constexpr double dark_step = 12.0 / 1024;
std::vector<double> dark_density() {
    std::vector<double> density;
    for (int i = 0; i <= 1024; ++i)
        density.push_back(std::exp(-i * dark_step));
    return density;
}

}  // namespace

EventGenerator::EventGenerator(const config::Scanner& scanner, const InverseCalibration& calibration,
                               const Options& options, const Detector* detector)
    : scanner_(scanner),
      calibration_(calibration),
      detector_(detector),
      finder_(scanner),
      tracker_(follows_photons(options) ? std::optional<Tracker>(std::in_place, scanner, options)
                                        : std::nullopt),
      joins_(hits_several_crystals(options)),
      options_(options),
      movement_(options, scanner),
      tick_s_(scanner.tick_ps * 1e-12),
      ticks_per_mm_(1 / (mm_per_s * tick_s_)),
      time_sigma_(options.physics.time_resolution_ps / scanner.tick_ps / fwhm_per_sigma),
      temperatures_(options.seed, options.physics.temperature_c, scanner.geometry, options.start_s,
                    options.faults.temperature_steps),
      clock_drift_(options.physics.clock_drift_ps_per_c / scanner.tick_ps),
      changes_(!options.faults.gain_steps.empty() || clock_drift_ != 0 ||
               options.physics.gain_drift_percent_per_c != 0),
      highest_offset_(calibration.highest_offset()),
      guard_ticks_(std::ceil(far_out * time_sigma_ + max_drift_ticks()) + 2),
      range_sigma_(options.physics.positron_range_mm / fwhm_per_sigma),
      angle_sigma_(options.physics.noncollinearity_deg * std::numbers::pi / 180 / fwhm_per_sigma),
      energy_width_(energy_width(options.physics.energy_resolution)),
      compton_(compton_cosines()),
      lutetium_(options.crystals.cascade ? lutetium_beta_energies() : lutetium_energies()),
      dark_(dark_density(), 0, options.physics.dark_mean_keV * dark_step) {
    if (detector != nullptr) add_detector(*detector, scanner);
    const double e = options.physics.efficiency * max_efficient_;
    efficiency_ = e;
    either_ = 1 - (1 - e) * (1 - e);
    both_given_either_ = either_ > 0 ? e * e / either_ : 0;
    const config::Geometry& g = scanner.geometry;
    source_of_unit_.resize(std::size_t{g.bdm_count} * g.du_count);
    const std::vector<config::Source> sources = wire_sources(options, scanner);
    sources_ = static_cast<std::uint32_t>(sources.size());
    for (std::size_t s = sources.size(); s-- > 0;) {  // a module with several sources has the first of them
        for (const std::uint32_t bdm : sources[s].bdms) {
            std::fill_n(source_of_unit_.begin() + bdm * g.du_count, g.du_count,
                        static_cast<std::uint16_t>(s));
        }
    }
    for (const auto& source : options.activity)
        add_emitter(source);

    const auto earliest = static_cast<std::int64_t>(guard_ticks_) + 1;
    begin_ = ticks_of(options.start_s, scanner) +
             static_cast<std::uint64_t>(std::max<std::int64_t>(highest_offset_, 0) + earliest);
    length_ = ticks_of(options.duration_s, scanner);
    double rate = options.physics.intrinsic_hz * g.crystal_count() +
                  options.physics.dark_hz * static_cast<double>(source_of_unit_.size());
    if (detector != nullptr) rate += detector->noise_hz * static_cast<double>(noisy_.size());
    for (const Emitter& emitter : emitters_)
        rate += emitter.followed(emitter.source.activity_mbq * 1e6 * options.activity_scale);
    const double chunk_s =
        std::clamp(hits_per_chunk / std::max(rate, 1.0), shortest_chunk_s, longest_chunk_s);
    chunk_ticks_ = std::max<std::uint64_t>(static_cast<std::uint64_t>(chunk_s / tick_s_), 1);
    chunk_count_ = (length_ + chunk_ticks_ - 1) / chunk_ticks_;
}

void EventGenerator::add_detector(const Detector& detector, const config::Scanner& scanner) {
    double highest_ps = 0;
    max_efficient_ = 0;
    for (std::uint32_t i = 0; i < detector.crystals.size(); ++i) {
        const TrueCrystal& c = detector.crystals[i];
        highest_ps = std::max(highest_ps, double{c.time_offset_ps});
        max_efficient_ = std::max(max_efficient_, double{c.efficiency});
        if (c.state == CrystalState::noisy) noisy_.push_back(i);
    }
    highest_offset_ = static_cast<std::int64_t>(std::ceil(highest_ps / scanner.tick_ps));
    if (options_.physics.efficiency * max_efficient_ > 1) {
        refuse("--efficiency", text(options_.physics.efficiency),
               "at most " + text(1 / max_efficient_) + " with the efficiencies of this detector");
    }
}

// The steepest path from any point of the source to the end of the scanner limits the directions to follow.
void EventGenerator::add_emitter(const ActivitySource& source) {
    double reach = std::hypot(source.at[0], source.at[1]) + source.radius_mm;
    double low = source.at[2] - source.length_mm / 2;
    double high = source.at[2] + source.length_mm / 2;
    if (source.shape == Shape::line) {
        reach = std::max(reach, std::hypot(source.to[0], source.to[1]));
        low = std::min(source.at[2], source.to[2]);
        high = std::max(source.at[2], source.to[2]);
    }
    const Movement::Range range = movement_.axial_range(source.motion);
    low += range.low;
    high += range.high;
    if (source.motion.axis < 2) reach += std::abs(source.motion.amplitude_mm);
    // Along each of two axes by up to far_out sigmas, so across by up to sqrt(2) times as much.
    const double strayed = far_out * range_sigma_;
    reach += strayed * std::numbers::sqrt2;
    const double axial =
        std::max({finder_.axial_high_mm() - (low - strayed), (high + strayed) - finder_.axial_low_mm(), 0.0});
    const double room = finder_.radius_mm() - reach;
    double cosine = 1;
    if (room > 0) {
        const double angle = std::atan2(room, axial) - far_out * angle_sigma_ * std::numbers::sqrt2;
        cosine = angle > 0 ? std::min(1.0, std::cos(angle) * (1 + 1e-9)) : 1.0;
    }
    if (options_.object) cosine = 1;  // it may scatter any photon into the scanner
    const bool pairs = source.photon_kev == 0;
    const double scatter = pairs && !options_.object ? options_.physics.scatter : 0;
    emitters_.push_back({source, cosine, pairs ? either_ : efficiency_, scatter});
}

double EventGenerator::mean_activity(const ActivitySource& source, double from_s, double to_s) const {
    const double full = source.activity_mbq * 1e6 * options_.activity_scale;
    if (source.half_life_s <= 0 || to_s <= from_s) return full;
    const double lambda = std::numbers::ln2 / source.half_life_s;
    return full * std::exp(-lambda * from_s) * -std::expm1(-lambda * (to_s - from_s)) /
           (lambda * (to_s - from_s));
}

double EventGenerator::seconds(std::uint64_t chunks) const {
    return static_cast<double>(std::min(chunks * chunk_ticks_, length_)) * tick_s_;
}

double EventGenerator::decays(std::uint64_t chunks) const {
    const double time = seconds(chunks);
    double sum = 0;
    for (const Emitter& e : emitters_)
        sum += mean_activity(e.source, 0, time) * time;
    return sum;
}

double EventGenerator::followed(std::uint64_t chunks) const {
    const double time = seconds(chunks);
    double sum = 0;
    for (const Emitter& e : emitters_)
        sum += e.followed(mean_activity(e.source, 0, time) * time);
    return sum;
}

std::uint64_t EventGenerator::raw_time_floor(std::uint64_t index) const {
    const std::uint64_t start = begin_ + std::min(index * chunk_ticks_, length_);
    const auto earlier = static_cast<std::int64_t>(guard_ticks_) + highest_offset_;
    return earlier >= 0 ? start - static_cast<std::uint64_t>(earlier)
                        : start + static_cast<std::uint64_t>(-earlier);
}

void EventGenerator::generate(std::uint64_t index, Chunk& chunk) const {
    chunk.index = index;
    chunk.counts = {};
    chunk.detections_.clear();
    const std::uint64_t offset = index * chunk_ticks_;
    Work work{Random(options_.seed, Purpose::events, index), chunk, begin_ + offset};
    const auto length = static_cast<double>(std::min(chunk_ticks_, length_ - offset));
    const double from_s = static_cast<double>(offset) * tick_s_;
    const double to_s = from_s + length * tick_s_;

    // All processes are drawn as one with the sum of their rates, so that events come in order of time. Which
    // process an event belongs to is drawn next: two per emitter (straight, scattered), then the backgrounds.
    const config::Geometry& g = calibration_.geometry();
    const auto units = static_cast<std::uint32_t>(source_of_unit_.size());
    std::vector<double> upto;
    double rate = 0;
    const auto add = [&](double r) { upto.push_back(rate += r); };
    for (const Emitter& emitter : emitters_) {
        const double detectable = mean_activity(emitter.source, from_s, to_s) * emitter.detectable;
        add(detectable * (1 - emitter.scatter) * emitter.cosine_limit);
        add(detectable * emitter.scatter);
    }
    add(options_.physics.intrinsic_hz * g.crystal_count());
    add(options_.physics.dark_hz * units);
    const double gap = rate > 0 ? 1 / (rate * tick_s_) : 0;
    double t = rate > 0 ? work.random.exponential() * gap : length;
    while (t < length) {
        const double which = work.random.uniform() * rate;
        std::size_t process = 0;
        while (process + 1 < upto.size() && which >= upto[process])
            ++process;
        if (process < 2 * emitters_.size()) {
            const Emitter& emitter = emitters_[process / 2];
            if (emitter.source.photon_kev > 0) {
                emit_photon(work, emitter, t);
            } else {
                annihilate(work, emitter, t, process % 2 != 0);
            }
        } else if (process == 2 * emitters_.size()) {
            decay_lutetium(work, t);
        } else {
            ++chunk.counts.darks;
            const std::uint32_t unit = work.random.below(units);
            const std::uint32_t crystal =
                calibration_.crystal_of(unit, work.random.below(g.crystals_per_du()));
            record(work, crystal, t, dark_.draw(work.random), {0, hit_dark, 0});
        }
        t += work.random.exponential() * gap;
    }
    make_noise(work, from_s, length);
    read_out(work);
}

/// Drawn after everything else, which it does not change.
void EventGenerator::make_noise(Work& work, double from_s, double length) const {
    if (!noisy_.empty() && detector_->noise_hz > 0) {
        constexpr double flat = 0.1;  // share with any energy; the others have that of dark counts
        const double gap = 1 / (detector_->noise_hz * static_cast<double>(noisy_.size()) * tick_s_);
        double t = work.random.exponential() * gap;
        for (; t < length; t += work.random.exponential() * gap) {
            ++work.chunk.counts.darks;
            const std::uint32_t crystal =
                noisy_[work.random.below(static_cast<std::uint32_t>(noisy_.size()))];
            const double energy = work.random.chance(flat) ? 2 * annihilation_keV * work.random.uniform()
                                                           : dark_.draw(work.random);
            record(work, crystal, t, energy, {0, hit_dark, 0});
        }
    }
    for (const NoisyCrystal& noisy : options_.faults.noisy_crystals) {
        if (noisy.hz <= 0) continue;
        const double gap = 1 / (noisy.hz * tick_s_);
        double t = std::max(noisy.at_s - from_s, 0.0) / tick_s_ + work.random.exponential() * gap;
        for (; t < length; t += work.random.exponential() * gap) {
            ++work.chunk.counts.darks;
            record(work, noisy.crystal, t, 2 * annihilation_keV * work.random.uniform(), {0, hit_dark, 0});
        }
    }
}

}  // namespace petacq::sim
