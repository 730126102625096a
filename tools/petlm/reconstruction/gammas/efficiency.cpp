#include "tools/petlm/reconstruction/gammas/efficiency.hpp"

#include <algorithm>

#include "tools/petlm/reconstruction/gammas/gamma_chance.hpp"
#include "tools/petlm/reconstruction/gammas/spurious_pairs.hpp"

namespace petacq::gammas {
namespace {

constexpr double first_guess = 0.5;
constexpr int rounds = 4;

}  // namespace

double efficiency_of(const GammaModel& model, const corrections::Activity& decays,
                     const corrections::Activity& found_pairs, double share, const corrections::OfPair& found,
                     net::WorkerPool& pool) {
    double efficiency = first_guess;
    // Gammas that are seen grow nearly as the efficiency does; spurious pairs, which have none, hardly
    // change.
    for (int i = 0; i < rounds; ++i) {
        const double seen = GammaChance(model, found_pairs, efficiency, pool).mean_seen();
        if (!(seen > 0)) return 1;
        const double spurious = SpuriousPairs(model, decays, efficiency, found, pool).per_pair();
        efficiency = std::min(1.0, efficiency * share * (1 + spurious) / seen);
    }
    return efficiency;
}

}  // namespace petacq::gammas
