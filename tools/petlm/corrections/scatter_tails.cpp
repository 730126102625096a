#include "tools/petlm/corrections/scatter_tails.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "tools/petlm/projector/for_each_on.hpp"

namespace petacq::corrections {
namespace {

constexpr std::size_t slices = 16;        // of the sample, whatever the number of threads
constexpr double thinnest_object = 1e-3;  // integral of the attenuation
constexpr double prior_sigma = 3;         // of each coefficient but the first
constexpr double least_significance = 5;  // standard deviations
constexpr double most_scatter = 0.8;      // of the trues of a run

std::size_t cell(double share, std::size_t count) {
    return std::min(static_cast<std::size_t>(std::max(share, 0.0) * static_cast<double>(count)), count - 1);
}

}  // namespace

ScatterTails::ScatterTails(const config::Scanner& scanner, const gpu::PairRule& rule,
                           const LineFactors& lines, OfPair weight, OfPair randoms, gpu::WorkerPool& pool,
                           std::size_t most_pairs)
    : lines_(lines),
      weight_(std::move(weight)),
      randoms_(std::move(randoms)),
      radius_mm_(scanner.dimensions.ring_radius_mm),
      half_length_mm_(scanner.dimensions.crystal_pitch_z_mm / 2),
      margin_mm_(4 * std::max(scanner.dimensions.crystal_pitch_y_mm, scanner.dimensions.crystal_pitch_z_mm)),
      bins_(bins) {
    for (const Vector3& end : lines.ends())
        half_length_mm_ = std::max(half_length_mm_, std::abs(end[2]));
    sample(scanner, rule, pool, most_pairs);
}

ScatterTails::Line ScatterTails::line(std::uint32_t a, std::uint32_t b) const {
    const Vector3& from = lines_.ends()[a];
    const Vector3& to = lines_.ends()[b];
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

ScatterTails::Line ScatterTails::middle_of(std::size_t bin) {
    const auto middle = [](std::size_t i, std::size_t count) {
        return (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    };
    const double angle = std::numbers::pi * middle(bin % angles, angles);
    return {std::cos(angle), std::sin(angle), 2 * middle(bin / angles % distances, distances) - 1,
            2 * middle(bin / angles / distances % places, places) - 1,
            middle(bin / angles / distances / places, groups)};
}

ScatterTails::Functions ScatterTails::functions_of(const Line& l) {
    const double square = l.across * l.across;
    const double cos2 = l.cosine * l.cosine - l.sine * l.sine;
    const double sin2 = 2 * l.cosine * l.sine;
    return {
        1,    square, l.across * l.cosine, l.across * l.sine, l.along,           l.along * l.along,
        cos2, sin2,   square * cos2,       square * sin2,     l.apart * l.apart, square * l.along * l.along};
}

double ScatterTails::density(const Line& line) const {
    const Functions f = functions_of(line);
    const double root = std::max(std::inner_product(c_.begin(), c_.end(), f.begin(), 0.0), 0.0);
    return root * root;
}

/// Adds up weights and randoms, and finds the bins with lines through the object.
void ScatterTails::sample(const config::Scanner& scanner, const gpu::PairRule& rule, gpu::WorkerPool& pool,
                          std::size_t most_pairs) {
    const std::uint64_t crystals = scanner.geometry.crystal_count();
    const std::uint64_t pairs = crystals * crystals;
    const bool all = pairs <= 2 * std::uint64_t{most_pairs};
    const std::uint64_t count = all ? pairs : 2 * std::uint64_t{most_pairs};
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
                bin.object = lines_.object().integral(lines_.ends()[crystal_a], lines_.ends()[crystal_b]) >
                             thinnest_object;
            }
            bin.weight += stands_for * weight_(crystal_a, crystal_b);
            bin.randoms += stands_for * randoms_(crystal_a, crystal_b);
        }
    });
    for (const auto& part : parts) {
        for (std::size_t i = 0; i < bins; ++i) {
            bins_[i].weight += part[i].weight;
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
        if (bins_[bin].weight > 0 && !object_near(bin)) out.push_back(bin);
    return out;
}

bool ScatterTails::fit(double share) {
    double trues = 0;
    for (Bin& bin : bins_) {
        bin.prompts /= share;
        trues += bin.prompts - bin.randoms;
    }
    const std::vector<std::size_t> tail = tails();
    double weight = 0;
    for (const std::size_t i : tail) {
        weight += bins_[i].weight;
        tail_prompts_ += bins_[i].prompts;
        tail_trues_ += bins_[i].prompts - bins_[i].randoms;
    }
    if (tail.empty()) {
        why_ = fmt::format("no line misses the object by {:.3g} mm or more", margin_mm_);
        return false;
    }
    // A share of the pairs has the noise of fewer prompts.
    const double noise = std::sqrt(tail_prompts_ / share);
    if (!(tail_trues_ > least_significance * std::max(noise, 1.0))) {
        why_ = fmt::format(
            "the lines that miss the object hold {:.0f} pairs besides randoms, with a noise of {:.0f}",
            tail_trues_, noise);
        return false;
    }

    using Matrix = Eigen::Matrix<double, functions, functions>;
    using Vector = Eigen::Matrix<double, functions, 1>;
    // The scale of the square root of the density.
    const double typical = std::sqrt(tail_trues_ / weight);
    const double certainty = 1 / (prior_sigma * prior_sigma * typical * typical);
    c_ = {};
    c_[0] = typical;
    for (int step = 0; step < 100 && !fitted_; ++step) {
        Matrix normal = Matrix::Zero();
        Vector slope = Vector::Zero();
        for (int k = 1; k < static_cast<int>(functions); ++k) {
            normal(k, k) = certainty;
            slope(k) = -c_[static_cast<std::size_t>(k)] * certainty;
        }
        for (const std::size_t i : tail) {
            const Line middle = middle_of(i);
            const Functions f = functions_of(middle);
            const double scatter = bins_[i].weight * density(middle);
            const double expected = scatter + std::max(bins_[i].randoms, 0.0);
            if (!(scatter > 0)) continue;
            const Eigen::Map<const Vector> here(f.data());
            // Of the expected counts with respect to the square root.
            const double derivative = 2 * std::sqrt(scatter * bins_[i].weight);
            normal += share * derivative * derivative / expected * here * here.transpose();
            slope += share * derivative * (bins_[i].prompts / expected - 1) * here;
        }
        Vector change = normal.ldlt().solve(slope);
        if (!change.allFinite()) break;
        // Far from the solution a whole step may lead away from it.
        const double largest = change.cwiseAbs().maxCoeff() / typical;
        if (largest > 1) change /= largest;
        for (std::size_t k = 0; k < functions; ++k)
            c_[k] += change(static_cast<int>(k));
        fitted_ = largest < 1e-4;
    }
    for (std::size_t i = 0; i < bins; ++i)
        total_ += bins_[i].weight * density(middle_of(i));
    if (fitted_ && total_ <= most_scatter * trues) return true;
    why_ = fitted_ ? fmt::format("the fit to the tails finds {:.0f} scattered of {:.0f} true pairs", total_,
                                 trues)
                   : "the fit to the tails does not converge";
    fitted_ = false;
    total_ = 0;
    return false;
}

double ScatterTails::counts(std::uint32_t a, std::uint32_t b) const {
    return fitted_ ? weight_(a, b) * density(line(a, b)) : 0;
}

}  // namespace petacq::corrections
