// Builds the conversion tables from a calibration, as small as possible without changing any result.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/rules/conversion.hpp"
#include "net/base/huge_pages.hpp"

namespace petacq::gpu {

/// The part of a ConversionTables that both back-ends use: everything but the crystals and their factors.
/// Read-only once built, so threads may share it.
class FrameTables {
  public:
    /// The calibration must have passed config::check_calibration.
    FrameTables(const PipelineOptions& options, const config::Calibration& calibration);

    /// Valid for the lifetime of this object.
    [[nodiscard]] const ConversionTables& view() const { return view_; }
    [[nodiscard]] std::uint64_t bytes() const;

    /// One of the two is empty.
    [[nodiscard]] std::span<const std::uint8_t> position() const { return position_; }
    [[nodiscard]] std::span<const std::uint16_t> wide_position() const { return wide_position_; }
    /// Empty if frames may have any module.
    [[nodiscard]] std::span<const std::uint32_t> modules_of_source() const { return modules_of_source_; }

    FrameTables(const FrameTables&) = delete;
    FrameTables& operator=(const FrameTables&) = delete;

  private:
    net::HugeVector<std::uint8_t> position_;  // read at random
    net::HugeVector<std::uint16_t> wide_position_;
    std::vector<std::uint32_t> modules_of_source_;
    ConversionTables view_;
};

/// Owns all arrays of a ConversionTables.
class OwnedTables {
  public:
    /// The calibration must have passed config::check_calibration.
    OwnedTables(const PipelineOptions& options, const config::Calibration& calibration);

    /// Valid for the lifetime of this object.
    [[nodiscard]] const ConversionTables& view() const { return view_; }
    [[nodiscard]] std::uint64_t bytes() const;

    /// One of the two is empty.
    [[nodiscard]] std::span<const std::uint8_t> position() const { return frames_.position(); }
    [[nodiscard]] std::span<const std::uint16_t> wide_position() const { return frames_.wide_position(); }
    [[nodiscard]] std::span<const CrystalEntry> crystals() const { return crystals_; }
    [[nodiscard]] std::span<const float> factor() const { return factor_; }
    /// Empty if frames may have any module.
    [[nodiscard]] std::span<const std::uint32_t> modules_of_source() const {
        return frames_.modules_of_source();
    }

  private:
    FrameTables frames_;
    std::vector<CrystalEntry> crystals_;
    std::vector<float> factor_;
    ConversionTables view_;
};

/// Ticks to add to the times of a crystal.
std::int32_t time_offset(const config::Calibration& calibration, std::uint32_t crystal);
/// keV per ADC count. Never negative zero: energies that compare equal must have equal bytes.
float energy_factor(const config::Calibration& calibration, std::size_t slot, std::uint32_t bin);
/// Number of bins that the factor table needs: beyond them no factor changes.
std::uint32_t effective_bins(const std::vector<float>& factor, std::uint32_t bins);

}  // namespace petacq::gpu
