#include "tools/petlm/reconstruction/em/scatter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "tools/geometry/bore.hpp"
#include "tools/petlm/reconstruction/em/continued_activity.hpp"
#include "tools/petlm/reconstruction/em/mlem.hpp"
#include "tools/petlm/reconstruction/em/sensitivity.hpp"
#include "tools/petsim/physics/attenuation.hpp"

namespace petacq::image {
namespace {

constexpr double voxel_mm = 3.5;     // or a little less
constexpr double most_across = 100;  // voxels; in a wide bore they are larger
constexpr std::uint32_t iterations = 2;
constexpr std::size_t subsets = 8;
constexpr std::size_t max_lines = 400'000;
constexpr std::size_t annihilations_to_choose = 400'000;
// Noise of the scatter makes an image brighter: of an object as wide as a body by about 0.03 times the
// variance.
struct Round {
    std::size_t annihilations;  ///< at least
    double variance;
};
constexpr std::array<Round, 2> rounds = {{{400'000, 0.1}, {1'600'000, 0.05}}};
constexpr std::size_t most_annihilations = 64'000'000;
constexpr std::uint64_t prompts_of_variance = 20'000;
constexpr double least_of_voxel = least_told / 5;  // of the sensitivity of the best voxel; others stay 0
using config::Vector3;

/// The whole bore, and the length of the scanner.
Grid bore(const config::Scanner& scanner) {
    const geometry::Bore room = geometry::bore_of(scanner);
    const double length = 2 * room.half_length_mm;
    const double width = 2 * room.furthest_mm;
    Grid grid;
    grid.voxel_mm = width / std::min(std::ceil(width / voxel_mm), most_across);
    const auto voxels = [&](double mm) {
        return static_cast<std::uint32_t>(std::lround(mm / grid.voxel_mm));
    };
    grid.n = {voxels(width), voxels(width), std::max(1U, voxels(length))};
    return grid;
}

/// Voxels that no part of the object is in hold no activity: without this, scattered pairs would be taken for
/// some.
void clear_air(const Grid& grid, const corrections::AttenuatingObject& object,
               std::vector<float>& sensitive) {
    constexpr int parts = 5;  // of a voxel along each axis, from face to face
    const auto holds_some = [&](std::size_t voxel) {
        const std::array<std::size_t, 3> cell = {voxel % grid.n[0], voxel / grid.n[0] % grid.n[1],
                                                 voxel / grid.n[0] / grid.n[1]};
        for (int part = 0; part < parts * parts * parts; ++part) {
            const std::array<int, 3> in = {part % parts, part / parts % parts, part / parts / parts};
            Vector3 at{};
            for (std::size_t axis = 0; axis < 3; ++axis)
                at[axis] = grid.centre(axis, cell[axis]) + grid.voxel_mm * (in[axis] / (parts - 1.0) - 0.5);
            if (object.per_cm(at) > 0) return true;
        }
        return false;
    };
    for (std::size_t i = 0; i < sensitive.size(); ++i)
        if (sensitive[i] > 0 && !holds_some(i)) sensitive[i] = 0;
}

/// Those of prompts that are evenly spread over all.
std::vector<Pair> some_pairs(const PairCounts& of_run) {
    std::vector<Pair> out;
    const std::uint64_t one_in = of_run.prompts() / prompts_of_variance + 1;
    std::uint64_t next = 0;
    std::uint64_t prompts = 0;
    for (std::size_t i = 0; i < of_run.pairs().size(); ++i)
        for (prompts += of_run.counts()[i]; next < prompts; next += one_in)
            out.push_back(of_run.pairs()[i]);
    return out;
}

}  // namespace

Scatter::Scatter(ScatterData data, net::WorkerPool& pool) : data_(std::move(data)) {
    corrections::ScatterTails tails(data_.scanner, data_.rule, data_.lines, data_.found, data_.randoms, pool);
    for (std::size_t i = 0; i < data_.pairs.pairs().size(); ++i) {
        const Pair pair = data_.pairs.pairs()[i];
        tails.add(pair.a, pair.b, data_.pairs.counts()[i]);
    }
    const double trues = std::max(tails.trues(data_.pairs.share()), 0.0);
    corrections::Detection detection;
    detection.angles = data_.angles;
    detection.window = data_.window;
    detection.found = [this](std::uint32_t a, std::uint32_t b) {
        return data_.rule.good(data_.lines.crystal(a), data_.lines.crystal(b)) ? found(a, b) : 0;
    };
    detection.multiples = data_.multiples;
    detection.bins = corrections::ScatterTails::bins;
    detection.bin_of = [&](std::uint32_t a, std::uint32_t b) { return tails.bin_of(a, b); };
    detection.crystals.deep = data_.lines.depth().typical_mm() > 0;
    const std::vector<float> sensitive = sensitivity(pool);
    const std::vector<Pair> some = some_pairs(data_.pairs);
    for (const Round& round : rounds) {
        const corrections::Activity of_run = activity(sensitive, pool);
        const corrections::AttenuatingObject& object = data_.lines.object();
        if (!simulation_)
            detection.crystals.scatters = corrections::scatters_in_crystals(
                data_.scanner, object, of_run, detection, annihilations_to_choose, pool);
        simulation_ = std::make_unique<corrections::ScatterSimulation>(
            data_.scanner, object, of_run, detection, round.annihilations, pool,
            corrections::ScatterPrecision{some, round.variance, most_annihilations});
        const double simulated = simulation_->trues() + simulation_->scattered();
        per_simulated_ = simulated > 0 ? trues / simulated : 0;
    }
    crystals_ = detection.crystals;
    std::vector<double> unscattered = simulation_->unscattered();
    for (double& pairs : unscattered)
        pairs *= per_simulated_;
    scale_ = tails.scale([this](std::uint32_t a, std::uint32_t b) { return unscaled(a, b); }, pool,
                         data_.pairs.share(), unscattered);
    total_ = scale_.factor * tails.total();
}

double Scatter::found(std::uint32_t a, std::uint32_t b) const {
    const double chance = data_.found(a, b);
    if (!(chance > 0) || !data_.lines.normalised()) return chance;
    return chance * data_.lines.efficiencies(a, b) / data_.lines.normalisation(a, b);
}

double Scatter::found_of_line(Pair p) const {
    return share(p.a) * data_.found(p.a, p.b) * data_.lines.attenuation(p.a, p.b);
}

std::vector<float> Scatter::sensitivity(net::WorkerPool& pool) const {
    const Grid grid = bore(data_.scanner);
    std::vector<float> sensitive = sensitivity_of(
        data_.lines, data_.scanner, data_.rule, grid, [this](Pair p) { return found_of_line(p); },
        [this](const Entrance& a, const Entrance& b) {
            const double chance = data_.found(a.crystal, b.crystal);
            return chance > 0 ? chance * data_.lines.attenuation(a.at, b.at) : 0;
        },
        pool);
    clear_air(grid, data_.lines.object(), sensitive);
    return sensitive;
}

corrections::Activity Scatter::activity(const std::vector<float>& sensitive, net::WorkerPool& pool) const {
    const Grid grid = bore(data_.scanner);
    LineModel model;
    model.factor = [this](Pair p) { return found_of_line(p); };
    model.background = [this](Pair p) {
        return data_.randoms(p.a, p.b) + (simulation_ ? unscaled(p.a, p.b) : 0);
    };
    // A part of the lines is enough.
    const std::size_t one_in = data_.pairs.pairs().size() / max_lines + 1;
    std::vector<Pair> pairs;
    std::vector<std::uint32_t> counts;
    for (std::size_t i = 0; i < data_.pairs.pairs().size(); i += one_in) {
        pairs.push_back(data_.pairs.pairs()[i]);
        counts.push_back(data_.pairs.counts()[i]);
    }
    const Lines lines = make_lines(data_.lines, grid, {pairs, counts}, model, subsets);
    EmOptions options;
    options.iterations = iterations;
    options.share = data_.pairs.share() / static_cast<double>(one_in);
    options.min_sensitivity = least_of_voxel;
    const auto projector = make_host_projector(grid, data_.lines.geometry(), pool);
    SeenActivity seen{grid, {}, sensitive, std::accumulate(counts.begin(), counts.end(), 0.0)};
    seen.image = reconstruct(*projector, grid, lines, seen.sensitive, pool, options).image;
    return continued_activity(seen, data_.lines.object(), geometry::bore_of(data_.scanner).furthest_mm);
}

double Scatter::share_of_prompts() const {
    return total_ * data_.pairs.share() / static_cast<double>(data_.pairs.prompts());
}

std::string Scatter::sentence() const {
    std::string text = fmt::format(
        "Scatter: {:.0f} expected, {:.3g} of the prompts, by a simulation of photons in the object for "
        "{:.4g} "
        "to {:.4g} keV and a resolution of {:.3g} %, and in crystals {}",
        total_, share_of_prompts(), data_.window.lower, data_.window.upper, 100 * data_.window.resolution,
        !crystals_.deep      ? "that absorb them at the front"
        : crystals_.scatters ? "between which they scatter"
                             : "that absorb them where they interact");
    if (!std::isfinite(scale_.error)) return text + "; no lines miss the object, which could confirm it.";
    text += fmt::format("; the lines that miss the object hold {:.3g} +- {:.2g} times as much as simulated",
                        scale_.ratio, scale_.error);
    if (scale_.factor != 1) return text + fmt::format(": multiplied by {:.3g}.", scale_.factor);
    constexpr double confidence = corrections::ScatterTails::confidence;
    const double error = std::hypot(scale_.error, corrections::ScatterTails::simulation_error);
    return text + (std::abs(scale_.ratio - 1) <= confidence * error ? ", which confirms it."
                                                                    : ", too uncertain to change it.");
}

}  // namespace petacq::image
