#include "tools/petcal/estimate/crystal_grid.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <utility>

#include "tools/petcal/estimate/grid_warp.hpp"

namespace petacq::petcal {

namespace {

using Place = std::pair<int, int>;  ///< column and row, from those of the first peak
using Placed = std::map<Place, std::size_t>;

constexpr double belongs_within = 0.38;  // of a pitch: a peak this close to a predicted place belongs there

int column_of(const FloodShape& shape, std::uint32_t origin) {
    return static_cast<int>(origin % shape.columns);
}

int row_of(const FloodShape& shape, std::uint32_t origin) {
    return static_cast<int>(origin / shape.columns);
}

std::size_t origin_of(const FloodShape& shape, int column, int row) {
    return static_cast<std::size_t>(row) * shape.columns + static_cast<std::size_t>(column);
}

double distance(const FloodPoint& a, const FloodPoint& b, const FloodPoint& pitch) {
    return std::hypot((a.x - b.x) / pitch.x, (a.y - b.y) / pitch.y);
}

struct Nearest {
    std::size_t peak = 0;
    double distance = std::numeric_limits<double>::infinity();
};

Nearest nearest_peak(const std::vector<FloodPeak>& peaks, const FloodPoint& to, const FloodPoint& pitch) {
    Nearest best;
    for (std::size_t i = 0; i < peaks.size(); ++i) {
        const double dx = (peaks[i].at.x - to.x) / pitch.x;
        const double dy = (peaks[i].at.y - to.y) / pitch.y;
        const double squared = dx * dx + dy * dy;
        if (squared < best.distance) best = {i, squared};
    }
    best.distance = std::sqrt(best.distance);
    return best;
}

/// A peak that may belong at a place, as its neighbour predicts it.
struct Candidate {
    double cost;
    Place place;
    std::size_t peak;
    FloodPoint right;  ///< from a crystal to the next one along x, here
    FloodPoint down;   ///< and along y
    bool operator<(const Candidate& o) const { return cost > o.cost; }  // the cheapest is on top
};

/// A grid of peaks that grows from one of them, the best predicted first.
class Growth {
  public:
    Growth(const FloodShape& shape, const FloodPeaks& in) : shape_(shape), in_(in), used_(in.peaks.size()) {}

    Placed from(std::size_t first) {
        waiting_.push({0, {0, 0}, first, {in_.pitch.x, 0}, {0, in_.pitch.y}});
        while (!waiting_.empty()) {
            Candidate c = waiting_.top();
            waiting_.pop();
            if (used_[c.peak] != 0 || placed_.contains(c.place)) continue;
            // All its neighbours have a say, and more may have their place by now.
            const double cost = std::max(c.cost, distance(in_.peaks[c.peak].at, expected(c), in_.pitch));
            if (cost > belongs_within) continue;
            if (cost > c.cost + 0.05) {
                c.cost = cost;
                waiting_.push(c);
                continue;
            }
            used_[c.peak] = 1;
            placed_[c.place] = c.peak;
            for (const int steps : {1, 2})  // two steps lead over a crystal without a peak
                for (const auto& [dx, dy] : {Place{1, 0}, Place{-1, 0}, Place{0, 1}, Place{0, -1}})
                    follow(c, steps * dx, steps * dy);
        }
        return placed_;
    }

  private:
    /// The place of a candidate by the peaks around it: their mean, each moved by the steps that lie between.
    [[nodiscard]] FloodPoint expected(const Candidate& c) const {
        FloodPoint sum;
        double weights = 0;
        for (int dy = -2; dy <= 2; ++dy) {
            for (int dx = -2; dx <= 2; ++dx) {
                const auto at = placed_.find({c.place.first + dx, c.place.second + dy});
                if (at == placed_.end()) continue;
                const FloodPoint& there = in_.peaks[at->second].at;
                const double weight = 1.0 / (dx * dx + dy * dy);
                sum.x += weight * (there.x - dx * c.right.x - dy * c.down.x);
                sum.y += weight * (there.y - dx * c.right.y - dy * c.down.y);
                weights += weight;
            }
        }
        if (weights == 0) return in_.peaks[c.peak].at;
        return {sum.x / weights, sum.y / weights};
    }

    void follow(const Candidate& from, int dx, int dy) {
        Candidate next = from;
        next.place = {from.place.first + dx, from.place.second + dy};
        if (std::abs(next.place.first) >= static_cast<int>(shape_.columns)) return;
        if (std::abs(next.place.second) >= static_cast<int>(shape_.rows)) return;
        if (placed_.contains(next.place)) return;
        const FloodPoint place = expected(next);
        const Nearest nearest = nearest_peak(in_.peaks, place, in_.pitch);
        if (nearest.distance > belongs_within || used_[nearest.peak] != 0) return;
        next.peak = nearest.peak;
        next.cost = nearest.distance;
        const FloodPoint& here = in_.peaks[from.peak].at;
        const FloodPoint& there = in_.peaks[next.peak].at;
        FloodPoint& step = dx != 0 ? next.right : next.down;
        constexpr double trust = 0.25;  // in one observed distance against those before
        step.x += trust * ((there.x - here.x) / (dx + dy) - step.x);
        step.y += trust * ((there.y - here.y) / (dx + dy) - step.y);
        waiting_.push(next);
    }

    const FloodShape& shape_;
    const FloodPeaks& in_;
    std::vector<std::uint8_t> used_;
    std::priority_queue<Candidate> waiting_;
    Placed placed_;
};

/// The largest of the grids that grow from peaks near the middle of all.
Placed largest_grid(const FloodShape& shape, const FloodPeaks& in) {
    FloodPoint middle;
    for (const FloodPeak& peak : in.peaks) {
        middle.x += peak.at.x / static_cast<double>(in.peaks.size());
        middle.y += peak.at.y / static_cast<double>(in.peaks.size());
    }
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < in.peaks.size(); ++i)
        order.emplace_back(distance(in.peaks[i].at, middle, in.pitch), i);
    std::sort(order.begin(), order.end());
    constexpr std::size_t max_seeds = 6;
    order.resize(std::min(order.size(), max_seeds));
    Placed best;
    for (const auto& [unused, seed] : order) {
        Placed grid = Growth(shape, in).from(seed);
        if (grid.size() > best.size()) best = std::move(grid);
    }
    return best;
}

std::vector<GridNode> nodes_of(const Placed& placed, const std::vector<FloodPeak>& peaks) {
    std::vector<GridNode> nodes;
    for (const auto& [place, peak] : placed)
        nodes.push_back(
            {static_cast<double>(place.first), static_cast<double>(place.second), peaks[peak].at});
    return nodes;
}

/// The place of the first column and row: that which the places given by a person demand, or else the one
/// that leaves the fewest peaks outside; of several the one in the middle of the map.
Place first_place(const FloodShape& shape, const FloodPeaks& in, const Placed& placed, const GridWarp& warp,
                  std::span<const KnownSpot> known) {
    const int columns = static_cast<int>(shape.columns);
    const int rows = static_cast<int>(shape.rows);
    std::map<Place, double> score;
    for (int row = 1 - 2 * rows; row <= rows; ++row) {
        for (int column = 1 - 2 * columns; column <= columns; ++column) {
            double inside = 0;
            for (const auto& [place, unused] : placed) {
                const bool in_columns = place.first >= column && place.first < column + columns;
                const bool in_rows = place.second >= row && place.second < row + rows;
                if (in_columns && in_rows) inside += 1;
            }
            if (inside == 0) continue;
            for (const KnownSpot& spot : known) {
                const int c = column + column_of(shape, spot.origin);
                const int r = row + row_of(shape, spot.origin);
                if (distance(warp.at(c, r), spot.at, in.pitch) < 0.5) inside += shape.crystals();
            }
            const FloodPoint middle = warp.at(column + (columns - 1) / 2.0, row + (rows - 1) / 2.0);
            const double centre = (shape.size - 1) / 2.0;
            const double off = distance(middle, {centre, centre}, in.pitch);
            score[{column, row}] = inside - off / (off + 1);
        }
    }
    const auto better = [](const auto& a, const auto& b) { return a.second < b.second; };
    return std::max_element(score.begin(), score.end(), better)->first;
}

/// Gives each crystal the peak that is nearest to its place, if that peak is nearest to no other place.
void take_peaks(const std::vector<FloodPeak>& peaks, const FloodPoints& places, CrystalGrid& grid) {
    std::map<std::size_t, std::pair<double, std::uint32_t>> owner;
    for (std::uint32_t origin = 0; origin < places.size(); ++origin) {
        const Nearest n = nearest_peak(peaks, places[origin], grid.pitch);
        if (n.distance > belongs_within) continue;
        const auto [at, added] = owner.try_emplace(n.peak, n.distance, origin);
        if (!added && n.distance < at->second.first) at->second = {n.distance, origin};
    }
    for (std::uint32_t origin = 0; origin < places.size(); ++origin) {
        if (grid.known[origin] != 0) continue;
        grid.spots[origin] = places[origin];
        grid.found[origin] = 0;
    }
    for (const auto& [peak, taken] : owner) {
        const std::uint32_t origin = taken.second;
        if (grid.known[origin] != 0) continue;
        grid.spots[origin] = peaks[peak].at;
        grid.found[origin] = 1;
    }
}

/// The smooth grid through the found places, without the correction by neighbours.
std::optional<FloodPoints> smooth_grid(const FloodShape& shape, const FloodPoints& spots,
                                       const std::vector<std::uint8_t>& found, const FloodPoint& pitch) {
    std::vector<GridNode> nodes;
    for (std::uint32_t origin = 0; origin < spots.size(); ++origin) {
        if (found[origin] == 0) continue;
        nodes.push_back({static_cast<double>(column_of(shape, origin)),
                         static_cast<double>(row_of(shape, origin)), spots[origin]});
    }
    GridWarp warp;
    if (!warp.fit(shape, nodes, pitch)) return std::nullopt;
    FloodPoints out;
    for (std::uint32_t origin = 0; origin < spots.size(); ++origin)
        out.push_back(warp.at(column_of(shape, origin), row_of(shape, origin)));
    return out;
}

double rms_distance(const FloodPoints& a, const FloodPoints& b, const std::vector<std::uint8_t>& which,
                    const FloodPoint& pitch) {
    double sum = 0;
    double count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (which[i] == 0) continue;
        const double d = distance(a[i], b[i], pitch);
        sum += d * d;
        count += 1;
    }
    return count > 0 ? std::sqrt(sum / count) : 0;
}

}  // namespace

FloodPoints predicted_spots(const FloodShape& shape, const FloodPoints& spots,
                            const std::vector<std::uint8_t>& found, const FloodPoint& pitch) {
    const auto smooth = smooth_grid(shape, spots, found, pitch);
    if (!smooth) return {};
    FloodPoints out = *smooth;
    const auto columns = static_cast<int>(shape.columns);
    const auto rows = static_cast<int>(shape.rows);
    for (int row = 0; row < rows; ++row) {
        for (int column = 0; column < columns; ++column) {
            FloodPoint sum;
            double count = 1;  // as if one more neighbour were on the grid
            for (int r = std::max(0, row - 1); r <= std::min(rows - 1, row + 1); ++r) {
                for (int c = std::max(0, column - 1); c <= std::min(columns - 1, column + 1); ++c) {
                    const std::size_t origin = origin_of(shape, c, r);
                    if (found[origin] == 0 || (r == row && c == column)) continue;
                    if (distance(spots[origin], (*smooth)[origin], pitch) > belongs_within) continue;
                    sum.x += spots[origin].x - (*smooth)[origin].x;
                    sum.y += spots[origin].y - (*smooth)[origin].y;
                    count += 1;
                }
            }
            FloodPoint& place = out[origin_of(shape, column, row)];
            place.x += sum.x / count;
            place.y += sum.y / count;
        }
    }
    return out;
}

CrystalGrid assign_peaks(const FloodShape& shape, const FloodPeaks& in, std::span<const KnownSpot> known) {
    CrystalGrid grid;
    grid.pitch = in.pitch;
    if (in.peaks.empty()) return grid;
    const Placed placed = largest_grid(shape, in);
    GridWarp warp;
    if (!warp.fit(shape, nodes_of(placed, in.peaks), in.pitch)) return grid;
    const Place first = first_place(shape, in, placed, warp, known);
    FloodPoints places;
    for (std::uint32_t origin = 0; origin < shape.crystals(); ++origin)
        places.push_back(
            warp.at(first.first + column_of(shape, origin), first.second + row_of(shape, origin)));
    grid.spots = places;
    grid.found.assign(shape.crystals(), 0);
    grid.known.assign(shape.crystals(), 0);
    for (const KnownSpot& spot : known) {
        grid.spots[spot.origin] = spot.at;
        grid.found[spot.origin] = 1;
        grid.known[spot.origin] = 1;
    }
    constexpr int rounds = 4;
    for (int round = 0; round < rounds; ++round) {
        take_peaks(in.peaks, places, grid);
        FloodPoints better = predicted_spots(shape, grid.spots, grid.found, grid.pitch);
        if (better.empty()) break;
        places = std::move(better);
    }
    if (const auto smooth = smooth_grid(shape, grid.spots, grid.found, grid.pitch))
        grid.bend = rms_distance(grid.spots, *smooth, grid.found, grid.pitch);
    return grid;
}

}  // namespace petacq::petcal
