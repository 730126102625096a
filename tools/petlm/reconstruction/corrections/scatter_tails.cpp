#include "tools/petlm/reconstruction/corrections/scatter_tails.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "config/mixed.hpp"
#include "tools/geometry/bore.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"

namespace petacq::corrections {
namespace {

constexpr std::size_t slices = 16;            // of the sample, whatever the number of threads
constexpr double thinnest_object = 1e-3;      // integral of the attenuation
constexpr double least_expected = 20;         // in a group whose ratio is compared with others
constexpr double randoms_error = 0.01;        // how well they are known (docs/design/randoms.md)
constexpr double shape_error_of_tenth = 0.1;  // where a tenth of the scatter is
constexpr std::size_t groups_across = 8;
constexpr std::size_t groups_along = 4;

std::size_t cell(double share, std::size_t count) {
    return std::min(static_cast<std::size_t>(std::max(share, 0.0) * static_cast<double>(count)), count - 1);
}

/// To the middle of the last crystals; of one ring, to its end.
double half_length_of_bins(const config::Scanner& scanner) {
    const geometry::Bore bore = geometry::bore_of(scanner);
    return std::max(bore.last_centre_mm, bore.half_length_mm - bore.last_centre_mm);
}

}  // namespace

ScatterTails::ScatterTails(const config::Scanner& scanner, const gpu::PairRule& rule,
                           const LineFactors& lines, OfPair found, OfPair randoms, net::WorkerPool& pool,
                           std::size_t max_pairs)
    : rule_(rule),
      lines_(lines),
      found_(std::move(found)),
      crystals_(scanner.geometry.crystal_count()),
      max_pairs_(max_pairs),
      radius_mm_(geometry::bore_of(scanner).furthest_mm),
      half_length_mm_(half_length_of_bins(scanner)),
      margin_mm_(4 * geometry::bore_of(scanner).coarsest_mm),
      bins_(bins) {
    sample(pool, &Bin::randoms, [&](std::uint32_t a, std::uint32_t b, Bin& bin) {
        if (!bin.object) {
            const config::LineEnds ends = lines_.ends(a, b);
            bin.object = lines_.object().integral(ends.a, ends.b) > thinnest_object;
        }
        return randoms(a, b);
    });
}

ScatterTails::Line ScatterTails::line(std::uint32_t a, std::uint32_t b) const {
    const auto [from, to] = lines_.ends(a, b);
    // The normal has an angle from 0 to 180 degrees.
    double nx = from[1] - to[1];
    double ny = to[0] - from[0];
    const double length = std::hypot(nx, ny);
    const double sign = ny < 0 || (ny == 0 && nx < 0) ? -1 : 1;
    nx *= sign / std::max(length, 1e-9);
    ny *= sign / std::max(length, 1e-9);
    return {nx, ny, (nx * from[0] + ny * from[1]) / radius_mm_, (from[2] + to[2]) / (2 * half_length_mm_),
            std::abs(from[2] - to[2]) / (2 * half_length_mm_)};
}

std::size_t ScatterTails::bin_of(const Line& line) {
    const std::size_t angle = cell(std::atan2(line.sine, line.cosine) / std::numbers::pi, angles);
    const std::size_t distance = cell((line.across + 1) / 2, distances);
    const std::size_t place = cell((line.along + 1) / 2, places);
    return ((cell(line.apart, groups) * places + place) * distances + distance) * angles + angle;
}

template <class Use>
void ScatterTails::sample(net::WorkerPool& pool, double Bin::*of, Use&& use) {
    const std::uint64_t pairs = crystals_ * crystals_;  // at one angle
    const std::uint64_t turns = lines_.angles();
    const bool all = pairs * turns <= 2 * std::uint64_t{max_pairs_};
    const std::uint64_t count = all ? pairs * turns : 2 * std::uint64_t{max_pairs_};
    // Each pair occurs in both orders.
    const double stands_for = static_cast<double>(pairs * turns) / static_cast<double>(count) / 2;
    const double drawn = all ? 0 : 1;
    std::vector<std::vector<Bin>> parts(slices, std::vector<Bin>(bins));
    image::for_each_on(pool, slices, [&](std::size_t slice) {
        for (std::uint64_t i = count * slice / slices; i < count * (slice + 1) / slices; ++i) {
            std::uint64_t a = i % pairs / crystals_;
            std::uint64_t b = i % crystals_;
            std::uint64_t angle = i / pairs;
            if (!all) {
                // Roberts' additive sequence for two dimensions, in 64 bits: even over all pairs.
                a = static_cast<std::uint64_t>((i * 0xC13FA9A902A6328FU >> 32U) * crystals_ >> 32U);
                b = static_cast<std::uint64_t>((i * 0x91E10DA5C79E7B1DU >> 32U) * crystals_ >> 32U);
                angle = turns > 1 ? config::mixed(i) % turns : 0;
            }
            if (a == b || !rule_.good(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b))) continue;
            const auto number_a = static_cast<std::uint32_t>(angle * crystals_ + a);
            const auto number_b = static_cast<std::uint32_t>(angle * crystals_ + b);
            if (!(found_(number_a, number_b) > 0)) continue;
            Bin& bin = parts[slice][bin_of(line(number_a, number_b))];
            const double value = stands_for * use(number_a, number_b, bin);
            bin.*of += value;
            bin.sampling += drawn * value * value;
        }
    });
    for (const auto& part : parts) {
        for (std::size_t i = 0; i < bins; ++i) {
            bins_[i].*of += part[i].*of;
            bins_[i].sampling += part[i].sampling;
            bins_[i].object = bins_[i].object || part[i].object;
        }
    }
}

void ScatterTails::add(std::uint32_t a, std::uint32_t b, double prompts) {
    if (rule_.good(lines_.crystal(a), lines_.crystal(b)) && found_(a, b) > 0)
        bins_[bin_of(line(a, b))].prompts += prompts;
}

std::vector<std::size_t> ScatterTails::tails() const {
    const double width = 2 * radius_mm_ / distances;
    const auto margin = static_cast<std::ptrdiff_t>(std::ceil(margin_mm_ / width));
    const auto object_near = [&](std::size_t bin) {
        const auto distance = static_cast<std::ptrdiff_t>(bin / angles % distances);
        const auto place = static_cast<std::ptrdiff_t>(bin / angles / distances % places);
        for (std::ptrdiff_t p = std::max<std::ptrdiff_t>(place - 1, 0);
             p <= std::min<std::ptrdiff_t>(place + 1, places - 1); ++p) {
            for (std::ptrdiff_t d = std::max<std::ptrdiff_t>(distance - margin, 0);
                 d <= std::min<std::ptrdiff_t>(distance + margin, distances - 1); ++d) {
                const std::ptrdiff_t other =
                    static_cast<std::ptrdiff_t>(bin) +
                    ((p - place) * static_cast<std::ptrdiff_t>(distances) + d - distance) *
                        static_cast<std::ptrdiff_t>(angles);
                if (bins_[static_cast<std::size_t>(other)].object) return true;
            }
        }
        return false;
    };
    std::vector<std::size_t> out;
    for (std::size_t bin = 0; bin < bins; ++bin)
        if (bins_[bin].expected > 0 && !object_near(bin)) out.push_back(bin);
    return out;
}

std::size_t ScatterTails::group_of(std::size_t bin) {
    const double across = 2 * (static_cast<double>(bin / angles % distances) + 0.5) / distances - 1;
    const std::size_t place = bin / angles / distances % places;
    return cell(std::abs(across), groups_across) * groups_along + place * groups_along / places;
}

double ScatterTails::trues(double share) const {
    double sum = 0;
    for (const Bin& bin : bins_)
        sum += bin.prompts / share - bin.randoms;
    return sum;
}

ScatterTails::Scale ScatterTails::scale(const OfPair& expected, net::WorkerPool& pool, double share,
                                        const std::vector<double>& unscattered) {
    sample(pool, &Bin::expected,
           [&](std::uint32_t a, std::uint32_t b, const Bin&) { return expected(a, b); });
    struct TailGroup {
        double expected = 0;
        double found = 0;
        double variance = 0;
    };
    std::vector<TailGroup> all(groups_across * groups_along);
    Scale out;
    double randoms = 0;
    for (const std::size_t i : tails()) {
        TailGroup& group = all[group_of(i)];
        const double others = bins_[i].randoms + (unscattered.empty() ? 0 : unscattered[i]);
        group.expected += bins_[i].expected;
        group.found += bins_[i].prompts / share - others;
        group.variance += (bins_[i].expected + others) / share + bins_[i].sampling;
        out.unscattered += others - bins_[i].randoms;
        randoms += bins_[i].randoms;
    }
    double product = 0;
    double square = 0;
    for (const TailGroup& group : all) {
        if (!(group.expected > 0)) continue;
        out.expected += group.expected;
        out.found += group.found;
        product += group.expected * group.found / group.variance;
        square += group.expected * group.expected / group.variance;
    }
    if (!(square > 0)) return out;
    out.ratio = product / square;
    double differences = 0;
    double count = 0;
    for (const TailGroup& group : all) {
        // Groups of a few counts tell nothing of the shape.
        if (!(group.expected > least_expected)) continue;
        differences += std::pow(group.found - out.ratio * group.expected, 2) / group.variance;
        ++count;
    }
    const double of_counts = std::max(1.0, count > 1 ? differences / (count - 1) : 1.0) / square;
    out.error = std::hypot(std::sqrt(of_counts), randoms_error * randoms / out.expected);
    const double shape_error = shape_error_of_tenth * std::max(1.0, std::sqrt(0.1 * total() / out.expected));
    const bool known = out.error < least_precision * std::max(out.ratio, 1.0);
    if (known && std::abs(out.ratio - 1) > confidence * std::hypot(out.error, simulation_error, shape_error))
        out.factor = std::max(out.ratio, 0.0);
    return out;
}

double ScatterTails::total() const {
    double sum = 0;
    for (const Bin& bin : bins_)
        sum += bin.expected;
    return sum;
}

}  // namespace petacq::corrections
