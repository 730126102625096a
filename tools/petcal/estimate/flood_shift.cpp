#include "tools/petcal/estimate/flood_shift.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "tools/petcal/estimate/flood_image.hpp"
#include "tools/petcal/estimate/linear.hpp"

namespace petacq::petcal {

namespace {

/// Shift along x and y, stretch along x and y.
constexpr std::size_t shift_parameters = 4;
using Parameters = std::array<double, shift_parameters>;

/// From -1 to 1 over the map.
double place_in(std::size_t i, std::size_t size) {
    return 2 * (static_cast<double>(i) + 0.5) / static_cast<double>(size) - 1;
}

/// The map at a place between positions; 0 outside.
double value_at(const FloodImage& map, std::size_t size, double x, double y) {
    const double left = std::floor(x);
    const double top = std::floor(y);
    const auto last = static_cast<double>(size) - 1;
    if (left < 0 || top < 0 || left >= last || top >= last) return 0;
    const std::size_t at = static_cast<std::size_t>(left) + static_cast<std::size_t>(top) * size;
    const double u = x - left;
    const double v = y - top;
    return (1 - v) * ((1 - u) * map[at] + u * map[at + 1]) +
           v * ((1 - u) * map[at + size] + u * map[at + size + 1]);
}

FloodImage moved(const FloodImage& map, std::size_t size, const Parameters& by) {
    FloodImage out(map.size());
    for (std::size_t y = 0; y < size; ++y) {
        const double from_y = static_cast<double>(y) - by[1] - by[3] * place_in(y, size);
        for (std::size_t x = 0; x < size; ++x) {
            const double from_x = static_cast<double>(x) - by[0] - by[2] * place_in(x, size);
            out[x + y * size] = value_at(map, size, from_x, from_y);
        }
    }
    return out;
}

struct FitStep {
    std::vector<double> matrix =
        std::vector<double>(shift_parameters * shift_parameters);  ///< Fisher information
    std::vector<double> change = std::vector<double>(shift_parameters);
    bool solved = false;
};

/// One step towards the greatest likelihood. `floor`: counts, so that no position weighs too much.
FitStep step_of(const FloodImage& model, const FloodImage& counts, std::size_t size, double floor) {
    FitStep step;
    for (std::size_t y = 1; y + 1 < size; ++y) {
        for (std::size_t x = 1; x + 1 < size; ++x) {
            const std::size_t at = x + y * size;
            const double dx = (model[at - 1] - model[at + 1]) / 2;
            const double dy = (model[at - size] - model[at + size]) / 2;
            const std::array<double, shift_parameters> slopes{dx, dy, dx * place_in(x, size),
                                                              dy * place_in(y, size)};
            const double weight = 1 / (model[at] + floor);
            const double rest = (counts[at] - model[at]) * weight;
            for (std::size_t i = 0; i < shift_parameters; ++i) {
                step.change[i] += slopes[i] * rest;
                for (std::size_t j = 0; j <= i; ++j)
                    step.matrix[i * shift_parameters + j] += slopes[i] * slopes[j] * weight;
            }
        }
    }
    for (std::size_t i = 0; i < shift_parameters; ++i)
        for (std::size_t j = i + 1; j < shift_parameters; ++j)
            step.matrix[i * shift_parameters + j] = step.matrix[j * shift_parameters + i];
    step.solved = solve(step.matrix, step.change);
    return step;
}

/// Positions², by the counts of both maps.
double variance_of(const FitStep& step, std::size_t parameter, double scale) {
    std::vector<double> unit(shift_parameters);
    unit[parameter] = 1;
    return solve(step.matrix, unit) ? (1 + scale) * unit[parameter] : 0;
}

}  // namespace

std::optional<FloodShift> flood_shift(const FloodShape& shape, std::span<const std::uint32_t> earlier,
                                      std::span<const std::uint32_t> later) {
    const double before = std::accumulate(earlier.begin(), earlier.end(), 0.0);
    const double after = std::accumulate(later.begin(), later.end(), 0.0);
    if (std::min(before, after) < min_flood_counts * shape.crystals()) return std::nullopt;
    FloodShift found;
    found.pitch = flood_pitch(shape, earlier);
    const auto blurred = [&](std::span<const std::uint32_t> map, double pitches) {
        return smoothed({map.begin(), map.end()}, shape.size,
                        {std::max(0.6, pitches * found.pitch.x), std::max(0.6, pitches * found.pitch.y)});
    };
    const FloodImage fine_before = blurred(earlier, 0.1);
    const FloodImage fine_after = blurred(later, 0.1);
    // Crystals may count more or less than before.
    const FloodImage coarse_before = blurred(earlier, 0.5);
    const FloodImage coarse_after = blurred(later, 0.5);
    const double scale = after / before;
    const double floor = 0.02 * after / static_cast<double>(shape.positions());

    Parameters by{};
    FitStep step;
    constexpr int max_steps = 15;
    for (int i = 0; i < max_steps && !found.converged; ++i) {
        FloodImage model = moved(fine_before, shape.size, by);
        const FloodImage coarse = moved(coarse_before, shape.size, by);
        for (std::size_t at = 0; at < model.size(); ++at)
            model[at] *= (coarse_after[at] + floor) / (coarse[at] + floor / scale);
        step = step_of(model, fine_after, shape.size, floor);
        if (!step.solved) return std::nullopt;
        double largest = 0;
        for (std::size_t p = 0; p < by.size(); ++p) {
            const double most = 0.15 * (p % 2 == 0 ? found.pitch.x : found.pitch.y);
            const double change = std::clamp(step.change[p], -most, most);
            by[p] += change;
            largest = std::max(largest, std::abs(change));
        }
        found.converged = largest < 1e-3;
    }
    found.shift = {by[0], by[1]};
    found.stretch = {by[2], by[3]};
    // Of the corner that has moved most. Spots do not reach it, so the extent of the counts counts.
    const double reach_x = std::min(1.0, found.pitch.x * shape.columns / shape.size);
    const double reach_y = std::min(1.0, found.pitch.y * shape.rows / shape.size);
    const double x = (std::abs(by[0]) + reach_x * std::abs(by[2])) / found.pitch.x;
    const double y = (std::abs(by[1]) + reach_y * std::abs(by[3])) / found.pitch.y;
    found.largest = std::hypot(x, y);
    const auto error = [&](std::size_t parameter) { return std::sqrt(variance_of(step, parameter, scale)); };
    found.error = std::hypot((error(0) + reach_x * error(2)) / found.pitch.x,
                             (error(1) + reach_y * error(3)) / found.pitch.y);
    return found;
}

}  // namespace petacq::petcal
