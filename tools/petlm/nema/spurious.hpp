// Pairs with prompt gammas of the nuclide among the prompts of a test.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/scanner/depth_of_interaction.hpp"
#include "tools/petlm/nema/runs.hpp"
#include "tools/petlm/nema/slices.hpp"
#include "tools/petlm/reconstruction/corrections/scatter_simulation.hpp"
#include "tools/petlm/reconstruction/gammas/spurious_pairs.hpp"

namespace petacq::nema {

/// A point on the axis, or a line parallel to it that lies at x = `from_axis_mm`, as the activity of a
/// source.
corrections::Activity point_source_at(double z_mm);
corrections::Activity line_source(double from_axis_mm, double length_mm);

/// Not thread-safe. `run` and `bins` must outlive it.
class NemaSpurious {
  public:
    /// Reads the energies of the prompts if the nuclide of the run emits prompt gammas.
    NemaSpurious(const NemaRun& run, const SliceBins& bins, const config::DepthOfInteraction& depth);
    /// False for nuclides that emit few gammas or none, for unknown ones, and where the scanner turned.
    [[nodiscard]] bool any() const { return nuclide_ != nullptr; }

    /// For the report: that they are subtracted, or that they are among the prompts. Empty for nuclides
    /// without prompt gammas.
    [[nodiscard]] std::string sentence() const;

    /// Simulates decays (gammas::SpuriousPairs) of the source in the object, with the efficiency that the
    /// singles of the interval tell. `pairs`: prompts of the interval less the randoms. The result is empty
    /// unless any().
    struct ExpectedSpurious {
        std::vector<double> of_bin;  ///< [SliceBins::of]
        double all = 0;              ///< whatever their line
        double efficiency = 1;
    };
    [[nodiscard]] ExpectedSpurious expect(const petlm::Interval& interval,
                                          const corrections::Activity& source,
                                          const corrections::AttenuatingObject& object, double pairs) const;

  private:
    const NemaRun& run_;
    const SliceBins& bins_;
    const config::Nuclide* nuclide_ = nullptr;
    corrections::CrystalModel crystals_;
    corrections::EnergyWindow window_;
};

}  // namespace petacq::nema
