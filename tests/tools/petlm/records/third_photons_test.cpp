// True third photons among those by chance, against pairs whose gammas are drawn and kept by the policies.
#include <cmath>
#include <random>
#include <vector>

#include "tests/support/catch.hpp"
#include "tools/petlm/records/third_photons.hpp"

using namespace petacq;
using petlm::ThirdPhotons;

namespace {

/// How many of the gammas beside a pair the policy keeps.
int kept(config::GammaPolicy policy, int gammas) {
    switch (policy) {
        case config::GammaPolicy::all:
            return gammas;
        case config::GammaPolicy::only_one:
            return gammas == 1 ? 1 : 0;
        case config::GammaPolicy::nearest:
            break;
    }
    return gammas > 0 ? 1 : 0;
}

}  // namespace

TEST_CASE("true third photons are those that are not there by chance", "[third photons]") {
    using gpu::Kind;
    using gpu::ThirdPhoton;
    std::mt19937 random(3);
    constexpr int pairs = 200'000;
    for (const auto policy :
         {config::GammaPolicy::all, config::GammaPolicy::only_one, config::GammaPolicy::nearest}) {
        for (const double by_chance : {0.0, 0.02, 0.3}) {
            for (const double chance : {0.01, 0.2}) {
                std::poisson_distribution<int> others(by_chance);
                std::bernoulli_distribution own(chance);
                std::vector<gpu::Coincidence> prompts(pairs);
                std::vector<gpu::Triple> triples;
                const auto add = [&](ThirdPhoton third, int gammas) {
                    gpu::Triple triple;
                    triple.third = third;
                    triples.insert(triples.end(), static_cast<std::size_t>(kept(policy, gammas)), triple);
                };
                for (int i = 0; i < pairs; ++i) {
                    add(ThirdPhoton::coincident,
                        (own(random) ? 1 : 0) + (by_chance > 0 ? others(random) : 0));
                    add(ThirdPhoton::delayed, by_chance > 0 ? others(random) : 0);
                }
                ThirdPhotons thirds(policy);
                thirds.add(prompts);
                thirds.add(triples);
                CAPTURE(static_cast<int>(policy), by_chance, chance);
                const double error = thirds.error_of_true_share(Kind::prompt);
                CHECK(thirds.true_share(Kind::prompt) == Approx(chance).margin(4 * error));
                CHECK(error < 0.006);
                CHECK(thirds.true_share(Kind::delayed) == 0);
            }
        }
    }
}

TEST_CASE("random pairs have gammas of both photons, if the second is near", "[third photons]") {
    using gpu::Kind;
    using gpu::ThirdPhoton;
    std::mt19937 random(5);
    constexpr double chance = 0.1;  // that a photon comes with a gamma of its decay, at the same time
    constexpr double others = 0.05;
    constexpr std::uint32_t window = 320;
    constexpr int pairs = 100'000;
    std::bernoulli_distribution own(chance);
    std::poisson_distribution<int> by_chance(others);
    std::uniform_int_distribution<std::uint32_t> apart(0, window);
    for (const std::uint32_t after : {0U, 128U, 320U, 640U}) {
        CAPTURE(after);
        gpu::Coincidence delayed;
        delayed.kind = Kind::delayed;
        std::vector<gpu::Triple> triples;
        const auto add = [&](ThirdPhoton third, int gammas) {
            gpu::Triple triple;
            triple.pair = delayed;
            triple.third = third;
            triples.insert(triples.end(), static_cast<std::size_t>(gammas), triple);
        };
        double of_randoms = 0;
        for (int i = 0; i < pairs; ++i) {
            // The second photon of a delayed pair is elsewhere in time.
            add(ThirdPhoton::coincident, (own(random) ? 1 : 0) + by_chance(random));
            add(ThirdPhoton::delayed, by_chance(random));
            of_randoms += by_chance(random);
            if (own(random)) ++of_randoms;
            if (own(random) && apart(random) <= after) ++of_randoms;
        }
        ThirdPhotons thirds(config::GammaPolicy::all);
        thirds.add(std::vector<gpu::Coincidence>(pairs, delayed));
        thirds.add(triples);
        CHECK(thirds.of_randoms(Kind::delayed, after, window) == Approx(of_randoms / pairs).margin(0.006));
    }
}
