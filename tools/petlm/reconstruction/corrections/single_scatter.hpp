// The pairs of which one photon has scattered once in an object, for each pair of crystals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "config/scanner.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/corrections/attenuation.hpp"
#include "tools/petlm/reconstruction/corrections/energy_window.hpp"
#include "tools/petlm/reconstruction/projector/grid.hpp"

namespace petacq::corrections {

/// Where photons come from.
struct Activity {
    image::Grid grid;
    std::vector<float> per_mm3;  ///< [voxel] annihilations in the run
};

/// The single scatter simulation: C. C. Watson, D. Newport, M. E. Casey, in P. Grangeat, J.-L. Amans (eds.),
/// Three-Dimensional Image Reconstruction in Radiology and Nuclear Medicine (1996) 255; C. C. Watson, IEEE
/// Trans. Nucl. Sci. 47 (2000) 1587. Photon 1 flies from the annihilation straight to crystal a, photon 2 to
/// a point s of the object, where it is scattered towards crystal b, or the other way round:
///     counts = face^2 / (2 pi) * sum over s of volume * mu * cos_a cos_b / (R_a^2 R_b^2) * p(angle)
///              * accepted(energy) / accepted(511 keV) * (I_a + I_b),
///     I_a = exp(-integral of mu(511 keV) from s to a - integral of mu(energy) from s to b)
///           * integral of the activity from s to a,
/// where p is the Klein-Nishina cross section per solid angle divided by its total. Some hundred points s
/// fill the object evenly. The sum is made for crystals about 8 mm apart, and is interpolated linearly
/// between them along both sides of the modules. Crystals absorb photons of all energies alike. Photons that
/// scatter twice or more are left out. Thread-safe once made, and the same for any number of threads.
class SingleScatter {
  public:
    /// The object must not be empty.
    SingleScatter(const config::Scanner& scanner, const AttenuatingObject& object, const Activity& activity,
                  const EnergyWindow& window, net::WorkerPool& pool);

    /// If each photon of 511 keV that meets a crystal were found. The order of the crystals does not matter.
    [[nodiscard]] double counts(std::uint32_t a, std::uint32_t b) const;

  private:
    /// Between two nodes of one direction: the share of the upper one.
    struct Between {
        std::uint32_t below;
        std::uint32_t above;
        float share;
    };
    /// Those of a row of crystals that are nodes: about 8 mm apart, the first and the last one included.
    static std::vector<std::uint32_t> nodes_among(std::uint32_t crystals, double pitch_mm);
    /// [crystal of the row]
    static std::vector<Between> between(const std::vector<std::uint32_t>& nodes);

    std::uint32_t in_ring_;
    std::uint32_t in_module_;
    std::uint32_t columns_;        ///< of nodes in a module
    std::uint32_t node_ring_;      ///< nodes in a ring
    std::uint32_t nodes_;          ///< all
    std::vector<Between> across_;  ///< [crystal of a module across]
    std::vector<Between> along_;   ///< [ring]
    std::vector<float> values_;    ///< [node a][node b]
};

}  // namespace petacq::corrections
