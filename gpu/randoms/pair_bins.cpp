#include "gpu/randoms/pair_bins.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <map>
#include <numbers>
#include <numeric>
#include <tuple>
#include <utility>

namespace petacq::gpu {

namespace {

using Crystal = config::PairGeometry::Crystal;
using config::PairGeometry;

/// Directions from the axis that are told apart, at least.
constexpr std::uint32_t directions = 24;
constexpr std::uint32_t max_split_groups = 128;

/// [group] groups that pair with the same others have the same number.
std::vector<std::uint32_t> alike(const PairRule& rule) {
    std::map<std::vector<bool>, std::uint32_t> known;
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t a = 0; a < rule.group_count; ++a) {
        std::vector<bool> others(rule.group_count);
        for (std::uint32_t b = 0; b < rule.group_count; ++b)
            others[b] = rule.groups_good(a, b);
        numbers.push_back(
            known.emplace(std::move(others), static_cast<std::uint32_t>(known.size())).first->second);
    }
    return numbers;
}

/// From 0 to 1, around the axis.
double turn_of(const Crystal& crystal) {
    const double turn = std::atan2(crystal.y_um, crystal.x_um) / (2 * std::numbers::pi);
    return turn < 0 ? turn + 1 : turn;
}

/// Whether two directions are at least so far apart.
bool apart(double turn, double least) {
    const double straight = std::abs(turn);
    return std::min(straight, 1 - straight) >= least;
}

/// Numbers of things in rising order of their keys: equal keys have equal numbers.
template <class Key>
std::vector<std::uint32_t> ranks(const std::vector<Key>& keys) {
    std::vector<Key> sorted = keys;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    std::vector<std::uint32_t> numbers;
    numbers.reserve(keys.size());
    for (const Key& key : keys) {
        numbers.push_back(
            static_cast<std::uint32_t>(std::lower_bound(sorted.begin(), sorted.end(), key) - sorted.begin()));
    }
    return numbers;
}

std::uint32_t number_of(const std::vector<std::uint32_t>& ranks) {
    return ranks.empty() ? 0 : *std::max_element(ranks.begin(), ranks.end()) + 1;
}

double radius_of(const Crystal& crystal) {
    return std::hypot(static_cast<double>(crystal.x_um), static_cast<double>(crystal.y_um));
}

/// [group] numbers of groups that pair with the same others and lie about as far from the axis: an insert and
/// the scanner around it differ.
std::vector<std::uint32_t> families(const PairGeometry& pairs, const PairRule& rule) {
    constexpr double much_further = 1.5;
    std::vector<double> nearest(pairs.groups.size(), HUGE_VAL);
    for (const Crystal& c : pairs.crystals)
        nearest[c.group] = std::min(nearest[c.group], radius_of(c));
    std::vector<double> sorted = nearest;
    std::sort(sorted.begin(), sorted.end());
    std::vector<double> inner;  // radius of each shell
    for (const double radius : sorted)
        if (inner.empty() || radius > much_further * inner.back()) inner.push_back(radius);
    const std::vector<std::uint32_t> kind = alike(rule);
    std::vector<std::pair<std::uint32_t, std::ptrdiff_t>> keys;
    for (std::size_t g = 0; g < nearest.size(); ++g)
        keys.emplace_back(kind[g], std::upper_bound(inner.begin(), inner.end(), nearest[g]) - inner.begin());
    return ranks(keys);
}

/// Joins neighbouring numbers until at most `most` are left; returns whether any were joined.
bool join_neighbours(std::vector<std::uint32_t>& ranks, std::uint32_t most) {
    const std::uint64_t count = number_of(ranks);
    if (count <= most) return false;
    for (std::uint32_t& rank : ranks)
        rank = static_cast<std::uint32_t>(rank * std::uint64_t{most} / count);
    return true;
}

/// [family] into how many directions it is divided. With a field of view, partners lie within the angle that
/// it has as seen from a crystal, and half of that is told apart.
std::vector<std::uint32_t> directions_of(const PairGeometry& pairs,
                                         const std::vector<std::uint32_t>& family) {
    constexpr double most_of_view = 96;
    const std::uint32_t count = number_of(family);
    if (!pairs.field_of_view) return std::vector<std::uint32_t>(count, std::max(1U, directions / count));
    std::vector<double> furthest(count);
    for (const Crystal& c : pairs.crystals)
        furthest[family[c.group]] = std::max(furthest[family[c.group]], radius_of(c));
    const double radius = std::max(pairs.field_of_view->half_x_um, pairs.field_of_view->half_y_um);
    std::vector<double> wanted;
    wanted.reserve(count);
    for (const double distance : furthest)
        wanted.push_back(4 * std::numbers::pi / std::asin(std::min(1.0, radius / std::max(distance, 1.0))));
    const double all = std::accumulate(wanted.begin(), wanted.end(), 0.0);
    std::vector<std::uint32_t> parts;
    parts.reserve(count);
    for (const double part : wanted)
        parts.push_back(static_cast<std::uint32_t>(std::max(1.0, part * std::min(1.0, most_of_view / all))));
    return parts;
}

/// The part of the pairs of crystals of two bins that is good: of all if they are few, else of a fixed
/// sample. `same`: the two are one bin, whose crystals do not pair with themselves.
double good_part(const PairRule& rule, std::span<const std::uint32_t> a, std::span<const std::uint32_t> b,
                 bool same) {
    constexpr std::size_t few = 64;
    constexpr std::size_t samples = 32;
    constexpr std::size_t enough = 12;  // if all of these agree
    std::size_t good = 0;
    std::size_t all = 0;
    const auto count = [&](std::uint32_t i, std::uint32_t j) {
        if (same && i == j) return;
        ++all;
        good += rule.good(i, j) ? 1 : 0;
    };
    if (a.size() * b.size() <= few) {
        for (const std::uint32_t i : a)
            for (const std::uint32_t j : b)
                count(i, j);
    } else {
        // Points that fill a square evenly: Roberts' sequence.
        double x = 0.5;
        double y = 0.5;
        for (std::size_t k = 0; k < samples; ++k) {
            if (k == enough && (good == 0 || good == all)) break;
            x = std::fmod(x + 0.7548776662466927, 1);
            y = std::fmod(y + 0.5698402909980532, 1);
            count(a[static_cast<std::size_t>(x * static_cast<double>(a.size()))],
                  b[static_cast<std::size_t>(y * static_cast<double>(b.size()))]);
        }
    }
    return all > 0 ? static_cast<double>(good) / static_cast<double>(all) : 0;
}

/// The class of a line by its distance from the axis, given as a part of the greatest distance.
std::uint8_t distance_class(double part) {
    return static_cast<std::uint8_t>(
        std::clamp(part * PairSides::distances, 0.0, PairSides::distances - 1.0));
}

/// The least distance of the axis from the stretch between two points.
double from_axis(std::complex<double> a, std::complex<double> b) {
    const std::complex<double> along = b - a;
    const double t =
        std::norm(along) > 0 ? std::clamp(-std::real(a * std::conj(along)) / std::norm(along), 0.0, 1.0) : 0;
    return std::abs(a + t * along);
}

}  // namespace

PairSides PairSides::of(const config::Geometry& geometry, const PairRule& rule) {
    PairSides sides;
    if (geometry.is_ring()) {
        sides.count = rule.modules;
        for (std::uint32_t a = 0; a < sides.count; ++a) {
            for (std::uint32_t b = 0; b < sides.count; ++b) {
                const std::uint32_t apart = rule.modules_apart(a, b);
                sides.can_join.push_back(apart >= rule.min_module_difference ? 1 : 0);
                sides.opposite.push_back(3 * apart >= rule.modules ? 1 : 0);
                sides.distance.push_back(distance_class(std::cos(std::numbers::pi * apart / rule.modules)));
            }
        }
        return sides;
    }
    const PairGeometry& pairs = *geometry.pairs;
    const std::vector<std::uint32_t> family = families(pairs, rule);
    const std::vector<std::uint32_t> parts = directions_of(pairs, family);
    std::vector<std::complex<double>> towards(number_of(family));
    for (const Crystal& c : pairs.crystals)
        towards[family[c.group]] += std::polar(1.0, 2 * std::numbers::pi * turn_of(c));
    // By direction first, so that neighbours in this order are neighbours around the axis.
    std::vector<std::tuple<double, std::uint32_t>> keys;
    for (const Crystal& c : pairs.crystals) {
        const std::uint32_t f = family[c.group];
        const double turn = parts[f] > 1 ? std::floor(turn_of(c) * parts[f]) / parts[f]
                                         : std::arg(towards[f]) / (2 * std::numbers::pi);
        keys.emplace_back(turn, f);
    }
    sides.of_crystal = ranks(keys);
    join_neighbours(sides.of_crystal, most);
    sides.count = number_of(sides.of_crystal);

    const std::size_t count = sides.count;
    std::vector<std::vector<std::uint32_t>> groups(count);
    std::vector<std::complex<double>> middle(count);
    std::vector<std::complex<double>> sums(count);
    std::vector<double> crystals(count);
    for (std::size_t i = 0; i < pairs.crystals.size(); ++i) {
        const Crystal& c = pairs.crystals[i];
        std::vector<std::uint32_t>& known = groups[sides.of_crystal[i]];
        if (std::find(known.begin(), known.end(), c.group) == known.end()) known.push_back(c.group);
        sums[sides.of_crystal[i]] += std::polar(1.0, 2 * std::numbers::pi * turn_of(c));
        middle[sides.of_crystal[i]] += std::complex<double>(c.x_um, c.y_um);
        ++crystals[sides.of_crystal[i]];
    }
    double furthest = 1;
    for (std::size_t a = 0; a < count; ++a) {
        middle[a] /= crystals[a];
        furthest = std::max(furthest, std::abs(middle[a]));
    }
    const auto turn_between = [&](std::size_t a, std::size_t b) {
        return (std::arg(sums[a]) - std::arg(sums[b])) / (2 * std::numbers::pi);
    };
    sides.can_join.assign(count * count, 0);
    sides.opposite.assign(count * count, 0);
    for (std::size_t a = 0; a < count; ++a) {
        for (std::size_t b = 0; b < count; ++b) {
            for (const std::uint32_t g : groups[a])
                for (const std::uint32_t h : groups[b])
                    if (rule.groups_good(g, h)) sides.can_join[a * count + b] = 1;
            sides.distance.push_back(distance_class(from_axis(middle[a], middle[b]) / furthest));
            sides.opposite[a * count + b] = apart(turn_between(a, b), 1.0 / 3) ? 1 : 0;
        }
        // With nothing opposite, a partner is anywhere a good one may be.
        const auto row = [&](std::vector<std::uint8_t>& v) { return std::span(v).subspan(a * count, count); };
        if (std::count(row(sides.opposite).begin(), row(sides.opposite).end(), 1) == 0)
            std::copy(row(sides.can_join).begin(), row(sides.can_join).end(), row(sides.opposite).begin());
    }
    return sides;
}

PairBins::PairBins(const config::Geometry& geometry, const PairRule& rule, const PairSides& sides,
                   std::uint32_t zones) {
    if (geometry.is_ring()) {
        take_ring(geometry, rule, zones);
    } else {
        take_long_form(*geometry.pairs, rule, sides, zones);
    }
}

void PairBins::take_ring(const config::Geometry& geometry, const PairRule& rule, std::uint32_t zones) {
    rows_ = geometry.rings();
    std::vector<std::uint32_t> modules;
    std::vector<std::uint32_t> rings;
    for (std::uint32_t i = 0; i < geometry.crystal_count(); ++i) {
        const RingRule::Coordinates place = rule.coordinates_of(i);
        modules.push_back(place.module);
        rings.push_back(place.ring);
        cell_of_.push_back(place.module * zones + place.ring * zones / rows_);
    }
    fill(modules, rings, rule.modules * zones);
}

void PairBins::take_long_form(const PairGeometry& pairs, const PairRule& rule, const PairSides& sides,
                              std::uint32_t zones) {
    std::vector<std::int32_t> heights;
    for (const Crystal& c : pairs.crystals)
        heights.push_back(c.z_um);
    std::vector<std::uint32_t> rows = ranks(heights);
    std::vector<std::uint32_t> strips = sides.of_crystal;
    const bool limited = join_neighbours(rows, max_rows);
    bool weighted = pairs.field_of_view.has_value() || sides.count == PairSides::most;
    if (weighted) {
        // Columns of crystals, side by side.
        std::vector<std::tuple<std::uint32_t, std::uint32_t, double, std::int32_t, std::int32_t>> columns;
        for (std::size_t i = 0; i < pairs.crystals.size(); ++i) {
            const Crystal& c = pairs.crystals[i];
            columns.emplace_back(sides.of_crystal[i], c.group, turn_of(c), c.x_um, c.y_um);
        }
        strips = ranks(columns);
        if (pairs.crystals.size() > max_weighted) {
            join_neighbours(rows, std::max(zones, 12U));
            join_neighbours(strips, max_weighted / number_of(rows));
            // Crystals of an inner and an outer ring count differently.
            if (rule.group_count <= max_split_groups) {
                std::vector<std::pair<std::uint32_t, std::uint32_t>> parts;
                for (std::size_t i = 0; i < strips.size(); ++i)
                    parts.emplace_back(strips[i], pairs.crystals[i].group);
                strips = ranks(parts);
            }
        }
    }
    rows_ = number_of(rows);
    for (std::size_t i = 0; i < pairs.crystals.size(); ++i)
        cell_of_.push_back(sides.of_crystal[i] * zones + rows[i] * zones / rows_);
    fill(strips, rows, sides.count * zones);
    if (weighted) {
        find_weights(rule);
    } else {
        find_near_rows(rule, rows);
        exact_ = !limited;
    }
}

void PairBins::fill(std::span<const std::uint32_t> strips, std::span<const std::uint32_t> rows,
                    std::uint32_t cells) {
    const auto key = [&](std::uint32_t i) { return std::tuple(cell_of_[i], strips[i], rows[i]); };
    order_.resize(cell_of_.size());
    std::iota(order_.begin(), order_.end(), 0U);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    first_bin_.assign(cells + 1, 0);
    for (std::uint32_t at = 0; at < order_.size(); ++at) {
        if (at > 0 && key(order_[at]) == key(order_[at - 1])) continue;
        first_.push_back(at);
        row_.push_back(rows[order_[at]]);
        ++first_bin_[cell_of_[order_[at]] + 1];
    }
    first_.push_back(static_cast<std::uint32_t>(order_.size()));
    std::partial_sum(first_bin_.begin(), first_bin_.end(), first_bin_.begin());
}

void PairBins::find_near_rows(const PairRule& rule, std::span<const std::uint32_t> rows) {
    // Where all of a row is at one height, each of its crystals stands for all.
    std::vector<std::vector<std::uint32_t>> heights(rows_);
    std::map<std::int32_t, std::uint32_t> known;
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
        if (known.emplace(rule.crystals[i].z_um, i).second) heights[rows[i]].push_back(i);
    }
    near_rows_.resize(std::size_t{rows_} * rows_);
    for (std::uint32_t a = 0; a < rows_; ++a) {
        for (std::uint32_t b = 0; b < rows_; ++b) {
            std::size_t good = 0;
            for (const std::uint32_t i : heights[a])
                for (const std::uint32_t j : heights[b])
                    good += rule.crystals_good(i, j) ? 1 : 0;
            near_rows_[std::size_t{a} * rows_ + b] =
                static_cast<double>(good) / static_cast<double>(heights[a].size() * heights[b].size());
        }
    }
}

void PairBins::find_weights(const PairRule& rule) {
    weights_.resize(std::size_t{count()} * count());
    for (std::uint32_t a = 0; a < count(); ++a) {
        for (std::uint32_t b = 0; b <= a; ++b) {
            const double weight = good_part(rule, crystals_of(a), crystals_of(b), a == b);
            if (crystals_of(a).size() * crystals_of(b).size() > 1) exact_ = false;
            weights_[std::size_t{a} * count() + b] = static_cast<float>(weight);
            weights_[std::size_t{b} * count() + a] = static_cast<float>(weight);
        }
    }
}

}  // namespace petacq::gpu
