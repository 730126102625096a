#include "tools/petcal/estimate/pairs/arrangement_model.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>

#include "config/base/error.hpp"
#include "config/mixed.hpp"
#include "config/scanner/arrangement.hpp"
#include "tools/normalisation/symmetry.hpp"

namespace petacq::estimate {

namespace {

/// Factors of a scanner without classes: one for all pairs, which the fit leaves at 1.
FactorKind one_factor(std::size_t crystals) {
    return {{0}, {{0, 0}}, {true}, std::vector<std::uint32_t>(crystals), {0}};
}

/// Calls use(b) for one crystal of each block of `share`, others for each crystal a. A fixed step would pair
/// the same few columns of two modules wherever a module has about a multiple of it.
template <class Use>
void for_each_partner(std::uint32_t a, std::uint32_t share, std::uint32_t first_block, std::uint32_t crystals,
                      Use use) {
    for (std::uint32_t block = first_block; block * std::uint64_t{share} < crystals; ++block) {
        const std::uint64_t b =
            block * std::uint64_t{share} + config::mixed((std::uint64_t{a} << 32U) + block + 1) % share;
        if (b < crystals) use(static_cast<std::uint32_t>(b));
    }
}

/// Calls work(first, step) on several threads.
template <class Work>
void on_threads(unsigned threads, Work work) {
    std::vector<std::jthread> others;
    for (unsigned t = 1; t < threads; ++t)
        others.emplace_back([&work, t] { work(t); });
    work(0);
}

}  // namespace

/// Of one thread.
struct ArrangementModel::Work {
    std::vector<double> transaxial;
    std::vector<double> axial;
    std::vector<double> parts;
};

ArrangementModel::ArrangementModel(const config::Scanner& scanner, const CylinderScan& scan, GoodPair good,
                                   SolidAngle solid_angle, double max_lines)
    : ScanModel(scanner, scan),
      good_(std::move(good)),
      solid_angle_(std::move(solid_angle)),
      arrangement_(config::arrangement_of(scanner)),
      lines_(scanner, scan.depth) {
    const config::Arrangement& a = *arrangement_;
    for (std::uint32_t i = 0; i < a.crystal_count(); ++i) {
        const config::CrystalAddress at = a.address(i);
        const config::CrystalLayer& layer = a.layer_of(i);
        faces_.push_back({layer.y.sizes[at.column], layer.z.sizes[at.row]});
        reach_mm_ = std::max(reach_mm_, std::abs(lines_.places[i].front_centre_mm[2]));
    }
    const auto modules = static_cast<std::uint32_t>(a.modules().size());
    parts_ = std::min(modules, max_parts);
    for (std::uint32_t i = 0; i < a.crystal_count(); ++i)
        part_of_.push_back(static_cast<std::uint32_t>(std::uint64_t{a.address(i).module} * parts_ / modules));
    add_factors(a);
    find_lines(max_lines);
}

void ArrangementModel::add_factors(const config::Arrangement& arrangement) {
    transaxial_ = axial_ = one_factor(arrangement.crystal_count());
    auto found = normalisation::classes_of(arrangement);
    if (!found) return;
    symmetries_ = found->symmetries;
    const normalisation::PairClasses& c = found->classes;
    transaxial_ = {std::move(found->same_transaxial), {}, {}, {}, {}};
    axial_ = {std::move(found->same_axial), {}, {}, {}, {}};
    // Columns and rows of all types, one type after the other.
    std::vector<std::uint32_t> first_column(arrangement.types().size());
    std::vector<std::uint32_t> first_row(arrangement.types().size());
    std::uint32_t columns = 0;
    std::uint32_t rows = 0;
    std::vector<bool> seen(arrangement.types().size());
    for (std::size_t m = 0; m < c.columns.size(); ++m) {
        const std::uint32_t type = arrangement.modules()[m].type;
        if (seen[type]) continue;
        seen[type] = true;
        first_column[type] = columns;
        first_row[type] = rows;
        columns += c.columns[m];
        rows += c.rows[m];
    }
    const auto type_of = [&](std::uint32_t module) { return arrangement.modules()[module].type; };
    for (std::size_t k = 0; k < c.class_a.size(); ++k) {
        const std::uint32_t a = c.class_a[k];
        const std::uint32_t b = c.class_b[k];
        for (std::uint32_t i = 0; i < c.columns[a]; ++i)
            for (std::uint32_t j = 0; j < c.columns[b]; ++j)
                transaxial_.places.push_back({first_column[type_of(a)] + i, first_column[type_of(b)] + j});
        for (std::uint32_t i = 0; i < c.rows[a]; ++i)
            for (std::uint32_t j = 0; j < c.rows[b]; ++j)
                axial_.places.push_back({first_row[type_of(a)] + i, first_row[type_of(b)] + j});
    }
    transaxial_.accepted.assign(transaxial_.same.size(), false);
    axial_.accepted.assign(axial_.same.size(), false);
    // Alike by design only if a symmetry reverses a module.
    transaxial_.mirrored.resize(columns);
    axial_.mirrored.resize(rows);
    std::iota(transaxial_.mirrored.begin(), transaxial_.mirrored.end(), 0U);
    std::iota(axial_.mirrored.begin(), axial_.mirrored.end(), 0U);
    for (std::uint32_t i = 0; i < arrangement.crystal_count(); ++i) {
        const std::uint32_t type = type_of(c.module[i]);
        const std::uint32_t column = first_column[type] + c.column[i];
        const std::uint32_t row = first_row[type] + c.row[i];
        transaxial_.place_of.push_back(column);
        axial_.place_of.push_back(row);
        if (found->reverses_columns) transaxial_.mirrored[column] = first_column[type] + c.mirrored_column[i];
        if (found->reverses_rows) axial_.mirrored[row] = first_row[type] + c.mirrored_row[i];
    }
    classes_ = std::make_shared<const normalisation::PairClasses>(std::move(found->classes));
}

std::optional<ArrangementModel::Passage> ArrangementModel::passage(std::uint32_t a, std::uint32_t b,
                                                                   const config::LineEnds& ends) const {
    const config::CrystalPlace& place_a = lines_.places[a];
    const config::CrystalPlace& place_b = lines_.places[b];
    const CylinderScan& s = scan();
    const double dx = ends.b[0] - ends.a[0];
    const double dy = ends.b[1] - ends.a[1];
    const double ox = s.centre_mm[0] - ends.a[0];
    const double oy = s.centre_mm[1] - ends.a[1];
    const double square = dx * dx + dy * dy;
    if (!(square > 0)) return std::nullopt;
    const double across = std::sqrt(square);
    const Passage p{(ox * dx + oy * dy) / square, (ox * dy - oy * dx) / across, across};
    if (!(std::abs(p.off_mm) < s.radius_mm - s.edge_mm) || !(p.nearest > 0 && p.nearest < 1))
        return std::nullopt;
    const double z = ends.a[2] + p.nearest * (ends.b[2] - ends.a[2]) - s.centre_mm[2];
    if (!(std::abs(z) <= s.length_mm / 2 - s.edge_mm)) return std::nullopt;
    const config::Cosines cosines =
        cosines_of(place_a, place_b, std::sqrt(square_of_distance(place_a, place_b)));
    if (!(cosines.a > 0 && cosines.b > 0)) return std::nullopt;
    return p;
}

/// The variance of the place of a detection along (x, y), mm^2.
double ArrangementModel::spread_across(std::uint32_t crystal, const config::Vector3& end, double x,
                                       double y) const {
    const config::CrystalPlace& place = lines_.places[crystal];
    const config::Module& m = arrangement_->modules()[arrangement_->address(crystal).module];
    const auto along = [&](const config::Vector3& v) { return x * v[0] + y * v[1]; };
    double depth = 0;
    for (std::size_t axis = 0; axis < 3; ++axis)
        depth += (end[axis] - place.front_centre_mm[axis]) * place.outward[axis];
    const double width_y = faces_[crystal].y * along(m.along_y);
    const double width_z = faces_[crystal].z * along(m.along_z);
    const double behind = depth * along(m.outward);
    return (width_y * width_y + width_z * width_z) / 12 + behind * behind / 3;
}

double ArrangementModel::expected(std::uint32_t a, std::uint32_t b) const {
    const config::LineEnds ends = lines_.ends(a, b);
    const auto p = passage(a, b, ends);
    if (!p) return 0;
    const CylinderScan& s = scan();
    // Perpendicular to the line, across the axis.
    const double x = -(ends.b[1] - ends.a[1]) / p->across_mm;
    const double y = (ends.b[0] - ends.a[0]) / p->across_mm;
    const double to_b = p->nearest;
    const double spread = std::sqrt((1 - to_b) * (1 - to_b) * spread_across(a, ends.a, x, y) +
                                    to_b * to_b * spread_across(b, ends.b, x, y));
    const auto half_chord = [&](double off) {
        return std::sqrt(std::max(s.radius_mm * s.radius_mm - off * off, 0.0)) / p->across_mm;
    };
    // The mean over a Gaussian, by three points.
    const double step = std::sqrt(3.0) * spread;
    const double half =
        (4 * half_chord(p->off_mm) + half_chord(p->off_mm - step) + half_chord(p->off_mm + step)) / 6;
    const LinePart inside = part_between(ends.a[2], ends.b[2], s.centre_mm[2] - s.length_mm / 2,
                                         s.centre_mm[2] + s.length_mm / 2);
    const double way = std::hypot(p->across_mm, ends.b[2] - ends.a[2]);
    const double chord =
        way * std::max(std::min(inside.high, to_b + half) - std::max(inside.low, to_b - half), 0.0);
    return solid_angle_(a, b) * chord * std::exp(-s.attenuation_per_mm * chord);
}

bool ArrangementModel::counts(std::uint32_t a, std::uint32_t b) const {
    return a != b && good_(a, b) && passage(a, b, lines_.ends(a, b));
}

void ArrangementModel::find_lines(double max_lines) {
    const std::uint32_t crystals = geometry().crystal_count();
    share_ = static_cast<std::uint32_t>(
        std::max(std::ceil(double{1} * crystals * crystals / (2 * max_lines)), 1.0));
    std::vector<std::vector<Partner>> of(crystals);
    const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
    on_threads(threads, [&](unsigned first) {
        for (std::uint32_t a = first; a < crystals; a += threads) {
            for_each_partner(a, share_, 0, crystals, [&](std::uint32_t b) {
                if (a == b || !good_(a, b)) return;
                const double g = expected(a, b);
                if (g > 0) of[a].push_back({b, static_cast<float>(g * share_)});
            });
            of[a].shrink_to_fit();
        }
    });
    first_.push_back(0);
    for (std::vector<Partner>& partners : of) {
        partners_.insert(partners_.end(), partners.begin(), partners.end());
        first_.push_back(partners_.size());
        partners = {};
    }
    if (partners_.empty())
        throw config::Error(
            "efficiencies: no line between two crystals meets the cylinder; expected it between the modules");
    mark_accepted();
}

void ArrangementModel::mark_accepted() {
    if (!classes_) return;
    const std::uint32_t crystals = geometry().crystal_count();
    for (std::uint32_t a = 0; a < crystals; ++a) {
        for_each_partner(a, share_, 0, crystals, [&](std::uint32_t b) {
            if (a == b || !good_(a, b)) return;
            const FactorEntries at = entries(a, b);
            transaxial_.accepted[at.transaxial] = true;
            axial_.accepted[at.axial] = true;
        });
    }
    for (FactorKind* kind : {&transaxial_, &axial_}) {
        std::vector<bool> any(kind->same.size());
        for (std::size_t i = 0; i < any.size(); ++i)
            if (kind->accepted[i]) any[kind->same[i]] = true;
        for (std::size_t i = 0; i < any.size(); ++i)
            kind->accepted[i] = any[kind->same[i]];
    }
}

FactorEntries ArrangementModel::entries(std::uint32_t a, std::uint32_t b) const {
    if (!classes_) return {0, 0};
    const normalisation::PairClasses::Entries at = classes_->entries(a, b);
    return {at.transaxial, at.axial};
}

void ArrangementModel::for_each_pair(std::uint32_t one_in, const UsePair& use) const {
    const std::uint32_t crystals = geometry().crystal_count();
    for (std::uint32_t a = 0; a < crystals; ++a)
        for_each_partner(a, one_in, a / one_in, crystals, [&](std::uint32_t b) {
            if (b > a && counts(a, b)) use(a, b);
        });
}

double ArrangementModel::max_pairs() const {
    return static_cast<double>(partners_.size()) * share_ / 2;
}

double ArrangementModel::place_along(std::size_t axis, std::uint32_t crystal) const {
    const config::Vector3& p = lines_.places[crystal].front_centre_mm;
    if (axis == 2) return reach_mm_ > 0 ? p[2] / reach_mm_ : 0;
    const double radius = std::hypot(p[0], p[1]);
    return radius > 0 ? p[axis] / radius : 0;
}

/// [crystal / share]
std::vector<double> ArrangementModel::mean_weights(std::span<const double> weights) const {
    std::vector<double> means;
    for (std::size_t first = 0; first < weights.size(); first += share_) {
        const auto these = weights.subspan(first, std::min<std::size_t>(share_, weights.size() - first));
        means.push_back(std::accumulate(these.begin(), these.end(), 0.0) / static_cast<double>(these.size()));
    }
    return means;
}

PairSums ArrangementModel::sums(std::span<const double> weights, const GeometricFactors& factors,
                                unsigned threads) const {
    const std::uint32_t crystals = geometry().crystal_count();
    if (weights.size() != crystals)
        throw std::invalid_argument("sums: expected " + std::to_string(crystals) + " crystals");
    PairSums out;
    out.fans.resize(crystals);
    const std::vector<double> means = mean_weights(weights);
    std::vector<Work> work(std::max(threads, 1U));
    on_threads(static_cast<unsigned>(work.size()), [&](unsigned first) {
        Work& w = work[first];
        w.transaxial.resize(factors.transaxial.size());
        w.axial.resize(factors.axial.size());
        w.parts.resize(std::size_t{parts_} * parts_);
        for (std::uint32_t a = first; a < crystals; a += static_cast<std::uint32_t>(work.size())) {
            double fan = 0;
            const std::size_t row = std::size_t{part_of_[a]} * parts_;
            for (std::size_t i = first_[a]; i < first_[a + 1]; ++i) {
                const std::uint32_t b = partners_[i].crystal;
                const FactorEntries at = entries(a, b);
                const double found = double{partners_[i].expected} * factors.transaxial[at.transaxial] *
                                     factors.axial[at.axial] * means[b / share_];
                fan += found;
                // Each pair comes twice, once from each of its crystals.
                const double half = weights[a] * found / 2;
                w.transaxial[at.transaxial] += half;
                w.axial[at.axial] += half;
                w.parts[row + part_of_[b]] += part_of_[a] == part_of_[b] ? half : 2 * half;
            }
            out.fans[a] = fan;
        }
    });
    const auto add = [](std::vector<double>& to, const std::vector<double>& more) {
        for (std::size_t i = 0; i < to.size(); ++i)
            to[i] += more[i];
    };
    for (std::size_t t = 1; t < work.size(); ++t) {
        add(work[0].transaxial, work[t].transaxial);
        add(work[0].axial, work[t].axial);
        add(work[0].parts, work[t].parts);
    }
    out.transaxial = std::move(work[0].transaxial);
    out.axial = std::move(work[0].axial);
    out.parts = std::move(work[0].parts);
    return out;
}

}  // namespace petacq::estimate
