#include "tools/petlm/reconstruction/tracers/tracers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "config/base/answer.hpp"
#include "config/nuclides/nuclides.hpp"
#include "daemon/system/version.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/reconstruction/frames/regions.hpp"
#include "tools/petlm/reconstruction/image/pictures.hpp"
#include "tools/petlm/reconstruction/image/setup.hpp"
#include "tools/petlm/reconstruction/image/statement.hpp"
#include "tools/petlm/reconstruction/image/volume.hpp"
#include "tools/petlm/reconstruction/tracers/gamma_calibration.hpp"
#include "tools/petlm/reconstruction/tracers/region_means.hpp"
#include "tools/petlm/reconstruction/tracers/run_separation.hpp"
#include "tools/petlm/reconstruction/tracers/tracer_run.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/report/cairo.hpp"

namespace petacq::petlm {
namespace {

using gpu::Kind;
using gpu::ThirdPhoton;

constexpr double blurred =
    1.08;  // what is found of the energy of a gamma in two places, at most, divided by it

const config::Nuclide& nuclide_with_gammas(const std::string& name) {
    const config::Nuclide* const nuclide = config::find_nuclide(name);
    const auto prompt = [](const config::Gamma& gamma) { return gamma.delay_half_life_s == 0; };
    if (nuclide == nullptr || std::none_of(nuclide->gammas.begin(), nuclide->gammas.end(), prompt)) {
        throw UsageError("--gamma-nuclide: expected a nuclide of the table with prompt gammas, found '" +
                         name + "'");
    }
    return *nuclide;
}

void check_options(const TracerOptions& o) {
    nuclide_with_gammas(o.gamma_nuclide);
    if (!o.nuclide) throw UsageError("--nuclide: expected that of the tracer without prompt gammas");
    if (*o.nuclide == o.gamma_nuclide)
        throw UsageError("--gamma-nuclide: expected another than --nuclide, found '" + o.gamma_nuclide + "'");
    // Triples of it would be taken for those of the other.
    if (const std::string gammas = config::prompt_gamma_note(*o.nuclide); !gammas.empty())
        throw UsageError("--nuclide: expected a tracer without prompt gammas; " + gammas);
    if (o.replicates != 0 && o.regions.empty())
        throw UsageError("--replicates: expected --region, whose errors they give");
    if (o.gamma_run.has_value() == o.gamma_efficiency.has_value())
        throw UsageError("--gamma-run: expected either it or --gamma-efficiency");
    std::error_code absent;
    if (o.gamma_run && std::filesystem::equivalent(*o.gamma_run, o.target, absent)) {
        throw UsageError("--gamma-run: expected a run of " + o.gamma_nuclide +
                         " alone, found that of both tracers, " + o.gamma_run->string());
    }
    if (o.gamma_efficiency && !(*o.gamma_efficiency > 0 && *o.gamma_efficiency <= 1)) {
        throw UsageError(fmt::format("--gamma-efficiency: expected a number above 0, at most 1, found {}",
                                     *o.gamma_efficiency));
    }
}

/// Those of an image for one nuclide. Without a normalisation no activity is stated.
ImageOptions options_for(ImageOptions options, const std::optional<std::string>& nuclide) {
    const bool other = nuclide != options.nuclide;
    options.nuclide = options.lines.normalisation ? nuclide : std::nullopt;
    if (other || !options.nuclide) options.half_life_s = options.branching_ratio = std::nullopt;
    return options;
}

nlohmann::json thirds_json(const tracers::TripleCounts& counts) {
    const ThirdPhotons& thirds = counts.thirds;
    return {{"pairs", thirds.pairs(Kind::prompt)},
            {"coincident", thirds.triples(Kind::prompt, ThirdPhoton::coincident)},
            {"delayed", thirds.triples(Kind::prompt, ThirdPhoton::delayed)},
            {"true_per_pair", thirds.true_share(Kind::prompt)},
            {"error_of_true_per_pair", thirds.error_of_true_share(Kind::prompt)},
            {"lower_keV", counts.rules.lower_keV},
            {"upper_keV", counts.rules.upper_keV}};
}

nlohmann::json optional_json(const std::optional<double>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json();
}

std::string text_of(const tracers::MeanWithError& value) {
    return value.error ? fmt::format("{:.4g} +- {:.2g}", value.mean, *value.error)
                       : fmt::format("{:.4g}", value.mean);
}

/// A tracer, and what its values are.
struct Tracer {
    std::string nuclide;
    const std::vector<float>& image;
    const image::Report& report;
};

void write(const std::filesystem::path& directory, const image::Grid& grid, const Tracer& tracer,
           const std::optional<double>& black) {
    image::write_volume(directory / (tracer.nuclide + ".nii"), grid, tracer.image,
                        tracer.nuclide + ", " + tracer.report.short_warning());
    if constexpr (report::with_cairo) {
        const image::PictureTexts texts = image::picture_texts(tracer.report);
        image::write_projections(directory / (tracer.nuclide + "-projections.png"), grid, tracer.image, texts,
                                 black);
        image::write_slices(directory / (tracer.nuclide + "-slices.png"), grid, tracer.image, texts, black);
    }
}

}  // namespace

int tracers(const TracerOptions& options) {
    check_options(options);
    const config::Nuclide& nuclide = nuclide_with_gammas(options.gamma_nuclide);
    const ImageOptions for_pairs = options_for(options, options.nuclide);
    const ImageOptions for_triples = options_for(options, options.gamma_nuclide);
    tracers::TracerRun run(for_pairs);
    const std::vector<frames::Region> regions = frames::regions_of(options.regions, run.setup().how.grid);
    Outputs outputs(options.force);
    outputs.make_directory(options.output);
    for (const std::string& name : {*options.nuclide, options.gamma_nuclide}) {
        for (const char* end : {".nii", "-projections.png", "-slices.png"})
            outputs.claim(options.output / (name + end));
    }
    outputs.claim(options.output / "tracers.json");

    tracers::GammaCalibration calibration;
    if (options.gamma_run) {
        ImageOptions of_run = options_for(options, std::nullopt);
        of_run.target = *options.gamma_run;
        if (!options.gamma_run_attenuation.empty()) of_run.lines.attenuation = options.gamma_run_attenuation;
        calibration = tracers::calibrate_gammas(of_run, nuclide);
    } else {
        calibration.efficiency = *options.gamma_efficiency;
    }
    image::Setup setup_of_triples(for_triples);
    const tracers::RunSeparation separation(run, setup_of_triples, nuclide, calibration.efficiency);
    const image::MadeImage& all = separation.all();
    const image::MadeImage& coincident = separation.coincident();
    const gammas::GammaChance& chance = separation.chance();
    const tracers::TripleCounts& counts = run.counts();
    const ThirdPhotons& thirds = counts.thirds;
    const image::Grid& grid = run.setup().how.grid;
    const std::vector<tracers::RegionMeans> means =
        tracers::means_of(regions, separation, options.replicates, calibration.error);

    const Tracer first{*options.nuclide, separation.images().without_gamma, all.report};
    const Tracer second{options.gamma_nuclide, separation.images().with_gamma, coincident.report};
    nlohmann::json of_regions = nlohmann::json::object();
    nlohmann::json errors_of_regions = nlohmann::json::object();
    std::vector<std::string> region_lines;
    for (std::size_t i = 0; i < regions.size(); ++i) {
        const std::string& name = regions[i].name();
        const tracers::MeanWithError& of_first = means[i].without_gamma;
        const tracers::MeanWithError& of_second = means[i].with_gamma;
        of_regions[name] = {{first.nuclide, of_first.mean}, {second.nuclide, of_second.mean}};
        errors_of_regions[name] = {{first.nuclide, optional_json(of_first.error)},
                                   {second.nuclide, optional_json(of_second.error)}};
        region_lines.push_back(fmt::format("Region {}: {} {}, {} {} {}.", name, first.nuclide,
                                           text_of(of_first), second.nuclide, text_of(of_second),
                                           first.report.quantity.unit));
    }
    nlohmann::json list = nlohmann::json::array();
    for (const Tracer& tracer : {first, second}) {
        write(options.output, grid, tracer, options.max);
        list.push_back({{"nuclide", tracer.nuclide},
                        {"file", tracer.nuclide + ".nii"},
                        {"unit", tracer.report.quantity.unit},
                        {"corrections", image::corrections_json(tracer.report)}});
    }
    const auto optional_path = [](const std::optional<std::filesystem::path>& path) {
        return path ? nlohmann::json(path->string()) : nlohmann::json();
    };
    const nlohmann::json document = {
        {"program", "petlm tracers"},
        {"version", daemon::version},
        {"input", options.target.string()},
        {"voxels", grid.n},
        {"voxel_mm", grid.voxel_mm},
        {"tracers", list},
        {"regions", of_regions},
        {"standard_errors_of_regions", errors_of_regions},
        {"triples", thirds_json(counts)},
        {"gammas",
         {{"run", optional_path(options.gamma_run)},
          {"efficiency", calibration.efficiency},
          {"relative_error", options.gamma_run ? nlohmann::json(calibration.error) : nlohmann::json()},
          {"seen_per_pair", chance.mean_seen()},
          {"pairs_kept", chance.mean_kept()},
          {"spurious_pairs", separation.spurious().total()},
          {"spurious_per_pair", separation.spurious().per_pair()}}},
        {"coverage", daemon::to_json(run.setup().source.coverage())}};
    const std::string text = document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
    write_text(options.output / "tracers.json", text);
    outputs.commit();

    if (!report::with_cairo) config::print_warning("petlm", report::without_cairo);
    if (options.as_json) {
        std::cout << text;
        return ok;
    }
    for (const std::string& line : image::doubts_about(run.setup().source))
        std::cout << line << '\n';
    for (const std::string& line : all.sentences)
        std::cout << "All pairs: " << line << '\n';
    for (const std::string& line : coincident.sentences)
        std::cout << "Pairs with a gamma: " << line << '\n';
    std::cout << fmt::format(
        "Gammas of {:.4g} to {:.4g} keV: beside {} of {} prompts, beside {} of them by chance; {:.0f} +- "
        "{:.0f} are true.\n",
        counts.rules.lower_keV, counts.rules.upper_keV, thirds.triples(Kind::prompt, ThirdPhoton::coincident),
        thirds.pairs(Kind::prompt), thirds.triples(Kind::prompt, ThirdPhoton::delayed),
        static_cast<double>(thirds.pairs(Kind::prompt)) * thirds.true_share(Kind::prompt),
        static_cast<double>(thirds.pairs(Kind::prompt)) * thirds.error_of_true_share(Kind::prompt));
    const gammas::GammaModel windows = run.gamma_model(nuclide);
    for (const config::Gamma& gamma : nuclide.gammas) {
        const bool frequent = gamma.delay_half_life_s == 0 && nuclide.chance(gamma, true) > 0.01;
        if (!frequent || blurred * gamma.energy_keV < windows.pairs.lower + windows.gammas.lower) continue;
        std::cout << fmt::format(
            "A gamma of {:.0f} keV may leave {:.4g} keV in one place, as a photon of a pair, and {:.4g} keV "
            "in another: such pairs disturb the separation. A window of the gammas from {:.0f} keV on avoids "
            "it.\n",
            gamma.energy_keV, windows.pairs.lower, windows.gammas.lower,
            blurred * gamma.energy_keV - windows.pairs.lower);
    }
    std::cout << fmt::format(
        "Each pair of {} that is found has {:.4g} gammas that are seen, with an efficiency of {:.4g}{}.\n",
        nuclide.name, chance.mean_seen(), calibration.efficiency,
        options.gamma_run ? fmt::format(", +- {:.2g} % by counting, from {}", 100 * calibration.error,
                                        options.gamma_run->string())
                          : " (--gamma-efficiency)");
    if (chance.mean_kept() < 1) {
        std::cout << fmt::format(
            "Values of {} are divided by {:.4g}, as its gammas make multiples of the rest of its pairs.\n",
            nuclide.name, chance.mean_kept());
    }
    for (const std::string& line : region_lines)
        std::cout << line << '\n';
    std::cout << "See " << (options.output / "tracers.json").string() << '\n';
    return ok;
}

}  // namespace petacq::petlm
