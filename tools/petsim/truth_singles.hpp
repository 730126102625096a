// What the comparison asks of the singles of the truth.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "tools/petsim/simulation/base/truth.hpp"

namespace petacq::sim {

/// The order of singles.
inline auto order_of(const TruthRecord& t) {
    return std::tuple(t.time, t.crystal, t.energy);
}

/// The first of the singles, which are in order, that has these values; null: there is none.
inline const TruthRecord* find_single(const std::vector<TruthRecord>& singles, std::uint64_t time,
                                      std::uint32_t crystal, float energy) {
    const auto wanted = std::tuple(time, crystal, energy);
    const auto at = std::lower_bound(singles.begin(), singles.end(), wanted,
                                     [](const TruthRecord& t, const auto& w) { return order_of(t) < w; });
    return at != singles.end() && order_of(*at) == wanted ? &*at : nullptr;
}

/// Which photon of its annihilation made the single; 0 where the truth does not say.
inline std::uint8_t photon_of(const TruthRecord& t) {
    return t.photon & (truth_first_photon | truth_second_photon);
}

inline bool is_gamma(const TruthRecord& t) {
    return photon_of(t) == truth_gamma;
}

/// Gammas of one decay are told apart by their first hits.
inline bool of_one_photon(const TruthRecord& a, const TruthRecord& b) {
    if (is_gamma(a) && ((a.photon | b.photon) & truth_later) == 0) return false;
    return photon_of(a) != 0 && photon_of(a) == photon_of(b);
}

inline bool of_one_decay(const TruthRecord& a, const TruthRecord& b) {
    return a.annihilation != 0 && a.annihilation == b.annihilation;
}

}  // namespace petacq::sim
