// One depth of interaction for all lines, for formats that hold no more.
#pragma once

#include <string>

#include "config/depth_of_interaction.hpp"
#include "config/scanner.hpp"
#include "gpu/base/records.hpp"

namespace petacq::petlm {

/// The depth that moves the lines of the prompts least from where they are by the absorption of the crystals:
/// it makes the sum of the squares of the distances smallest. A line that meets its crystals at a right angle
/// is where it is at any depth, so depths weigh with the square of the sine.
class OneDepth {
  public:
    OneDepth(const config::Scanner& scanner, const config::DepthOfInteraction& depth)
        : lines_(scanner, depth) {}

    void add(const gpu::Coincidence& c);
    /// That of lines through the axis without prompts.
    [[nodiscard]] double mm() const {
        return weights_ > 0 ? weighted_ / weights_ : lines_.depth.typical_mm();
    }
    /// Where the export takes photons to interact.
    [[nodiscard]] std::string sentence() const;

  private:
    config::LineGeometry lines_;
    double weighted_ = 0;
    double weights_ = 0;
};

}  // namespace petacq::petlm
