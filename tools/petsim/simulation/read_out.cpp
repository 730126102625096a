// From detections to what the boards send, in the order of their sources: with the inverse of the
// calibration, or by the true detector.
#include <algorithm>
#include <cmath>

#include "tools/petsim/simulation/events.hpp"

namespace petacq::sim {

namespace {

constexpr double full_scale_adc = 65535;
constexpr double reference_c = 25;

double nearest(double value, double most) {
    return std::clamp(std::floor(value + 0.5), 0.0, most);
}

}  // namespace

double EventGenerator::max_drift_ticks() const {
    return std::abs(clock_drift_) * temperatures_.furthest_from(reference_c);
}

// Detections may lie a little before their chunk.
EventGenerator::Change EventGenerator::change_of(std::uint32_t unit, const Work& work, double ticks) const {
    Change out;
    if (!changes_) return out;
    const auto time = static_cast<double>(work.start) + std::max(ticks, 0.0);
    const double at_s = (time - static_cast<double>(begin_)) * tick_s_;
    const std::uint32_t bdm = unit / calibration_.geometry().du_count;
    for (const GainStep& step : options_.faults.gain_steps) {
        if (step.bdm != bdm || at_s < step.at_s) continue;
        out.gain *= 1 + step.percent / 100;
        out.stepped = out.gain != 1;
    }
    const double warmer = temperatures_.celsius(unit, std::floor(time * tick_s_)) - reference_c;
    out.ticks = clock_drift_ * warmer;
    out.gain *= std::max(0.0, 1 + options_.physics.gain_drift_percent_per_c / 100 * warmer);
    return out;
}

std::uint8_t EventGenerator::history_of(const Chunk::Detection& d, const Change& change) {
    return change.stepped ? d.history | history_gain_step : d.history;
}

void EventGenerator::read_out(Work& work) const {
    work.chunk.unsorted_.clear();
    if (detector_ != nullptr) {
        read_out_detector(work);
    } else {
        read_out_calibration(work);
    }
    if (joins_) join_deposits(work.chunk.unsorted_);
    sort_by_source(work.chunk);
}

// Separate from the tracking, so that entries of the large calibration tables can be prefetched.
void EventGenerator::read_out_calibration(Work& work) const {
    constexpr std::size_t ahead = 16;
    const auto& detections = work.chunk.detections_;
    const auto fetch = [&](std::size_t i) {
        if (i + ahead < detections.size()) calibration_.prefetch(detections[i + ahead].crystal);
        const Chunk::Detection& d = detections[i];
        calibration_.prefetch(calibration_.channel(d.crystal), d.choice, d.energy);
    };
    for (std::size_t i = 0; i < std::min(ahead, detections.size()); ++i)
        fetch(i);
    for (std::size_t i = 0; i < detections.size(); ++i) {
        if (i + ahead < detections.size()) fetch(i + ahead);
        const Chunk::Detection& d = detections[i];
        const InverseCalibration::Channel& channel = calibration_.channel(d.crystal);
        if (channel.position_count == 0) {
            ++work.chunk.counts.unreadable;
            continue;
        }
        const Position position = calibration_.position(channel, d.choice);
        const Change change = change_of(channel.unit, work, d.ticks);
        const Reading reading = calibration_.reading(channel, d.energy * change.gain);
        const std::int64_t raw =
            static_cast<std::int64_t>(std::floor(d.ticks + change.ticks)) - channel.time_offset;
        work.chunk.unsorted_.push_back({work.start + static_cast<std::uint64_t>(raw), d.annihilation,
                                        d.crystal, reading.energy, reading.adc, channel.unit, position.x,
                                        position.y, d.kind, history_of(d, change)});
    }
}

/// A crystal beside it in the same block.
std::uint32_t EventGenerator::neighbour(const InverseCalibration::Channel& channel, Random& random) const {
    const config::Geometry& g = calibration_.geometry();
    const std::uint32_t row = channel.local / g.crystals.z;
    const std::uint32_t column = channel.local % g.crystals.z;
    while (g.crystals_per_du() > 1) {
        const std::uint32_t side = random.below(4);
        if (side == 0 && row > 0) return calibration_.crystal_of(channel.unit, channel.local - g.crystals.z);
        if (side == 1 && row + 1 < g.crystals.y)
            return calibration_.crystal_of(channel.unit, channel.local + g.crystals.z);
        if (side == 2 && column > 0) return calibration_.crystal_of(channel.unit, channel.local - 1U);
        if (side == 3 && column + 1 < g.crystals.z)
            return calibration_.crystal_of(channel.unit, channel.local + 1U);
    }
    return calibration_.crystal_of(channel.unit, channel.local);
}

void EventGenerator::read_out_detector(Work& work) const {
    const double last = calibration_.geometry().position_size - 1.0;
    constexpr std::size_t ahead = 16;
    Random& random = work.random;
    const auto& detections = work.chunk.detections_;
    for (std::size_t i = 0; i < detections.size(); ++i) {
        if (i + ahead < detections.size()) {
            __builtin_prefetch(&detector_->crystals[detections[i + ahead].crystal]);
            calibration_.prefetch(detections[i + ahead].crystal);
        }
        const Chunk::Detection& d = detections[i];
        const TrueCrystal& c = detector_->crystals[d.crystal];
        const InverseCalibration::Channel& channel = calibration_.channel(d.crystal);
        if (c.state == CrystalState::dead) {
            ++work.chunk.counts.unreadable;
            continue;
        }
        double x = c.spot_x;
        double y = c.spot_y;
        if (detector_->crosstalk > 0 && random.chance(detector_->crosstalk)) {
            const TrueCrystal& other = detector_->crystals[neighbour(channel, random)];
            const double share = random.uniform() / 2;
            x += share * (other.spot_x - x);
            y += share * (other.spot_y - y);
        }
        x = nearest(x + c.spot_sigma_x * random.normal(), last);
        y = nearest(y + c.spot_sigma_y * random.normal(), last);
        const Change change = change_of(channel.unit, work, d.ticks);
        const double adc = nearest(adc_of(c, d.energy) * change.gain, full_scale_adc);
        const auto raw = static_cast<std::int64_t>(
            std::floor(d.ticks + change.ticks - c.time_offset_ps * 1e-12 / tick_s_));
        work.chunk.unsorted_.push_back({work.start + static_cast<std::uint64_t>(raw), d.annihilation,
                                        d.crystal, d.energy, static_cast<std::uint16_t>(adc), channel.unit,
                                        static_cast<std::uint8_t>(x), static_cast<std::uint8_t>(y), d.kind,
                                        history_of(d, change)});
    }
}

LightSum::LightSum(const Hit& first)
    : sum_(first), brightest_(first.adc), light_(first.adc), x_(light_ * first.x), y_(light_ * first.y) {}

void LightSum::add(const Hit& hit) {
    several_ = true;
    const double weight = hit.adc;
    light_ += weight;
    x_ += weight * hit.x;
    y_ += weight * hit.y;
    const std::uint8_t stepped = (sum_.history | hit.history) & history_gain_step;
    sum_.history |= stepped;
    if (hit.adc <= brightest_) return;
    brightest_ = hit.adc;
    sum_.annihilation = hit.annihilation;
    sum_.crystal = hit.crystal;
    sum_.energy = hit.energy;
    sum_.kind = hit.kind;
    sum_.history = hit.history | stepped;
}

Hit LightSum::result() const {
    Hit out = sum_;
    if (!several_ || light_ <= 0) return out;
    out.x = static_cast<std::uint8_t>(std::floor(x_ / light_ + 0.5));
    out.y = static_cast<std::uint8_t>(std::floor(y_ / light_ + 0.5));
    out.adc = static_cast<std::uint16_t>(std::min(light_, full_scale_adc));
    return out;
}

/// The hits of one annihilation or decay in one unit become one. They follow one another.
void EventGenerator::join_deposits(std::vector<Hit>& hits) {
    std::size_t kept = 0;
    for (std::size_t begin = 0, end = 0; begin < hits.size(); begin = end) {
        end = begin + 1;
        while (hits[begin].annihilation != 0 && end < hits.size() &&
               hits[end].annihilation == hits[begin].annihilation)
            ++end;
        const std::size_t first_kept = kept;
        for (std::size_t i = begin; i < end; ++i) {
            const Hit first = hits[i];  // places from `kept` on may be overwritten
            const auto same_unit = [&](const Hit& hit) { return hit.unit == first.unit; };
            const auto from = hits.begin() + static_cast<std::ptrdiff_t>(first_kept);
            if (std::any_of(from, hits.begin() + static_cast<std::ptrdiff_t>(kept), same_unit)) continue;
            LightSum light(first);
            std::uint64_t earliest = first.raw_time;
            float energy = first.energy;
            for (std::size_t j = i + 1; j < end; ++j) {
                if (!same_unit(hits[j])) continue;
                light.add(hits[j]);
                earliest = std::min(earliest, hits[j].raw_time);
                energy += hits[j].energy;
            }
            Hit joined = light.result();
            joined.raw_time = earliest;
            joined.energy = energy;
            hits[kept++] = joined;
        }
    }
    hits.resize(kept);
}

// Hits are almost in order, so insertion sort is fast unless time offsets exceed the gaps.
void Chunk::sort_keys(std::span<Key> keys) {
    const auto before = [](const Key& a, const Key& b) {
        return a.time != b.time ? a.time < b.time : a.hit < b.hit;
    };
    std::size_t moves = 4 * keys.size();
    for (std::size_t i = 1; i < keys.size(); ++i) {
        const Key key = keys[i];
        std::size_t j = i;
        for (; j > 0 && before(key, keys[j - 1]); --j)
            keys[j] = keys[j - 1];
        keys[j] = key;
        if (i - j > moves) {
            std::sort(keys.begin(), keys.end(), before);
            return;
        }
        moves -= i - j;
    }
}

void EventGenerator::sort_by_source(Chunk& chunk) const {
    const auto& hits = chunk.unsorted_;
    chunk.first.assign(sources_ + 1, 0);
    for (const Hit& hit : hits)
        ++chunk.first[source_of_unit_[hit.unit] + 1U];
    for (std::uint32_t s = 0; s < sources_; ++s)
        chunk.first[s + 1] += chunk.first[s];
    chunk.fill_.assign(chunk.first.begin(), chunk.first.end());
    chunk.keys_.resize(hits.size());
    for (std::uint32_t i = 0; i < hits.size(); ++i) {
        chunk.keys_[chunk.fill_[source_of_unit_[hits[i].unit]]++] = {hits[i].raw_time, i};
    }
    for (std::uint32_t s = 0; s < sources_; ++s) {
        Chunk::sort_keys(std::span(chunk.keys_).subspan(chunk.first[s], chunk.first[s + 1] - chunk.first[s]));
    }
    chunk.hits.resize(hits.size());
    for (std::size_t i = 0; i < hits.size(); ++i)
        chunk.hits[i] = hits[chunk.keys_[i].hit];
}

}  // namespace petacq::sim
