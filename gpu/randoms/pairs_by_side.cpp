#include "gpu/randoms/pairs_by_side.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "config/base/sum.hpp"

namespace petacq::gpu {

namespace {

using config::sum_of;

constexpr unsigned rounds = 20;
/// Fewer pairs than these are none.
constexpr double fewest = 1e-100;

/// Pairs in both orders.
double pairs_of(const PairsOfSectors& known, std::size_t sectors, std::size_t a, std::size_t b) {
    return 0.0 + known.counts[a * sectors + b] + known.counts[b * sectors + a];
}

}  // namespace

PairsBySide::PairsBySide(const PairCells& cells, std::span<const std::uint16_t> sector_of,
                         std::size_t sectors)
    : sides_(cells.of_sides), sides_of_(sectors), good_parts_(std::size_t{cells.sides} * cells.sides) {
    std::vector<std::map<std::uint32_t, double>> crystals(sectors);  // by side
    const auto side_of = [&](std::size_t i) {
        return cells.side_of(cells.of_crystal(static_cast<std::uint32_t>(i)));
    };
    for (std::size_t i = 0; i < sector_of.size(); ++i)
        ++crystals[sector_of[i]][side_of(i)];
    for (std::size_t sector = 0; sector < sectors; ++sector) {
        first_.push_back(static_cast<std::uint32_t>(side_of_.size()));
        double all = 0;
        for (const auto& [side, count] : crystals[sector])
            all += count;
        for (const auto& [side, count] : crystals[sector]) {
            sides_of_[sector].push_back({side, count / all});
            side_of_.push_back(side);
        }
        whole_ = whole_ && crystals[sector].size() <= 1;
        modules_ += crystals[sector].empty() ? 0 : 1;
    }
    first_.push_back(static_cast<std::uint32_t>(side_of_.size()));
    for (std::size_t i = 0; i < sector_of.size(); ++i) {
        const std::vector<ShareOfSide>& sides = sides_of_[sector_of[i]];
        const auto found = std::find_if(sides.begin(), sides.end(),
                                        [&](const ShareOfSide& s) { return s.side == side_of(i); });
        piece_of_.push_back(first_[sector_of[i]] + static_cast<std::uint32_t>(found - sides.begin()));
    }
    for (std::uint32_t a = 0; a < cells.count(); ++a) {
        for (std::uint32_t b = 0; b < cells.count(); ++b) {
            double& part = good_parts_[std::size_t{cells.side_of(a)} * cells.sides + cells.side_of(b)];
            if (cells.good_parts.empty()) {
                part = cells.can_join(cells.side_of(a), cells.side_of(b)) ? 1 : 0;
            } else {
                part += cells.good_parts[std::size_t{a} * cells.count() + b] / (cells.zones * cells.zones);
            }
        }
    }
}

std::vector<double> PairsBySide::add(const PairsOfSectors& known) const {
    const std::size_t sides = sides_->count;
    const std::size_t sectors = sides_of_.size();
    std::vector<double> out(sides * sides);
    for (std::size_t a = 0; a < sectors; ++a) {
        for (std::size_t b = 0; b < sectors; ++b) {
            if (sides_of_[a].empty() || sides_of_[b].empty()) continue;
            out[sides_of_[a].front().side * sides + sides_of_[b].front().side] +=
                pairs_of(known, sectors, a, b);
        }
    }
    return out;
}

PairsBySide::Fit PairsBySide::first_fit(const PairsOfSectors& known) const {
    Fit fit{known.ends, std::vector<double>(PairSides::distances, 1.0)};
    const double ends = sum_of(fit.of_piece);
    for (double& factor : fit.of_piece)
        factor /= std::sqrt(std::max(ends, 1.0));
    return fit;
}

std::vector<double> PairsBySide::shares_of_randoms(const PairsOfSectors& known) const {
    std::vector<double> of_side(sides_->count);
    for (std::size_t p = 0; p < pieces(); ++p)
        of_side[side_of_[p]] += known.random_ends[p];
    std::vector<double> shares(pieces());
    for (std::size_t p = 0; p < pieces(); ++p)
        shares[p] = of_side[side_of_[p]] > 0 ? known.random_ends[p] / of_side[side_of_[p]] : 0;
    return shares;
}

std::vector<double> PairsBySide::spread(PairsOfSectors known, Fit& fit) const {
    if (whole_) return add(known);
    const std::size_t sides = sides_->count;
    const std::size_t sectors = sides_of_.size();
    const std::vector<std::uint8_t>& distance = sides_->distance;
    // The ends, as many as these pairs have.
    double counts = -sum_of(known.randoms);
    for (const std::uint32_t pairs : known.counts)
        counts += 2.0 * pairs;
    for (double& ends : known.ends)
        ends = std::max(ends, 0.0);
    const double all_ends = sum_of(known.ends);
    for (double& ends : known.ends)
        ends *= all_ends > 0 ? std::max(counts, 0.0) / all_ends : 0;
    if (fit.of_piece.empty()) fit = first_fit(known);
    const std::vector<double> shares = shares_of_randoms(known);
    std::vector<double> factors(sides * sides);
    std::vector<double> out(sides * sides);
    for (unsigned round = 0; round <= rounds; ++round) {
        const bool last = round == rounds;
        for (std::size_t i = 0; i < factors.size(); ++i)
            factors[i] = (known.good ? good_parts_[i] : 1 - good_parts_[i]) * fit.of_distance[distance[i]];
        std::vector<double> found(pieces());
        std::vector<double> found_at(PairSides::distances);
        std::vector<double> expected_at(PairSides::distances);
        for (std::size_t a = 0; a < sectors; ++a) {
            for (std::size_t b = a; b < sectors; ++b) {
                const double pairs = pairs_of(known, sectors, a, b);
                const auto each = [&](const auto& use) {
                    for (std::size_t p = first_[a]; p < first_[a + 1]; ++p) {
                        for (std::size_t q = first_[b]; q < first_[b + 1]; ++q) {
                            const std::size_t place = side_of_[p] * sides + side_of_[q];
                            use(p, q, place, fit.of_piece[p] * fit.of_piece[q] * factors[place],
                                known.randoms[place] * shares[p] * shares[q]);
                        }
                    }
                };
                double all = 0;
                each([&](std::size_t, std::size_t, std::size_t, double trues, double randoms) {
                    all += trues + randoms;
                });
                const double scale = all > fewest ? pairs / all : 0;
                const double evenly =
                    all > fewest ? 0 : pairs / double(sides_of_[a].size() * sides_of_[b].size());
                each([&](std::size_t p, std::size_t q, std::size_t place, double trues, double randoms) {
                    if (last) {
                        const double spread_here = scale * (trues + randoms) + evenly;
                        out[place] += spread_here;
                        if (a != b) out[side_of_[q] * sides + side_of_[p]] += spread_here;
                        return;
                    }
                    found[p] += scale * trues;
                    if (a != b) found[q] += scale * trues;
                    const double orders = a != b ? 2 : 1;
                    found_at[distance[place]] += orders * scale * trues;
                    expected_at[distance[place]] += orders * trues;
                });
            }
        }
        if (last) break;
        for (std::size_t p = 0; p < pieces(); ++p)
            if (found[p] > fewest) fit.of_piece[p] *= std::sqrt(known.ends[p] / found[p]);
        // Larger factors of pieces and smaller ones of distances mean the same, and would grow for ever.
        const double size = sum_of(fit.of_piece) / static_cast<double>(pieces());
        if (!(size > 0)) continue;
        for (double& factor : fit.of_piece)
            factor /= size;
        for (std::size_t at = 0; at < found_at.size(); ++at)
            if (expected_at[at] > fewest)
                fit.of_distance[at] *= size * size * (found_at[at] / expected_at[at]);
    }
    return out;
}

}  // namespace petacq::gpu
