#include "tools/petlm/reconstruction/gammas/spurious_pairs.hpp"

#include <algorithm>
#include <vector>

#include "tools/petlm/reconstruction/gammas/photon_flight.hpp"
#include "tools/petlm/reconstruction/gammas/positions.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"

namespace petacq::gammas {
namespace {

constexpr std::size_t parts = 16;  // of the decays, whatever the number of threads

constexpr auto none = static_cast<std::size_t>(-1);

/// The hits of each photon of a decay.
using Photons = std::vector<std::vector<PhotonHit>>;

/// Calls `use(photon of the first, of the second, hit, hit, weight)` for the pairs of two photons.
template <class Use>
void for_each_pair(const Photons& photons, std::size_t count, double efficiency, double lost_of_three,
                   Use&& use) {
    // That none of its hits makes a multiple, if it is found.
    const auto spared = [&](std::size_t photon, std::size_t but, std::size_t and_but = none) {
        double chance = 1;
        for (std::size_t k = 0; k < photons[photon].size(); ++k)
            chance *= k == but || k == and_but ? 1 : 1 - lost_of_three * photons[photon][k].in_pairs;
        return chance;
    };
    for (std::size_t p = 0; p < count; ++p) {
        // A photon may leave energies of the window in two units.
        for (std::size_t q = p; q < count; ++q) {
            double others = p == q ? efficiency : efficiency * efficiency;
            for (std::size_t r = 0; r < count; ++r)
                if (r != p && r != q) others *= 1 - efficiency * (1 - spared(r, none));
            for (std::size_t i = 0; i < photons[p].size(); ++i) {
                for (std::size_t j = p == q ? i + 1 : 0; j < photons[q].size(); ++j) {
                    const PhotonHit& a = photons[p][i];
                    const PhotonHit& b = photons[q][j];
                    const double rest = p == q ? spared(p, i, j) : spared(p, i) * spared(q, j);
                    const double weight = others * a.in_pairs * b.in_pairs * rest;
                    if (weight > 0 && a.crystal != b.crystal) use(p, q, a, b, weight);
                }
            }
        }
    }
}

}  // namespace

SpuriousPairs::SpuriousPairs(const GammaModel& model, const corrections::Activity& activity,
                             double efficiency, const corrections::OfPair& found, net::WorkerPool& pool,
                             std::size_t decays)
    : map_(model.scanner), efficiency_(efficiency) {
    // What differs from crystal to crystal is part of `found`.
    GammaModel even = model;
    even.relative.clear();
    const auto relative = [&](std::uint32_t crystal) {
        return model.relative.empty() ? 1.0 : static_cast<double>(model.relative[crystal]);
    };
    const PhotonFlight flight(even);
    const Positions positions(activity);
    if (!positions.any()) return;
    const double lost_of_three = 1 - corrections::taken_of_three(model.multiples);
    const double captures = std::max(0.0, 1 / model.nuclide.branching_ratio - 1);  // for each positron
    struct CountedPairs {
        double singles = 0;
        double pairs = 0;
        double spurious = 0;
    };
    std::vector<CountedPairs> sums(parts);
    std::vector<corrections::NodePairs> maps(parts, map_);
    image::for_each_on(pool, parts, [&](std::size_t piece) {
        sim::Random random(1, sim::Purpose::events, piece);
        PhotonFlight::InFlight scratch;
        Photons photons;
        std::size_t count = 0;
        const auto follow = [&](const sim::Ray& ray, double energy) {
            if (photons.size() == count) photons.emplace_back();
            flight.follow(ray, energy, random, scratch, photons[count++]);
        };
        const auto follow_gammas = [&](const config::Vector3& at, bool positron, bool delayed) {
            for (const config::Gamma& gamma : model.nuclide.gammas) {
                if ((gamma.delay_half_life_s > 0) == delayed &&
                    random.chance(model.nuclide.chance(gamma, positron)))
                    follow({at, sim::isotropic(random)}, gamma.energy_keV);
            }
        };
        const auto take_singles = [&](double times) {
            for (std::size_t i = 0; i < count; ++i) {
                for (const PhotonHit& hit : photons[i])
                    sums[piece].singles += times * efficiency * relative(hit.crystal) * hit.in_pairs;
            }
        };
        const auto take = [&](std::size_t annihilation, double times) {
            take_singles(times);
            for_each_pair(
                photons, count, efficiency, lost_of_three,
                [&](std::size_t p, std::size_t q, const PhotonHit& a, const PhotonHit& b, double weight) {
                    const double chance = times * weight * found(a.crystal, b.crystal);
                    if (!(chance > 0)) return;
                    if (p != q && q < annihilation) {
                        sums[piece].pairs += chance;
                    } else {
                        sums[piece].spurious += chance;
                        maps[piece].add(a.crystal, b.crystal, times * weight);
                    }
                });
        };
        for (std::size_t i = 0; i < decays / parts; ++i) {
            const config::Vector3 at = positions.in_activity(random);
            sim::Ray ray{at, sim::isotropic(random)};
            count = 0;
            follow(ray, corrections::photopeak);
            for (double& x : ray.direction)
                x = -x;
            follow(ray, corrections::photopeak);
            follow_gammas(at, true, false);
            take(2, 1);
            count = 0;
            follow_gammas(at, true, true);
            take_singles(1);
            if (!(captures > 0)) continue;
            count = 0;
            follow_gammas(at, false, false);
            take(0, captures);
            count = 0;
            follow_gammas(at, false, true);
            take_singles(captures);
        }
    });
    for (std::size_t piece = 0; piece < parts; ++piece) {
        singles_ += sums[piece].singles;
        pairs_ += sums[piece].pairs;
        spurious_ += sums[piece].spurious;
        map_.add(maps[piece]);
    }
    map_.finish();
}

}  // namespace petacq::gammas
