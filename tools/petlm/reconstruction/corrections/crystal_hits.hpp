// What photons leave in the crystals, and where the detector units find it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "config/crystal_material.hpp"
#include "config/scanner.hpp"
#include "tools/petsim/physics/attenuation.hpp"
#include "tools/petsim/physics/crystal_ring.hpp"

namespace petacq::corrections {

/// What a detector unit finds of the photons of one annihilation.
struct CrystalHit {
    std::uint32_t crystal;
    double energy;  ///< keV
};

/// What a photon does in the crystals.
struct CrystalModel {
    /// Absent: the front faces absorb all photons.
    std::optional<config::CrystalMaterial> material{};
    /// Whether a photon may leave a part of its energy and fly on. Real ones do; else a crystal absorbs it
    /// where it first interacts.
    bool scatters = true;
};

/// A photon is absorbed in a crystal, or leaves the energy of a Compton scatter there and flies on, until it
/// leaves the scanner. What it leaves in one detector unit is one hit: the energies add up, and the place is
/// their mean, weighted by them. So some hits have a part of the energy, some lie in another crystal, and a
/// photon may leave two. Thread-safe.
class Crystals {
  public:
    Crystals(const config::Scanner& scanner, const CrystalModel& model);

    /// What is in the units so far.
    class Deposits {
      public:
        void clear() { units_.clear(); }
        /// Units, and so hits.
        [[nodiscard]] std::size_t size() const { return units_.size(); }

      private:
        friend class Crystals;
        struct InUnit {
            std::uint32_t row;     ///< of units, along the axis
            std::uint32_t column;  ///< around the ring
            double energy;
            double along;  ///< crystals, times the energy
            double across;
        };
        std::vector<InUnit> units_;
    };
    /// Follows a photon that starts in the bore. If it comes back there, it meets nothing.
    void follow(sim::Ray ray, double energy, sim::Random& random, Deposits& deposits) const;
    /// The hits, in the order in which the units were met.
    void hits(const Deposits& deposits, std::vector<CrystalHit>& out) const;

  private:
    void leave(std::uint32_t crystal, double energy, Deposits& deposits) const;

    sim::CrystalRing ring_;
    std::optional<sim::Attenuation> attenuation_;
    bool scatters_;
    config::Counts3 of_unit_;  ///< crystals
    std::uint32_t in_ring_;
};

}  // namespace petacq::corrections
