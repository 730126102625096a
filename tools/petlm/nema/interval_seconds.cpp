// IntervalSeconds of runs.hpp.
#include <algorithm>
#include <cmath>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/nema/crystal_pairs.hpp"
#include "tools/petlm/nema/runs.hpp"

namespace petacq::nema {
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
    for_each_crystal_pair(crystals_, [&](std::uint32_t a, std::uint32_t b) {
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
