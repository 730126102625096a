// A detector that is as the calibration says: frames are the inverse of the conversion.
#pragma once

#include "tools/petsim/simulation/base/inverse_calibration.hpp"
#include "tools/petsim/simulation/events/read_out.hpp"
#include "tools/petsim/simulation/events/unit_drift.hpp"

namespace petacq::sim {

class CalibrationReadOut : public ReadOut {
  public:
    /// Both must outlive it.
    CalibrationReadOut(const InverseCalibration& calibration, const UnitDrift& drift)
        : calibration_(calibration), drift_(drift) {}
    void read(ChunkDraft& draft) const override;
    [[nodiscard]] std::int64_t highest_offset() const override { return calibration_.highest_offset(); }

  private:
    const InverseCalibration& calibration_;
    const UnitDrift& drift_;
};

}  // namespace petacq::sim
