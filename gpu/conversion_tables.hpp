// Builds the conversion tables from a calibration, as small as possible without changing any result.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "config/calibration.hpp"
#include "config/scanner.hpp"
#include "gpu/arithmetic.hpp"
#include "gpu/pipeline.hpp"
#include "net/huge_pages.hpp"

namespace petacq::gpu {

/// Owns the arrays of a ConversionTables. Read-only once built, so threads may share it.
class OwnedTables {
  public:
    /// The calibration must have passed config::check_calibration.
    OwnedTables(const PipelineOptions& options, const config::Calibration& calibration);

    /// Valid for the lifetime of this object.
    [[nodiscard]] const ConversionTables& view() const { return view_; }
    [[nodiscard]] std::uint64_t bytes() const;

    [[nodiscard]] std::span<const std::uint8_t> position() const { return position_; }
    [[nodiscard]] std::span<const CrystalEntry> crystals() const { return crystals_; }
    [[nodiscard]] std::span<const float> factor() const { return factor_; }
    /// Empty if frames may have any module.
    [[nodiscard]] std::span<const std::uint32_t> modules_of_source() const { return modules_of_source_; }

    OwnedTables(const OwnedTables&) = delete;
    OwnedTables& operator=(const OwnedTables&) = delete;

  private:
    net::HugeVector<std::uint8_t> position_;  // read at random
    std::vector<CrystalEntry> crystals_;
    net::HugeVector<float> factor_;
    std::vector<std::uint32_t> modules_of_source_;
    ConversionTables view_;
};

/// Number of bins that the factor table needs: beyond them no factor changes.
std::uint32_t effective_bins(const std::vector<float>& factor, std::uint32_t bins);

}  // namespace petacq::gpu
