// IntervalSeconds of runs.hpp.
#include <algorithm>
#include <cmath>
#include <random>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/nema/runs.hpp"

namespace petacq::nema {
namespace {

constexpr std::uint64_t max_pairs = 4'000'000;

/// Calls use(a, b) for all pairs of crystals, or a fair sample that is always the same.
template <class Use>
void for_pairs(std::uint32_t crystals, const Use& use) {
    if (std::uint64_t{crystals} * (crystals - 1) / 2 <= max_pairs) {
        for (std::uint32_t a = 0; a < crystals; ++a) {
            for (std::uint32_t b = a + 1; b < crystals; ++b)
                use(a, b);
        }
        return;
    }
    std::mt19937_64 random(1);
    for (std::uint64_t i = 0; i < max_pairs; ++i) {
        const std::uint64_t bits = random();
        const auto draw = [crystals](std::uint64_t part) {
            return static_cast<std::uint32_t>(part * crystals >> 32U);
        };
        const std::uint32_t a = draw(bits >> 32U);
        const std::uint32_t b = draw(bits & 0xFFFFFFFFU);
        if (a != b) use(a, b);
    }
}

}  // namespace

IntervalSeconds::IntervalSeconds(const NemaRun& run, const petlm::Interval& interval)
    : crystals_(run.scanner().geometry.crystal_count()) {
    std::string why;
    of_pairs_ = petlm::RunRandoms::of(run.source(), run.part(interval), run.scanner(), why);
    if (!of_pairs_) {
        throw petlm::BadInput(run.source().target().string() +
                              ": the randoms of this test come from the seconds of a run: " + why);
    }
}

std::string IntervalSeconds::loss_sentence() const {
    return petlm::sentence_of(of_pairs_->loss());
}

std::vector<double> IntervalSeconds::shares(const SliceBins& bins, double radius_mm) const {
    std::vector<double> shares(bins.slices());
    double all = 0;
    for_pairs(crystals_, [&](std::uint32_t a, std::uint32_t b) {
        const double randoms = of_pairs_->sum(a, b);
        all += randoms;
        const std::size_t bin = bins.of(a, b);
        if (bin == SliceBins::outside) return;
        const auto column = static_cast<std::uint32_t>(bin % bins.lines().radial());
        if (std::abs(bins.lines().radial_mm(column)) <= radius_mm) shares[bin / bins.in_slice()] += randoms;
    });
    for (double& share : shares)
        share = all > 0 ? share / all : 0;
    return shares;
}

}  // namespace petacq::nema
