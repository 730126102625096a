#include "daemon/sinogram/lines_per_bin.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace petacq::sinogram {

namespace {

/// The crystals of each column.
std::vector<std::vector<std::uint32_t>> crystals_by_column(const LineBins& lines, std::uint32_t crystals) {
    std::vector<std::vector<std::uint32_t>> by_column(lines.columns());
    for (std::uint32_t crystal = 0; crystal < crystals; ++crystal)
        by_column[lines.column_of(crystal)].push_back(crystal);
    return by_column;
}

/// How many pairs of the two columns are good. At most about `max_looked_at` of them are
/// looked at, spread evenly over both.
double good_pairs(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b,
                  const gpu::PairRule& rule, double max_looked_at) {
    const double all = static_cast<double>(a.size()) * static_cast<double>(b.size());
    const double thinner = std::max(1.0, std::sqrt(all / max_looked_at));
    std::size_t good = 0;
    std::size_t looked_at = 0;
    const auto each = [thinner](std::size_t count, const auto& use) {
        // From the middle of a step on, so that a single one is in the middle of the column.
        const double first = (thinner - 1) / 2;
        const double steps = std::ceil((static_cast<double>(count) - first) / thinner);
        for (std::int64_t step = 0; step < static_cast<std::int64_t>(steps); ++step)
            use(static_cast<std::size_t>(first + thinner * static_cast<double>(step)));
        if (!(steps > 0)) use(count / 2);
    };
    each(a.size(), [&](std::size_t i) {
        each(b.size(), [&](std::size_t k) {
            ++looked_at;
            if (rule.good(a[i], b[k])) ++good;
        });
    });
    return all * static_cast<double>(good) / static_cast<double>(looked_at);
}

}  // namespace

std::vector<double> lines_per_bin(const LineBins& lines, const config::Geometry& geometry,
                                  const gpu::PairRule& rule, double max_pairs) {
    std::vector<double> in_bin(std::size_t{lines.angles()} * lines.radial());
    const std::uint32_t columns = lines.columns();
    if (geometry.is_ring()) {
        for (std::uint32_t a = 0; a < columns; ++a) {
            for (std::uint32_t b = a + 1; b < columns; ++b) {
                const std::uint32_t bin = lines.of_columns(a, b);
                if (bin != LineBins::outside && rule.geometry_good(a, b)) ++in_bin[bin];
            }
        }
        return in_bin;
    }
    const auto crystals = crystals_by_column(lines, geometry.crystal_count());
    const double all = 0.5 * geometry.crystal_count() * geometry.crystal_count();
    const double of_columns = all <= max_pairs ? all : max_pairs / (0.5 * columns * columns);
    for (std::uint32_t a = 0; a < columns; ++a) {
        for (std::uint32_t b = a + 1; b < columns; ++b) {
            const std::uint32_t bin = lines.of_columns(a, b);
            if (bin != LineBins::outside)
                in_bin[bin] += good_pairs(crystals[a], crystals[b], rule, of_columns);
        }
    }
    return in_bin;
}

}  // namespace petacq::sinogram
