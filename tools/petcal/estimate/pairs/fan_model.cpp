#include "tools/petcal/estimate/pairs/fan_model.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <thread>

#include "config/base/error.hpp"
#include "tools/normalisation/normalisation.hpp"

namespace petacq::estimate {

namespace {

using Row = Eigen::Map<const Eigen::ArrayXd>;

struct Point2 {
    double x;
    double y;
};

/// Half of the chord of a circle of radius 1 around the origin, times the radius.
double half_chord(Point2 from, Point2 to, double radius) {
    const double dx = to.x - from.x;
    const double dy = to.y - from.y;
    const double across = from.y * dx - from.x * dy;
    return std::sqrt(std::max(radius * radius - across * across / (dx * dx + dy * dy), 0.0));
}

/// Where the detections of a crystal lie across the axis, relative to the axis of the cylinder. `end`: in the
/// mean.
std::vector<Point2> detections(const config::CrystalPlace& place, const config::Vector3& end, double pitch,
                               const config::Vector3& centre) {
    const double depth = (end[0] - place.front_centre_mm[0]) * place.outward[0] +
                         (end[1] - place.front_centre_mm[1]) * place.outward[1];
    std::vector<double> depths{depth};
    if (depth > 0) depths = {depth / 3, depth, depth * 5 / 3};
    std::vector<Point2> out;
    for (const double behind : depths) {
        const config::Vector3 p = point_at_depth(place, behind);
        for (const double part : {-1.0 / 3, 0.0, 1.0 / 3}) {
            out.push_back({p[0] - centre[0] - part * pitch * place.outward[1],
                           p[1] - centre[1] + part * pitch * place.outward[0]});
        }
    }
    return out;
}

double mean_half_chord(const std::vector<Point2>& from, const std::vector<Point2>& to, double radius) {
    double sum = 0;
    for (const Point2 a : from) {
        for (const Point2 b : to)
            sum += half_chord(a, b, radius);
    }
    return sum / static_cast<double>(from.size() * to.size());
}

}  // namespace

/// Of one thread; matrices are [column][ring].
struct FanModel::Work {
    Eigen::MatrixXd weights;
    Eigen::MatrixXd fans;
    std::vector<double> transaxial;
    Eigen::MatrixXd axial;  // [ring of b][ring of a]
    Eigen::MatrixXd units;
    Eigen::ArrayXd chord;
    Eigen::ArrayXd square;
    Eigen::ArrayXd way;
    Eigen::ArrayXd expected;
};

FanModel::FanModel(const config::Scanner& scanner, const CylinderScan& scan)
    : ScanModel(scanner, scan),
      columns_(geometry().crystals_in_ring()),
      rings_(geometry().rings()),
      columns_in_unit_(geometry().crystals.y),
      rings_in_unit_(geometry().crystals.z),
      units_along_(rings_ / rings_in_unit_),
      low_(scan.centre_mm[2] - scan.length_mm / 2 + scan.edge_mm),
      high_(scan.centre_mm[2] + scan.length_mm / 2 - scan.edge_mm) {
    add_columns(scanner);
    add_rings(scanner);
    add_factors();
    bool any = false;
    for_each_pair(1, [&](std::uint32_t, std::uint32_t) { any = true; });
    if (!any)
        throw config::Error(
            "efficiencies: no line between two crystals meets the cylinder; expected it inside the ring");
}

void FanModel::add_columns(const config::Scanner& scanner) {
    const CylinderScan& scan = this->scan();
    std::vector<config::CrystalPlace> front;
    for (std::uint32_t i = 0; i < columns_; ++i)
        front.push_back(crystal_place(scanner, i));
    const std::uint32_t modules = geometry().modules_in_ring();
    const std::uint32_t per_module = geometry().crystals_per_module_y();
    const double pitch = scanner.dimensions.crystal_pitch_y_mm;
    pair_of_.assign(std::size_t{columns_} * columns_, -1);
    for (std::uint32_t i = 0; i < columns_; ++i) {
        for (std::uint32_t j = i + 1; j < columns_; ++j) {
            const std::uint32_t apart = j / per_module - i / per_module;
            if (std::min(apart, modules - apart) < scan.min_module_difference) continue;
            const double fx = front[j].front_centre_mm[0] - front[i].front_centre_mm[0];
            const double fy = front[j].front_centre_mm[1] - front[i].front_centre_mm[1];
            const double cosines = -(front[i].outward[0] * fx + front[i].outward[1] * fy) *
                                   (front[j].outward[0] * fx + front[j].outward[1] * fy);
            if (!(cosines > 0)) continue;
            const auto [from, to] = line_ends(front[i], front[j], scan.depth);
            const double dx = to[0] - from[0];
            const double dy = to[1] - from[1];
            const double way = dx * dx + dy * dy;
            const double ox = scan.centre_mm[0] - from[0];
            const double oy = scan.centre_mm[1] - from[1];
            const double nearest = (ox * dx + oy * dy) / way;
            if (!(std::abs(ox * dy - oy * dx) < (scan.radius_mm - scan.edge_mm) * std::sqrt(way))) continue;
            if (!(nearest > 0 && nearest < 1)) continue;
            const double half =
                mean_half_chord(detections(front[i], from, pitch, scan.centre_mm),
                                detections(front[j], to, pitch, scan.centre_mm), scan.radius_mm) /
                std::sqrt(way);
            pair_of_[std::size_t{i} * columns_ + j] = static_cast<std::int32_t>(pairs_.size());
            pairs_.push_back({i, j,
                              static_cast<std::uint32_t>(normalisation::transaxial_class(geometry(), i, j)),
                              nearest, nearest - half, nearest + half, way, fx * fx + fy * fy, cosines});
        }
    }
}

void FanModel::add_rings(const config::Scanner& scanner) {
    const CylinderScan& scan = this->scan();
    for (std::uint32_t i = 0; i < rings_; ++i)
        z_.push_back(crystal_place(scanner, i * columns_).front_centre_mm[2]);
    for (std::uint32_t i = 0; i < rings_; ++i) {
        for (std::uint32_t j = 0; j < rings_; ++j) {
            const bool good = std::max(i, j) - std::min(i, j) <= scan.max_ring_difference;
            const LinePart part = good ? part_between(z_[i], z_[j], scan.centre_mm[2] - scan.length_mm / 2,
                                                      scan.centre_mm[2] + scan.length_mm / 2)
                                       : LinePart{1, 0};
            enter_.push_back(part.low);
            leave_.push_back(part.high);
            square_.push_back((z_[i] - z_[j]) * (z_[i] - z_[j]));
            good_.push_back(good);
        }
    }
}

void FanModel::add_factors() {
    const config::Geometry& g = geometry();
    const std::uint32_t columns = g.crystals_per_module_y();
    const GeometricFactors even = GeometricFactors::even(g);
    // The first of a factor and its mirror image.
    for (std::uint32_t i = 0; i < even.transaxial.size(); ++i) {
        const std::uint32_t a = i / columns % columns;
        const std::uint32_t b = i % columns;
        const std::uint32_t apart = i / columns / columns;
        transaxial_.places.push_back({a, b});
        transaxial_.same.push_back(
            std::min(i, (apart * columns + columns - 1 - b) * columns + columns - 1 - a));
        transaxial_.accepted.push_back(apart >= scan().min_module_difference);
    }
    for (std::uint32_t i = 0; i < even.axial.size(); ++i) {
        const std::uint32_t a = i / rings_;
        const std::uint32_t b = i % rings_;
        axial_.places.push_back({a, b});
        axial_.same.push_back(std::min(i, rings_ * rings_ - 1 - i));
        axial_.accepted.push_back(std::max(a, b) - std::min(a, b) <= scan().max_ring_difference);
    }
    for (std::uint32_t i = 0; i < g.crystal_count(); ++i) {
        transaxial_.place_of.push_back(i % columns_ % columns);
        axial_.place_of.push_back(i / columns_);
    }
    for (std::uint32_t i = 0; i < columns; ++i)
        transaxial_.mirrored.push_back(columns - 1 - i);
    for (std::uint32_t i = 0; i < rings_; ++i)
        axial_.mirrored.push_back(rings_ - 1 - i);
}

FactorEntries FanModel::entries(std::uint32_t a, std::uint32_t b) const {
    return {normalisation::transaxial_class(geometry(), a % columns_, b % columns_),
            std::size_t{a / columns_} * rings_ + b / columns_};
}

double FanModel::place_along(std::size_t axis, std::uint32_t crystal) const {
    const config::Geometry& g = geometry();
    const std::uint32_t ring_number = crystal / columns_;
    const double ring = ring_number;
    if (axis == 2) return rings_ > 1 ? 2 * ring / (rings_ - 1) - 1 : 0;
    const double column = crystal % columns_;
    const double angle = 2 * std::numbers::pi * (column - (g.crystals_per_module_y() - 1) / 2.0) / columns_;
    return axis == 0 ? std::cos(angle) : std::sin(angle);
}

void FanModel::for_each_pair(std::uint32_t one_in, const UsePair& use) const {
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        const ColumnPair& pair = pairs_[i];
        for (std::uint32_t ring_a = 0; ring_a < rings_; ++ring_a) {
            // Begins elsewhere in each row, so that all rings have their turn.
            for (auto ring_b = static_cast<std::uint32_t>((i + ring_a) % one_in); ring_b < rings_;
                 ring_b += one_in) {
                if (!counts(FanCrystal{pair.a, ring_a}, FanCrystal{pair.b, ring_b})) continue;
                use(pair.a + ring_a * columns_, pair.b + ring_b * columns_);
            }
        }
    }
}

void FanModel::add(const ColumnPair& pair, const GeometricFactors& factors, Work& work) const {
    const auto n = static_cast<Eigen::Index>(rings_);
    const auto in_unit = static_cast<Eigen::Index>(rings_in_unit_);
    const double transaxial = factors.transaxial[pair.factor];
    const Row z(z_.data(), n);
    double sum = 0;
    for (std::uint32_t ring = 0; ring < rings_; ++ring) {
        const std::size_t at = std::size_t{ring} * rings_;
        const Row enter(&enter_[at], n);
        const Row leave(&leave_[at], n);
        const Row along(&square_[at], n);
        const Row axial(&factors.axial[at], n);
        work.square = along + pair.square;
        work.way = (along + pair.way).sqrt();
        work.chord = (leave.min(pair.leave) - enter.max(pair.enter)).max(0.0) * work.way;
        work.expected = transaxial * pair.cosines * axial * work.chord / work.square.square();
        if (scan().attenuation_per_mm > 0) work.expected *= (-scan().attenuation_per_mm * work.chord).exp();
        work.chord = z_[ring] + pair.nearest * (z - z_[ring]);  // z where the line is nearest to the axis
        work.expected = (work.chord >= low_ && work.chord <= high_).select(work.expected, 0.0);
        const double weight = work.weights(ring, pair.a);
        work.fans.col(pair.b).array() += weight * work.expected;
        work.expected *= work.weights.col(pair.b).array();
        const auto unit_a = static_cast<Eigen::Index>(part_of(pair.a + ring * columns_));
        const auto unit_b = static_cast<Eigen::Index>(part_of(pair.b));
        double row = 0;
        for (Eigen::Index block = 0; block < static_cast<Eigen::Index>(units_along_); ++block) {
            const double part = work.expected.segment(block * in_unit, in_unit).sum();
            work.units(unit_b + block, unit_a) += weight * part;
            row += part;
        }
        work.fans(ring, pair.a) += row;
        work.axial.col(ring).array() += weight * work.expected;
        sum += weight * row;
    }
    work.transaxial[pair.factor] += sum;
}

namespace {

/// [row][column] of m and its transpose; what joins a place with itself is already complete.
std::vector<double> both_orders(const Eigen::MatrixXd& m) {
    Eigen::MatrixXd both = m + m.transpose();
    both.diagonal() = m.diagonal();
    return {both.data(), both.data() + both.size()};
}

}  // namespace

PairSums FanModel::sums(std::span<const double> weights, const GeometricFactors& factors,
                        unsigned threads) const {
    if (weights.size() != geometry().crystal_count())
        throw std::invalid_argument("sums: expected " + std::to_string(geometry().crystal_count()) +
                                    " crystals");
    // Crystal = column + ring * columns.
    const auto rings = static_cast<Eigen::Index>(rings_);
    const auto columns = static_cast<Eigen::Index>(columns_);
    const auto units = static_cast<Eigen::Index>(part_count());
    Work empty;
    empty.weights = Eigen::Map<const Eigen::MatrixXd>(weights.data(), columns, rings).transpose();
    empty.fans = Eigen::MatrixXd::Zero(rings, columns);
    empty.transaxial.assign(factors.transaxial.size(), 0);
    empty.axial = Eigen::MatrixXd::Zero(rings, rings);
    empty.units = Eigen::MatrixXd::Zero(units, units);
    std::vector<Work> parts(std::max(threads, 1U), empty);
    const auto work = [&](std::size_t first) {  // fixed shares, so that the sums are always the same
        for (std::size_t i = first; i < pairs_.size(); i += parts.size())
            add(pairs_[i], factors, parts[first]);
    };
    {
        std::vector<std::jthread> others;
        for (std::size_t t = 1; t < parts.size(); ++t)
            others.emplace_back(work, t);
        work(0);
    }
    Work& all = parts[0];
    for (std::size_t t = 1; t < parts.size(); ++t) {
        all.fans += parts[t].fans;
        all.axial += parts[t].axial;
        all.units += parts[t].units;
        for (std::size_t i = 0; i < all.transaxial.size(); ++i)
            all.transaxial[i] += parts[t].transaxial[i];
    }
    PairSums out;
    out.fans.resize(weights.size());
    Eigen::Map<Eigen::MatrixXd>(out.fans.data(), columns, rings) = all.fans.transpose();
    out.transaxial = std::move(all.transaxial);
    out.axial = both_orders(all.axial);
    out.parts = both_orders(all.units);
    return out;
}

}  // namespace petacq::estimate
