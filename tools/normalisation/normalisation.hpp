// How well a scanner detects the pairs of each two crystals: what petcal derive normalisation finds, and
// images and exports correct for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "tools/normalisation/pair_classes.hpp"

namespace petacq::normalisation {

/// The chance that a pair of photons towards crystals a and b is found, relative to that of the solid angle
/// of their front faces (tools/petlm/reconstruction/em/lines.hpp), is
///     efficiency[a] * efficiency[b] * transaxial[...] * axial[...],
/// each factor with a mean of about 1. A scanner of the long form has the factors of `classes`.
struct Normalisation {
    std::vector<float> efficiency;  ///< [crystal]; 0: dead
    /// Of a ring: [modules from a to b around the ring, 0 to half of them][column of a in its module][column
    /// of b in its module], a being the crystal from which fewer modules have to be counted upwards to reach
    /// the other; of the same or opposite modules that whose place in the ring is lower.
    std::vector<float> transaxial;
    std::vector<float> axial;  ///< of a ring: [ring of a][ring of b], symmetrical
    /// Turns the activity concentration that an image states, as if each photon in a crystal were detected
    /// with chance 1, into the true one. Absent until a source of known activity was measured.
    std::optional<double> activity_factor;
    std::map<std::string, std::string> origin;  ///< what it was made from: text attributes of the file
    std::string sha256;                         ///< of the file it was read from
    /// Of the long form: those of transaxial and axial, which PairClasses::entries() names. Absent: a scanner
    /// of the long form has no geometric factors then, and both are empty.
    std::shared_ptr<const PairClasses> classes{};

    /// A number of `origin`; absent if there is none, or no number.
    [[nodiscard]] std::optional<double> number(const std::string& name) const;

    /// All factors 1; of the long form without geometric ones.
    static Normalisation even(const config::Geometry& geometry);
};

/// Reads a normalisation file (HDF5). Throws config::Error naming the file, what was expected and what was
/// found: shapes of another scanner, factors that are negative or not finite, no crystal alive. Like saving,
/// it uses the HDF5 library: one thread at a time.
Normalisation load(const std::filesystem::path& file, const config::Geometry& geometry);
/// Replaces the file as a whole. Throws config::Error when a shape or value is wrong, config::IoError.
void save(const std::filesystem::path& file, const config::Geometry& geometry,
          const Normalisation& normalisation);

/// Index into Normalisation::transaxial for two places around the ring (crystal modulo crystals_in_ring).
/// REQUIRES: a ring.
[[nodiscard]] inline std::size_t transaxial_class(const config::Geometry& geometry, std::uint32_t place_a,
                                                  std::uint32_t place_b) {
    const std::uint32_t columns = geometry.crystals_per_module_y();
    const std::uint32_t modules = geometry.modules_in_ring();
    const std::uint32_t up = (place_b / columns + modules - place_a / columns) % modules;
    // Neither way is shorter within a module and across the whole ring.
    const bool forwards = up == 0 || 2 * up == modules ? place_a < place_b : 2 * up < modules;
    const std::uint32_t a = (forwards ? place_a : place_b) % columns;
    const std::uint32_t b = (forwards ? place_b : place_a) % columns;
    return (std::size_t{std::min(up, modules - up)} * columns + a) * columns + b;
}

/// The factor of a pair; does not depend on the order of its crystals.
[[nodiscard]] inline double factor_of(const config::Geometry& geometry, const Normalisation& n,
                                      std::uint32_t a, std::uint32_t b) {
    const double both = double{n.efficiency[a]} * n.efficiency[b];
    if (n.classes) {
        const PairClasses::Entries of = n.classes->entries(a, b);
        return both * n.transaxial[of.transaxial] * n.axial[of.axial];
    }
    if (!geometry.is_ring()) return both;
    const std::uint32_t in_ring = geometry.crystals_in_ring();
    const std::size_t across = transaxial_class(geometry, a % in_ring, b % in_ring);
    const std::size_t along = std::size_t{a / in_ring} * geometry.rings() + b / in_ring;
    return both * n.transaxial[across] * n.axial[along];
}

}  // namespace petacq::normalisation
