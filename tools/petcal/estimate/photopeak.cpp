#include "tools/petcal/estimate/photopeak.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "tools/petcal/estimate/linear.hpp"

namespace petacq::petcal {

namespace {

constexpr std::size_t parameters = 5;
enum Parameter : std::size_t { of_area, of_middle, of_width, of_level, of_edge };
using Values = std::array<double, parameters>;

struct Window {
    std::size_t first = 0;
    std::size_t end = 0;
};

Window window_around(double place, double sigma, std::size_t bins) {
    const double last = static_cast<double>(bins) - 1;  // which holds all higher energies
    const double from = std::clamp(std::floor(place - 1.7 * sigma), 0.0, last);
    const double to = std::clamp(std::ceil(place + 2.5 * sigma), 0.0, last);
    return {static_cast<std::size_t>(from), static_cast<std::size_t>(to)};
}

/// The expected counts in a bin, and their derivatives.
double model(const Values& p, double at, Values& derivative) {
    const double t = (at - p[of_middle]) / p[of_width];
    const double gauss = std::exp(-t * t / 2) / (p[of_width] * std::sqrt(2 * std::numbers::pi));
    derivative[of_area] = gauss;
    derivative[of_middle] = p[of_area] * gauss * t / p[of_width];
    derivative[of_width] = p[of_area] * gauss * (t * t - 1) / p[of_width];
    derivative[of_level] = 1;
    derivative[of_edge] = std::erfc(t / std::numbers::sqrt2) / 2;
    derivative[of_middle] += p[of_edge] * gauss;
    derivative[of_width] += p[of_edge] * gauss * t;
    return p[of_area] * gauss + p[of_level] + p[of_edge] * derivative[of_edge];
}

struct Equations {
    std::vector<double> matrix = std::vector<double>(parameters * parameters);
    std::vector<double> right = std::vector<double>(parameters);
    double deviance = 0;
};

/// A spectrum in a window around its peak, and what is known about it beforehand.
struct PeakFit {
    std::span<const std::uint32_t> spectrum;
    Window window;
    std::optional<PeakShape> shape;
};

/// Adds what is known of the width: that of crystals differs by this share.
void add_known_width(const PeakShape& shape, const Values& p, Equations& e) {
    constexpr double spread = 0.1;
    const double known = shape.resolution * p[of_middle];
    const double t = (p[of_width] - known) / (spread * known);
    e.deviance += t * t;
    e.right[of_width] -= t / (spread * known);
    e.matrix[of_width * parameters + of_width] += 1 / (spread * known * spread * known);
}

/// Fisher's scoring: each bin counts with the inverse of its expected counts.
Equations equations_of(const PeakFit& task, Values p) {
    Equations e;
    Values derivative{};
    const double ratio = task.shape ? task.shape->step / p[of_middle] : 0;
    if (task.shape) p[of_edge] = ratio * p[of_area];
    for (std::size_t bin = task.window.first; bin < task.window.end; ++bin) {
        constexpr double least = 0.02;  // empty bins far from the peak
        const double expected = std::max(least, model(p, static_cast<double>(bin) + 0.5, derivative));
        if (task.shape) derivative[of_area] += ratio * std::exchange(derivative[of_edge], 0);
        const double counts = task.spectrum[bin];
        e.deviance += 2 * (expected - counts + (counts > 0 ? counts * std::log(counts / expected) : 0));
        for (std::size_t i = 0; i < parameters; ++i) {
            e.right[i] += derivative[i] * (counts - expected) / expected;
            for (std::size_t j = 0; j < parameters; ++j)
                e.matrix[i * parameters + j] += derivative[i] * derivative[j] / expected;
        }
    }
    if (!task.shape) return e;
    if (task.shape->resolution > 0) add_known_width(*task.shape, p, e);
    e.matrix[of_edge * parameters + of_edge] = 1;  // it follows from the area
    return e;
}

/// Improves the parameters within the window. False when the equations have no solution.
bool improve(const PeakFit& task, Values& p) {
    double damping = 1e-3;
    Equations now = equations_of(task, p);
    constexpr int max_rounds = 15;
    for (int round = 0; round < max_rounds && damping < 1e3; ++round) {
        std::vector<double> matrix = now.matrix;
        for (std::size_t i = 0; i < parameters; ++i)
            matrix[i * parameters + i] *= 1 + damping;
        std::vector<double> step = now.right;
        if (!solve(std::move(matrix), step)) return false;
        Values next = p;
        for (std::size_t i = 0; i < parameters; ++i)
            next[i] += step[i];
        next[of_width] = std::clamp(next[of_width], p[of_width] / 1.5, p[of_width] * 1.5);
        for (const Parameter not_negative : {of_area, of_level, of_edge})
            next[not_negative] = std::max(next[not_negative], 0.0);
        Equations then = equations_of(task, next);
        if (!(then.deviance <= now.deviance)) {
            damping *= 8;
            continue;
        }
        const bool done = now.deviance - then.deviance < 1e-3;
        p = next;
        now = std::move(then);
        damping /= 4;
        if (done) return true;
    }
    return true;
}

/// Where the counts around `near` are, and how wide.
Values first_guess(std::span<const std::uint32_t> spectrum, double near) {
    Values p{};
    p[of_middle] = near;
    p[of_width] = 0.05 * near;
    const Window window = window_around(near, p[of_width], spectrum.size());
    double sum = 0;
    for (std::size_t bin = window.first; bin < window.end; ++bin)
        sum += spectrum[bin];
    const double bins = static_cast<double>(std::max<std::size_t>(1, window.end - window.first));
    p[of_level] = 0.1 * sum / bins;
    p[of_area] = 0.9 * sum;
    return p;
}

}  // namespace

std::optional<double> highest_bin(std::span<const double> spectrum, double from, double to, double smooth) {
    const double last = static_cast<double>(spectrum.size()) - 2;  // the very last holds all higher energies
    const auto first = static_cast<std::ptrdiff_t>(std::clamp(from, 0.0, last));
    const auto end = static_cast<std::ptrdiff_t>(std::clamp(to, 0.0, last + 1));
    const auto reach = static_cast<std::ptrdiff_t>(std::ceil(3 * smooth));
    double best = 0;
    std::optional<double> place;
    for (std::ptrdiff_t at = first; at < end; ++at) {
        double sum = 0;
        for (std::ptrdiff_t k = -reach; k <= reach; ++k) {
            const std::ptrdiff_t bin = at + k;
            if (bin < 0 || bin > static_cast<std::ptrdiff_t>(last)) continue;
            const double t = static_cast<double>(k) / smooth;
            sum += spectrum[static_cast<std::size_t>(bin)] * std::exp(-t * t / 2);
        }
        const double height = sum * static_cast<double>(at);
        if (height <= best) continue;
        best = height;
        place = static_cast<double>(at) + 0.5;
    }
    return place;
}

std::optional<Photopeak> fit_photopeak(std::span<const std::uint32_t> spectrum, double near,
                                       const std::optional<PeakShape>& shape) {
    Values p = first_guess(spectrum, near);
    if (shape && shape->resolution > 0) p[of_width] = shape->resolution * near;
    PeakFit task{spectrum, {}, shape};
    constexpr int windows = 4;
    for (int round = 0; round < windows; ++round) {
        task.window = window_around(p[of_middle], p[of_width], spectrum.size());
        if (task.window.end < task.window.first + parameters + 1) return std::nullopt;
        if (!improve(task, p)) return std::nullopt;
        if (!(std::abs(p[of_middle] - near) < 0.2 * near)) return std::nullopt;
        if (!(p[of_width] > 0.015 * p[of_middle] && p[of_width] < 0.2 * p[of_middle])) return std::nullopt;
    }
    const std::vector<double> matrix = equations_of(task, p).matrix;
    const auto variance_of = [&](Parameter parameter) {
        std::vector<double> column(parameters);
        column[parameter] = 1;
        return solve(matrix, column) ? column[parameter] : 0;
    };
    const double of_place = variance_of(of_middle);
    const double of_sigma = variance_of(of_width);
    if (!(of_place > 0 && of_sigma > 0)) return std::nullopt;
    return Photopeak{p[of_middle],        p[of_width],         p[of_area],
                     std::sqrt(of_place), std::sqrt(of_sigma), p[of_edge]};
}

}  // namespace petacq::petcal
