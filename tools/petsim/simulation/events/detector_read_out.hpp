// A true detector: frames are what its crystals give, whatever a calibration says.
#pragma once

#include <cstdint>

#include "tools/petsim/detector/detector.hpp"
#include "tools/petsim/simulation/base/inverse_calibration.hpp"
#include "tools/petsim/simulation/events/read_out.hpp"
#include "tools/petsim/simulation/events/unit_drift.hpp"

namespace petacq::sim {

class DetectorReadOut : public ReadOut {
  public:
    /// The calibration only numbers the crystals. Detector, calibration and drift must outlive this.
    DetectorReadOut(const Detector& detector, const InverseCalibration& calibration, const UnitDrift& drift,
                    double tick_ps);
    void read(ChunkDraft& draft) const override;
    [[nodiscard]] std::int64_t highest_offset() const override { return highest_offset_; }

  private:
    [[nodiscard]] std::uint32_t neighbour(const InverseCalibration::Channel& channel, Random& random) const;

    const Detector& detector_;
    const InverseCalibration& calibration_;
    const UnitDrift& drift_;
    double tick_s_;
    std::int64_t highest_offset_;
};

}  // namespace petacq::sim
