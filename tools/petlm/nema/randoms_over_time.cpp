// RandomsOverTime of runs.hpp.
#include <algorithm>
#include <cmath>
#include <random>

#include "daemon/run/directory.hpp"
#include "daemon/seconds/reader.hpp"
#include "tools/petlm/nema/runs.hpp"
#include "tools/petlm/records/status.hpp"

namespace petacq::nema {
namespace {

constexpr std::uint64_t most_pairs = 4'000'000;

/// Calls use(a, b) for all pairs of crystals, or a fair sample that is always the same.
template <class Use>
void for_pairs(std::uint32_t crystals, const Use& use) {
    if (std::uint64_t{crystals} * (crystals - 1) / 2 <= most_pairs) {
        for (std::uint32_t a = 0; a < crystals; ++a) {
            for (std::uint32_t b = a + 1; b < crystals; ++b)
                use(a, b);
        }
        return;
    }
    std::mt19937_64 random(1);
    for (std::uint64_t i = 0; i < most_pairs; ++i) {
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

RandomsOverTime::RandomsOverTime(const Run& run) : crystals_(run.scanner().geometry.crystal_count()) {
    const auto& target = run.source().target();
    std::string why;
    of_pairs_ = petlm::RunRandoms::of(run.source(), run.scanner(), why);
    if (!of_pairs_) {
        throw petlm::BadInput(target.string() +
                              ": the randoms of this test come from the seconds of a run: " + why);
    }
    daemon::SecondsReader seconds(target / daemon::seconds_file);
    const daemon::SecondField* const field = seconds.find("randoms");
    while (field != nullptr && seconds.next()) {
        seconds_.push_back(
            {{seconds.start(), seconds.start() + seconds.length()}, seconds.values(*field).number()});
    }
    const bool known = std::all_of(seconds_.begin(), seconds_.end(),
                                   [](const Second& second) { return std::isfinite(second.randoms); });
    if (field == nullptr || !known) {
        throw petlm::BadInput(target.string() + ": the seconds of this run do not tell its randoms");
    }
}

double RandomsOverTime::in(const petlm::Interval& interval) const {
    double sum = 0;
    for (const Second& second : seconds_) {
        const std::uint64_t from = std::max(interval.from, second.ticks.from);
        const std::uint64_t to = std::min(interval.to, second.ticks.to);
        if (from >= to) continue;
        sum += second.randoms * static_cast<double>(to - from) /
               static_cast<double>(second.ticks.to - second.ticks.from);
    }
    return sum;
}

std::vector<double> RandomsOverTime::shares(const SliceBins& bins, double radius_mm) const {
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
