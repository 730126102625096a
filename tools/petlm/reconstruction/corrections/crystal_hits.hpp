// What photons leave in the crystals, and where the detector units find it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "config/scanner/arrangement.hpp"
#include "config/scanner/depth_of_interaction.hpp"
#include "config/scanner/scanner.hpp"
#include "tools/geometry/hit_finder.hpp"
#include "tools/petsim/physics/attenuation.hpp"
#include "tools/petsim/physics/crystal_modules.hpp"
#include "tools/petsim/physics/crystal_ring.hpp"

namespace petacq::corrections {

/// What a detector unit finds of the photons of one annihilation.
struct CrystalHit {
    std::uint32_t crystal;
    double energy;  ///< keV
};

/// What a photon does in the crystals.
struct CrystalModel {
    /// Whether photons fly into the crystals, which attenuate them by their materials; else the front faces
    /// absorb all photons.
    bool deep = false;
    /// Whether a photon may leave a part of its energy and fly on. Real ones do; else a crystal absorbs it
    /// where it first interacts.
    bool scatters = true;
    /// Relative standard deviation of the energy factors of the crystals of a unit (config::factor_spread). A
    /// hit gets the factor of the crystal where it is found, also for the light of the others.
    double factor_spread = 0;
};

/// `run`: run.json, whose energy_factor_spread holds for the crystals; null or of an earlier version: they
/// are taken as equal.
CrystalModel crystal_model(const nlohmann::json& run, const config::DepthOfInteraction& depth);

/// A photon is absorbed in a crystal, or leaves the energy of a Compton scatter there and flies on, until it
/// leaves the scanner. What it leaves in one detector unit is one hit: the energies add up, and the place is
/// their mean, weighted by them; in a unit with layers, in that layer which has the most. So some hits have a
/// part of the energy, some lie in another crystal, and a photon may leave two. Where the factors of crystals
/// differ, hits of several crystals are found with another energy than they have; light then comes from
/// anywhere in its crystal, as the crystal where a hit is found matters for its energy. Thread-safe.
class Crystals {
  public:
    Crystals(const config::Scanner& scanner, const CrystalModel& model);
    Crystals(const Crystals&) = delete;
    Crystals& operator=(const Crystals&) = delete;

    /// What is in the units so far.
    class Deposits {
      public:
        void clear() { units_.clear(); }
        /// What other photons of the same annihilation or decay leave.
        void add(const Deposits& others);
        /// Units, and so hits.
        [[nodiscard]] std::size_t size() const { return units_.size(); }

      private:
        friend class Crystals;
        struct InUnit {
            std::uint32_t row;     ///< of units, along the axis
            std::uint32_t column;  ///< around the ring; in the long form the unit
            double energy;
            double light;  ///< energy / factor
            double along;  ///< crystals, in the long form mm in the module, times the energy
            double across;
            std::uint32_t strongest;  ///< the crystal with the largest part of the energy
            double of_strongest;
        };
        void add(const InUnit& part);
        std::vector<InUnit> units_;
    };
    /// Follows a photon that starts in the bore. If it comes back there, it meets nothing.
    void follow(const sim::Ray& ray, double energy, sim::Random& random, Deposits& deposits) const;
    /// The hits, in the order in which the units were met.
    void hits(const Deposits& deposits, std::vector<CrystalHit>& out) const;

  private:
    void follow_in_ring(sim::Ray ray, double energy, sim::Random& random, Deposits& deposits) const;
    void follow_in_modules(sim::Ray ray, double energy, sim::Random& random, Deposits& deposits) const;
    /// What is left of the energy after an interaction in the crystal, which the rest is left in.
    double interact(std::uint32_t crystal, double photo_share, double energy, sim::Ray& ray,
                    sim::Random& random, Deposits& deposits) const;
    void leave(std::uint32_t crystal, double energy, sim::Random& random, Deposits& deposits) const;
    [[nodiscard]] double factor(std::uint32_t crystal) const {
        return factors_.empty() ? 1 : static_cast<double>(factors_[crystal]);
    }
    /// Of the layer of the strongest, the crystal nearest to the mean place.
    [[nodiscard]] std::uint32_t found_in(const Deposits::InUnit& unit) const;

    geometry::HitFinder finder_;
    bool deep_;
    bool scatters_;
    std::vector<float> factors_;  ///< [crystal] keV for each light; empty: 1
    // Of a ring.
    std::optional<sim::CrystalRing> ring_;
    std::optional<sim::Attenuation> attenuation_;
    config::Counts3 of_unit_;  ///< crystals
    std::uint32_t in_ring_ = 1;
    // Of the long form.
    std::optional<sim::CrystalModules> modules_;
    std::shared_ptr<const config::Arrangement> arrangement_;
    std::vector<std::uint32_t> units_;  ///< [crystal]
};

}  // namespace petacq::corrections
