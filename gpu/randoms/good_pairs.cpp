#include "gpu/randoms/good_pairs.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

namespace petacq::gpu {

namespace {

/// out[i] = in[i - width + 1] + ... + in[i], clipped to the range. It only adds: differences of running sums
/// would lose small rates beside large ones.
void trailing_sums(std::span<const double> in, std::size_t width, std::vector<double>& scratch,
                   std::span<double> out) {
    const std::size_t n = in.size();
    if (width == 0) {
        std::fill(out.begin(), out.end(), 0.0);
        return;
    }
    // In blocks of `width`, each window is the end of one block and the start of the next.
    scratch.resize(n);
    for (std::size_t i = n; i-- > 0;)
        scratch[i] = in[i] + (i + 1 < n && (i + 1) % width != 0 ? scratch[i + 1] : 0);
    double from_block = 0;
    for (std::size_t i = 0; i < n; ++i) {
        from_block = i % width == 0 ? in[i] : from_block + in[i];
        const bool whole_block = (i + 1) % width == 0;
        out[i] = from_block + (whole_block || i + 1 < width ? 0 : scratch[i + 1 - width]);
    }
}

double sum_of_products(const PairChances::ByKinds& a, const PairChances::ByKinds& b) {
    double sum = 0;
    for (std::size_t x = 0; x < single_kinds; ++x) {
        for (std::size_t y = 0; y < single_kinds; ++y)
            sum += a[x][y] * b[x][y];
    }
    return sum;
}

}  // namespace

void PairProducts::add(const PairProducts& more, double factor) {
    const auto add = [&](std::vector<double>& to, const std::vector<double>& from) {
        to.resize(from.size());
        for (std::size_t i = 0; i < from.size(); ++i)
            to[i] += factor * from[i];
    };
    add(per_crystal, more.per_crystal);
    add(module_pairs, more.module_pairs);
    modules = more.modules;
    total += factor * more.total;
}

GoodPairs::GoodPairs(const config::Geometry& geometry, const CoincidenceRules& rules)
    : cells_(PairCells::of(geometry, rules)),
      bins_(*cells_.bins),
      crystals_(geometry.crystal_count()),
      joined_(std::size_t{cells_.count()} * cells_.count()),
      own_(cells_.sides),
      in_zone_(bins_.rows()),
      below_(bins_.rows()),
      above_(bins_.rows()) {
    for (std::size_t kind = 0; kind < single_kinds; ++kind) {
        rates_[kind].resize(bins_.count());
        near_[kind].resize(std::size_t{cells_.count()} * (bins_.weighted() ? bins_.count() : bins_.rows()));
        others_[kind].resize(bins_.count());
        inside_[kind].resize(crystals_);
    }
}

void GoodPairs::use(const CrystalValues& values) {
    values_ = &values;
    for (std::size_t kind = 0; kind < single_kinds; ++kind) {
        if (values.of[kind].size() != crystals_) {
            throw std::invalid_argument("pairs of crystals: " + std::to_string(values.of[kind].size()) +
                                        " values, expected one for each of " + std::to_string(crystals_) +
                                        " crystals");
        }
        sum_rates(kind);
    }
    std::fill(own_.begin(), own_.end(), PairChances::ByKinds{});
    for (std::uint32_t i = 0; i < crystals_; ++i) {
        PairChances::ByKinds& own = own_[cells_.side_of(cells_.of_crystal(i))];
        for (std::size_t x = 0; x < single_kinds; ++x) {
            for (std::size_t y = 0; y < single_kinds; ++y)
                own[x][y] += values.of[x][i] * values.of[y][i];
        }
    }
    for (std::uint32_t a = 0; a < cells_.count(); ++a) {
        if (can_join(a, a)) join_inside(a);
        for (std::uint32_t b = a + 1; b < cells_.count(); ++b)
            if (can_join(a, b)) join(a, b);
    }
}

double GoodPairs::pairs_of(std::uint32_t a, std::uint32_t b, std::span<const PairChances> chances) const {
    const std::size_t place = std::size_t{a} * cells_.count() + b;
    return sum_of_products(chances[place].of, joined_[place]);
}

double GoodPairs::total(std::span<const PairChances> chances) const {
    double sum = 0;
    for (std::uint32_t a = 0; a < cells_.count(); ++a) {
        for (std::uint32_t b = a; b < cells_.count(); ++b)
            sum += pairs_of(a, b, chances);
    }
    return sum;
}

std::vector<double> GoodPairs::in_cells() const {
    std::vector<double> in_cell(cells_.count());
    for (std::uint32_t cell = 0; cell < cells_.count(); ++cell) {
        for (const std::vector<double>& rates : rates_)
            in_cell[cell] += std::accumulate(rates.begin() + bins_.first_bin(cell),
                                             rates.begin() + bins_.first_bin(cell + 1), 0.0);
    }
    return in_cell;
}

std::vector<double> GoodPairs::good_parts() const {
    const std::uint32_t count = cells_.count();
    const std::vector<double> in_cell = in_cells();
    std::vector<double> parts = cells_.good_parts;  // where there are no singles
    for (std::uint32_t a = 0; a < count; ++a) {
        for (std::uint32_t b = a; b < count; ++b) {
            const double all = in_cell[a] * in_cell[b];
            if (in_cell[a] <= 0 || in_cell[b] <= 0) continue;
            double good = 0;
            for (const auto& row : joined_[std::size_t{a} * count + b])
                good += std::accumulate(row.begin(), row.end(), 0.0);
            const double part = std::clamp((a == b ? 2 : 1) * good / all, 0.0, 1.0);
            parts[std::size_t{a} * count + b] = part;
            parts[std::size_t{b} * count + a] = part;
        }
    }
    return parts;
}

double GoodPairs::abs_dt(std::span<const PairChances> chances) const {
    double sum = 0;
    for (std::uint32_t a = 0; a < cells_.count(); ++a) {
        for (std::uint32_t b = a; b < cells_.count(); ++b) {
            const std::size_t place = std::size_t{a} * cells_.count() + b;
            sum += sum_of_products(chances[place].abs_dt, joined_[place]);
        }
    }
    return sum;
}

std::vector<double> GoodPairs::refused(const PairChances::ByKinds& c) const {
    const std::size_t sides = cells_.sides;
    PairChances::ByKinds turned{};
    for (std::size_t x = 0; x < single_kinds; ++x) {
        for (std::size_t y = 0; y < single_kinds; ++y)
            turned[x][y] = c[y][x];
    }
    std::vector<std::array<double, single_kinds>> in_side(sides);
    for (std::uint32_t a = 0; a < sides; ++a) {
        const auto first = static_cast<std::ptrdiff_t>(bins_.first_bin(a * cells_.zones));
        const auto end = static_cast<std::ptrdiff_t>(bins_.first_bin((a + 1) * cells_.zones));
        for (std::size_t kind = 0; kind < single_kinds; ++kind)
            in_side[a][kind] = std::accumulate(rates_[kind].begin() + first, rates_[kind].begin() + end, 0.0);
    }
    std::vector<double> pairs(sides * sides);
    for (std::size_t a = 0; a < sides; ++a) {
        for (std::size_t b = 0; b < sides; ++b) {
            for (std::size_t x = 0; x < single_kinds; ++x) {
                for (std::size_t y = 0; y < single_kinds; ++y)
                    pairs[a * sides + b] += c[x][y] * in_side[a][x] * in_side[b][y];
            }
        }
    }
    // No crystal pairs with itself.
    for (std::size_t a = 0; a < sides; ++a)
        pairs[a * (sides + 1)] -= sum_of_products(c, own_[a]);
    for (std::uint32_t cell_a = 0; cell_a < cells_.count(); ++cell_a) {
        const std::size_t a = cells_.side_of(cell_a);
        for (std::uint32_t cell_b = cell_a; cell_b < cells_.count(); ++cell_b) {
            const std::size_t b = cells_.side_of(cell_b);
            const PairChances::ByKinds& good = joined_[std::size_t{cell_a} * cells_.count() + cell_b];
            pairs[a * sides + b] -= sum_of_products(c, good);
            pairs[b * sides + a] -= sum_of_products(turned, good);
        }
    }
    return pairs;
}

std::vector<double> GoodPairs::first_ends(std::span<const PairChances> chances) const {
    std::vector<double> first(cells_.sides);
    std::vector<double> all(cells_.sides);
    for (std::uint32_t cell_a = 0; cell_a < cells_.count(); ++cell_a) {
        const std::uint32_t a = cells_.side_of(cell_a);
        for (std::uint32_t cell_b = (a + 1) * cells_.zones; cell_b < cells_.count(); ++cell_b) {
            const std::uint32_t b = cells_.side_of(cell_b);
            const std::size_t place = std::size_t{cell_a} * cells_.count() + cell_b;
            const double pairs = sum_of_products(chances[place].of, joined_[place]);
            const double a_first = sum_of_products(chances[place].first, joined_[place]);
            all[a] += pairs;
            all[b] += pairs;
            first[a] += a_first;
            first[b] += pairs - a_first;
        }
    }
    for (std::uint32_t a = 0; a < cells_.sides; ++a)
        first[a] = all[a] > 0 ? std::clamp(first[a] / all[a], 0.0, 1.0) : 0.5;
    return first;
}

void GoodPairs::products(std::span<const PairChances> chances, PairProducts& out) {
    out.modules = cells_.sides;
    out.total = total(chances);
    out.module_pairs.assign(std::size_t{cells_.sides} * cells_.sides, 0);
    out.per_crystal.resize(crystals_);
    for (std::uint32_t cell = 0; cell < cells_.count(); ++cell) {
        const std::uint32_t a = cells_.side_of(cell);
        for (std::uint32_t other = cell; other < cells_.count(); ++other) {
            const std::uint32_t b = cells_.side_of(other);
            const double pairs = pairs_of(cell, other, chances);
            out.module_pairs[std::size_t{a} * cells_.sides + b] += pairs;
            if (a != b) out.module_pairs[std::size_t{b} * cells_.sides + a] += pairs;
        }
        sum_others(cell, chances);
        const PairChances& inside = chances[std::size_t{cell} * (cells_.count() + 1)];
        if (can_join(cell, cell)) sum_inside(cell);
        for (std::uint32_t bin = bins_.first_bin(cell); bin < bins_.first_bin(cell + 1); ++bin) {
            std::size_t place = bins_.first_of(bin);
            for (const std::uint32_t crystal : bins_.crystals_of(bin)) {
                double sum = 0;
                for (std::size_t kind = 0; kind < single_kinds; ++kind) {
                    double partners = others_[kind][bin];
                    for (std::size_t other = 0; can_join(cell, cell) && other < single_kinds; ++other)
                        partners += inside.of[kind][other] * inside_[other][place];
                    sum += values_->of[kind][crystal] * partners;
                }
                out.per_crystal[crystal] = sum;
                ++place;
            }
        }
    }
}

void GoodPairs::sum_rates(std::size_t kind) {
    const std::span<const double> values = values_->of[kind];
    for (std::uint32_t bin = 0; bin < bins_.count(); ++bin) {
        double sum = 0;
        for (const std::uint32_t crystal : bins_.crystals_of(bin))
            sum += values[crystal];
        rates_[kind][bin] = sum;
    }
    const std::uint32_t cells = cells_.count();
    if (bins_.weighted()) {
        std::vector<double>& near = near_[kind];
        for (std::uint32_t bin = 0; bin < bins_.count(); ++bin) {
            const std::span<const float> weights = bins_.weights_of(bin);
            for (std::uint32_t cell = 0; cell < cells; ++cell) {
                double sum = 0;
                for (std::uint32_t other = bins_.first_bin(cell); other < bins_.first_bin(cell + 1); ++other)
                    sum += weights[other] * rates_[kind][other];
                near[std::size_t{bin} * cells + cell] = sum;
            }
        }
        return;
    }
    for (std::uint32_t cell = 0; cell < cells; ++cell) {
        sum_neighbours(kind, cell);
        double* const near = near_[kind].data() + std::size_t{cell} * bins_.rows();
        for (std::uint32_t row = 0; row < bins_.rows(); ++row) {
            const std::span<const double> weights = bins_.near_rows(row);
            near[row] = (below_[row] + above_[row]) + (weights.empty() ? 1 : weights[row]) * in_zone_[row];
        }
    }
}

void GoodPairs::sum_neighbours(std::size_t kind, std::uint32_t cell) {
    std::fill(in_zone_.begin(), in_zone_.end(), 0.0);
    for (std::uint32_t bin = bins_.first_bin(cell); bin < bins_.first_bin(cell + 1); ++bin)
        in_zone_[bins_.row_of(bin)] = rates_[kind][bin];
    const std::uint32_t rows = bins_.rows();
    if (!bins_.near_rows(0).empty()) {
        std::fill(below_.begin(), below_.end(), 0.0);
        std::fill(above_.begin(), above_.end(), 0.0);
        // Row by row of the cell, which has few of all.
        for (std::uint32_t bin = bins_.first_bin(cell); bin < bins_.first_bin(cell + 1); ++bin) {
            const std::uint32_t near = bins_.row_of(bin);
            const double rate = in_zone_[near];
            const std::span<const double> weights = bins_.near_rows(near);  // symmetric
            for (std::uint32_t row = 0; row < near; ++row)
                above_[row] += weights[row] * rate;
            for (std::uint32_t row = near + 1; row < rows; ++row)
                below_[row] += weights[row] * rate;
        }
        return;
    }
    const std::size_t width = std::min(rule().max_ring_difference, rows);
    trailing_sums(in_zone_, width, scratch_, below_);
    reversed_.assign(in_zone_.rbegin(), in_zone_.rend());
    trailing_sums(reversed_, width, scratch_, above_);
    std::reverse(above_.begin(), above_.end());
    // Excludes the ring itself.
    std::rotate(below_.begin(), below_.end() - 1, below_.end());
    below_.front() = 0;
    std::rotate(above_.begin(), above_.begin() + 1, above_.end());
    above_.back() = 0;
}

double GoodPairs::near_in_cell(std::size_t kind, std::uint32_t bin, std::uint32_t cell) const {
    if (!bins_.weighted()) return below_[bins_.row_of(bin)] + above_[bins_.row_of(bin)];
    const std::span<const float> weights = bins_.weights_of(bin);
    double sum = 0;
    for (std::uint32_t other = bins_.first_bin(cell); other < bins_.first_bin(cell + 1); ++other)
        sum += other == bin ? 0 : weights[other] * rates_[kind][other];
    return sum;
}

void GoodPairs::sum_inside(std::uint32_t cell) {
    for (std::size_t kind = 0; kind < single_kinds; ++kind) {
        const std::vector<double>& values = values_->of[kind];
        if (!bins_.weighted()) sum_neighbours(kind, cell);
        for (std::uint32_t bin = bins_.first_bin(cell); bin < bins_.first_bin(cell + 1); ++bin) {
            const std::span<const std::uint32_t> crystals = bins_.crystals_of(bin);
            const double own = bins_.own_weight(bin);
            const double near = near_in_cell(kind, bin, cell);
            // All near crystals of the cell except the crystal itself.
            double* const inside = inside_[kind].data() + bins_.first_of(bin);
            double after = 0;
            for (std::size_t y = crystals.size(); y-- > 0;) {
                inside[y] = after;
                after += values[crystals[y]];
            }
            double before = 0;
            for (std::size_t y = 0; y < crystals.size(); ++y) {
                inside[y] = own * (before + inside[y]) + near;
                before += values[crystals[y]];
            }
        }
    }
}

void GoodPairs::join(std::uint32_t a, std::uint32_t b) {
    PairChances::ByKinds pairs{};
    // Bins outside: the sums do not wait for each other.
    for (std::uint32_t bin = bins_.first_bin(a); bin < bins_.first_bin(a + 1); ++bin) {
        for (std::size_t x = 0; x < single_kinds; ++x) {
            for (std::size_t y = 0; y < single_kinds; ++y)
                pairs[x][y] += rates_[x][bin] * near(y, bin, b);
        }
    }
    joined_[std::size_t{a} * cells_.count() + b] = pairs;
}

void GoodPairs::join_inside(std::uint32_t cell) {
    PairChances::ByKinds& pairs = joined_[std::size_t{cell} * (cells_.count() + 1)];
    pairs = {};
    sum_inside(cell);
    for (std::uint32_t bin = bins_.first_bin(cell); bin < bins_.first_bin(cell + 1); ++bin) {
        const std::span<const std::uint32_t> crystals = bins_.crystals_of(bin);
        for (std::size_t x = 0; x < single_kinds; ++x) {
            const std::vector<double>& values = values_->of[x];
            for (std::size_t y = 0; y < single_kinds; ++y) {
                const double* const inside = inside_[y].data() + bins_.first_of(bin);
                for (std::size_t i = 0; i < crystals.size(); ++i)
                    pairs[x][y] += values[crystals[i]] * inside[i] / 2;  // met from both of its crystals
            }
        }
    }
}

void GoodPairs::sum_others(std::uint32_t cell, std::span<const PairChances> chances) {
    const std::uint32_t first = bins_.first_bin(cell);
    const std::uint32_t end = bins_.first_bin(cell + 1);
    for (std::vector<double>& others : others_)
        std::fill(others.begin() + first, others.begin() + end, 0.0);
    for (std::uint32_t b = 0; b < cells_.count(); ++b) {
        if (b == cell || !can_join(cell, b)) continue;
        const PairChances& c = chances[std::size_t{cell} * cells_.count() + b];
        for (std::size_t y = 0; y < single_kinds; ++y) {
            for (std::uint32_t bin = first; bin < end; ++bin) {
                const double values = near(y, bin, b);
                for (std::size_t x = 0; x < single_kinds; ++x)
                    others_[x][bin] += c.of[x][y] * values;
            }
        }
    }
}

}  // namespace petacq::gpu
