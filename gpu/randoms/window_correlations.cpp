#include "gpu/randoms/window_correlations.hpp"

#include <algorithm>
#include <numeric>

namespace petacq::gpu {

WindowCorrelations::WindowCorrelations(const PairCells& cells, const WindowContents& contents)
    : of_cell_(cells.count()) {
    if (cells.sides <= max_blocks) {
        const std::uint32_t zones = std::min(max_blocks / cells.sides, cells.zones);
        blocks_ = std::size_t{cells.sides} * zones;
        for (std::uint32_t cell = 0; cell < cells.count(); ++cell)
            of_cell_[cell] = cells.side_of(cell) * zones + cells.zone_of(cell) * zones / cells.zones;
    }
    singles_.resize(blocks_);
    for (std::vector<double>* of_blocks : {&partners_, &own_good_, &good_})
        of_blocks->resize(blocks_ * blocks_);
    std::vector<double> singles(cells.count());  // noise may make some negative
    for (std::uint32_t cell = 0; cell < cells.count(); ++cell) {
        singles[cell] = std::max(contents.singles[cell], 0.0);
        singles_[of_cell_[cell]] += singles[cell];
    }
    for (std::uint32_t a = 0; a < cells.count(); ++a) {
        for (std::uint32_t b = 0; b < cells.count(); ++b) {
            const std::size_t from = std::size_t{a} * cells.count() + b;
            const std::size_t to = place(a, b);
            const double pairs = singles[a] * contents.partners[from];
            partners_[to] += pairs;
            own_good_[to] += pairs * contents.good_partners[from];
            good_[to] += singles[a] * singles[b] * contents.good_parts[from];
        }
    }
    for (std::size_t a = 0; a < blocks_; ++a) {
        for (std::size_t b = 0; b < blocks_; ++b) {
            const std::size_t at = a * blocks_ + b;
            own_good_[at] = partners_[at] > 0 ? own_good_[at] / partners_[at] : 0;
            partners_[at] = singles_[a] > 0 ? partners_[at] / singles_[a] : 0;
            const double all = singles_[a] * singles_[b];
            good_[at] = all > 0 ? good_[at] / all : 0;
        }
    }
}

WindowCorrelations::Factors WindowCorrelations::find(const std::function<double(double)>& factor) const {
    const std::size_t n = blocks_;
    Factors found{std::vector<double>(n * n, 1.0), std::vector<double>(n * n, 1.0)};
    if (n == 1) return found;
    std::vector<double> of_good(n * n);       // factors of pairs of singles of different annihilations
    std::vector<double> of_own(n * n);        // of partners, times how many lie there
    std::vector<double> good_partner(n * n);  // [a * n + b] a single in a and the partner of one in b
    std::vector<double> own(n);
    for (std::size_t a = 0; a < n; ++a) {
        for (std::size_t b = 0; b < n; ++b) {
            const std::size_t at = a * n + b;
            of_good[at] = factor(good_[at]);
            of_own[at] = partners_[at] * factor(own_good_[at]);
            own[a] += partners_[at] * own_good_[at];
            for (std::size_t c = 0; c < n; ++c)
                good_partner[c * n + a] += partners_[at] * good_[b * n + c];
        }
    }
    for (double& part : own)
        part = factor(part);
    std::vector<double> of_good_partner(n * n);
    std::transform(good_partner.begin(), good_partner.end(), of_good_partner.begin(), factor);
    std::vector<double> of_a(n);
    std::vector<double> of_b(n);
    std::vector<double> columns(n);
    // The sum over c and d of left[c] middle[c][d] right[d]. By columns, so that the compiler can use
    // vectors.
    const auto sum_over = [n, &columns](const std::vector<double>& left, const std::vector<double>& middle,
                                        const std::vector<double>& right) {
        std::fill(columns.begin(), columns.end(), 0.0);
        for (std::size_t c = 0; c < n; ++c) {
            if (left[c] == 0) continue;
            for (std::size_t d = 0; d < n; ++d)
                columns[d] += left[c] * middle[c * n + d];
        }
        return std::inner_product(columns.begin(), columns.end(), right.begin(), 0.0);
    };
    const auto ratio = [](double exact, double independent) {
        return independent > 0 ? exact / independent : 1;
    };
    for (std::size_t a = 0; a < n; ++a) {
        for (std::size_t b = a; b < n; ++b) {
            if (good_[a * n + b] <= 0) continue;
            // Partners in c and d.
            double all_a = 0;
            double all_b = 0;
            double partners_good = 0;
            for (std::size_t c = 0; c < n; ++c) {
                of_a[c] = of_own[a * n + c] * of_good[b * n + c];
                of_b[c] = of_own[b * n + c] * of_good[a * n + c];
                all_a += of_a[c];
                all_b += of_b[c];
                partners_good += partners_[a * n + c] * good_partner[c * n + b];
            }
            const double partners =
                ratio(sum_over(of_a, of_good, of_b), all_a * all_b * factor(partners_good));
            // Another annihilation with singles in c and d.
            double independent = 0;
            for (std::size_t c = 0; c < n; ++c) {
                of_b[c] = of_good[a * n + c] * of_good[b * n + c];
                of_a[c] = singles_[c] * of_b[c];
                independent += of_a[c] * own[c] * of_good_partner[a * n + c] * of_good_partner[b * n + c];
            }
            const double others = ratio(sum_over(of_a, of_own, of_b), independent);
            for (const std::size_t at : {a * n + b, b * n + a}) {
                found.partners[at] = partners;
                found.others[at] = others;
            }
        }
    }
    return found;
}

}  // namespace petacq::gpu
