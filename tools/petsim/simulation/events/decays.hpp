// Annihilations, single photons and decays of Lu-176, one by one: from where they happen to what is detected.
#pragma once

#include <optional>

#include "config/scanner/scanner.hpp"
#include "tools/geometry/hit_finder.hpp"
#include "tools/petsim/physics/ray.hpp"
#include "tools/petsim/physics/spectra.hpp"
#include "tools/petsim/simulation/base/chunk.hpp"
#include "tools/petsim/simulation/base/movement.hpp"
#include "tools/petsim/simulation/base/options.hpp"
#include "tools/petsim/simulation/events/crystal_response.hpp"
#include "tools/petsim/simulation/events/emitters.hpp"
#include "tools/petsim/simulation/events/lutetium.hpp"
#include "tools/petsim/simulation/events/tracking.hpp"

namespace petacq::sim {

/// `ticks`: since the start of the chunk.
class Decays {
  public:
    /// What is passed must outlive it.
    Decays(const Options& options, const config::Scanner& scanner, const Movement& movement,
           const geometry::HitFinder& finder, const Emitters& emitters, const CrystalResponse& response);

    /// `scattered`: whether a photon scatters where the decay happens; not of emitters of single photons.
    void emit(ChunkDraft& draft, const Emitter& emitter, double ticks, bool scattered) const;
    void decay_lutetium(ChunkDraft& draft, double ticks) const;
    [[nodiscard]] const LutetiumCrystals& lutetium() const { return lutetium_crystals_; }

  private:
    /// The photons of an annihilation of which something may be detected.
    struct Photons {
        bool first;
        bool second;
    };
    void annihilate(ChunkDraft& draft, const Emitter& emitter, double ticks, bool scattered) const;
    void annihilate_at(ChunkDraft& draft, const Vector3& p, std::uint64_t id, double ticks,
                       double cosine_limit, bool scattered, Photons photons) const;
    void decay_nuclide(ChunkDraft& draft, const Emitter& emitter, double ticks, bool scattered) const;
    [[nodiscard]] double lifetime_ticks(const ActivitySource& source, Random& random) const;
    void emit_photon(ChunkDraft& draft, const Emitter& emitter, double ticks) const;
    /// The photon flies until it is detected or lost; whether it was detected. Notes a scatter in the object.
    bool arrive(ChunkDraft& draft, const Ray& ray, double ticks, double energy, HitOrigin& origin) const;
    /// Displacement of the object in the frame of the scanner, which may have turned by `angle`.
    [[nodiscard]] Vector3 object_shift(double angle, double ticks_since_begin) const;
    bool detect_deposits(ChunkDraft& draft, double ticks, const HitOrigin& origin) const;

    const Options& options_;
    const Movement& movement_;
    const geometry::HitFinder& finder_;
    const Emitters& emitters_;
    const CrystalResponse& response_;
    double ticks_per_ns_;
    bool knows_photons_;
    std::optional<Tracker> tracker_;  ///< if photons are followed beyond the front faces
    Quantiles compton_;
    LutetiumCrystals lutetium_crystals_;
    Quantiles lutetium_;  ///< of the beta alone if the cascade is followed
};

}  // namespace petacq::sim
