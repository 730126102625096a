#include "tools/petsim/simulation/base/inverse_calibration.hpp"

#include <cmath>

namespace petacq::sim {

namespace {

constexpr std::uint32_t highest_adc = 65535;

}  // namespace

InverseCalibration::InverseCalibration(const config::Scanner& scanner, const config::Calibration& calibration)
    : geometry_(scanner.geometry),
      bins_(calibration.bins),
      factors_(calibration.energy_factor.begin(), calibration.energy_factor.end()),
      position_table_(calibration.position_table),
      channels_(geometry_.crystal_count()),
      crystals_(std::size_t{geometry_.unit_count()} * geometry_.crystals_per_du()) {
    const std::uint32_t locals = geometry_.crystals_per_du();
    const std::uint32_t size = geometry_.position_size;
    const std::uint32_t units = geometry_.unit_count();
    positions_.reserve(position_table_.size());
    std::vector<std::vector<std::uint16_t>> by_local(locals);
    for (std::uint32_t unit = 0; unit < units; ++unit) {
        for (auto& list : by_local)
            list.clear();
        const std::uint8_t* table = &position_table_[static_cast<std::size_t>(unit) * size * size];
        for (std::uint32_t y = 0; y < size; ++y) {
            for (std::uint32_t x = 0; x < size; ++x) {
                const std::uint32_t origin = table[x + y * size];
                if (origin >= geometry_.crystals_of_unit(unit)) continue;
                by_local[geometry_.local_of_origin(origin)].push_back(static_cast<std::uint16_t>(x | y << 8));
            }
        }
        for (std::uint32_t local = 0; local < geometry_.crystals_of_unit(unit); ++local) {
            const std::uint32_t crystal =
                geometry_.crystal(unit / geometry_.du_count, unit % geometry_.du_count, local);
            crystals_[unit * locals + local] = crystal;
            Channel& channel = channels_[crystal];
            channel.first_position = static_cast<std::uint32_t>(positions_.size());
            channel.position_count = static_cast<std::uint32_t>(by_local[local].size());
            channel.unit = static_cast<std::uint16_t>(unit);
            channel.local = static_cast<std::uint16_t>(local);
            positions_.insert(positions_.end(), by_local[local].begin(), by_local[local].end());
        }
    }
    constexpr double usual_energy = 511;
    for (Channel& channel : channels_) {
        const Reading usual = reading(channel, usual_energy);
        channel.adc_per_kev = usual.energy > 0 ? static_cast<float>(usual.adc) / usual.energy : 0;
    }
    if (calibration.time_offset.empty()) return;
    for (std::uint32_t c = 0; c < channels_.size(); ++c)
        channels_[c].time_offset = calibration.time_offset[c];
    highest_offset_ = *std::max_element(calibration.time_offset.begin(), calibration.time_offset.end());
}

Reading InverseCalibration::reading_in_bin(const float* factor, std::uint32_t bin, double energy) const {
    const std::uint32_t low = bin * config::adc_per_bin;
    const std::uint32_t high = bin + 1 == bins_ ? highest_adc : low + config::adc_per_bin - 1;
    const double f = factor[bin];
    const double wanted = f > 0 ? energy / f + 0.5 : low;
    const std::uint32_t adc =
        wanted >= high ? high : std::max(low, static_cast<std::uint32_t>(std::max(wanted, 0.0)));
    return {static_cast<std::uint16_t>(adc), static_cast<float>(adc) * factor[bin]};
}

Reading InverseCalibration::reading(const Channel& channel, double energy) const {
    const float* factor = factors(channel.unit, channel.local);
    // Step from bin to bin: the ADC value that follows from the factor of this bin gives the next bin to try.
    // Factors change slowly from bin to bin, so this ends in the right bin or between two neighbours.
    const auto nearer = [&](const Reading& a, const Reading& b) {
        return std::abs(b.energy - energy) < std::abs(a.energy - energy) ? b : a;
    };
    std::uint32_t bin = first_bin(channel, energy);
    std::uint32_t before = bins_;
    for (int step = 0; step < 6; ++step) {
        const double f = factor[bin];
        const double wanted = f > 0 ? std::min(energy / f + 0.5, double{highest_adc}) : highest_adc;
        const std::uint32_t next = bin_of(static_cast<std::uint32_t>(wanted));
        const Reading here = reading_in_bin(factor, bin, energy);
        if (next == bin) return here;
        if (next == before) {
            // Alternating: the energy lies at the boundary of the two bins, or the factors do not change
            // slowly.
            const Reading best = nearer(here, reading_in_bin(factor, next, energy));
            if (std::abs(best.energy - energy) <= f) return best;
            break;
        }
        before = bin;
        bin = next;
    }
    Reading best = reading_in_bin(factor, 0, energy);
    const std::uint32_t used = std::min(bins_, highest_adc / config::adc_per_bin + 1);
    for (bin = 1; bin < used; ++bin) {
        best = nearer(best, reading_in_bin(factor, bin, energy));
    }
    return best;
}

Conversion InverseCalibration::convert(const net::Frame& frame, std::uint8_t head, std::uint8_t tail) const {
    using Status = Conversion::Status;
    Conversion out;
    const auto refused = [&](Status status) {
        out.status = status;
        return out;
    };
    const std::uint32_t size = geometry_.position_size;
    if (frame.head_marker != head || frame.tail_marker != tail) return refused(Status::bad_marker);
    if (frame.bdm >= geometry_.bdm_count || frame.du >= geometry_.du_count || frame.x >= size ||
        frame.y >= size) {
        return refused(Status::bad_address);
    }
    const std::uint32_t unit = frame.bdm * geometry_.du_count + frame.du;
    const std::uint32_t origin =
        position_table_[static_cast<std::size_t>(unit) * size * size + frame.x + frame.y * size];
    if (origin >= geometry_.crystals_of_unit(unit)) return refused(Status::outside_crystal);
    const std::uint32_t local = geometry_.local_of_origin(origin);
    out.crystal = crystal_of(unit, local);
    out.energy = static_cast<float>(frame.energy) * factors(unit, local)[bin_of(frame.energy)];
    const std::int64_t offset = channels_[out.crystal].time_offset;
    out.time = frame.time + static_cast<std::uint64_t>(offset);
    const bool wrapped = offset < 0 ? out.time > frame.time : out.time < frame.time;
    return wrapped ? refused(Status::bad_time) : out;
}

}  // namespace petacq::sim
