#include "gpu/randoms/randoms.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "config/base/sum.hpp"
#include "gpu/randoms/axial_partners.hpp"
#include "gpu/randoms/pair_cells.hpp"
#include "gpu/randoms/time_apart.hpp"
#include "gpu/randoms/window_load.hpp"

namespace petacq::gpu {

namespace {

using config::sum_of;

/// Passes go on until the randoms change by less than this part of them.
constexpr double settled_part = 5e-4;
constexpr unsigned max_passes = 12;

/// The part that `counts` are of `all` true pairs, whose variance is that of the pairs from which the randoms
/// were subtracted. A guess, right to a tenth, takes over as the noise of that grows.
double part_of(double counts, double all, double variance, double guess) {
    if (all <= 0) return guess;
    // The variance of the part is variance / (4 all^2) at most; that of the guess is 0.1^2.
    const double noise = variance / (4 * 0.1 * 0.1);
    return std::clamp((counts * all + noise * guess) / (all * all + noise), 0.0, 1.0);
}

std::vector<std::uint16_t> sectors_of_crystals(const config::Geometry& geometry) {
    const Sectors sectors = Sectors::of(geometry);
    std::vector<std::uint16_t> of_crystals = modules_of_crystals(geometry);
    for (std::uint16_t& sector : of_crystals)
        sector = static_cast<std::uint16_t>(sectors.of_module(sector));
    return of_crystals;
}

}  // namespace

double RandomsByPair::of(const PairCells& cells, std::uint32_t i, std::uint32_t j) const {
    const PairChances& c = chances[std::size_t{cells.of_crystal(i)} * cells.count() + cells.of_crystal(j)];
    double sum = 0;
    for (std::size_t x = 0; x < single_kinds; ++x) {
        for (std::size_t y = 0; y < single_kinds; ++y)
            sum += c.of[x][y] * rates.of[x][i] * rates.of[y][j];
    }
    return ticks * sum;
}

RandomsEstimator::RandomsEstimator(const config::Geometry& geometry, const CoincidenceRules& rules)
    : rules_(rules),
      pairs_(geometry, rules),
      sector_of_(sectors_of_crystals(geometry)),
      by_side_(pairs_.cells(), sector_of_, Sectors::of(geometry).count()) {
    for (std::vector<double>& rates : by_pair_.rates.of)
        rates.resize(geometry.crystal_count());
    for (std::uint32_t i = 0; i < geometry.crystal_count(); ++i)
        cell_of_.push_back(pairs_.cells().of_crystal(i));
}

RandomsEstimator::RefusedPairs RandomsEstimator::find_refused(const IntervalSums& sums,
                                                              const WindowContents& contents) const {
    const std::size_t sides = pairs_.cells().sides;
    RefusedPairs refused{0, std::vector<double>(sides * sides), std::vector<double>(sides, 0.5)};
    if (std::all_of(sums.refused_pairs.begin(), sums.refused_pairs.end(), [](auto n) { return n == 0; }))
        return refused;
    const PairChances chances = chances_alone(rules_, pairs_.cells(), contents);
    refused.taken = chances.partners;
    refused.randoms = pairs_.refused(chances.of);
    const std::vector<double> first = pairs_.refused(chances.first);
    for (std::size_t a = 0; a < sides; ++a) {
        double ends = 0;
        double come_first = 0;
        for (std::size_t b = 0; b < sides; ++b) {
            double& randoms = refused.randoms[a * sides + b];
            ends += randoms;
            come_first += first[a * sides + b];
            randoms *= by_pair_.ticks;
        }
        if (ends > 0) refused.first[a] = std::clamp(come_first / ends, 0.0, 1.0);
    }
    return refused;
}

std::vector<double> RandomsEstimator::find_later(const IntervalSums& sums, const ExpectedRandoms& randoms,
                                                 const RefusedPairs& refused) const {
    struct Ends {
        double singles = 0;
        double pairs = 0;
        double trues = 0;
        double later = 0;  ///< trues
    };
    const std::vector<double> first = pairs_.first_ends(by_pair_.chances);
    const std::size_t sectors = by_side_.of_sectors().size();
    std::vector<Ends> of_sector(sectors);
    for (std::size_t a = 0; a < sectors; ++a) {
        for (std::size_t b = 0; b < sectors; ++b) {
            const double pairs =
                0.0 + sums.module_pairs[a * sectors + b] + sums.refused_pairs[a * sectors + b];
            of_sector[a].pairs += pairs;
            of_sector[b].pairs += pairs;
            of_sector[b].later += pairs;
        }
    }
    for (Ends& ends : of_sector)
        ends.trues = ends.pairs;
    for (std::size_t i = 0; i < sector_of_.size(); ++i) {
        Ends& ends = of_sector[sector_of_[i]];
        ends.trues -= randoms.per_crystal[i];
        ends.later -= randoms.per_crystal[i] * (1 - first[pairs_.cells().side_of(cell_of_[i])]);
        for (const std::vector<double>& rates : by_pair_.rates.of)
            ends.singles += rates[i];
    }
    std::vector<Ends> of_side(first.size());
    for (std::size_t m = 0; m < sectors; ++m) {
        for (const ShareOfSide& part : by_side_.of_sectors()[m])
            of_side[part.side].singles += of_sector[m].singles * part.share;
    }
    for (std::size_t m = 0; m < sectors; ++m) {
        for (const auto& [side, share] : by_side_.of_sectors()[m]) {
            const Ends& all = of_side[side];
            const auto row = refused.randoms.begin() + static_cast<std::ptrdiff_t>(side * first.size());
            // The refused randoms of sectors on the same side are taken to be proportional to their singles.
            const double refused_randoms =
                all.singles > 0
                    ? of_sector[m].singles * share / all.singles *
                          std::accumulate(row, row + static_cast<std::ptrdiff_t>(first.size()), 0.0)
                    : 0;
            of_sector[m].trues -= refused_randoms;
            of_sector[m].later -= refused_randoms * (1 - refused.first[side]);
        }
        for (const auto& [side, share] : by_side_.of_sectors()[m]) {
            Ends& sum = of_side[side];
            sum.pairs += of_sector[m].pairs * share;
            sum.trues += of_sector[m].trues * share;
            sum.later += of_sector[m].later * share;
        }
    }
    std::vector<double> later;
    for (std::size_t m = 0; m < sectors; ++m) {
        double guess = by_side_.of_sectors()[m].empty() ? 0.5 : 0;
        for (const auto& [side, share] : by_side_.of_sectors()[m]) {
            const Ends& sum = of_side[side];
            guess += share * part_of(sum.later, sum.trues, sum.pairs, 0.5);
        }
        const Ends& ends = of_sector[m];
        later.push_back(std::clamp(part_of(ends.later, ends.trues, ends.pairs, guess), 0.05, 0.95));
    }
    return later;
}

RandomsEstimator::TruePairs RandomsEstimator::true_pairs(const IntervalSums& sums,
                                                         const ExpectedRandoms& randoms,
                                                         const RefusedPairs& refused,
                                                         const WindowContents& contents) {
    const PairCells& cells = pairs_.cells();
    const std::size_t sides = cells.sides;
    TruePairs trues{std::vector<double>(sides * sides), std::vector<double>(sides * sides),
                    std::vector<double>(sides * sides)};
    // [place] Sums over the cells of two sides: of all good pairs, and of those that the policy takes.
    std::vector<double> pairs(sides * sides);
    std::vector<double> taken(sides * sides);
    for (std::uint32_t a = 0; a < cells.count(); ++a) {
        for (std::uint32_t b = 0; b < cells.count(); ++b) {
            const std::size_t of_cells = std::size_t{a} * cells.count() + b;
            const double chance = by_pair_.chances[of_cells].partners;
            if (chance <= 0) continue;
            // Some even where none are expected.
            const double weight =
                contents.singles[a] * contents.partners[of_cells] * contents.good_partners[of_cells] + 1e-9;
            const std::size_t place = cells.side_of(a) * sides + cells.side_of(b);
            pairs[place] += weight;
            taken[place] += weight * chance;
        }
    }
    // [side] good true pairs of the side, for each of them that is taken.
    std::vector<double> for_each_taken(sides, 1.0);
    for (std::size_t a = 0; a < sides; ++a) {
        double all_pairs = 0;
        double all_taken = 0;
        for (std::size_t i = a * sides; i < (a + 1) * sides; ++i) {
            all_pairs += pairs[i];
            all_taken += taken[i];
        }
        if (all_taken > 0) for_each_taken[a] = all_pairs / all_taken;
    }
    PairsOfSectors good = by_side_.none(sums.module_pairs, true);
    PairsOfSectors bad = by_side_.none(sums.refused_pairs, false);
    good.randoms = randoms.module_pairs;
    for (std::size_t a = 0; a < sides; ++a)
        good.randoms[a * (sides + 1)] *= 2;  // both orders
    bad.randoms = refused.randoms;
    for (std::uint32_t i = 0; i < sector_of_.size(); ++i) {
        const std::uint32_t piece = by_side_.piece_of(i);
        const double true_ends = sums.prompts[i] - randoms.per_crystal[i];
        const double paired = by_pair_.rates.of[earlier_single][i] + by_pair_.rates.of[later_single][i];
        good.random_ends[piece] += randoms.per_crystal[i];
        good.ends[piece] += true_ends;
        bad.random_ends[piece] += sums.unpaired[i];
        bad.ends[piece] += by_pair_.ticks * paired - true_ends * for_each_taken[cells.side_of(cell_of_[i])];
    }
    trues.good = by_side_.spread(std::move(good), good_fit_);
    trues.refused = by_side_.spread(std::move(bad), refused_fit_);
    const auto correct = [](double& found, double& variance, double random, double chance) {
        variance += chance > 0 ? found / (chance * chance) : 0;
        found = chance > 0 ? (found - random) / chance : 0;
    };
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        const bool inside = i % (sides + 1) == 0;  // a = b: both orders
        correct(trues.good[i], trues.variance[i], (inside ? 2 : 1) * randoms.module_pairs[i],
                pairs[i] > 0 ? taken[i] / pairs[i] : 0);
        correct(trues.refused[i], trues.variance[i], refused.randoms[i], refused.taken);
    }
    return trues;
}

/// The guess is that the partner lies opposite, up to a sixth of the ring away from there.
std::vector<double> RandomsEstimator::find_partners(const TruePairs& trues,
                                                    const std::vector<double>& singles) const {
    const PairCells& cells = pairs_.cells();
    std::vector<double> partners(std::size_t{cells.sides} * cells.sides);
    for (std::uint32_t a = 0; a < cells.sides; ++a) {
        const std::size_t row = std::size_t{a} * cells.sides;
        const auto opposite = [&](std::uint32_t b) { return cells.opposite(a, b) ? singles[b] : 0; };
        const auto found = [&](std::uint32_t b) {
            return std::max(trues.good[row + b], 0.0) + std::max(trues.refused[row + b], 0.0);
        };
        double all = 0;
        double variance = 0;
        double all_opposite = 0;
        for (std::uint32_t b = 0; b < cells.sides; ++b) {
            all += found(b);
            variance += trues.variance[row + b];
            all_opposite += opposite(b);
        }
        for (std::uint32_t b = 0; b < cells.sides; ++b) {
            const double guess = all_opposite > 0 ? opposite(b) / all_opposite : 0;
            partners[row + b] = part_of(found(b), all, variance, guess);
        }
    }
    return partners;
}

RandomsEstimator::PairedSingles RandomsEstimator::paired_singles(const IntervalSums& sums,
                                                                 const ExpectedRandoms& randoms,
                                                                 const WindowContents& contents,
                                                                 const std::vector<double>& apart) const {
    struct CellSums {
        double paired = 0;
        double prompts = 0;
        double good = 0;  ///< true pairs that were taken, or lost to other singles of their windows
    };
    const PairCells& cells = pairs_.cells();
    std::vector<CellSums> of_cell(cells.count());
    for (std::size_t i = 0; i < sector_of_.size(); ++i) {
        CellSums& counts = of_cell[cell_of_[i]];
        for (const SingleKind kind : {earlier_single, later_single})
            counts.paired += by_pair_.ticks * by_pair_.rates.of[kind][i];
        counts.prompts += sums.prompts[i];
        counts.good += sums.prompts[i] - randoms.per_crystal[i];
    }
    std::vector<CellSums> of_zone(cells.zones);
    for (std::uint32_t a = 0; a < cells.count(); ++a) {
        double pairs = 0;
        double taken = 0;
        for (std::uint32_t b = 0; b < cells.count(); ++b) {
            const std::size_t place = std::size_t{a} * cells.count() + b;
            if (by_pair_.chances[place].partners == 0) continue;
            const double good = contents.partners[place] * contents.good_partners[place];
            pairs += good;
            taken += good * by_pair_.chances[place].partners;
        }
        CellSums& counts = of_cell[a];
        counts.paired = std::max(counts.paired, 0.0) * apart[cells.side_of(a)];
        counts.good *= taken > 0 ? pairs / taken : 0;
        CellSums& zone = of_zone[cells.zone_of(a)];
        zone.paired += counts.paired;
        zone.prompts += counts.prompts;
        zone.good += counts.good;
    }
    PairedSingles paired{std::vector<double>(cells.zones), std::vector<double>(cells.zones), {}};
    for (std::uint32_t a = 0; a < cells.count(); ++a) {
        const CellSums& zone = of_zone[cells.zone_of(a)];
        const double guess = part_of(zone.good, zone.paired, zone.prompts, 0.5);
        const CellSums& counts = of_cell[a];
        paired.good_parts.push_back(part_of(counts.good, counts.paired, counts.prompts, guess));
        paired.all[cells.zone_of(a)] += counts.paired;
        paired.good[cells.zone_of(a)] += counts.paired * paired.good_parts.back();
    }
    return paired;
}

void RandomsEstimator::find_all_partners(WindowContents& contents, const IntervalSums& sums,
                                         const TruePairs& trues, const ExpectedRandoms& randoms) {
    const PairCells& cells = pairs_.cells();
    const std::uint32_t count = cells.count();
    const std::uint32_t zones = cells.zones;
    std::vector<double> in_side(cells.sides);
    for (std::uint32_t cell = 0; cell < count; ++cell)
        in_side[cells.side_of(cell)] += contents.singles[cell];
    const std::vector<double> by_side = find_partners(trues, in_side);
    const auto place_of = [&](std::uint32_t a, std::uint32_t b) {
        return std::size_t{cells.side_of(a)} * cells.sides + cells.side_of(b);
    };
    const auto are_apart = [&](std::uint32_t a, std::uint32_t b) {
        return cells.can_join(cells.side_of(a), cells.side_of(b));
    };
    std::vector<double> apart(cells.sides);
    for (std::uint32_t a = 0; a < count; a += zones) {
        for (std::uint32_t b = 0; b < count; b += zones)
            apart[cells.side_of(a)] += are_apart(a, b) ? by_side[place_of(a, b)] : 0;
    }
    AxialPartners axial{{1}, {1}};
    std::vector<double> good_parts(count, 1.0);
    if (cells.partners_refused) {
        PairedSingles paired{std::vector<double>(zones, 1.0), std::vector<double>(zones, 0.5),
                             std::vector<double>(count, 0.5)};
        if (!randoms.per_crystal.empty()) paired = paired_singles(sums, randoms, contents, apart);
        refused_partners_ = 1 - sum_of(paired.good) / std::max(sum_of(paired.all), 1e-9);
        axial = find_axial_partners(cells, paired.all, paired.good);
        good_parts = std::move(paired.good_parts);
    }
    contents.partners.assign(std::size_t{count} * count, 0);
    contents.good_partners.assign(contents.partners.size(), 0);
    // Partners on the side of b, in the zones that it has.
    const auto in_zones_of = [&](std::uint32_t b, std::size_t row, double of_good, double of_bad) {
        double all = 0;
        const std::uint32_t first = b - cells.zone_of(b);
        for (std::uint32_t zone = 0; zone < zones; ++zone) {
            const double good = axial.good[row + zone];
            if (cells.occupied(first + zone))
                all += axial.partners[row + zone] * (of_good * good + of_bad * (1 - good));
        }
        return all;
    };
    if (cells.partners_refused && cells.rule.field_of_view.half_x_um > 0)
        return spread_partners(contents, trues, by_side, axial, good_parts);
    for (std::uint32_t a = 0; a < count; ++a) {
        const std::size_t row = std::size_t{cells.zone_of(a)} * zones;
        double good_in_zone = 0;
        for (std::uint32_t zone = 0; zone < zones; ++zone)
            good_in_zone += axial.partners[row + zone] * axial.good[row + zone];
        // The good and the bad pairs of the zone, in the parts that they have in the cell.
        const double of_good = good_in_zone > 0 ? good_parts[a] / good_in_zone : 0;
        const double of_bad = good_in_zone < 1 ? (1 - good_parts[a]) / (1 - good_in_zone) : 0;
        const double all = of_good * good_in_zone + of_bad * (1 - good_in_zone);
        if (all <= 0) continue;
        for (std::uint32_t b = 0; b < count; ++b) {
            const double of_side = cells.has_empty() ? in_zones_of(b, row, of_good, of_bad) : all;
            if (of_side <= 0 || !cells.occupied(b)) continue;
            const std::size_t place = std::size_t{a} * count + b;
            const double partners = axial.partners[row + cells.zone_of(b)];
            const double good = of_good * partners * axial.good[row + cells.zone_of(b)];
            const double bad = of_bad * partners * (1 - axial.good[row + cells.zone_of(b)]);
            contents.partners[place] = by_side[place_of(a, b)] * ((good + bad) / of_side);
            contents.good_partners[place] = good + bad > 0 && are_apart(a, b) ? good / (good + bad) : 0;
        }
    }
}

void RandomsEstimator::spread_partners(WindowContents& contents, const TruePairs& trues,
                                       const std::vector<double>& by_side, const AxialPartners& axial,
                                       const std::vector<double>& good_parts) const {
    const PairCells& cells = pairs_.cells();
    const std::size_t sides = cells.sides;
    const std::uint32_t count = cells.count();
    const std::uint32_t zones = cells.zones;
    std::vector<double> good_of_sides = by_side_.good_parts();
    for (std::size_t i = 0; i < good_of_sides.size(); ++i) {
        const double good = std::max(trues.good[i], 0.0);
        good_of_sides[i] =
            part_of(good, good + std::max(trues.refused[i], 0.0), trues.variance[i], good_of_sides[i]);
    }
    for (std::uint32_t a = 0; a < count; ++a) {
        const std::size_t zone_row = std::size_t{cells.zone_of(a)} * zones;
        const std::size_t side_row = std::size_t{cells.side_of(a)} * sides;
        double good = 0;
        double bad = 0;
        for (std::uint32_t side = 0; side < sides; ++side) {
            if (!cells.can_join(cells.side_of(a), side)) continue;
            good += by_side[side_row + side] * good_of_sides[side_row + side];
            bad += by_side[side_row + side] * (1 - good_of_sides[side_row + side]);
        }
        // The parts that good and bad pairs have in the cell.
        const double of_good = good > 0 ? good_parts[a] * (good + bad) / good : 0;
        const double of_bad = bad > 0 ? (1 - good_parts[a]) * (good + bad) / bad : 0;
        for (std::uint32_t side = 0; side < sides; ++side) {
            const bool joins = cells.can_join(cells.side_of(a), side);
            const double all = by_side[side_row + side];
            const double good_side = joins ? all * good_of_sides[side_row + side] * of_good : 0;
            const double bad_side = joins ? all * (1 - good_of_sides[side_row + side]) * of_bad : all;
            double good_zones = 0;
            double bad_zones = 0;
            double all_zones = 0;
            for (std::uint32_t zone = 0; zone < zones; ++zone) {
                if (!cells.occupied(side * zones + zone)) continue;
                const double partners = axial.partners[zone_row + zone];
                good_zones += partners * axial.good[zone_row + zone];
                bad_zones += partners * (1 - axial.good[zone_row + zone]);
                all_zones += partners;
            }
            if (all_zones <= 0) continue;
            for (std::uint32_t zone = 0; zone < zones; ++zone) {
                if (!cells.occupied(side * zones + zone)) continue;
                const double part = axial.partners[zone_row + zone] / all_zones;
                const double near = axial.good[zone_row + zone];
                const double found_good =
                    good_side * part * (good_zones > 0 ? near * all_zones / good_zones : 1);
                const double found_bad =
                    bad_side * part * (bad_zones > 0 ? (1 - near) * all_zones / bad_zones : 1);
                const std::size_t place = std::size_t{a} * count + side * zones + zone;
                contents.partners[place] = found_good + found_bad;
                contents.good_partners[place] = found_good > 0 ? found_good / (found_good + found_bad) : 0;
            }
        }
    }
}

/// Where two partners share a window with a third single, the partners win if the third has the least energy.
/// Where pairs contain the opener, if a partner opened the window, the third must only have less energy than
/// the other partner. Singles alone in their windows tell the energies of such thirds. Pairs alone in theirs
/// tell those of partners, once the randoms among them are taken away.
double RandomsEstimator::find_partner_weight(const IntervalSums& sums, const WindowContents& contents) const {
    const auto counts = [&](EnergyOf whose, std::uint32_t bin) {
        return static_cast<double>(sums.energies[whose * sampled_energy_bins + bin]);
    };
    double alone = 0;
    double pairs = 0;
    double above_least = 0;  // pairs of partners with both energies above that of a single alone, times these
    double above_greatest = 0;
    for (std::uint32_t bin = 0; bin < sampled_energy_bins; ++bin) {
        const double below = alone + counts(of_alone, bin) / 2;
        above_least += below * counts(of_lesser, bin);
        above_greatest += below * counts(of_greater, bin);
        alone += counts(of_alone, bin);
        pairs += counts(of_lesser, bin);
    }
    if (alone <= 0 || pairs <= 0) return 1;
    const PairChances chances = chances_alone(rules_, pairs_.cells(), contents);
    double randoms = 0;
    for (std::size_t x = 0; x < single_kinds; ++x) {
        for (std::size_t y = 0; y < single_kinds; ++y)
            randoms += chances.of[x][y] * sum_of(by_pair_.rates.of[x]) * sum_of(by_pair_.rates.of[y]);
    }
    randoms *= by_pair_.ticks / 2 / windows_per_sample;
    const bool single = !rules_.opener_only();
    const double even = single ? 1.0 / 3 : 1.0 / 2;  // of exchangeable energies, as those of randoms
    const double won = (single ? above_least : (above_least + above_greatest) / 2) / alone - even * randoms;
    const double partners = pairs - randoms;
    const double part =
        std::clamp(part_of(won, partners, pairs + partners * partners / alone, even), 0.02, 0.95);
    return (single ? 2 : 1) * part / (1 - part);
}

void RandomsEstimator::find_contents(WindowContents& contents) const {
    const PairCells& cells = pairs_.cells();
    contents.singles = pairs_.in_cells();
    const double lone = sum_of(by_pair_.rates.of[lone_single]);
    const double singles = sum_of(contents.singles);
    const double annihilations = contents.load / window_width(rules_);
    if (annihilations > 0) contents.lone = std::clamp(lone / annihilations, 0.0, 1.0);
    const PairChances each_once{{{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}}, {}};
    const double good_pairs =
        pairs_.total(std::vector<PairChances>(std::size_t{cells.count()} * cells.count(), each_once));
    if (singles > 0) contents.good = std::clamp(2 * good_pairs / (singles * singles), 0.0, 1.0);
    if (asks_for_good(rules_.policy)) contents.good_parts = pairs_.good_parts();
    for (double& part : contents.singles)
        part = singles > 0 ? part / singles : 1.0 / cells.count();
}

void RandomsEstimator::find_rates(const IntervalSums& sums, const WindowContents& contents,
                                  const std::vector<double>& later) {
    const bool single = rules_.one_window_each();
    const double parted = contents.abs_dt / window_width(rules_);
    const double alone = std::exp(contents.load * (single ? 1 : 1 + (1 - contents.lone) * parted));
    const double free = 1 - contents.in_windows;
    const double opens_later = contents.in_windows * parted;
    std::vector<double>& lone_rates = by_pair_.rates.of[lone_single];
    std::vector<double>& earlier_rates = by_pair_.rates.of[earlier_single];
    std::vector<double>& later_rates = by_pair_.rates.of[later_single];
    for (std::size_t i = 0; i < sector_of_.size(); ++i) {
        const double singles = (static_cast<double>(sums.unpaired[i]) + sums.grouped[i]) / by_pair_.ticks;
        const double unpaired = sums.unpaired[i] / by_pair_.ticks * alone;
        const double part = later.empty() ? 0.5 : later[sector_of_[i]];
        if (single) {
            lone_rates[i] = (unpaired - part * opens_later * singles) / (free - part * opens_later);
            earlier_rates[i] = (1 - part) * (singles - lone_rates[i]);
            later_rates[i] = part * (singles - lone_rates[i]);
        } else {
            lone_rates[i] = unpaired;  // and the later ones, until these are known
            earlier_rates[i] = singles - unpaired;
            later_rates[i] = earlier_rates[i] * part / (1 - part);
        }
    }
    if (single) return;
    // Of each pair one single is the later one.
    const double later_sum = sum_of(later_rates);
    const double scale = later_sum > 0 ? sum_of(earlier_rates) / later_sum : 1;
    for (std::size_t i = 0; i < sector_of_.size(); ++i) {
        later_rates[i] *= scale;
        lone_rates[i] -= later_rates[i];
    }
}

void RandomsEstimator::estimate(const IntervalSums& sums, std::uint64_t ticks, ExpectedRandoms& out) {
    WindowContents contents;
    contents.partners.resize(std::size_t{pairs_.cells().count()} * pairs_.cells().count());
    by_pair_.ticks = static_cast<double>(std::max<std::uint64_t>(ticks, 1));
    ExpectedRandoms randoms;
    RefusedPairs refused;
    const std::vector<double> none(std::size_t{pairs_.cells().sides} * pairs_.cells().sides);
    TruePairs trues{none, none, none};
    good_fit_ = {};
    refused_fit_ = {};
    // What the prompts say of the true pairs needs the randoms among them, and these which singles come
    // first, how far the two of a pair are apart, and with zones which partners make good pairs.
    const unsigned min_passes = pairs_.cells().partners_refused ? 4 : rules_.one_window_each() ? 2 : 3;
    const bool asks = asks_for_good(rules_.policy);
    FixedPoint abs_dt;
    bool settled = false;
    for (unsigned pass = 0; pass < min_passes || (!settled && pass < max_passes); ++pass) {
        const bool again = pass > 0;
        if (again) {
            abs_dt.next(
                mean_abs_dt(sums, rules_, randoms.total, by_pair_.ticks * pairs_.abs_dt(by_pair_.chances)));
            contents.abs_dt = abs_dt.x();
            if (asks) trues = true_pairs(sums, randoms, refused, contents);
        }
        const double parted = (1 - contents.lone) * contents.abs_dt / window_width(rules_);
        contents.load = window_load(rules_, sums.counts, ticks, parted);
        if (rules_.one_window_each()) contents.in_windows = part_in_windows(rules_, sums.counts, ticks);
        find_rates(sums, contents, again ? find_later(sums, randoms, refused) : std::vector<double>{});
        pairs_.use(by_pair_.rates);
        find_contents(contents);
        if (asks) find_all_partners(contents, sums, trues, randoms);
        if (rules_.policy == MultiplesPolicy::take_winner_if_is_good)
            contents.partner_weight = find_partner_weight(sums, contents);
        by_pair_.chances = pair_chances(rules_, pairs_.cells(), contents, Kind::prompt);
        ExpectedRandoms per_tick;
        pairs_.products(by_pair_.chances, per_tick);
        const double before = randoms.total;
        randoms = {};
        randoms.add(per_tick, by_pair_.ticks);
        settled = std::abs(randoms.total - before) <= settled_part * randoms.total;
        refused = find_refused(sums, contents);
    }
    out = std::move(randoms);
    pile_up_ = find_pile_up(contents);
    delayeds_weight_ = find_delayeds_weight(sums.counts, contents);
}

double RandomsEstimator::find_pile_up(const WindowContents& contents) const {
    if (!asks_for_good(rules_.policy)) {  // the same for all pairs
        const double chance = by_pair_.chances.front().partners;
        return chance > 0 ? 1 / chance : 1;
    }
    const std::uint32_t count = pairs_.cells().count();
    double pairs = 0;
    double taken = 0;
    for (std::size_t place = 0; place < by_pair_.chances.size(); ++place) {
        const double chance = by_pair_.chances[place].partners;
        if (chance <= 0) continue;
        const double good =
            contents.singles[place / count] * contents.partners[place] * contents.good_partners[place];
        pairs += good;
        taken += good * chance;
    }
    return taken > 0 ? pairs / taken : 1;
}

double RandomsEstimator::find_delayeds_weight(const SingleCounts& counts,
                                              const WindowContents& contents) const {
    if (!rules_.delay) return 0;
    if (rules_.delayeds == DelayedRule::delayed_window) {
        // Prompts lie in 2 tau + 1 ticks, delayeds in 2 (tau + 1).
        return (2.0 * rules_.window + 1) / (2.0 * rules_.window + 2);
    }
    const double delayeds = pairs_.total(pair_chances(rules_, pairs_.cells(), contents, Kind::delayed));
    const std::uint64_t free = counts.groups - counts.groups_blocked;
    if (delayeds <= 0 || free == 0) return 1;
    // Groups on free time stand for all of them.
    return pairs_.total(by_pair_.chances) / delayeds * static_cast<double>(counts.groups) /
           static_cast<double>(free);
}

}  // namespace petacq::gpu
