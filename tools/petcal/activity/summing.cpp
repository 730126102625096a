#include "tools/petcal/activity/summing.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tools/petlm/reconstruction/corrections/crystal_hits.hpp"
#include "tools/petlm/reconstruction/corrections/module_losses.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"

namespace petacq::petcal {
namespace {

using Deposits = corrections::Crystals::Deposits;

constexpr std::size_t pieces = 32;  // whatever the number of threads
constexpr std::size_t decays = 400'000;
constexpr double model_error = 0.1;  // of the correction: materials, gaps, and scatter in the source

/// Of a decay: the photons of its annihilation, then its gammas.
constexpr std::uint32_t first_photon = 1;
constexpr std::uint32_t second_photon = 2;

struct UnitHit {
    std::uint32_t crystal = 0;
    std::uint32_t unit = 0;
    std::uint32_t photons = 0;  ///< bit by bit, which ones left energy here
    double in_pairs = 0;        ///< chance that the window of the pairs accepts it
    double in_gammas = 0;
};

struct Rates {
    double pairs = 0;
    double gammas = 0;
    double triples = 0;
};

struct SummingRates {
    Rates alone;
    Rates together;
    [[nodiscard]] Summing summing() const {
        Summing out;
        const auto ratio = [](double a, double b) { return b != 0 ? a / b : 1; };
        out.pairs = ratio(together.pairs, alone.pairs);
        out.gammas = ratio(together.gammas, alone.gammas);
        out.triples = ratio(together.triples, alone.triples);
        out.factor = out.pairs * out.gammas / out.triples;
        return out;
    }
    void add(const SummingRates& other) {
        for (const auto rates : {&SummingRates::alone, &SummingRates::together}) {
            (this->*rates).pairs += (other.*rates).pairs;
            (this->*rates).gammas += (other.*rates).gammas;
            (this->*rates).triples += (other.*rates).triples;
        }
    }
};

/// One of the pieces into which the decays are divided.
class DecaySimulation {
  public:
    DecaySimulation(const SummingModel& model, const corrections::Crystals& crystals,
                    const std::vector<std::uint32_t>& units, std::size_t index)
        : model_(model), crystals_(crystals), units_(units), random_(1, sim::Purpose::events, index) {}

    void decay() {
        count_ = 0;
        sim::Ray ray{model_.source.draw(random_), sim::isotropic(random_)};
        const config::Vector3 at = ray.at;
        const bool positron = random_.chance(model_.nuclide.branching_ratio);
        if (positron) {
            follow(ray, corrections::photopeak);
            for (double& x : ray.direction)
                x = -x;
            follow(ray, corrections::photopeak);
        }
        const std::size_t annihilation = count_;
        const auto emit = [&](const config::Gamma& gamma) {
            if (gamma.delay_half_life_s > 0 || !random_.chance(model_.nuclide.chance(gamma, positron)))
                return false;
            follow({at, sim::isotropic(random_)}, gamma.energy_keV);
            return true;
        };
        for (const config::Gamma& gamma : model_.nuclide.gammas)
            if (&gamma != &model_.gamma) emit(gamma);
        const bool measured = emit(model_.gamma);
        hits_alone();
        hits_together();
        sums_.alone.gammas += gammas(alone_);
        sums_.together.gammas += gammas(together_);
        if (positron) {
            sums_.alone.pairs += pairs(alone_);
            sums_.together.pairs += pairs(together_);
        }
        take_triples(positron, annihilation, measured);
    }
    [[nodiscard]] const SummingRates& sums() const { return sums_; }

  private:
    void follow(const sim::Ray& ray, double energy) {
        if (photons_.size() == count_) photons_.emplace_back();
        photons_[count_].clear();
        crystals_.follow(ray, energy, random_, photons_[count_++]);
    }

    void add_hits(const Deposits& deposits, std::uint32_t photons, std::vector<UnitHit>& out) {
        crystals_.hits(deposits, found_);
        for (const corrections::CrystalHit& hit : found_)
            out.push_back({hit.crystal, units_[hit.crystal], photons, model_.pairs.accepted(hit.energy),
                           model_.gammas.accepted(hit.energy)});
    }
    void hits_alone() {
        alone_.clear();
        for (std::size_t i = 0; i < count_; ++i)
            add_hits(photons_[i], 1U << i, alone_);
    }
    /// REQUIRES: hits_alone().
    void hits_together() {
        sum_.clear();
        for (std::size_t i = 0; i < count_; ++i)
            sum_.add(photons_[i]);
        together_.clear();
        add_hits(sum_, 0, together_);
        for (UnitHit& hit : together_) {
            for (const UnitHit& part : alone_)
                if (part.unit == hit.unit) hit.photons |= part.photons;
        }
    }

    /// Of both photons of the annihilation.
    template <class Use>
    void for_each_pair(const std::vector<UnitHit>& hits, Use&& use) const {
        for (std::size_t i = 0; i < hits.size(); ++i) {
            for (std::size_t j = i + 1; j < hits.size(); ++j) {
                const std::uint32_t a = hits[i].photons;
                const std::uint32_t b = hits[j].photons;
                if (!((a & first_photon && b & second_photon) || (a & second_photon && b & first_photon)))
                    continue;
                const double chance = hits[i].in_pairs * hits[j].in_pairs;
                if (chance > 1e-9)
                    use(i, j, chance * model_.weights.of_any(hits[i].crystal, hits[j].crystal));
            }
        }
    }
    [[nodiscard]] double pairs(const std::vector<UnitHit>& hits) const {
        double sum = 0;
        for_each_pair(hits, [&](std::size_t, std::size_t, double chance) { sum += chance; });
        return sum;
    }
    [[nodiscard]] static double gammas(const std::vector<UnitHit>& hits) {
        double sum = 0;
        for (const UnitHit& hit : hits)
            sum += hit.in_gammas;
        return sum;
    }
    [[nodiscard]] double triples(const std::vector<UnitHit>& hits) const {
        double sum = 0;
        for_each_pair(hits, [&](std::size_t i, std::size_t j, double chance) {
            for (const UnitHit& hit : hits)
                if (hit.unit != hits[i].unit && hit.unit != hits[j].unit) sum += chance * hit.in_gammas;
        });
        return sum;
    }

    /// Of the pair of this decay and the last measured gamma that a window accepted. `measured`: whether the
    /// last photon is such a gamma.
    void take_triples(bool positron, std::size_t annihilation, bool measured) {
        if (measured) {
            alone_.clear();
            add_hits(photons_[count_ - 1], 0, alone_);
            if (gammas(alone_) > 0.01) gamma_ = photons_[count_ - 1];
            --count_;
        }
        if (!positron || gamma_.size() == 0 || photons_[0].size() == 0 || photons_[1].size() == 0) return;
        const std::size_t others = count_;
        if (photons_.size() == count_) photons_.emplace_back();
        photons_[count_++] = gamma_;
        hits_alone();
        hits_together();
        sums_.together.triples += triples(together_);
        // Without the other gammas.
        const std::uint32_t spared = ((1U << others) - 1) & ~((1U << annihilation) - 1);
        std::erase_if(alone_, [&](const UnitHit& hit) { return (hit.photons & spared) != 0; });
        sums_.alone.triples += triples(alone_);
    }

    const SummingModel& model_;
    const corrections::Crystals& crystals_;
    const std::vector<std::uint32_t>& units_;
    sim::Random random_;
    SummingRates sums_;
    std::vector<Deposits> photons_;  ///< the first `count_` of them
    std::size_t count_ = 0;
    Deposits gamma_;
    Deposits sum_;
    std::vector<corrections::CrystalHit> found_;
    std::vector<UnitHit> alone_;
    std::vector<UnitHit> together_;
};

}  // namespace

Summing simulate_summing(const SummingModel& model, net::WorkerPool& pool) {
    const corrections::Crystals crystals(model.scanner, {true, true});
    const std::vector<std::uint32_t> units = petlm::units_of_crystals(model.scanner.geometry);
    std::vector<SummingRates> sums(pieces);
    image::for_each_on(pool, pieces, [&](std::size_t index) {
        DecaySimulation piece(model, crystals, units, index);
        for (std::size_t i = 0; i < decays / pieces; ++i)
            piece.decay();
        sums[index] = piece.sums();
    });
    SummingRates all;
    for (const SummingRates& of_piece : sums)
        all.add(of_piece);
    Summing out = all.summing();
    double squares = 0;
    for (const SummingRates& of_piece : sums)
        squares += std::pow(of_piece.summing().factor - out.factor, 2);
    const double statistical = std::sqrt(squares / (pieces * (pieces - 1)));
    out.error = std::hypot(statistical, model_error * (out.factor - 1)) / out.factor;
    return out;
}

}  // namespace petacq::petcal
