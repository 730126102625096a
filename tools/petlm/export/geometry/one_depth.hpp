// One depth of interaction for all lines, for formats that hold no more.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/scanner/depth_of_interaction.hpp"
#include "config/scanner/scanner.hpp"
#include "gpu/base/records.hpp"
#include "tools/petlm/export/geometry/crystal_kinds.hpp"

namespace petacq::petlm {

/// For each kind of crystals the depth that moves the lines of the prompts least from where they are by the
/// absorption of the crystals: it makes the sum of the squares of the distances smallest. A line that meets
/// its crystals at a right angle is where it is at any depth, so depths weigh with the square of the sine.
class OneDepth {
  public:
    /// `depth_mm` instead of absorption, the same for all kinds. Throws UsageError when it lies outside some
    /// crystals.
    OneDepth(const config::Scanner& scanner, const CrystalKinds& kinds, std::optional<double> depth_mm);

    void add(const gpu::Coincidence& c);
    /// That of lines through the axis without prompts.
    [[nodiscard]] double mm(std::uint32_t kind) const;
    /// Where the export takes photons to interact.
    [[nodiscard]] std::string sentence() const;

  private:
    struct OfKind {
        config::DepthOfInteraction depth;
        double weighted = 0;
        double weights = 0;
    };
    const CrystalKinds& kinds_;
    std::vector<config::CrystalPlace> places_;  ///< [crystal]; empty: one depth was asked for
    std::vector<OfKind> depths_;                ///< [kind]
};

}  // namespace petacq::petlm
