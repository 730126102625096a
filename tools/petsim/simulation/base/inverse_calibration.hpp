// From a crystal and an energy to what a detector board would send.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"
#include "net/base/huge_pages.hpp"
#include "net/wire.hpp"

namespace petacq::sim {

/// An ADC value and the energy that it stands for, exactly as the calibration gives it.
struct Reading {
    std::uint16_t adc;
    float energy;  ///< keV
};

struct Position {
    std::uint8_t x;
    std::uint8_t y;
};

/// A frame converted by the calibration (spec, conversion).
struct Conversion {
    enum class Status : std::uint8_t { good, bad_marker, bad_address, outside_crystal, bad_time };
    Status status = Status::good;
    std::uint32_t crystal = 0;
    float energy = 0;
    std::uint64_t time = 0;
};

/// Tables for both directions. Copies what it needs; thread-safe after construction.
class InverseCalibration {
  public:
    /// Where a crystal is read out.
    struct Channel {
        std::uint32_t first_position = 0;
        std::uint32_t position_count = 0;  ///< 0: no position of the table maps to this crystal
        std::int32_t time_offset = 0;
        std::uint32_t unit = 0;   ///< bdm * du_count + du
        std::uint16_t local = 0;  ///< local crystal
        float adc_per_kev = 0;    ///< near 511 keV: where the search starts
    };

    /// The calibration must fit the scanner (config::check_calibration).
    InverseCalibration(const config::Scanner& scanner, const config::Calibration& calibration);

    [[nodiscard]] const Channel& channel(std::uint32_t crystal) const { return channels_[crystal]; }
    [[nodiscard]] std::uint32_t crystal_of(std::uint32_t unit, std::uint32_t local) const {
        return crystals_[unit * geometry_.crystals_per_du() + local];
    }
    /// One of the channel's positions (there is at least one), evenly over the values of `choice`.
    [[nodiscard]] Position position(const Channel& channel, std::uint32_t choice) const {
        const std::uint16_t p = positions_[position_index(channel, choice)];
        return {static_cast<std::uint8_t>(p & 0xFF), static_cast<std::uint8_t>(p >> 8)};
    }
    /// Prefetches the result of channel().
    void prefetch(std::uint32_t crystal) const { __builtin_prefetch(&channels_[crystal]); }
    /// Prefetches what position() and reading() need.
    void prefetch(const Channel& channel, std::uint32_t choice, double energy) const {
        __builtin_prefetch(&positions_[position_index(channel, choice)]);
        __builtin_prefetch(factors(channel.unit, channel.local) + first_bin(channel, energy));
    }
    /// Prefetches what convert() needs first.
    void prefetch(std::uint32_t unit, Position position) const {
        const std::size_t size = geometry_.position_size;
        __builtin_prefetch(&position_table_[(unit * size + position.y) * size + position.x]);
    }
    /// The reading nearest to the energy (keV, not negative) that the channel's crystal can give.
    [[nodiscard]] Reading reading(const Channel& channel, double energy) const;
    /// Converts a frame as the daemon does, without the energy window.
    [[nodiscard]] Conversion convert(const net::Frame& frame, std::uint8_t head, std::uint8_t tail) const;

    /// Of the frames that the boards send.
    [[nodiscard]] net::FrameVersion frame_version() const { return version_; }
    [[nodiscard]] std::int64_t highest_offset() const { return highest_offset_; }
    [[nodiscard]] const config::Geometry& geometry() const { return geometry_; }

  private:
    static std::size_t position_index(const Channel& channel, std::uint32_t choice) {
        return channel.first_position + ((std::uint64_t{choice} * channel.position_count) >> 32);
    }
    [[nodiscard]] std::uint32_t first_bin(const Channel& channel, double energy) const {
        const double adc = energy * channel.adc_per_kev;
        return adc < 65535 ? bin_of(static_cast<std::uint32_t>(adc)) : bins_ - 1;
    }
    [[nodiscard]] const float* factors(std::uint32_t unit, std::uint32_t local) const {
        return &factors_[(static_cast<std::size_t>(unit) * geometry_.crystals_per_du() + local) * bins_];
    }
    [[nodiscard]] std::uint32_t bin_of(std::uint32_t adc) const {
        return std::min(adc / config::adc_per_bin, bins_ - 1);
    }
    [[nodiscard]] Reading reading_in_bin(const float* factor, std::uint32_t bin, double energy) const;

    config::Geometry geometry_;
    net::FrameVersion version_;
    std::uint32_t bins_;
    net::HugeVector<float> factors_;
    std::vector<std::uint16_t> position_table_;
    net::HugeVector<std::uint16_t> positions_;  // x + y * 256, by crystal
    net::HugeVector<Channel> channels_;
    std::vector<std::uint32_t> crystals_;  // [unit][local]
    std::int64_t highest_offset_ = 0;
};

}  // namespace petacq::sim
