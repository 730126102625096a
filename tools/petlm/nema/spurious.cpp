#include "tools/petlm/nema/spurious.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include "config/nuclides/nuclides.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/nema/crystal_pairs.hpp"
#include "tools/petlm/reconstruction/gammas/crystal_resolution.hpp"
#include "tools/petlm/reconstruction/gammas/efficiency.hpp"
#include "tools/petlm/records/covered_seconds.hpp"

namespace petacq::nema {
namespace {

/// Voxels of 1 mm from 0 to `furthest_mm` on both sides.
std::uint32_t voxels_to(double furthest_mm) {
    return 2 * static_cast<std::uint32_t>(std::lround(std::abs(furthest_mm))) + 1;
}

}  // namespace

corrections::Activity point_source_at(double z_mm) {
    corrections::Activity out{{{1, 1, voxels_to(z_mm)}, 1}, {}};
    out.of_voxel.resize(out.grid.voxels());
    (z_mm > 0 ? out.of_voxel.back() : out.of_voxel.front()) = 1;
    return out;
}

corrections::Activity line_source(double from_axis_mm, double length_mm) {
    corrections::Activity out{{{voxels_to(from_axis_mm), 1, voxels_to(length_mm / 2)}, 1}, {}};
    out.of_voxel.resize(out.grid.voxels());
    for (std::size_t i = out.grid.n[0] - 1; i < out.of_voxel.size(); i += out.grid.n[0])
        out.of_voxel[i] = 1;
    return out;
}

NemaSpurious::NemaSpurious(const NemaRun& run, const SliceBins& bins, const config::DepthOfInteraction& depth)
    : run_(run), bins_(bins), crystals_(corrections::crystal_model(run.source().run(), depth)) {
    const std::string& nuclide = run.activity().nuclide;
    if (config::prompt_gamma_note(nuclide).empty() || run.scanner().rotation) return;
    nuclide_ = config::find_nuclide(nuclide);
    corrections::PhotopeakWidth photopeak;
    run.source().for_each_block(
        run.scanner().geometry.crystal_count(),
        [&](const daemon::ListModeReader& reader) {
            for (const gpu::Coincidence& pair : reader.coincidences()) {
                if (pair.kind != gpu::Kind::prompt) continue;
                photopeak.add(pair.energy_a);
                photopeak.add(pair.energy_b);
            }
        },
        "energies");
    window_ = photopeak.window(run.coverage().rules.energy);
    window_.resolution = gammas::resolution_of_one_crystal(run.scanner(), crystals_, window_);
}

std::string NemaSpurious::sentence() const {
    if (!any()) return config::prompt_gamma_note(run_.activity().nuclide);
    return run_.name() + ": pairs with the prompt gammas of " + nuclide_->name +
           ", by a simulation of decays of the source, are subtracted from the counts.";
}

NemaSpurious::ExpectedSpurious NemaSpurious::expect(const petlm::Interval& interval,
                                                    const corrections::Activity& source,
                                                    const corrections::AttenuatingObject& object,
                                                    double pairs) const {
    ExpectedSpurious out;
    if (!any() || !(pairs > 0)) return out;
    const daemon::Coverage part = run_.part(interval);
    const config::Scanner& scanner = run_.scanner();
    gammas::GammaModel model{scanner, object, *nuclide_, crystals_, window_, window_, {}, {}, {}};
    model.multiples = part.rules.coincidence.value_or(config::Coincidence{}).multiples_policy;
    const gpu::PairRule rule = petlm::pair_rule(run_.source(), scanner.geometry);
    const corrections::OfPair found = [&rule](std::uint32_t a, std::uint32_t b) {
        return rule.good(a, b) ? 1.0 : 0.0;
    };
    net::WorkerPool pool(std::max(1U, std::thread::hardware_concurrency()));
    const auto singles = petlm::singles_in(run_.source().target(), part);
    if (singles && *singles > 0)
        out.efficiency = gammas::efficiency_by_singles(model, source, pairs / *singles, found, pool);
    gammas::SpuriousPairs spurious(model, source, out.efficiency, found, pairs, pool);
    spurious.scale_to(pairs / (1 + spurious.per_pair()));
    out.all = spurious.total();
    out.of_bin.resize(bins_.bins());
    double sum = 0;
    for_each_crystal_pair(scanner.geometry.crystal_count(), [&](std::uint32_t a, std::uint32_t b) {
        if (!rule.good(a, b)) return;
        const double counts = spurious.counts(a, b);
        sum += counts;
        const std::size_t bin = bins_.of(a, b);
        if (bin != SliceBins::outside) out.of_bin[bin] += counts;
    });
    for (double& counts : out.of_bin)
        counts *= sum > 0 ? out.all / sum : 0;
    return out;
}

}  // namespace petacq::nema
