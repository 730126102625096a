#include "tools/petcal/derive/fan_model.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "config/error.hpp"

namespace petacq::derive {

namespace {

using Row = Eigen::Map<const Eigen::ArrayXd>;

struct Interval {
    double low = 0;
    double high = 1;
};

/// The parts of the way from z = a to z = b that lie between two planes.
Interval between(double a, double b, double low, double high) {
    if (a == b) return a >= low && a <= high ? Interval{0, 1} : Interval{1, 0};
    const double t0 = (low - a) / (b - a);
    const double t1 = (high - a) / (b - a);
    return {std::max(std::min(t0, t1), 0.0), std::min(std::max(t0, t1), 1.0)};
}

}  // namespace

/// Of one thread, [column][ring].
struct FanModel::Sums {
    Eigen::MatrixXd weights;
    Eigen::MatrixXd sums;
    Eigen::ArrayXd chord;
    Eigen::ArrayXd square;
    Eigen::ArrayXd expected;
};

FanModel::FanModel(const config::Scanner& scanner, const CylinderScan& scan)
    : columns_(scanner.geometry.crystals_in_ring()),
      rings_(scanner.geometry.rings()),
      attenuation_(scan.attenuation_per_mm) {
    if (!(scan.radius_mm > 0) || !(scan.length_mm > 0))
        throw config::Error("efficiencies: a cylinder of radius " + std::to_string(scan.radius_mm) +
                            " mm and length " + std::to_string(scan.length_mm) +
                            " mm; expected both above 0");
    std::vector<config::CrystalPlace> column;
    for (std::uint32_t i = 0; i < columns_; ++i) {
        column.push_back(crystal_place(scanner, i));
        column.back().front_centre_mm = point_at_depth(column.back(), scan.depth_mm);
    }
    const std::uint32_t modules = scanner.geometry.modules_in_ring();
    const std::uint32_t per_module = scanner.geometry.crystals_per_module_y();
    for (std::uint32_t i = 0; i < columns_; ++i) {
        for (std::uint32_t j = i + 1; j < columns_; ++j) {
            const std::uint32_t apart = j / per_module - i / per_module;
            if (std::min(apart, modules - apart) < scan.min_module_difference) continue;
            const auto& [from, out_a] = column[i];
            const auto& [to, out_b] = column[j];
            const double dx = to[0] - from[0];
            const double dy = to[1] - from[1];
            const double square = dx * dx + dy * dy;
            const double cosines = -(out_a[0] * dx + out_a[1] * dy) * (out_b[0] * dx + out_b[1] * dy);
            if (!(cosines > 0)) continue;
            const double ox = scan.centre_mm[0] - from[0];
            const double oy = scan.centre_mm[1] - from[1];
            const double nearest = (ox * dx + oy * dy) / square;
            const double across = ox * dy - oy * dx;
            const double half =
                scan.radius_mm * scan.radius_mm / square - across * across / (square * square);
            if (!(half > 0)) continue;
            const double enter = nearest - std::sqrt(half);
            const double leave = nearest + std::sqrt(half);
            if (leave <= 0 || enter >= 1) continue;
            pairs_.push_back({i, j, enter, leave, square, cosines});
        }
    }
    double most = 0;
    for (std::uint32_t i = 0; i < rings_; ++i) {
        const double a = crystal_place(scanner, i * columns_).front_centre_mm[2];
        for (std::uint32_t j = 0; j < rings_; ++j) {
            const double b = crystal_place(scanner, j * columns_).front_centre_mm[2];
            Interval part =
                between(a, b, scan.centre_mm[2] - scan.length_mm / 2, scan.centre_mm[2] + scan.length_mm / 2);
            if (std::max(i, j) - std::min(i, j) > scan.max_ring_difference) part = {1, 0};
            enter_.push_back(part.low);
            leave_.push_back(part.high);
            square_.push_back((a - b) * (a - b));
            most = std::max(most, part.high - part.low);
        }
    }
    if (pairs_.empty() || most <= 0)
        throw config::Error(
            "efficiencies: no line between two crystals meets the cylinder; expected it inside the ring");
}

void FanModel::add(const ColumnPair& pair, Sums& sums) const {
    const auto n = static_cast<Eigen::Index>(rings_);
    for (std::uint32_t ring = 0; ring < rings_; ++ring) {
        const std::size_t at = std::size_t{ring} * rings_;
        const Row enter(&enter_[at], n);
        const Row leave(&leave_[at], n);
        const Row along(&square_[at], n);
        sums.square = along + pair.square;
        sums.chord = (leave.min(pair.leave) - enter.max(pair.enter)).max(0.0);  // parts of the way
        // chord / distance^2 * (cosines / distance^2), where chord = part * distance
        sums.expected = pair.cosines * sums.chord / (sums.square * sums.square.sqrt());
        if (attenuation_ > 0) sums.expected *= (-attenuation_ * sums.chord * sums.square.sqrt()).exp();
        sums.sums(ring, pair.a) += (sums.expected * sums.weights.col(pair.b).array()).sum();
        sums.sums.col(pair.b).array() += sums.weights(ring, pair.a) * sums.expected;
    }
}

void FanModel::fan_sums(std::span<const double> weights, std::span<double> sums, unsigned threads) const {
    if (weights.size() != std::size_t{columns_} * rings_ || sums.size() != weights.size())
        throw std::invalid_argument("fan_sums: expected " + std::to_string(std::size_t{columns_} * rings_) +
                                    " crystals");
    // Crystal = column + ring * columns.
    const auto rings = static_cast<Eigen::Index>(rings_);
    const auto columns = static_cast<Eigen::Index>(columns_);
    const Eigen::Map<const Eigen::MatrixXd> by_column(weights.data(), columns, rings);
    Sums empty;
    empty.weights = by_column.transpose();
    empty.sums = Eigen::MatrixXd::Zero(rings, columns);
    std::vector<Sums> parts(std::max(threads, 1U), empty);
    const auto work = [&](std::size_t first) {  // fixed shares, so that the sums are always the same
        for (std::size_t i = first; i < pairs_.size(); i += parts.size())
            add(pairs_[i], parts[first]);
    };
    {
        std::vector<std::jthread> others;
        for (std::size_t t = 1; t < parts.size(); ++t)
            others.emplace_back(work, t);
        work(0);
    }
    for (std::size_t t = 1; t < parts.size(); ++t)
        parts[0].sums += parts[t].sums;
    Eigen::Map<Eigen::MatrixXd>(sums.data(), columns, rings) = parts[0].sums.transpose();
}

}  // namespace petacq::derive
