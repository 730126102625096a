#include "tools/petlm/reconstruction/gammas/spurious_pairs.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tools/petlm/reconstruction/gammas/photon_flight.hpp"
#include "tools/petlm/reconstruction/gammas/positions.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"

namespace petacq::gammas {
namespace {

constexpr std::size_t parts = 16;       // of the places, whatever the number of threads
constexpr std::size_t samples = 32;     // of each photon at a place
constexpr std::size_t places_told = 2;  // of each part
constexpr double least_places = 5'000;  // of decays
constexpr double most_places = 100'000;
// The number of spurious pairs then has a smaller error than counting the prompts gives it.
constexpr double places_per_prompt = 0.25;

/// A place where a photon may be found as one of a pair.
struct WeightedHit {
    std::uint32_t crystal;
    double weight;  ///< chance, if no other photon makes a multiple
};

/// The photons of decays at one place. What becomes of a gamma has nothing to do with the annihilation
/// photons and the other gammas of its decay, so that each sample of one stands beside each sample of
/// another.
class DecaysAtPlace {
  public:
    /// `relative`: as of GammaModel; the model itself has none.
    DecaysAtPlace(const GammaModel& model, const std::vector<float>& relative, double efficiency)
        : model_(model),
          relative_(relative),
          flight_(model),
          efficiency_(efficiency),
          lost_of_three_(1 - corrections::taken_of_three(model.multiples)) {
        for (const config::Gamma& gamma : model.nuclide.gammas)
            gammas_.push_back({&gamma, gamma.delay_half_life_s == 0, {}, {}, 0, 0});
    }

    void follow(const config::Vector3& at, sim::Random& random) {
        const double radians = draw_angle(random);
        annihilation_hits_.clear();
        annihilation_own_pairs_.clear();
        pairs_.clear();
        annihilation_spared_ = 0;
        annihilation_singles_ = 0;
        for (std::size_t i = 0; i < samples; ++i) {
            sim::Ray ray{at, sim::isotropic(random)};
            flight_.follow(ray, radians, corrections::photopeak, random, scratch_, first_);
            for (double& x : ray.direction)
                x = -x;
            flight_.follow(ray, radians, corrections::photopeak, random, scratch_, second_);
            const double first = spared(first_);
            const double second = spared(second_);
            annihilation_spared_ += first * second / samples;
            annihilation_singles_ += (singles_of(first_) + singles_of(second_)) / samples;
            add_hits(first_, second, annihilation_hits_);
            add_hits(second_, first, annihilation_hits_);
            add_own_pairs(first_, second, annihilation_own_pairs_);
            add_own_pairs(second_, first, annihilation_own_pairs_);
            first_hits_.clear();
            second_hits_.clear();
            add_hits(first_, 1, first_hits_);
            add_hits(second_, 1, second_hits_);
            for (const WeightedHit& a : first_hits_)
                for (const WeightedHit& b : second_hits_)
                    if (a.crystal != b.crystal) pairs_.push_back({a.crystal, b.crystal, a.weight * b.weight});
        }
        for (GammaSamples& gamma : gammas_) {
            gamma.hits.clear();
            gamma.own_pairs.clear();
            gamma.lost = gamma.singles = 0;
            for (std::size_t i = 0; i < samples; ++i) {
                flight_.follow({at, sim::isotropic(random)}, radians, gamma.gamma->energy_keV, random,
                               scratch_, first_);
                gamma.lost += (1 - spared(first_)) / samples;
                gamma.singles += singles_of(first_) / samples;
                add_hits(first_, 1, gamma.hits);
                add_own_pairs(first_, 1, gamma.own_pairs);
            }
        }
    }

    /// Singles in the window of the pairs for each decay.
    [[nodiscard]] double singles(bool positron) const {
        double sum = positron ? annihilation_singles_ : 0;
        for (const GammaSamples& gamma : gammas_)
            sum += model_.nuclide.chance(*gamma.gamma, positron) * gamma.singles;
        return sum;
    }
    /// Calls `use(crystal, crystal, chance)` for pairs of the annihilation photons of a decay with a
    /// positron.
    template <class Use>
    void for_each_pair(Use&& use) const {
        use_all(pairs_, gammas_spared(true, gammas_.size(), gammas_.size()) / samples, use);
    }
    /// Likewise for pairs with a gamma, or of two, of a decay with or without a positron; and for the pairs
    /// that one photon makes by itself, since it may leave energies of the window in two units.
    template <class Use>
    void for_each_spurious(bool positron, Use&& use) const {
        constexpr double combinations = samples * samples;
        const double annihilation_spared = positron ? annihilation_spared_ : 1;
        if (positron) {
            use_all(annihilation_own_pairs_, gammas_spared(true, gammas_.size(), gammas_.size()) / samples,
                    use);
        }
        for (std::size_t k = 0; k < gammas_.size(); ++k) {
            const GammaSamples& gamma = gammas_[k];
            const double beside = gamma.at_once ? gammas_spared(positron, k, k) * annihilation_spared : 1;
            use_all(gamma.own_pairs, model_.nuclide.chance(*gamma.gamma, positron) * beside / samples, use);
            const double emitted = emitted_at_once(gammas_[k], positron);
            if (!(emitted > 0)) continue;
            if (positron) {
                combine(annihilation_hits_, gammas_[k].hits,
                        emitted * gammas_spared(true, k, k) / combinations, use);
            }
            for (std::size_t l = 0; l < k; ++l) {
                const double both = emitted * emitted_at_once(gammas_[l], positron) *
                                    gammas_spared(positron, k, l) * annihilation_spared;
                if (both > 0) combine(gammas_[k].hits, gammas_[l].hits, both / combinations, use);
            }
        }
    }

  private:
    struct CrystalPair {
        std::uint32_t a;
        std::uint32_t b;
        double chance;
    };
    struct GammaSamples {
        const config::Gamma* gamma;
        bool at_once;                        ///< with the positron
        std::vector<WeightedHit> hits;       ///< of all samples
        std::vector<CrystalPair> own_pairs;  ///< of all samples; the annihilation photons make no multiple
        double lost = 0;                     ///< mean chance that it makes a multiple of a pair
        double singles = 0;                  ///< mean number of its hits that are found
    };

    /// Of the scanner at the time of the decays.
    [[nodiscard]] double draw_angle(sim::Random& random) const {
        const corrections::AnglesInTime& angles = model_.angles;
        double chance = angles.radians.size() == 1 ? 0 : random.uniform();
        std::size_t i = 0;
        while (i + 1 < angles.radians.size() && chance >= angles.shares[i])
            chance -= angles.shares[i++];
        return angles.radians[i];
    }
    [[nodiscard]] double emitted_at_once(const GammaSamples& gamma, bool positron) const {
        return gamma.at_once ? model_.nuclide.chance(*gamma.gamma, positron) : 0;
    }
    [[nodiscard]] double singles_of(const std::vector<PhotonHit>& hits) const {
        double sum = 0;
        for (const PhotonHit& hit : hits)
            sum += efficiency_ * hit.in_pairs *
                   (relative_.empty() ? 1.0 : static_cast<double>(relative_[hit.crystal]));
        return sum;
    }
    /// That a photon makes no multiple of a pair of others.
    [[nodiscard]] double spared(const std::vector<PhotonHit>& hits) const {
        double chance = 1;
        for (const PhotonHit& hit : hits)
            chance *= 1 - lost_of_three_ * hit.in_pairs;
        return 1 - efficiency_ * (1 - chance);
    }
    /// That none of the gammas makes a multiple, but for two of them.
    [[nodiscard]] double gammas_spared(bool positron, std::size_t but, std::size_t and_but) const {
        double chance = 1;
        for (std::size_t i = 0; i < gammas_.size(); ++i) {
            if (i != but && i != and_but)
                chance *= 1 - emitted_at_once(gammas_[i], positron) * gammas_[i].lost;
        }
        return chance;
    }
    /// The hits of a photon in the window, where none of its others is in it.
    void add_hits(const std::vector<PhotonHit>& hits, double others, std::vector<WeightedHit>& out) const {
        for (std::size_t i = 0; i < hits.size(); ++i) {
            double weight = efficiency_ * others * hits[i].in_pairs;
            for (std::size_t k = 0; k < hits.size(); ++k)
                if (k != i) weight *= 1 - lost_of_three_ * hits[k].in_pairs;
            if (weight > 0) out.push_back({hits[i].crystal, weight});
        }
    }
    /// The pairs of hits of one photon.
    void add_own_pairs(const std::vector<PhotonHit>& hits, double others,
                       std::vector<CrystalPair>& out) const {
        for (std::size_t i = 0; i < hits.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                double chance = efficiency_ * others * hits[i].in_pairs * hits[j].in_pairs;
                for (std::size_t k = 0; k < hits.size(); ++k)
                    if (k != i && k != j) chance *= 1 - lost_of_three_ * hits[k].in_pairs;
                if (chance > 0 && hits[i].crystal != hits[j].crystal)
                    out.push_back({hits[i].crystal, hits[j].crystal, chance});
            }
        }
    }
    template <class Use>
    static void use_all(const std::vector<CrystalPair>& pairs, double factor, Use& use) {
        for (const CrystalPair& pair : pairs)
            use(pair.a, pair.b, factor * pair.chance);
    }
    template <class Use>
    static void combine(const std::vector<WeightedHit>& first, const std::vector<WeightedHit>& second,
                        double factor, Use& use) {
        for (const WeightedHit& a : first)
            for (const WeightedHit& b : second)
                if (a.crystal != b.crystal) use(a.crystal, b.crystal, factor * a.weight * b.weight);
    }

    const GammaModel& model_;
    const std::vector<float>& relative_;
    PhotonFlight flight_;
    double efficiency_;
    double lost_of_three_;
    PhotonFlight::InFlight scratch_;
    std::vector<PhotonHit> first_;
    std::vector<PhotonHit> second_;
    std::vector<WeightedHit> first_hits_;
    std::vector<WeightedHit> second_hits_;
    std::vector<WeightedHit> annihilation_hits_;  // each as if its partner makes no multiple
    std::vector<CrystalPair> annihilation_own_pairs_;
    std::vector<CrystalPair> pairs_;   // of annihilation photons, of all samples
    double annihilation_spared_ = 1;   // mean chance that neither makes a multiple
    double annihilation_singles_ = 0;  // mean number of hits that are found
    std::vector<GammaSamples> gammas_;
};

}  // namespace

SpuriousPairs::SpuriousPairs(const GammaModel& model, const corrections::Activity& activity,
                             double efficiency, const corrections::OfPair& found, double prompts,
                             net::WorkerPool& pool)
    : map_(model.scanner), efficiency_(efficiency) {
    // What differs from crystal to crystal is part of `found`.
    GammaModel even = model;
    even.relative.clear();
    const Positions positions(activity);
    if (!positions.any()) return;
    const double captures = std::max(0.0, 1 / model.nuclide.branching_ratio - 1);  // for each positron
    struct CountedPairs {
        double singles = 0;
        double pairs = 0;
        double spurious = 0;
    };
    const auto places_of_part =
        static_cast<std::size_t>(std::clamp(places_per_prompt * prompts, least_places, most_places) / parts);
    std::vector<CountedPairs> sums(parts);
    places_.resize(parts * places_told);
    std::vector<corrections::NodePairs> maps(parts, map_);
    image::for_each_on(pool, parts, [&](std::size_t piece) {
        sim::Random random(1, sim::Purpose::events, piece);
        DecaysAtPlace decays(even, model.relative, efficiency);
        CountedPairs& sum = sums[piece];
        const auto add_spurious = [&](bool positron, double times) {
            decays.for_each_spurious(positron, [&](std::uint32_t a, std::uint32_t b, double weight) {
                const double chance = times * weight * found(a, b);
                if (!(chance > 0)) return;
                sum.spurious += chance;
                maps[piece].add(a, b, times * weight);
            });
        };
        for (std::size_t i = 0; i < places_of_part; ++i) {
            const config::Vector3 at = positions.in_activity(random);
            if (i < places_told) places_[piece * places_told + i] = at;
            decays.follow(at, random);
            decays.for_each_pair(
                [&](std::uint32_t a, std::uint32_t b, double weight) { sum.pairs += weight * found(a, b); });
            sum.singles += decays.singles(true) + captures * decays.singles(false);
            add_spurious(true, 1);
            if (captures > 0) add_spurious(false, captures);
        }
    });
    for (std::size_t piece = 0; piece < parts; ++piece) {
        singles_ += sums[piece].singles;
        pairs_ += sums[piece].pairs;
        spurious_ += sums[piece].spurious;
        map_.add(maps[piece]);
    }
    double squares = 0;
    for (const CountedPairs& sum : sums)
        squares += std::pow(sum.spurious - per_pair() * sum.pairs, 2);
    if (spurious_ > 0) relative_error_ = std::sqrt(squares * parts / (parts - 1.0)) / spurious_;
    map_.finish();
}

}  // namespace petacq::gammas
