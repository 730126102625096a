#include "tools/petcal/estimate/pairs/source_place.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "config/median.hpp"
#include "config/scanner/arrangement.hpp"
#include "config/scanner/existing_modules.hpp"
#include "tools/petcal/estimate/pairs/crystal_finder.hpp"
#include "tools/petcal/estimate/pairs/scanner_size.hpp"

namespace petacq::estimate {

namespace {

constexpr double dead_share = 0.2;  // of the counts of the median

/// [kind of unit] Units with as many crystals of the same type of module count alike. [unit] its kind.
std::vector<std::size_t> kinds_of_units(const config::Scanner& scanner) {
    const config::Geometry& g = scanner.geometry;
    std::vector<std::size_t> out(g.unit_count());
    if (g.is_ring()) return out;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> kinds;
    for (std::uint32_t unit = 0; unit < out.size(); ++unit) {
        const std::uint32_t count = g.crystals_of_unit(unit);
        if (count == 0) continue;
        const std::uint32_t first = g.crystal(unit / g.du_count, unit % g.du_count, 0);
        const config::Arrangement& a = *scanner.arrangement;
        const std::uint32_t type = a.modules()[a.address(first).module].type;
        out[unit] = kinds.try_emplace({type, count}, kinds.size()).first->second;
    }
    return out;
}

/// [crystal] Whether its detector unit counts.
std::vector<bool> live_crystals(const config::Scanner& scanner, std::span<const Line> lines) {
    const config::Geometry& g = scanner.geometry;
    std::vector<double> counts(g.unit_count());
    std::vector<std::size_t> unit_of(g.crystal_count());
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit)
        for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local)
            unit_of[g.crystal(unit / g.du_count, unit % g.du_count, local)] = unit;
    for (const auto& [a, b] : lines) {
        counts[unit_of[a]] += 1;
        counts[unit_of[b]] += 1;
    }
    const std::vector<std::size_t> kinds = kinds_of_units(scanner);
    std::vector<std::vector<double>> of_kind(*std::max_element(kinds.begin(), kinds.end()) + 1);
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit)
        if (g.crystals_of_unit(unit) > 0) of_kind[kinds[unit]].push_back(counts[unit]);
    std::vector<double> least;
    for (std::vector<double>& units : of_kind)
        least.push_back(dead_share * config::median(std::move(units)));
    std::vector<bool> live;
    live.reserve(unit_of.size());
    for (const std::size_t unit : unit_of)
        live.push_back(counts[unit] > least[kinds[unit]]);
    return live;
}

/// How far lines may pass from the centre: across the axis, and along it.
struct Reach {
    double across = 0;
    double along = 0;
};

/// Over the lines within reach that count: what moves the centre to their middle.
struct PlaceSums {
    Eigen::Matrix2d matrix = Eigen::Matrix2d::Zero();
    Eigen::Vector2d right = Eigen::Vector2d::Zero();
    double squares = 0;
    double along = 0;
    double squares_along = 0;
    double lines = 0;
};

/// Whether a crystal can be seen from a centre, and whether a live one is opposite. Many lines end in each
/// crystal, so that it is found once.
class SeenFromCentre {
  public:
    SeenFromCentre(const Vector3& centre, const CrystalFinder& finder, const std::vector<bool>& live)
        : centre_(centre), finder_(finder), live_(live), known_(live.size()) {}

    bool with_opposite(std::uint32_t crystal) {
        std::optional<bool>& known = known_[crystal];
        if (!known) known = find(finder_.point(crystal));
        return *known;
    }

  private:
    [[nodiscard]] bool find(const Vector3& end) const {
        const auto opposite = finder_.at(
            {2 * centre_[0] - end[0], 2 * centre_[1] - end[1], 2 * centre_[2] - end[2]}, centre_[2]);
        return opposite && live_[*opposite] && finder_.at(end, centre_[2]);
    }

    const Vector3& centre_;
    const CrystalFinder& finder_;
    const std::vector<bool>& live_;
    std::vector<std::optional<bool>> known_;  // [crystal]
};

PlaceSums sums_around(const Vector3& centre, Reach reach, const CrystalFinder& finder,
                      const std::vector<bool>& live, std::span<const Line> lines) {
    SeenFromCentre seen(centre, finder, live);
    PlaceSums sums;
    for (const auto& [a, b] : lines) {
        const Vector3& p = finder.point(a);
        const Vector3& q = finder.point(b);
        const double dx = q[0] - p[0];
        const double dy = q[1] - p[1];
        const double length = std::hypot(dx, dy);
        if (!(length > 0)) continue;
        const Eigen::Vector2d normal(-dy / length, dx / length);
        const double off = normal.dot(Eigen::Vector2d(p[0] - centre[0], p[1] - centre[1]));
        if (std::abs(off) > reach.across) continue;
        const double part = ((centre[0] - p[0]) * dx + (centre[1] - p[1]) * dy) / (length * length);
        const double z = p[2] + part * (q[2] - p[2]) - centre[2];
        if (std::abs(z) > reach.along) continue;
        if (!seen.with_opposite(a) || !seen.with_opposite(b)) continue;
        sums.matrix += normal * normal.transpose();
        sums.right += off * normal;
        sums.squares += off * off;
        sums.along += z;
        sums.squares_along += z * z;
        sums.lines += 1;
    }
    return sums;
}

/// The crystals behind each BDM, and where among them each one is.
struct BdmCrystals {
    struct Place {
        std::uint32_t bdm = 0;
        std::uint32_t index = 0;
    };
    std::vector<std::vector<std::uint32_t>> crystals;  ///< [bdm][index]
    std::vector<Place> place_of;                       ///< [crystal]

    explicit BdmCrystals(const config::Geometry& g) : crystals(g.bdm_count), place_of(g.crystal_count()) {
        for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
            const std::uint32_t bdm = unit / g.du_count;
            for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local) {
                const std::uint32_t crystal = g.crystal(bdm, unit % g.du_count, local);
                place_of[crystal] = {bdm, static_cast<std::uint32_t>(crystals[bdm].size())};
                crystals[bdm].push_back(crystal);
            }
        }
    }
    /// The crystal of this place with two BDMs exchanged.
    [[nodiscard]] std::uint32_t exchanged(const Place& place, const Exchange& of) const {
        const std::uint32_t bdm = place.bdm == of.a ? of.b : place.bdm == of.b ? of.a : place.bdm;
        return crystals[bdm][place.index];
    }
};

}  // namespace

SourcePlace find_source(const config::Scanner& scanner, std::span<const Line> lines, const KnownSource& said,
                        double depth_mm) {
    constexpr int steps = 60;
    const CrystalFinder finder(scanner, depth_mm);
    const std::vector<bool> live = live_crystals(scanner, lines);
    const ScannerSize size = size_of(scanner);
    SourcePlace out;
    double half_length = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        out.centre_mm[i] = (said.from[i] + said.to[i]) / 2;
        half_length += std::pow((said.to[i] - said.from[i]) / 2, 2);
    }
    half_length = std::sqrt(half_length);
    const bool point = !(half_length > 0);
    // Lines look the same from any place within a source whose ends the scanner does not see.
    const bool has_seen_end =
        std::min(said.from[2], said.to[2]) > size.low_mm || std::max(said.from[2], said.to[2]) < size.high_mm;
    const Reach last{said.radius_mm + size.pitch_y_mm,
                     (point ? said.radius_mm : half_length) + size.pitch_z_mm};
    double more = size.inner_radius_mm / 2;
    for (int step = 0; step < steps; ++step, more *= 0.85) {
        const Reach reach{last.across + more, last.along + more};
        const PlaceSums sums = sums_around(out.centre_mm, reach, finder, live, lines);
        if (sums.lines < 100) break;
        const Eigen::Vector2d change = sums.matrix.ldlt().solve(sums.right);
        out.centre_mm[0] += change[0];
        out.centre_mm[1] += change[1];
        if (has_seen_end) out.centre_mm[2] += sums.along / sums.lines;
        out.lines = static_cast<std::uint64_t>(sums.lines);
        out.error_mm = std::sqrt(2 * sums.squares) / sums.lines;
        out.error_along_mm = std::sqrt(sums.squares_along) / sums.lines;
    }
    return out;
}

std::vector<Exchange> exchanged_modules(const config::Scanner& scanner, std::span<const Line> lines,
                                        const KnownSource& source) {
    constexpr std::size_t max_suspects = 8;
    const config::Geometry& g = scanner.geometry;
    const BdmCrystals by_bdm(g);
    std::vector<Vector3> points;
    for (std::uint32_t i = 0; i < g.crystal_count(); ++i)
        points.push_back(crystal_place(scanner, i).front_centre_mm);
    const auto misses = [&](std::uint32_t a, std::uint32_t b) {
        return a == b || !chord_of(source, points[a], points[b]);
    };
    std::vector<double> all(g.bdm_count);
    std::vector<double> missed(g.bdm_count);
    for (const auto& [a, b] : lines) {
        const bool miss = misses(a, b);
        for (const std::uint32_t crystal : {a, b}) {
            all[by_bdm.place_of[crystal].bdm] += 1;
            missed[by_bdm.place_of[crystal].bdm] += miss ? 1 : 0;
        }
    }
    std::vector<double> shares;
    const auto share = [&](std::uint32_t bdm) { return all[bdm] > 0 ? missed[bdm] / all[bdm] : 0; };
    const std::vector<std::uint32_t> modules = config::existing_modules(g);
    for (const std::uint32_t bdm : modules)
        shares.push_back(share(bdm));
    const double usual = 2 * config::median(std::move(shares)) + 0.1;
    std::vector<std::uint32_t> suspects;
    for (const std::uint32_t bdm : modules)
        if (all[bdm] >= 100 && share(bdm) > usual) suspects.push_back(bdm);
    std::sort(suspects.begin(), suspects.end(), [&](auto a, auto b) { return share(a) > share(b); });
    suspects.resize(std::min(suspects.size(), max_suspects));
    std::vector<Exchange> found;
    for (const std::uint32_t a : suspects) {
        for (const std::uint32_t b : suspects) {
            if (a >= b || by_bdm.crystals[a].size() != by_bdm.crystals[b].size()) continue;
            Exchange tried{a, b, 0, 0};
            double touching = 0;
            for (const auto& [p, q] : lines) {
                const BdmCrystals::Place& at_p = by_bdm.place_of[p];
                const BdmCrystals::Place& at_q = by_bdm.place_of[q];
                if (at_p.bdm != a && at_p.bdm != b && at_q.bdm != a && at_q.bdm != b) continue;
                touching += 1;
                tried.missed += misses(p, q) ? 1 : 0;
                tried.missed_after +=
                    misses(by_bdm.exchanged(at_p, tried), by_bdm.exchanged(at_q, tried)) ? 1 : 0;
            }
            tried.missed /= touching;
            tried.missed_after /= touching;
            if (tried.missed_after < std::min(usual, tried.missed / 2)) found.push_back(tried);
        }
    }
    std::sort(found.begin(), found.end(),
              [](const Exchange& p, const Exchange& q) { return p.missed_after < q.missed_after; });
    std::vector<Exchange> out;  // each module once
    for (const Exchange& e : found) {
        const bool taken = std::any_of(out.begin(), out.end(), [&](const Exchange& o) {
            return o.a == e.a || o.a == e.b || o.b == e.a || o.b == e.b;
        });
        if (!taken) out.push_back(e);
    }
    return out;
}

std::uint32_t ring_of(const config::Geometry& g, std::uint32_t crystal) {
    return g.is_ring() ? crystal / g.crystals_in_ring() : g.pairs->crystals[crystal].ring;
}

std::uint32_t ring_count(const config::Geometry& g) {
    if (g.is_ring()) return g.rings();
    std::uint32_t last = 0;
    for (const config::PairGeometry::Crystal& crystal : g.pairs->crystals)
        last = std::max(last, crystal.ring);
    return last + 1;
}

std::vector<std::uint32_t> rings_without(const config::Geometry& g, std::span<const double> counts,
                                         std::span<const double> expected) {
    std::vector<double> found(ring_count(g));
    std::vector<double> of_model(found.size());
    for (std::uint32_t i = 0; i < g.crystal_count(); ++i) {
        found[ring_of(g, i)] += counts[i];
        of_model[ring_of(g, i)] += expected[i];
    }
    std::vector<double> shares;
    for (std::size_t ring = 0; ring < found.size(); ++ring)
        shares.push_back(of_model[ring] > 0 ? found[ring] / of_model[ring] : 0);
    std::vector<double> sorted = shares;
    std::sort(sorted.begin(), sorted.end());
    const double least = dead_share * sorted[sorted.size() * 3 / 4];
    std::vector<std::uint32_t> out;
    for (std::uint32_t ring = 0; ring < shares.size(); ++ring)
        if (shares[ring] <= least) out.push_back(ring);
    return out;
}

}  // namespace petacq::estimate
