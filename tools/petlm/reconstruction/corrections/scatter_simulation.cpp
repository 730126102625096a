#include "tools/petlm/reconstruction/corrections/scatter_simulation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "tools/petlm/reconstruction/corrections/coarse_object.hpp"
#include "tools/petlm/reconstruction/corrections/crystal_hits.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"
#include "tools/petsim/physics/attenuation.hpp"
#include "tools/petsim/physics/compton.hpp"

namespace petacq::corrections {
namespace {

constexpr std::size_t pieces = 8;        // of the annihilations, whatever the number of threads
constexpr double least_accepted = 1e-4;  // a photon that the window accepts less often is lost
constexpr double margin = 1.1;           // of the annihilations that a variance seems to need
constexpr double most_growth = 16;       // of the annihilations at once: a large variance is known badly
constexpr int tries = 50;                // to draw a point of a voxel inside the object

/// What depends on the energy of a photon alone, by whole keV.
struct OfEnergy {
    std::vector<double> accepted;
    std::vector<double> low;   ///< of these, the share found below the photopeak
    std::vector<double> more;  ///< attenuation of the object divided by that at 511 keV

    explicit OfEnergy(const EnergyWindow& window) {
        const double total = sim::klein_nishina_total(photopeak);
        for (int energy = 0; energy <= 2 * static_cast<int>(photopeak); ++energy) {
            accepted.push_back(window.accepted(energy));
            low.push_back(window.accepted_low(energy) / std::max(accepted.back(), least_accepted));
            more.push_back(sim::klein_nishina_total(energy) / total);
        }
    }
    [[nodiscard]] static std::size_t cell(double energy) {
        return static_cast<std::size_t>(std::lround(energy));
    }
};

struct Photon {
    sim::Ray ray;
    double energy = photopeak;
};

/// Follows annihilations.
class Histories {
  public:
    Histories(const config::Scanner& scanner, const AttenuatingObject& object, const Activity& activity,
              const Detection& detection)
        : object_(scanner, object),
          crystals_(scanner, detection.crystals),
          activity_(activity),
          detection_(detection),
          of_energy_(detection.window),
          lost_of_three_(1 - taken_of_three(detection.multiples)),
          of_angle_(scanner.geometry.crystal_count()),
          until_(activity.of_voxel.size()) {
        double sum = 0;
        for (std::size_t i = 0; i < until_.size(); ++i)
            until_[i] = sum += static_cast<double>(activity.of_voxel[i]);
        double shares = 0;
        for (const double share : detection.angles.shares)
            until_angle_.push_back(shares += share);
    }
    [[nodiscard]] bool any() const { return !object_.empty() && !until_.empty() && until_.back() > 0; }

    /// So many, spread over the whole activity; calls one of both functions with (a, b, weight, chance that
    /// it is found) for each pair; a and b are numbers of crystals at an angle.
    template <class Unscattered, class Scattered>
    ScatterSimulation::Sums follow(std::size_t count, sim::Random random, Unscattered&& unscattered,
                                   Scattered&& scattered_pair) const {
        ScatterSimulation::Sums sums;
        CoarseObject::Way ways[2];  // NOLINT(modernize-avoid-c-arrays)
        std::size_t voxel = 0;
        Arrived arrived;
        for (std::size_t i = 0; i < count; ++i) {
            const double place =
                (static_cast<double>(i) + random.uniform()) / static_cast<double>(count) * until_.back();
            while (voxel + 1 < until_.size() && until_[voxel] <= place)
                ++voxel;
            arrived.angle = draw_angle(random);
            Photon photons[2];  // NOLINT(modernize-avoid-c-arrays)
            photons[0].ray = {point_in(std::min(voxel, until_.size() - 1), random), sim::isotropic(random)};
            photons[1].ray = photons[0].ray;
            for (double& x : photons[1].ray.direction)
                x = -x;
            for (int k = 0; k < 2; ++k)
                object_.trace(photons[k].ray, ways[k]);
            const double thickness = ways[0].thickness() + ways[1].thickness();
            detect(photons, std::exp(-thickness), sums.trues, sums.low, random, arrived, unscattered);
            const double chance = -std::expm1(-thickness);
            if (!(chance > 0)) continue;
            const double part = -std::log1p(-random.uniform() * chance);
            const int who = part < ways[0].thickness() ? 0 : 1;
            Photon& scattered = photons[who];
            scattered.ray.advance(ways[who].distance(
                who == 0 ? part : std::min(part - ways[0].thickness(), ways[1].thickness() * (1 - 1e-12))));
            if (!scatter(scattered, random) || !fly(scattered, ways[who], random, true)) continue;
            // Photon 1 has not scattered if photon 2 was the first to do so.
            if (who == 0 && !fly(photons[1], ways[1], random, false)) continue;
            detect(photons, chance, sums.scattered, sums.low, random, arrived, scattered_pair);
        }
        return sums;
    }

  private:
    [[nodiscard]] std::size_t draw_angle(sim::Random& random) const {
        if (until_angle_.size() == 1) return 0;
        const auto next = std::upper_bound(until_angle_.begin(), until_angle_.end() - 1,
                                           random.uniform() * until_angle_.back());
        return static_cast<std::size_t>(next - until_angle_.begin());
    }
    /// In the frame of the scanner, in which its crystals stand still.
    [[nodiscard]] sim::Ray of_scanner(const sim::Ray& ray, std::size_t angle) const {
        const double radians = detection_.angles.radians[angle];
        if (radians == 0) return ray;
        return {config::turned(ray.at, -radians), config::turned(ray.direction, -radians)};
    }
    [[nodiscard]] Vector3 point_in(std::size_t voxel, sim::Random& random) const {
        const image::Grid& grid = activity_.grid;
        const std::array<std::size_t, 3> cell = {voxel % grid.n[0], voxel / grid.n[0] % grid.n[1],
                                                 voxel / grid.n[0] / grid.n[1]};
        Vector3 at{};
        for (int i = 0; i < tries; ++i) {
            for (std::size_t axis = 0; axis < 3; ++axis)
                at[axis] =
                    grid.low(axis) + (static_cast<double>(cell[axis]) + random.uniform()) * grid.voxel_mm;
            if (object_.per_mm(at) > 0) break;
        }
        return at;
    }
    /// Whether the window may accept it after that.
    bool scatter(Photon& photon, sim::Random& random) const {
        const double cosine = sim::draw_compton_cosine(photon.energy, random);
        photon.energy *= sim::compton_share(photon.energy, cosine);
        photon.ray.direction = sim::turned(photon.ray.direction, cosine, sim::azimuth(random));
        return of_energy_.accepted[OfEnergy::cell(photon.energy)] > least_accepted;
    }
    /// Out of the object; `way` is traced first if `trace`.
    bool fly(Photon& photon, CoarseObject::Way& way, sim::Random& random, bool trace) const {
        for (;; trace = true) {
            if (trace) object_.trace(photon.ray, way);
            const double part = random.exponential() / of_energy_.more[OfEnergy::cell(photon.energy)];
            if (part >= way.thickness()) return true;
            photon.ray.advance(way.distance(part));
            if (!scatter(photon, random)) return false;
        }
    }
    /// What the crystals find of both photons.
    struct Arrived {
        std::size_t angle = 0;
        Crystals::Deposits deposits;
        std::vector<CrystalHit> hits;
    };
    template <class Use>
    void detect(const Photon (&photons)[2], double weight, double& sum, double& low, sim::Random& random,
                Arrived& arrived, Use&& use) const {
        arrived.deposits.clear();
        crystals_.follow(of_scanner(photons[0].ray, arrived.angle), photons[0].energy, random,
                         arrived.deposits);
        const std::size_t of_first = arrived.deposits.size();
        if (of_first == 0) return;
        crystals_.follow(of_scanner(photons[1].ray, arrived.angle), photons[1].energy, random,
                         arrived.deposits);
        crystals_.hits(arrived.deposits, arrived.hits);
        for (std::size_t i = 1; i < arrived.hits.size(); ++i) {
            const CrystalHit& one = arrived.hits[i];
            const std::size_t of_one = OfEnergy::cell(one.energy);
            for (std::size_t j = 0; j < i; ++j) {
                const CrystalHit& other = arrived.hits[j];
                const std::size_t of_other = OfEnergy::cell(other.energy);
                const double both = weight * of_energy_.accepted[of_one] * of_energy_.accepted[of_other] *
                                    taken_beside(arrived.hits, i, j);
                if (!(both > least_accepted * least_accepted)) continue;
                const auto first = static_cast<std::uint32_t>(arrived.angle) * of_angle_;
                const std::uint32_t a = first + std::min(one.crystal, other.crystal);
                const std::uint32_t b = first + std::max(one.crystal, other.crystal);
                const double found = detection_.found(a, b);
                // Neighbours that share a photon are no good pair. They must not weigh on those beside them.
                if (!(found > 0) && (i < of_first) == (j < of_first)) continue;
                sum += both * found;
                low += both * found * (of_energy_.low[of_one] + of_energy_.low[of_other]) / 2;
                use(a, b, both, found);
            }
        }
    }

    /// By the policy on multiples, as there may be others.
    [[nodiscard]] double taken_beside(const std::vector<CrystalHit>& hits, std::size_t i,
                                      std::size_t j) const {
        double taken = 1;
        for (std::size_t k = 0; k < hits.size(); ++k)
            if (k != i && k != j)
                taken *= 1 - lost_of_three_ * of_energy_.accepted[OfEnergy::cell(hits[k].energy)];
        return taken;
    }

    CoarseObject object_;
    Crystals crystals_;
    const Activity& activity_;
    const Detection& detection_;
    OfEnergy of_energy_;
    double lost_of_three_;
    std::uint32_t of_angle_;           ///< numbers of crystals
    std::vector<double> until_;        ///< [voxel] sum of the activity up to its end
    std::vector<double> until_angle_;  ///< [angle] likewise of the shares
};

/// Of counts() of these pairs: the mean of its variance, divided by that of its square. From the difference
/// of two halves of the annihilations, which know nothing of each other. Infinite if they agree in no pair.
double variance_of(const std::vector<NodePairs>& of_pieces, std::span<const image::Pair> pairs) {
    if (pairs.empty()) return std::numeric_limits<double>::infinity();
    NodePairs odd = of_pieces[0];
    NodePairs even = of_pieces[1];
    for (std::size_t part = 2; part < of_pieces.size(); ++part)
        (part % 2 == 0 ? odd : even).add(of_pieces[part]);
    odd.finish();
    even.finish();
    double difference = 0;
    double product = 0;
    for (const image::Pair p : pairs) {
        const double one = odd.counts(p.a % odd.crystals(), p.b % odd.crystals());
        const double other = even.counts(p.a % even.crystals(), p.b % even.crystals());
        difference += (one - other) * (one - other);
        product += one * other;
    }
    return product > 0 ? difference / (4 * product) : std::numeric_limits<double>::infinity();
}

/// Annihilations still needed after so many.
std::size_t more_annihilations(std::size_t done, const ScatterPrecision& wanted, double variance) {
    if (wanted.pairs.empty() || variance <= wanted.variance) return 0;
    const double factor = std::min(margin * variance / wanted.variance, most_growth);
    const double all =
        std::min(factor * static_cast<double>(done), static_cast<double>(wanted.most_annihilations));
    return static_cast<std::size_t>(all) - done;
}

}  // namespace

double taken_of_three(config::MultiplesPolicy policy) {
    using Policy = config::MultiplesPolicy;
    switch (policy) {
        case Policy::take_all_goods:
            return 1;
        case Policy::take_winner_of_goods:
        case Policy::take_winner_if_is_good:
            return 0.5;
        case Policy::remove_multiples:
        case Policy::take_if_only_one_good:
        case Policy::take_winner_if_all_are_goods:
            break;
    }
    return 0;
}

ScatterSimulation::ScatterSimulation(const config::Scanner& scanner, const AttenuatingObject& object,
                                     const Activity& activity, const Detection& detection,
                                     std::size_t annihilations, net::WorkerPool& pool,
                                     const ScatterPrecision& precision)
    : pairs_(scanner) {
    const Histories histories(scanner, object, activity, detection);
    if (!histories.any()) return;
    std::vector<Sums> sums(pieces);
    std::vector<NodePairs> pairs(pieces, pairs_);
    std::vector<std::vector<double>> unscattered(pieces, std::vector<double>(detection.bins));
    std::size_t done = 0;
    for (std::uint64_t batch = 0; annihilations > 0; ++batch) {
        image::for_each_on(pool, pieces, [&](std::size_t piece) {
            sums[piece] += histories.follow(
                annihilations * (piece + 1) / pieces - annihilations * piece / pieces,
                sim::Random(1, sim::Purpose::events, batch * pieces + piece),
                [&](std::uint32_t a, std::uint32_t b, double weight, double found) {
                    if (detection.bins > 0) unscattered[piece][detection.bin_of(a, b)] += weight * found;
                },
                [&](std::uint32_t number_a, std::uint32_t number_b, double weight, double) {
                    pairs[piece].add(number_a % pairs_.crystals(), number_b % pairs_.crystals(), weight);
                });
        });
        done += annihilations;
        variance_ = variance_of(pairs, precision.pairs);
        annihilations =
            done < precision.most_annihilations ? more_annihilations(done, precision, variance_) : 0;
    }
    unscattered_.resize(detection.bins);
    for (std::size_t piece = 0; piece < pieces; ++piece) {
        sums_ += sums[piece];
        for (std::size_t i = 0; i < unscattered_.size(); ++i)
            unscattered_[i] += unscattered[piece][i];
        pairs_.add(pairs[piece]);
    }
    pairs_.finish();
}

bool scatters_in_crystals(const config::Scanner& scanner, const AttenuatingObject& object,
                          const Activity& activity, Detection detection, std::size_t annihilations,
                          net::WorkerPool& pool) {
    if (!detection.crystals.deep || !detection.window.low_share) return true;
    const auto difference = [&](bool scatters) {
        detection.crystals.scatters = scatters;
        const ScatterSimulation simulation(scanner, object, activity, detection, annihilations, pool);
        return std::abs(*detection.window.low_share - simulation.low_share());
    };
    return difference(true) <= difference(false);
}

}  // namespace petacq::corrections
