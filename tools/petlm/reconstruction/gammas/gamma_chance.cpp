#include "tools/petlm/reconstruction/gammas/gamma_chance.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <array>

#include "tools/petlm/reconstruction/gammas/photon_flight.hpp"
#include "tools/petlm/reconstruction/gammas/positions.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"

namespace petacq::gammas {
namespace {

constexpr std::size_t pieces = 16;          // of the decays, whatever the number of threads
constexpr double least_decays = 400'000;    // simulated
constexpr double most_decays = 40'000'000;  // likewise
constexpr double seen_per_triple = 5;       // gammas that the simulation sees in the activity
constexpr int degree = 4;                   // of the polynomials
constexpr int terms = 35;                   // of them
constexpr double least_share = 0.02;        // of the mean, which no position falls below

using Terms = Eigen::Matrix<double, terms, 1>;
using Squares = Eigen::Matrix<double, terms, terms>;

/// The powers of x, y and z up to the degree.
Terms terms_at(const config::Vector3& at, const config::Vector3& half) {
    std::array<std::array<double, degree + 1>, 3> powers{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const double x = at[axis] / half[axis];
        powers[axis][0] = 1;
        for (std::size_t n = 1; n <= degree; ++n)
            powers[axis][n] = powers[axis][n - 1] * x;
    }
    Terms out;
    int term = 0;
    for (std::size_t i = 0; i <= degree; ++i) {
        for (std::size_t j = 0; i + j <= degree; ++j) {
            for (std::size_t k = 0; i + j + k <= degree; ++k)
                out[term++] = powers[0][i] * powers[1][j] * powers[2][k];
        }
    }
    return out;
}

/// What the gammas of a decay do to its pair.
struct Outcome {
    double seen = 0;  ///< with a pair that is found
    double kept = 1;
};

/// Follows the gammas of decays.
class Gammas {
  public:
    Gammas(const GammaModel& model, double efficiency)
        : model_(model),
          efficiency_(efficiency),
          flight_(model),
          lost_of_three_(1 - corrections::taken_of_three(model.multiples)) {}

    struct HitsOfDecay {
        PhotonFlight::InFlight flight;
        std::vector<PhotonHit> of_photon;
        std::vector<PhotonHit> hits;
    };
    Outcome decay(const config::Vector3& at, sim::Random& random, HitsOfDecay& scratch) const {
        scratch.hits.clear();
        for (const config::Gamma& gamma : model_.nuclide.gammas) {
            if (gamma.delay_half_life_s > 0 || !random.chance(model_.nuclide.chance(gamma, true))) continue;
            flight_.follow({at, sim::isotropic(random)}, 0, gamma.energy_keV, random, scratch.flight,
                           scratch.of_photon);
            if (!scratch.of_photon.empty() && random.chance(efficiency_))
                scratch.hits.insert(scratch.hits.end(), scratch.of_photon.begin(), scratch.of_photon.end());
        }
        return outcome(scratch.hits);
    }

  private:
    [[nodiscard]] Outcome outcome(const std::vector<PhotonHit>& hits) const {
        Outcome out;
        double none_seen = 1;  // and the pair kept
        for (const PhotonHit& hit : hits) {
            out.kept *= 1 - lost_of_three_ * hit.in_pairs;
            none_seen *= std::max(0.0, 1 - lost_of_three_ * hit.in_pairs - hit.in_gammas);
        }
        if (model_.policy == config::GammaPolicy::nearest) {
            out.seen = out.kept - none_seen;
            return out;
        }
        const bool alone = model_.policy == config::GammaPolicy::only_one;
        for (std::size_t i = 0; i < hits.size(); ++i) {
            double with = hits[i].in_gammas;
            for (std::size_t k = 0; k < hits.size(); ++k) {
                if (k == i) continue;
                const double other = alone ? hits[k].in_gammas : 0;
                with *= std::max(0.0, 1 - lost_of_three_ * hits[k].in_pairs - other);
            }
            out.seen += with;
        }
        return out;
    }

    const GammaModel& model_;
    double efficiency_;
    PhotonFlight flight_;
    double lost_of_three_;
};

/// Sums over decays.
struct EfficiencyFit {
    Squares squares = Squares::Zero();
    Terms seen = Terms::Zero();
    Terms kept = Terms::Zero();
    Outcome of_active{0, 0};
    double active = 0;  ///< decays that come from the activity

    void add(const Terms& place, const Outcome& outcome, bool is_active) {
        squares.selfadjointView<Eigen::Lower>().rankUpdate(place);
        seen += outcome.seen * place;
        kept += outcome.kept * place;
        if (!is_active) return;
        of_active.seen += outcome.seen;
        of_active.kept += outcome.kept;
        ++active;
    }
    void add(const EfficiencyFit& other) {
        squares += other.squares;
        seen += other.seen;
        kept += other.kept;
        of_active.seen += other.of_active.seen;
        of_active.kept += other.of_active.kept;
        active += other.active;
    }
};

}  // namespace

GammaChance::GammaChance(const GammaModel& model, const corrections::Activity& activity, double efficiency,
                         double triples, net::WorkerPool& pool) {
    for (std::size_t axis = 0; axis < 3; ++axis)
        half_[axis] = -activity.grid.low(axis);
    const Gammas of_decays(model, efficiency);
    const Positions positions(activity);
    EfficiencyFit fit;
    const auto simulate = [&](double decays, std::size_t first_stream) {
        std::vector<EfficiencyFit> fits(pieces);
        image::for_each_on(pool, pieces, [&](std::size_t piece) {
            sim::Random random(1, sim::Purpose::events, first_stream + piece);
            Gammas::HitsOfDecay scratch;
            for (std::size_t i = 0; i < static_cast<std::size_t>(decays) / pieces; ++i) {
                const bool active = positions.any() && i % 2 == 0;
                const config::Vector3 at =
                    active ? positions.in_activity(random) : positions.anywhere(random);
                fits[piece].add(terms_at(at, half_), of_decays.decay(at, random, scratch),
                                active || !positions.any());
            }
        });
        for (const EfficiencyFit& of_piece : fits)
            fit.add(of_piece);
    };
    simulate(least_decays, 0);
    const double seen_per_decay = fit.of_active.seen / least_decays;
    if (seen_per_decay > 0) {
        const double decays = std::min(seen_per_triple * triples / seen_per_decay, most_decays);
        simulate(std::max(0.0, decays - least_decays), pieces);
    }
    const Squares squares = fit.squares.selfadjointView<Eigen::Lower>();
    const Eigen::LDLT<Squares> solver(squares);
    const Terms seen = solver.solve(fit.seen);
    const Terms kept = solver.solve(fit.kept);
    seen_factors_.assign(seen.data(), seen.data() + terms);
    kept_factors_.assign(kept.data(), kept.data() + terms);
    mean_kept_ = fit.of_active.kept / fit.active;
    mean_seen_ = fit.of_active.seen / fit.of_active.kept;
}

double GammaChance::value(const std::vector<double>& factors, const config::Vector3& at, double mean) const {
    const Terms of_place = terms_at(at, half_);
    return std::max(of_place.dot(Eigen::Map<const Terms>(factors.data())), least_share * mean);
}

double GammaChance::kept(const config::Vector3& at) const {
    return std::min(1.0, value(kept_factors_, at, mean_kept_));
}

double GammaChance::seen(const config::Vector3& at) const {
    return value(seen_factors_, at, mean_seen_ * mean_kept_) / kept(at);
}

}  // namespace petacq::gammas
