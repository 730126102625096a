// A true detector: frames are what its crystals give, whatever a calibration says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "config/scanner/arrangement.hpp"
#include "tools/petsim/detector/detector.hpp"
#include "tools/petsim/simulation/base/inverse_calibration.hpp"
#include "tools/petsim/simulation/events/read_out.hpp"
#include "tools/petsim/simulation/events/unit_drift.hpp"

namespace petacq::sim {

class DetectorReadOut : public ReadOut {
  public:
    /// The calibration only numbers the crystals. Detector, calibration and drift must outlive this.
    DetectorReadOut(const config::Scanner& scanner, const Detector& detector,
                    const InverseCalibration& calibration, const UnitDrift& drift);
    void read(ChunkDraft& draft) const override;
    [[nodiscard]] std::int64_t highest_offset() const override { return highest_offset_; }

  private:
    [[nodiscard]] std::optional<std::uint32_t> beside(std::uint32_t crystal, std::uint32_t side) const;
    [[nodiscard]] std::uint32_t neighbour(std::uint32_t crystal, Random& random) const;

    const Detector& detector_;
    std::shared_ptr<const config::Arrangement> arrangement_;
    const InverseCalibration& calibration_;
    const UnitDrift& drift_;
    double tick_s_;
    std::int64_t highest_offset_;
};

}  // namespace petacq::sim
