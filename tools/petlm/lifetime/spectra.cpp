#include "tools/petlm/lifetime/spectra.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "config/base/constants.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::lifetime {
namespace {

constexpr double bin_about_ns = 0.05;
constexpr double light_mm_per_ns = 1000 * config::light_mm_per_ps;

config::Vector3 turned(const config::Vector3& at, double radians) {
    if (radians == 0) return at;
    const double c = std::cos(radians);
    const double s = std::sin(radians);
    return {c * at[0] - s * at[1], s * at[0] + c * at[1], at[2]};
}

double distance(const config::Vector3& a, const config::Vector3& b) {
    return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

std::vector<double> part_of(const std::vector<double>& all, std::size_t first, std::size_t count) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

Spectra::Spectra(const config::Scanner& scanner, const config::DepthOfInteraction& depth,
                 const config::Gammas& gammas, Places& places, std::size_t regions)
    : gammas_(gammas),
      places_(places),
      geometry_(scanner, depth),
      tick_ns_(scanner.tick_ps * 1e-3),
      counts_(regions) {
    // Times come in steps of half a tick: bins of whole ticks have as many steps each.
    const double bin = tick_ns_ * std::max(1.0, std::round(bin_about_ns / tick_ns_));
    const double first = -tick_ns_ * (gammas.after_ticks + 0.25);
    const auto bins = static_cast<std::size_t>(
        std::ceil(tick_ns_ * (static_cast<double>(gammas.before_ticks) + gammas.after_ticks) / bin));
    for (Counts& counts : counts_) {
        counts.all.first_ns = first;
        counts.all.bin_ns = bin;
        for (auto* values : {&counts.all.coincident, &counts.all.delayed, &counts.all.randoms,
                             &counts.all.randoms_squares, &counts.randoms_delayed})
            values->assign(bins, 0.0);
    }
}

void Spectra::fill(std::vector<double>& bins, double ns, double weight) const {
    const Spectrum& shape = counts_.front().all;
    const double place = std::floor((ns - shape.first_ns) / shape.bin_ns);
    if (place >= 0 && place < static_cast<double>(bins.size()))
        bins[static_cast<std::size_t>(place)] += weight;
}

void Spectra::add(const gpu::Triple& triple, double weight, double radians) {
    const gpu::Coincidence& pair = triple.pair;
    const bool prompt = pair.kind == gpu::Kind::prompt;
    const bool coincident = triple.third == gpu::ThirdPhoton::coincident;
    config::LineEnds ends = geometry_.ends(pair.crystal_a, pair.crystal_b);
    ends = {turned(ends.a, radians), turned(ends.b, radians)};
    const auto difference = static_cast<std::int32_t>(pair.dt);
    const auto place = places_.find({image::point_of(ends.a), image::point_of(ends.b)}, difference);
    if (!place) {
        if (prompt && coincident) ++elsewhere_;
        return;
    }
    const double length = distance(ends.a, ends.b);
    config::Vector3 at{};
    for (std::size_t axis = 0; axis < 3; ++axis)
        at[axis] = ends.a[axis] + (ends.b[axis] - ends.a[axis]) * (place->from_start_mm / length);
    const config::Vector3 gamma =
        turned(config::point_at_depth(geometry_.places[triple.gamma_crystal],
                                      geometry_.depth_of(triple.gamma_crystal).typical_mm()),
               radians);
    const double flights_ns = (distance(gamma, at) - length / 2) / light_mm_per_ns;
    const double half_ns = 0.5 * tick_ns_ * difference;
    const double gamma_ns = -tick_ns_ * triple.gamma_dt + flights_ns;
    Counts& counts = counts_[place->region];
    if (prompt) {
        earliest_ns_ = any_ ? std::min(earliest_ns_, flights_ns - half_ns) : flights_ns - half_ns;
        latest_ns_ = any_ ? std::max(latest_ns_, flights_ns + half_ns) : flights_ns + half_ns;
        any_ = true;
        fill(coincident ? counts.all.coincident : counts.all.delayed, gamma_ns + half_ns, 1);
        if (coincident) {
            counts.shares += place->share;
            ++counts.triples;
        }
        return;
    }
    // The gamma of a delayed is near its first photon only. In a random prompt it may as well belong to the
    // other one.
    for (const double half : {half_ns, -half_ns}) {
        fill(coincident ? counts.all.randoms : counts.randoms_delayed, gamma_ns + half, weight);
        if (coincident) fill(counts.all.randoms_squares, gamma_ns + half, weight * weight);
    }
}

std::vector<Spectra::OfRegion> Spectra::result() const {
    const Spectrum& shape = counts_.front().all;
    const double from_ns = -tick_ns_ * gammas_.after_ticks + latest_ns_;
    const double to_ns = tick_ns_ * gammas_.before_ticks + earliest_ns_;
    const double first = std::ceil((from_ns - shape.first_ns) / shape.bin_ns);
    const double end =
        std::min(std::floor((to_ns - shape.first_ns) / shape.bin_ns), static_cast<double>(shape.bins()));
    constexpr double min_bins = 20;
    if (!any_ || end - first < min_bins)
        throw petlm::BadInput(
            "the window of the gammas is too short for lifetimes: before_ns of the run should be at least "
            "five "
            "times the longest lifetime, after_ns at least 2 ns");
    const auto skip = static_cast<std::size_t>(first);
    const auto bins = static_cast<std::size_t>(end - first);
    std::vector<OfRegion> out;
    for (const Counts& c : counts_) {
        OfRegion of;
        Spectrum& s = of.spectrum;
        s.bin_ns = shape.bin_ns;
        s.first_ns = shape.first_ns + first * shape.bin_ns;
        s.coincident = part_of(c.all.coincident, skip, bins);
        if (gammas_.delay_ticks) s.delayed = part_of(c.all.delayed, skip, bins);
        s.randoms = part_of(c.all.randoms, skip, bins);
        s.randoms_squares = part_of(c.all.randoms_squares, skip, bins);
        const auto by_chance = part_of(c.randoms_delayed, skip, bins);
        s.randoms_by_chance =
            std::accumulate(by_chance.begin(), by_chance.end(), 0.0) / static_cast<double>(bins);
        of.triples = std::accumulate(s.coincident.begin(), s.coincident.end(), 0.0);
        of.mean_share = c.triples > 0 ? c.shares / c.triples : 0;
        out.push_back(std::move(of));
    }
    return out;
}

}  // namespace petacq::lifetime
