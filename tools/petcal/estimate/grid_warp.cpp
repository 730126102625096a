#include "tools/petcal/estimate/grid_warp.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "tools/petcal/estimate/linear.hpp"

namespace petacq::petcal {

namespace {

constexpr int degree = 3;

double power(double base, int exponent) {
    double product = 1;
    for (int i = 0; i < exponent; ++i)
        product *= base;
    return product;
}

}  // namespace

void GridWarp::choose_terms(std::span<const GridNode> nodes) {
    std::set<double> columns;
    std::set<double> rows;
    for (const GridNode& node : nodes) {
        if (node.weight <= 0) continue;
        columns.insert(node.column);
        rows.insert(node.row);
    }
    int most = degree;
    do {
        terms_.clear();
        for (int i = 0; i <= most && i < static_cast<int>(columns.size()); ++i)
            for (int j = 0; i + j <= most && j < static_cast<int>(rows.size()); ++j)
                terms_.push_back({i, j});
    } while (--most > 0 && terms_.size() > nodes.size());
}

std::vector<double> GridWarp::values_at(double column, double row) const {
    const double u = (column - middle_.x) / half_.x;
    const double v = (row - middle_.y) / half_.y;
    std::vector<double> values;
    values.reserve(terms_.size());
    for (const Term& term : terms_)
        values.push_back(power(u, term.column) * power(v, term.row));
    return values;
}

bool GridWarp::fit(const FloodShape& shape, std::span<const GridNode> nodes, const FloodPoint& pitch) {
    middle_ = {(shape.columns - 1) / 2.0, (shape.rows - 1) / 2.0};
    half_ = {std::max(0.5, middle_.x), std::max(0.5, middle_.y)};
    choose_terms(nodes);
    const std::size_t n = terms_.size();
    if (n > nodes.size()) return false;
    std::vector<std::vector<double>> values;
    for (const GridNode& node : nodes)
        values.push_back(values_at(node.column, node.row));
    std::vector<double> weight;
    for (const GridNode& node : nodes)
        weight.push_back(node.weight);
    constexpr int rounds = 5;
    for (int round = 0; round < rounds; ++round) {
        std::vector<double> matrix(n * n);
        std::vector<double> x(n);
        std::vector<double> y(n);
        for (std::size_t k = 0; k < nodes.size(); ++k) {
            for (std::size_t i = 0; i < n; ++i) {
                const double w = weight[k] * values[k][i];
                x[i] += w * nodes[k].at.x;
                y[i] += w * nodes[k].at.y;
                for (std::size_t j = 0; j < n; ++j)
                    matrix[i * n + j] += w * values[k][j];
            }
        }
        for (std::size_t i = 0; i < n; ++i)
            matrix[i * n + i] += 1e-9;  // too few rows or columns: no bend
        if (!solve(matrix, x) || !solve(matrix, y)) return false;
        x_ = x;
        y_ = y;
        // Tukey's weights: nodes more than `reach` pitches away do not count.
        constexpr double reach = 0.6;
        for (std::size_t k = 0; k < nodes.size(); ++k) {
            const FloodPoint fitted = at(nodes[k].column, nodes[k].row);
            const double distance =
                std::hypot((nodes[k].at.x - fitted.x) / pitch.x, (nodes[k].at.y - fitted.y) / pitch.y) /
                reach;
            weight[k] = distance < 1 ? nodes[k].weight * power(1 - distance * distance, 2) : 0;
        }
    }
    return true;
}

FloodPoint GridWarp::at(double column, double row) const {
    const std::vector<double> values = values_at(column, row);
    FloodPoint place;
    for (std::size_t i = 0; i < values.size(); ++i) {
        place.x += x_[i] * values[i];
        place.y += y_[i] * values[i];
    }
    return place;
}

FloodPoints pitches_of(const FloodShape& shape, const FloodPoints& places, const FloodPoint& pitch) {
    FloodPoints out(places.size());
    for (std::uint32_t origin = 0; origin < places.size(); ++origin) {
        const std::uint32_t column = origin % shape.columns;
        const std::uint32_t row = origin / shape.columns;
        // The mean over both sides; at an edge there is one.
        const auto mean = [&](bool before, bool after, std::uint32_t step, double FloodPoint::*member,
                              double otherwise) {
            const double low = places[origin - (before ? step : 0)].*member;
            const double high = places[origin + (after ? step : 0)].*member;
            const int steps = static_cast<int>(before) + static_cast<int>(after);
            return steps == 0 ? otherwise : std::max(0.3 * otherwise, (high - low) / steps);
        };
        out[origin].x = mean(column > 0, column + 1 < shape.columns, 1, &FloodPoint::x, pitch.x);
        out[origin].y = mean(row > 0, row + 1 < shape.rows, shape.columns, &FloodPoint::y, pitch.y);
    }
    return out;
}

}  // namespace petacq::petcal
