#include "tools/petlm/reconstruction/tracers/gamma_chance.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "tools/petlm/reconstruction/corrections/coarse_object.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"
#include "tools/petsim/physics/compton.hpp"

namespace petacq::tracers {
namespace {

constexpr std::size_t pieces = 16;             // of the decays, whatever the number of threads
constexpr std::size_t decays = 400'000;        // simulated
constexpr std::size_t to_calibrate = 200'000;  // each time
constexpr int degree = 4;                      // of the polynomials
constexpr int terms = 35;                      // of them
constexpr double least_share = 0.02;           // of the mean, which no position falls below
constexpr double absorbed_below = 20;          // keV, in the object
constexpr double even_radius = 0.9;            // of half the width of the grid: even positions are inside
constexpr std::size_t highest = 3000;          // keV

using Terms = Eigen::Matrix<double, terms, 1>;
using Squares = Eigen::Matrix<double, terms, terms>;

/// The powers of x, y and z up to the degree.
Terms terms_at(const config::Vector3& at, const config::Vector3& middle, const config::Vector3& half) {
    std::array<std::array<double, degree + 1>, 3> powers{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const double x = (at[axis] - middle[axis]) / half[axis];
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

/// Chances by whole keV.
class OfEnergy {
  public:
    explicit OfEnergy(const corrections::EnergyWindow& window) {
        for (std::size_t energy = 0; energy <= highest; ++energy)
            accepted_.push_back(window.accepted(static_cast<double>(energy)));
    }
    [[nodiscard]] double operator()(double energy) const {
        return accepted_[std::min(static_cast<std::size_t>(std::lround(energy)), highest)];
    }

  private:
    std::vector<double> accepted_;
};

/// What a decay does to its pair.
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
          object_(model.scanner, model.object),
          crystals_(model.scanner, model.crystals),
          in_pairs_(model.pairs),
          in_gammas_(model.gammas),
          lost_of_three_(1 - corrections::taken_of_three(model.multiples)) {}

    struct Scratch {
        corrections::CoarseObject::Way way;
        corrections::Crystals::Deposits deposits;
        std::vector<corrections::CrystalHit> of_photon;
        std::vector<corrections::CrystalHit> hits;
    };
    Outcome decay(const config::Vector3& at, sim::Random& random, Scratch& scratch) const {
        scratch.hits.clear();
        for (const config::Gamma& gamma : model_.nuclide.gammas) {
            if (gamma.delay_half_life_s > 0 || !random.chance(model_.nuclide.chance(gamma, true))) continue;
            follow({at, sim::isotropic(random)}, gamma.energy_keV, random, scratch);
        }
        return outcome(scratch.hits);
    }

  private:
    void follow(sim::Ray ray, double energy, sim::Random& random, Scratch& scratch) const {
        if (!leave_object(ray, energy, random, scratch.way)) return;
        scratch.deposits.clear();
        crystals_.follow(ray, energy, random, scratch.deposits);
        if (scratch.deposits.size() == 0) return;
        crystals_.hits(scratch.deposits, scratch.of_photon);
        const auto strongest =
            std::max_element(scratch.of_photon.begin(), scratch.of_photon.end(),
                             [](const auto& a, const auto& b) { return a.energy < b.energy; });
        const double relative =
            model_.relative.empty() ? 1 : static_cast<double>(model_.relative[strongest->crystal]);
        if (!random.chance(efficiency_ * relative)) return;
        scratch.hits.insert(scratch.hits.end(), scratch.of_photon.begin(), scratch.of_photon.end());
    }
    /// Whether it comes out with an energy that matters.
    bool leave_object(sim::Ray& ray, double& energy, sim::Random& random,
                      corrections::CoarseObject::Way& way) const {
        if (object_.empty()) return true;
        static const double at_511 = sim::klein_nishina_total(corrections::photopeak);
        for (;;) {
            object_.trace(ray, way);
            const double part = random.exponential() * at_511 / sim::klein_nishina_total(energy);
            if (part >= way.thickness()) return true;
            ray.advance(way.distance(part));
            const double cosine = sim::draw_compton_cosine(energy, random);
            energy *= sim::compton_share(energy, cosine);
            if (energy < absorbed_below) return false;
            ray.direction = sim::turned(ray.direction, cosine, sim::azimuth(random));
        }
    }
    [[nodiscard]] Outcome outcome(const std::vector<corrections::CrystalHit>& hits) const {
        Outcome out;
        double none_seen = 1;  // and the pair kept
        for (const auto& hit : hits) {
            const double lost = lost_of_three_ * in_pairs_(hit.energy);
            out.kept *= 1 - lost;
            none_seen *= std::max(0.0, 1 - lost - in_gammas_(hit.energy));
        }
        if (model_.policy == config::GammaPolicy::nearest) {
            out.seen = out.kept - none_seen;
            return out;
        }
        for (std::size_t i = 0; i < hits.size(); ++i) {
            double with = in_gammas_(hits[i].energy);
            for (std::size_t k = 0; k < hits.size(); ++k) {
                if (k == i) continue;
                const double lost = lost_of_three_ * in_pairs_(hits[k].energy);
                const bool alone = model_.policy == config::GammaPolicy::only_one;
                with *= std::max(0.0, 1 - lost - (alone ? in_gammas_(hits[k].energy) : 0));
            }
            out.seen += with;
        }
        return out;
    }

    const GammaModel& model_;
    double efficiency_;
    corrections::CoarseObject object_;
    corrections::Crystals crystals_;
    OfEnergy in_pairs_;
    OfEnergy in_gammas_;
    double lost_of_three_;
};

/// Draws positions.
class Positions {
  public:
    explicit Positions(const corrections::Activity& activity) : grid_(activity.grid) {
        double sum = 0;
        for (const float value : activity.of_voxel)
            until_.push_back(sum += std::max(0.0, static_cast<double>(value)));
    }
    [[nodiscard]] bool any() const { return !until_.empty() && until_.back() > 0; }
    [[nodiscard]] config::Vector3 in_activity(sim::Random& random) const {
        const auto found = std::upper_bound(until_.begin(), until_.end(), random.uniform() * until_.back());
        const auto voxel = static_cast<std::size_t>(std::min(found, until_.end() - 1) - until_.begin());
        const std::array<std::size_t, 3> cell = {voxel % grid_.n[0], voxel / grid_.n[0] % grid_.n[1],
                                                 voxel / grid_.n[0] / grid_.n[1]};
        config::Vector3 at{};
        for (std::size_t axis = 0; axis < 3; ++axis)
            at[axis] =
                grid_.low(axis) + (static_cast<double>(cell[axis]) + random.uniform()) * grid_.voxel_mm;
        return at;
    }
    /// In the cylinder inside the grid.
    [[nodiscard]] config::Vector3 anywhere(sim::Random& random) const {
        const double radius = even_radius * std::min(-grid_.low(0), -grid_.low(1));
        const double r = radius * std::sqrt(random.uniform());
        const double angle = 2 * std::numbers::pi * random.uniform();
        return {r * std::cos(angle), r * std::sin(angle), -grid_.low(2) * random.symmetric()};
    }

  private:
    image::Grid grid_;
    std::vector<double> until_;  // [voxel] sum of the activity up to its end
};

/// Calls `use(at, outcome, whether it comes from the activity)` for each decay; `Sums` has one for each
/// piece.
template <class Sums, class Use>
Sums simulate(const Gammas& gammas, const Positions& positions, std::size_t count, bool everywhere,
              net::WorkerPool& pool, Use&& use) {
    std::vector<Sums> sums(pieces);
    image::for_each_on(pool, pieces, [&](std::size_t piece) {
        sim::Random random(1, sim::Purpose::events, piece);
        Gammas::Scratch scratch;
        for (std::size_t i = 0; i < count / pieces; ++i) {
            const bool active = positions.any() && (!everywhere || i % 2 == 0);
            const config::Vector3 at = active ? positions.in_activity(random) : positions.anywhere(random);
            use(sums[piece], at, gammas.decay(at, random, scratch), active || !positions.any());
        }
    });
    for (std::size_t piece = 1; piece < pieces; ++piece)
        sums[0].add(sums[piece]);
    return sums[0];
}

struct Means {
    double seen = 0;
    double kept = 0;
    void add(const Means& other) {
        seen += other.seen;
        kept += other.kept;
    }
};

struct Fit {
    Squares squares = Squares::Zero();
    Terms seen = Terms::Zero();
    Terms kept = Terms::Zero();
    Means means;
    double active = 0;
    void add(const Fit& other) {
        squares += other.squares;
        seen += other.seen;
        kept += other.kept;
        means.add(other.means);
        active += other.active;
    }
};

}  // namespace

GammaChance::GammaChance(const GammaModel& model, const corrections::Activity& activity, double efficiency,
                         net::WorkerPool& pool) {
    for (std::size_t axis = 0; axis < 3; ++axis)
        half_[axis] = -activity.grid.low(axis);
    const Fit fit =
        simulate<Fit>(Gammas(model, efficiency), Positions(activity), decays, true, pool,
                      [&](Fit& sums, const config::Vector3& at, const Outcome& outcome, bool active) {
                          const Terms of_place = terms_at(at, middle_, half_);
                          sums.squares.selfadjointView<Eigen::Lower>().rankUpdate(of_place);
                          sums.seen += outcome.seen * of_place;
                          sums.kept += outcome.kept * of_place;
                          if (!active) return;
                          sums.means.add({outcome.seen, outcome.kept});
                          ++sums.active;
                      });
    const Squares squares = fit.squares.selfadjointView<Eigen::Lower>();
    const Eigen::LDLT<Squares> solver(squares);
    const Terms seen = solver.solve(fit.seen);
    const Terms kept = solver.solve(fit.kept);
    seen_factors_.assign(seen.data(), seen.data() + terms);
    kept_factors_.assign(kept.data(), kept.data() + terms);
    mean_kept_ = fit.means.kept / fit.active;
    mean_seen_ = fit.means.seen / fit.means.kept;
}

double GammaChance::value(const std::vector<double>& factors, const config::Vector3& at, double mean) const {
    const Terms of_place = terms_at(at, middle_, half_);
    return std::max(of_place.dot(Eigen::Map<const Terms>(factors.data())), least_share * mean);
}

double GammaChance::kept(const config::Vector3& at) const {
    return std::min(1.0, value(kept_factors_, at, mean_kept_));
}

double GammaChance::seen(const config::Vector3& at) const {
    return value(seen_factors_, at, mean_seen_ * mean_kept_) / kept(at);
}

double efficiency_of(const GammaModel& model, const corrections::Activity& activity, double share,
                     net::WorkerPool& pool) {
    const Positions positions(activity);
    const auto seen_with = [&](double efficiency) {
        const Means means =
            simulate<Means>(Gammas(model, efficiency), positions, to_calibrate, false, pool,
                            [](Means& sums, const config::Vector3&, const Outcome& outcome, bool) {
                                sums.add({outcome.seen, outcome.kept});
                            });
        return means.seen / means.kept;
    };
    // It grows nearly as the efficiency does.
    double efficiency = 0.5;
    for (int i = 0; i < 4; ++i) {
        const double seen = seen_with(efficiency);
        if (!(seen > 0)) return 1;
        efficiency = std::min(1.0, efficiency * share / seen);
    }
    return efficiency;
}

}  // namespace petacq::tracers
