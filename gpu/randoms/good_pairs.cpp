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
      rule_(cells_.rule),
      rings_(geometry.rings()),
      crystals_(geometry.crystal_count()),
      joined_(std::size_t{cells_.count()} * cells_.count()),
      in_zone_(rings_),
      below_(rings_),
      above_(rings_) {
    for (std::size_t kind = 0; kind < single_kinds; ++kind) {
        rates_[kind].resize(std::size_t{rule_.modules} * rings_);
        near_[kind].resize(std::size_t{cells_.count()} * rings_);
        others_[kind].resize(rings_);
        inside_[kind].resize(std::size_t{rings_} * rule_.crystals_per_module);
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

std::vector<double> GoodPairs::refused(const PairChances::ByKinds& c) const {
    const std::size_t modules = rule_.modules;
    PairChances::ByKinds turned{};
    for (std::size_t x = 0; x < single_kinds; ++x) {
        for (std::size_t y = 0; y < single_kinds; ++y)
            turned[x][y] = c[y][x];
    }
    std::vector<std::array<double, single_kinds>> in_module(modules);
    for (std::uint32_t a = 0; a < modules; ++a) {
        for (std::size_t kind = 0; kind < single_kinds; ++kind) {
            const std::span<const double> rings = rings_of(rates_[kind], a);
            in_module[a][kind] = std::accumulate(rings.begin(), rings.end(), 0.0);
        }
    }
    std::vector<double> pairs(modules * modules);
    for (std::size_t a = 0; a < modules; ++a) {
        for (std::size_t b = 0; b < modules; ++b) {
            for (std::size_t x = 0; x < single_kinds; ++x) {
                for (std::size_t y = 0; y < single_kinds; ++y)
                    pairs[a * modules + b] += c[x][y] * in_module[a][x] * in_module[b][y];
            }
        }
    }
    // No crystal pairs with itself.
    for (std::uint32_t i = 0; i < crystals_; ++i) {
        for (std::size_t x = 0; x < single_kinds; ++x) {
            for (std::size_t y = 0; y < single_kinds; ++y)
                pairs[rule_.coordinates_of(i).module * (modules + 1)] -=
                    c[x][y] * values_->of[x][i] * values_->of[y][i];
        }
    }
    for (std::uint32_t cell_a = 0; cell_a < cells_.count(); ++cell_a) {
        const std::size_t a = cells_.module_of(cell_a);
        for (std::uint32_t cell_b = cell_a; cell_b < cells_.count(); ++cell_b) {
            const std::size_t b = cells_.module_of(cell_b);
            const PairChances::ByKinds& good = joined_[std::size_t{cell_a} * cells_.count() + cell_b];
            pairs[a * modules + b] -= sum_of_products(c, good);
            pairs[b * modules + a] -= sum_of_products(turned, good);
        }
    }
    return pairs;
}

std::vector<double> GoodPairs::first_ends(std::span<const PairChances> chances) const {
    std::vector<double> first(rule_.modules);
    std::vector<double> all(rule_.modules);
    for (std::uint32_t cell_a = 0; cell_a < cells_.count(); ++cell_a) {
        const std::uint32_t a = cells_.module_of(cell_a);
        for (std::uint32_t cell_b = (a + 1) * cells_.zones; cell_b < cells_.count(); ++cell_b) {
            const std::uint32_t b = cells_.module_of(cell_b);
            const std::size_t place = std::size_t{cell_a} * cells_.count() + cell_b;
            const double pairs = sum_of_products(chances[place].of, joined_[place]);
            const double a_first = sum_of_products(chances[place].first, joined_[place]);
            all[a] += pairs;
            all[b] += pairs;
            first[a] += a_first;
            first[b] += pairs - a_first;
        }
    }
    for (std::uint32_t a = 0; a < rule_.modules; ++a)
        first[a] = all[a] > 0 ? std::clamp(first[a] / all[a], 0.0, 1.0) : 0.5;
    return first;
}

void GoodPairs::products(std::span<const PairChances> chances, PairProducts& out) {
    const std::size_t count = rule_.crystals_per_module;
    out.modules = rule_.modules;
    out.total = total(chances);
    out.module_pairs.assign(std::size_t{rule_.modules} * rule_.modules, 0);
    out.per_crystal.resize(crystals_);
    for (std::uint32_t cell = 0; cell < cells_.count(); ++cell) {
        const std::uint32_t a = cells_.module_of(cell);
        for (std::uint32_t other = cell; other < cells_.count(); ++other) {
            const std::uint32_t b = cells_.module_of(other);
            const double pairs = pairs_of(cell, other, chances);
            out.module_pairs[std::size_t{a} * rule_.modules + b] += pairs;
            if (a != b) out.module_pairs[std::size_t{b} * rule_.modules + a] += pairs;
        }
        sum_others(cell, chances);
        const PairChances& inside = chances[std::size_t{cell} * (cells_.count() + 1)];
        if (can_join(cell, cell)) sum_inside(cell);
        const std::uint32_t zone = cells_.zone_of(cell);
        for (std::uint32_t ring = cells_.first_ring(zone); ring < cells_.first_ring(zone + 1); ++ring) {
            double* const result = out.per_crystal.data() + crystal(a, ring);
            for (std::size_t y = 0; y < count; ++y) {
                double sum = 0;
                for (std::size_t kind = 0; kind < single_kinds; ++kind) {
                    double partners = others_[kind][ring];
                    for (std::size_t other = 0; can_join(cell, cell) && other < single_kinds; ++other)
                        partners += inside.of[kind][other] * inside_[other][ring * count + y];
                    sum += values_->of[kind][crystal(a, ring) + y] * partners;
                }
                result[y] = sum;
            }
        }
    }
}

void GoodPairs::sum_rates(std::size_t kind) {
    const std::span<const double> values = values_->of[kind];
    for (std::uint32_t module = 0; module < rule_.modules; ++module) {
        double* const rates = rates_[kind].data() + std::size_t{module} * rings_;
        for (std::uint32_t ring = 0; ring < rings_; ++ring) {
            double sum = 0;
            for (const double value : values.subspan(crystal(module, ring), rule_.crystals_per_module))
                sum += value;
            rates[ring] = sum;
        }
    }
    for (std::uint32_t cell = 0; cell < cells_.count(); ++cell) {
        sum_neighbours(kind, cell);
        double* const near = near_[kind].data() + std::size_t{cell} * rings_;
        for (std::uint32_t ring = 0; ring < rings_; ++ring)
            near[ring] = (below_[ring] + above_[ring]) + in_zone_[ring];
    }
}

void GoodPairs::sum_neighbours(std::size_t kind, std::uint32_t cell) {
    const std::span<const double> rates = rings_of(rates_[kind], cells_.module_of(cell));
    const std::uint32_t first = cells_.first_ring(cells_.zone_of(cell));
    const std::uint32_t end = cells_.first_ring(cells_.zone_of(cell) + 1);
    std::fill(in_zone_.begin(), in_zone_.end(), 0.0);
    std::copy(rates.begin() + first, rates.begin() + end, in_zone_.begin() + first);
    const std::size_t width = std::min(rule_.max_ring_difference, rings_);
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

void GoodPairs::sum_inside(std::uint32_t cell) {
    const std::size_t count = rule_.crystals_per_module;
    const std::uint32_t module = cells_.module_of(cell);
    const std::uint32_t zone = cells_.zone_of(cell);
    for (std::size_t kind = 0; kind < single_kinds; ++kind) {
        sum_neighbours(kind, cell);
        for (std::uint32_t ring = cells_.first_ring(zone); ring < cells_.first_ring(zone + 1); ++ring) {
            const std::span<const double> row =
                std::span(values_->of[kind]).subspan(crystal(module, ring), count);
            // All near crystals of the cell except the crystal itself.
            double* const inside = inside_[kind].data() + ring * count;
            double after = 0;
            for (std::size_t y = count; y-- > 0;) {
                inside[y] = after;
                after += row[y];
            }
            double before = 0;
            for (std::size_t y = 0; y < count; ++y) {
                inside[y] = (before + inside[y]) + (below_[ring] + above_[ring]);
                before += row[y];
            }
        }
    }
}

void GoodPairs::join(std::uint32_t a, std::uint32_t b) {
    std::array<std::span<const double>, single_kinds> rates;
    std::array<std::span<const double>, single_kinds> near;
    for (std::size_t kind = 0; kind < single_kinds; ++kind) {
        rates[kind] = rings_of(rates_[kind], cells_.module_of(a));
        near[kind] = rings_of(near_[kind], b);
    }
    const std::uint32_t zone = cells_.zone_of(a);
    PairChances::ByKinds pairs{};
    // Rings outside: the sums do not wait for each other.
    for (std::uint32_t ring = cells_.first_ring(zone); ring < cells_.first_ring(zone + 1); ++ring) {
        for (std::size_t x = 0; x < single_kinds; ++x) {
            for (std::size_t y = 0; y < single_kinds; ++y)
                pairs[x][y] += rates[x][ring] * near[y][ring];
        }
    }
    joined_[std::size_t{a} * cells_.count() + b] = pairs;
}

void GoodPairs::join_inside(std::uint32_t cell) {
    const std::size_t count = rule_.crystals_per_module;
    const std::uint32_t zone = cells_.zone_of(cell);
    PairChances::ByKinds& pairs = joined_[std::size_t{cell} * (cells_.count() + 1)];
    pairs = {};
    sum_inside(cell);
    for (std::uint32_t ring = cells_.first_ring(zone); ring < cells_.first_ring(zone + 1); ++ring) {
        for (std::size_t x = 0; x < single_kinds; ++x) {
            const double* const row = values_->of[x].data() + crystal(cells_.module_of(cell), ring);
            for (std::size_t y = 0; y < single_kinds; ++y) {
                const double* const inside = inside_[y].data() + ring * count;
                for (std::size_t i = 0; i < count; ++i)
                    pairs[x][y] += row[i] * inside[i] / 2;  // each pair is met from both of its crystals
            }
        }
    }
}

void GoodPairs::sum_others(std::uint32_t cell, std::span<const PairChances> chances) {
    const std::uint32_t zone = cells_.zone_of(cell);
    for (std::size_t x = 0; x < single_kinds; ++x) {
        std::vector<double>& others = others_[x];
        std::fill(others.begin(), others.end(), 0.0);
        for (std::uint32_t b = 0; b < cells_.count(); ++b) {
            if (b == cell || !can_join(cell, b)) continue;
            const PairChances& c = chances[std::size_t{cell} * cells_.count() + b];
            for (std::size_t y = 0; y < single_kinds; ++y) {
                const std::span<const double> near = rings_of(near_[y], b);
                for (std::uint32_t ring = cells_.first_ring(zone); ring < cells_.first_ring(zone + 1); ++ring)
                    others[ring] += c.of[x][y] * near[ring];
            }
        }
    }
}

}  // namespace petacq::gpu
