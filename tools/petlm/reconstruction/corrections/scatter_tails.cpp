#include "tools/petlm/reconstruction/corrections/scatter_tails.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tools/petlm/reconstruction/projector/for_each_on.hpp"

namespace petacq::corrections {
namespace {

constexpr std::size_t slices = 16;        // of the sample, whatever the number of threads
constexpr double thinnest_object = 1e-3;  // integral of the attenuation

std::size_t cell(double share, std::size_t count) {
    return std::min(static_cast<std::size_t>(std::max(share, 0.0) * static_cast<double>(count)), count - 1);
}

}  // namespace

ScatterTails::ScatterTails(const config::Scanner& scanner, const gpu::PairRule& rule,
                           const LineFactors& lines, OfPair expected, OfPair randoms, net::WorkerPool& pool,
                           std::size_t max_pairs)
    : lines_(lines),
      expected_(std::move(expected)),
      randoms_(std::move(randoms)),
      radius_mm_(scanner.dimensions.ring_radius_mm),
      half_length_mm_(scanner.dimensions.crystal_pitch_z_mm / 2),
      margin_mm_(4 * std::max(scanner.dimensions.crystal_pitch_y_mm, scanner.dimensions.crystal_pitch_z_mm)),
      bins_(bins) {
    for (const config::CrystalPlace& place : lines.geometry().places)
        half_length_mm_ = std::max(half_length_mm_, std::abs(place.front_centre_mm[2]));
    sample(scanner, rule, pool, max_pairs);
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

/// Adds up scatter and randoms, and finds the bins with lines through the object.
void ScatterTails::sample(const config::Scanner& scanner, const gpu::PairRule& rule, net::WorkerPool& pool,
                          std::size_t max_pairs) {
    const std::uint64_t crystals = scanner.geometry.crystal_count();
    const std::uint64_t pairs = crystals * crystals;
    const bool all = pairs <= 2 * std::uint64_t{max_pairs};
    const std::uint64_t count = all ? pairs : 2 * std::uint64_t{max_pairs};
    // Each pair occurs in both orders.
    const double stands_for = static_cast<double>(pairs) / static_cast<double>(count) / 2;
    std::vector<std::vector<Bin>> parts(slices, std::vector<Bin>(bins));
    image::for_each_on(pool, slices, [&](std::size_t slice) {
        for (std::uint64_t i = count * slice / slices; i < count * (slice + 1) / slices; ++i) {
            std::uint64_t a = i / crystals;
            std::uint64_t b = i % crystals;
            if (!all) {
                // Roberts' additive sequence for two dimensions, in 64 bits: even over all pairs.
                a = static_cast<std::uint64_t>((i * 0xC13FA9A902A6328FU >> 32U) * crystals >> 32U);
                b = static_cast<std::uint64_t>((i * 0x91E10DA5C79E7B1DU >> 32U) * crystals >> 32U);
            }
            const auto crystal_a = static_cast<std::uint32_t>(a);
            const auto crystal_b = static_cast<std::uint32_t>(b);
            if (a == b || !rule.good(crystal_a, crystal_b)) continue;
            Bin& bin = parts[slice][bin_of(line(crystal_a, crystal_b))];
            if (!bin.object) {
                const config::LineEnds ends = lines_.ends(crystal_a, crystal_b);
                bin.object = lines_.object().integral(ends.a, ends.b) > thinnest_object;
            }
            bin.expected += stands_for * expected_(crystal_a, crystal_b);
            bin.randoms += stands_for * randoms_(crystal_a, crystal_b);
        }
    });
    for (const auto& part : parts) {
        for (std::size_t i = 0; i < bins; ++i) {
            bins_[i].expected += part[i].expected;
            bins_[i].randoms += part[i].randoms;
            bins_[i].object = bins_[i].object || part[i].object;
        }
    }
}

void ScatterTails::add(std::uint32_t a, std::uint32_t b, double prompts) {
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

ScatterTails::TailCounts ScatterTails::counts(double share) const {
    TailCounts out;
    double prompts = 0;
    for (const std::size_t i : tails()) {
        prompts += bins_[i].prompts;
        out.trues += bins_[i].prompts / share - bins_[i].randoms;
        out.expected += bins_[i].expected;
    }
    // At least that of one prompt: no prompts are no proof.
    out.noise = std::sqrt(std::max(prompts, 1.0)) / share;
    return out;
}

double ScatterTails::scale(double share) const {
    const TailCounts tail = counts(share);
    if (!(tail.expected > 0)) return 1;
    const double noise = tail.noise / tail.expected;
    const double of_tails = 1 / (noise * noise + shape_sigma * shape_sigma);
    constexpr double of_simulation = 1 / (simulation_sigma * simulation_sigma);
    const double mean = (tail.trues / tail.expected * of_tails + of_simulation) / (of_tails + of_simulation);
    return std::max(mean, 0.1);
}

double ScatterTails::total() const {
    double sum = 0;
    for (const Bin& bin : bins_)
        sum += bin.expected;
    return sum;
}

}  // namespace petacq::corrections
