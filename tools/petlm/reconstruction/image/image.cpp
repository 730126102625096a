#include "tools/petlm/reconstruction/image/image.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "config/base/seconds_since.hpp"
#include "daemon/system/progress_line.hpp"
#include "tools/nifti/nifti.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/reconstruction/corrections/fits.hpp"
#include "tools/petlm/reconstruction/image/corrections.hpp"
#include "tools/petlm/reconstruction/image/pictures.hpp"
#include "tools/petlm/reconstruction/image/positions.hpp"
#include "tools/petlm/reconstruction/image/quick_look.hpp"
#include "tools/petlm/reconstruction/image/sensitivity_cache.hpp"
#include "tools/petlm/reconstruction/image/statement.hpp"
#include "tools/petlm/reconstruction/image/tof_choice.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/report/cairo.hpp"

namespace petacq::petlm {
namespace {

constexpr double default_smoothing = 2;  // voxels, FWHM

using Clock = std::chrono::steady_clock;

void check_options(const ImageOptions& o) {
    const auto expect = [](bool good, const char* option, const char* what, double found) {
        if (!good) throw UsageError(fmt::format("{}: expected {}, found {}", option, what, found));
    };
    expect(!(o.voxel_mm && o.size), "--size", "it or --voxel-mm, not both", o.size.value_or(0));
    if (o.size) expect(*o.size >= 1 && *o.size <= 1024, "--size", "1 to 1024 voxels", *o.size);
    expect(o.iterations >= 1 && o.iterations <= 1000, "--iterations", "1 to 1000", o.iterations);
    expect(o.subsets >= 1 && o.subsets <= 1000, "--subsets", "1 to 1000", o.subsets);
    expect(o.threads <= 1024, "--threads", "up to 1024; 0: one per core", o.threads);
    if (o.smooth_mm) {
        expect(*o.smooth_mm >= 0 && *o.smooth_mm <= 100, "--smooth-mm", "0 to 100", *o.smooth_mm);
    }
    if (o.psf_mm) expect(*o.psf_mm > 0 && *o.psf_mm <= 100, "--psf-mm", "more than 0, up to 100", *o.psf_mm);
    if (o.max) expect(*o.max > 0 && *o.max <= 1e30, "--max", "more than 0", *o.max);
    if (o.max_memory_gb) {
        expect(*o.max_memory_gb > 0 && *o.max_memory_gb <= 1e6, "--max-memory-gb", "more than 0",
               *o.max_memory_gb);
    }
    corrections::check_scatter(o.scatter, o.lines);
    if (o.bed != "combine" && o.bed != "ignore")
        throw UsageError("--bed: expected combine or ignore, found '" + o.bed + "'");
    corrections::nuclide_of({}, o);
    if (o.nuclide && !o.lines.normalisation)
        throw UsageError("--nuclide: expected --normalisation, without which no activity is stated");
    if (o.backend != "auto" && o.backend != "cpu" && o.backend != "cuda") {
        throw UsageError("--backend: expected auto, cuda or cpu, found '" + o.backend + "'");
    }
}

/// Half of the available memory, but at most 4 GB: the daemon may be running on the same host.
std::uint64_t memory_by_default() {
    constexpr std::uint64_t most = 4'000'000'000;
    std::ifstream in("/proc/meminfo");
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with("MemAvailable:")) continue;
        std::uint64_t kib = 0;
        std::istringstream(line.substr(13)) >> kib;
        if (kib > 0) return std::min(most, kib * 1024 / 2);
    }
    return most;
}

/// Sentences about problems of the run, and about what the file does not tell.
std::vector<std::string> doubts_about(const ExportSource& source) {
    const auto& run = source.run();
    std::vector<std::string> doubts;
    if (run.is_object()) {
        // Printed as JSON, so that no control character of the file reaches a terminal.
        const auto text = [](const nlohmann::json& value) {
            return value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
        };
        const auto state = run.value("state", nlohmann::json());
        if (!state.is_null() && state != "complete") {
            doubts.push_back(fmt::format("The state of this run is {}, not complete: {}.", text(state),
                                         text(run.value("stop_reason", nlohmann::json()))));
        }
        // That of a part of a run, which petlm resort writes, does not say whether it closes.
        const auto ledger = run.value("ledger", nlohmann::json());
        if (ledger.is_object() && ledger.contains("closed") && ledger["closed"] != true)
            doubts.emplace_back("The ledger of this run is not closed.");
    }
    const std::vector<std::string>& unknown = source.coverage().unknown;
    if (!unknown.empty()) {
        doubts.push_back(
            fmt::format("The file does not tell: {}. Where this matters, values may be wrong; of "
                        "limits to pairs that are not known, none was assumed.",
                        fmt::join(unknown, ", ")));
    }
    return doubts;
}

/// Counts of the records, which are read once.
struct ImageCounts {
    image::PairCounts pairs;
    image::RandomsByModules delayeds;
    corrections::PhotopeakWidth photopeak;
    std::uint64_t prompts = 0;  ///< all, whether or not they are used
    double seconds = 0;

    ImageCounts(const config::Geometry& geometry, const gpu::PairRule& rule, std::size_t capacity,
                net::WorkerPool& pool, const image::TofBins& tof)
        : pairs(geometry.crystal_count(), capacity, pool, tof), delayeds(geometry, rule) {}

    /// Those with times in `within`; absent: all.
    void read(const ExportSource& source, const config::Scanner& scanner,
              const std::optional<daemon::Intervals>& within) {
        const auto start = Clock::now();
        std::vector<gpu::Coincidence> chosen;
        source.for_each_block(
            scanner.geometry.crystal_count(),
            [&](const daemon::ListModeReader& reader) {
                std::span<const gpu::Coincidence> records = reader.coincidences();
                if (within) {
                    chosen.clear();
                    std::copy_if(records.begin(), records.end(), std::back_inserter(chosen),
                                 [&](const gpu::Coincidence& c) { return within->contains(c.time); });
                    records = chosen;
                }
                pairs.add(records);
                for (const gpu::Coincidence& c : records) {
                    if (c.kind == gpu::Kind::delayed) {
                        delayeds.add(c.crystal_a, c.crystal_b);
                    } else {
                        ++prompts;
                        photopeak.add(c.energy_a);
                        photopeak.add(c.energy_b);
                    }
                }
            },
            "reading");
        pairs.finish();
        seconds = config::seconds_since(start);
    }
};

/// The image of a part, and what stands beside it.
struct MadePart {
    image::QuickLook look;
    image::Report report;
    std::vector<std::string> sentences;
    double scale = 1;  ///< by which the image was multiplied since EM
};

std::vector<std::string> sentences_about(const ImageCounts& counts, const image::Report& report,
                                         const image::QuickLook& look) {
    std::vector<std::string> lines;
    lines.push_back(fmt::format("{} prompts on {} pairs of crystals{}, {} delayeds.", counts.prompts,
                                counts.pairs.pairs().size(),
                                counts.pairs.measured().tof.used() ? " and bins of the time of flight" : "",
                                counts.delayeds.total()));
    if (counts.pairs.share() < 1) {
        lines.push_back(fmt::format(
            "Only 1 of {} pairs of crystals was used, with {} prompts: more did not fit into half "
            "of the allowed memory (--max-memory-gb).",
            std::llround(1 / counts.pairs.share()), counts.pairs.prompts()));
    }
    for (const std::string& sentence : report.sentences())
        lines.push_back(sentence);
    if (look.em.outside != 0) {
        lines.push_back(fmt::format("{} prompts lie on lines that miss the image{}.", look.em.outside,
                                    counts.pairs.measured().tof.used()
                                        ? ", or come from outside of it by their time of flight"
                                        : ""));
    }
    return lines;
}

std::vector<std::string> sentences_about(const ImageOptions& options, const image::QuickLookOptions& how,
                                         double depth_mm, const char* depth_from,
                                         const std::vector<MadePart>& parts, double read_s) {
    const image::Grid& grid = how.grid;
    const image::QuickLook& look = parts.front().look;
    std::vector<std::string> lines;
    lines.push_back(fmt::format(
        "{} x {} x {} voxels of {:.4g} mm; {} of {} subsets; smoothed by {:.3g} mm FWHM; photons interact "
        "{:.3g} mm behind the front face{}.",
        grid.n[0], grid.n[1], grid.n[2], grid.voxel_mm,
        options.iterations == 1 ? "1 iteration" : fmt::format("{} iterations", options.iterations),
        options.subsets, how.smooth_mm, depth_mm, depth_from));
    if (how.psf_mm > 0)
        lines.push_back(fmt::format("The model has a blur of {:.3g} mm FWHM (--psf-mm).", how.psf_mm));
    lines.push_back(fmt::format("Computed by {}. Sensitivity: {}.", look.backend, look.sensitivity_from));
    lines.push_back(fmt::format("Memory allowed: {:.3g} GB (--max-memory-gb), room for {} pairs of crystals.",
                                static_cast<double>(how.max_memory) / 1e9,
                                image::pair_capacity(how.max_memory)));
    double sensitivity_s = 0;
    double em_s = 0;
    for (const MadePart& part : parts) {
        sensitivity_s += part.look.sensitivity_s;
        em_s += part.look.em_s;
    }
    lines.push_back(fmt::format("Seconds: {:.1f} to read, {:.1f} sensitivity, {:.1f} image.", read_s,
                                sensitivity_s, em_s));
    return lines;
}

/// Half a crystal, or that of the normalisation, unless another is asked for.
std::pair<double, const char*> depth_of(const ImageOptions& options, const config::Scanner& scanner) {
    if (options.depth_mm) return {depth_of_interaction(options.depth_mm, scanner), ""};
    if (const auto depth = corrections::depth_of_normalisation(options.lines, scanner))
        return {depth_of_interaction(depth, scanner), ", as for the normalisation"};
    return {depth_of_interaction(std::nullopt, scanner), ", half a crystal (--depth-mm; data of petsim: 0)"};
}

/// The largest width across the axis of what attenuates, otherwise of the image.
double object_width(const ImageOptions& options, const image::Grid& grid) {
    const auto object = corrections::AttenuatingObject::of(options.lines.attenuation);
    if (object.empty()) return grid.n[0] * grid.voxel_mm;
    const auto extent = object.extent();
    return std::max(extent.high[0] - extent.low[0], extent.high[1] - extent.low[1]);
}

template <class Make>
auto within_memory(const Make& make) {
    try {
        return make();
    } catch (const std::invalid_argument& error) {
        throw UsageError(std::string("--max-memory-gb: ") + error.what());
    }
}

void write_nifti(const std::filesystem::path& file, const image::Grid& grid, std::span<const float> image,
                 const std::string& description) {
    const double mm = grid.voxel_mm;
    const nifti::Volume volume{grid.n,
                               {{{mm, 0, 0}, {0, mm, 0}, {0, 0, mm}}},
                               {grid.centre(0, 0), grid.centre(1, 0), grid.centre(2, 0)},
                               {}};
    OutputFile out(file);
    out.text(nifti::header(volume, description));
    out.text({reinterpret_cast<const char*>(image.data()), image.size_bytes()});
    out.close();
}

/// What is the same for all parts.
struct Making {
    const ImageOptions& options;
    const ExportSource& source;
    const config::Scanner& scanner;
    const gpu::PairRule& rule;
    double depth_mm;
    const image::TofBins& tof;
    net::WorkerPool& pool;
};

MadePart make(const Making& m, const image::Part& part, bool whole, image::QuickLookOptions how,
              double& read_s) {
    corrections::LineOptions lines = m.options.lines;
    lines.object_mm = part.bed_mm;
    const corrections::LineFactors factors(m.scanner, m.depth_mm, lines);
    MadePart out;
    if (factors.normalised())
        out.sentences = check_fit(factors, *lines.normalisation, part.coverage, m.scanner);
    ImageCounts counts(m.scanner.geometry, m.rule, image::pair_capacity(how.max_memory), m.pool, m.tof);
    counts.read(m.source, m.scanner, whole ? std::nullopt : part.coverage.intervals);
    read_s += counts.seconds;
    std::optional<image::PairCounts> without_tof;
    if (m.tof.used()) without_tof.emplace(counts.pairs.without_tof());
    const image::Corrections corrections(m.source, part.coverage, m.scanner, m.rule, factors, counts.delayeds,
                                         without_tof ? *without_tof : counts.pairs,
                                         counts.photopeak.window(part.coverage.rules.energy), m.options, how,
                                         m.pool);
    out.report = corrections.report();
    out.scale = corrections.scale();
    // Decays of all positions together.
    if (!out.report.quantity.activity && part.coverage.ticks() > 0)
        out.scale *= m.source.coverage().seconds() / part.coverage.seconds();
    how.scale = out.scale;
    out.look = within_memory([&] {
        daemon::ProgressLine progress("image of " + m.source.target().filename().string(),
                                      std::uint64_t{how.iterations} * how.subsets,
                                      daemon::ProgressUnit::steps);
        how.progress = [&](std::uint64_t done, std::uint64_t) { progress.show(done); };
        return image::make_quick_look(m.scanner, m.rule, counts.pairs, factors, corrections.model(), m.pool,
                                      how);
    });
    const auto about = sentences_about(counts, out.report, out.look);
    out.sentences.insert(out.sentences.end(), about.begin(), about.end());
    return out;
}

}  // namespace

int image(const ImageOptions& options) {
    check_options(options);
    const ExportSource source(options.target);
    if (source.kind() != daemon::RecordKind::coincidences) {
        throw UsageError(options.target.string() + " holds " + daemon::name_of(source.kind()) +
                         "; an image takes coincidences");
    }
    const config::Scanner scanner = source.scanner(options.scanner);
    image::QuickLookOptions how;
    const auto [depth_mm, depth_from] = depth_of(options, scanner);
    how.grid = image::choose_grid(scanner, options);
    how.iterations = options.iterations;
    how.subsets = options.subsets;
    how.psf_mm = options.psf_mm.value_or(0);
    if (!options.no_cache) how.cache = image::cache_of_user();
    how.smooth_mm = options.smooth_mm.value_or(default_smoothing * how.grid.voxel_mm);
    how.backend = options.backend;
    how.max_memory = options.max_memory_gb ? static_cast<std::uint64_t>(*options.max_memory_gb * 1e9)
                                           : memory_by_default();
    within_memory([&] { image::check_before_reading(how); });
    const image::Parts parts = image::parts_of(source, options.bed);
    image::CombinedImage combined(how.grid, parts.list);
    net::WorkerPool pool(options.threads != 0 ? options.threads
                                              : std::max(1U, std::thread::hardware_concurrency()));
    const gpu::PairRule rule = pair_rule(source, scanner.geometry);
    const image::TofChoice tof =
        image::choose_tof(options.tof, source, scanner, object_width(options, how.grid));
    const Making making{options, source, scanner, rule, depth_mm, tof.bins, pool};
    Outputs outputs(options.force);
    outputs.make_directory(options.output);
    for (const char* file : {"image.nii", "image.json", "projections.png", "slices.png", "README.txt"})
        outputs.claim(options.output / file);

    std::vector<MadePart> made;
    double read_s = 0;
    const bool whole = parts.list.size() == 1;
    for (const image::Part& part : parts.list) {
        made.push_back(make(making, part, whole, how, read_s));
        if (whole) continue;
        image::QuickLook& look = made.back().look;
        combined.add(part, look.em.image, look.sensitivity, made.back().scale);
        look.em.image = {};
        look.sensitivity = {};
    }
    const std::vector<float> image = whole ? std::move(made.front().look.em.image) : combined.finish();
    how.grid = combined.grid();

    std::vector<std::string> lines = doubts_about(source);
    if (!parts.sentence.empty()) lines.push_back(parts.sentence);
    lines.push_back(tof.sentence);
    image::Statement statement{source.target(), source.coverage(), how.grid, tof.bins, options.psf_mm, {},
                               lines,           report::with_cairo};
    for (std::size_t i = 0; i < made.size(); ++i) {
        statement.parts.push_back({parts.list[i].bed_mm, made[i].report});
        for (const std::string& sentence : made[i].sentences) {
            lines.push_back(
                whole ? sentence
                      : fmt::format("Bed at {:+.6g} mm from its middle: {}", parts.list[i].bed_mm, sentence));
        }
    }
    for (const std::string& sentence : sentences_about(options, how, depth_mm, depth_from, made, read_s))
        lines.push_back(sentence);
    const image::Report report = image::report_of_all(statement);
    write_nifti(options.output / "image.nii", how.grid, image, report.short_warning());
    if constexpr (report::with_cairo) {
        const image::PictureTexts texts = image::picture_texts(report);
        image::write_projections(options.output / "projections.png", how.grid, image, texts, options.max);
        image::write_slices(options.output / "slices.png", how.grid, image, texts, options.max);
    }
    write_text(options.output / "image.json", image::json_text(statement));
    write_text(options.output / "README.txt", image::readme(statement));
    outputs.commit();

    if (!report::with_cairo) std::cerr << "petlm: " << report::without_cairo << '\n';
    for (const auto& line : lines)
        std::cout << line << '\n';
    std::cout << report.warning() << "\nSee " << (options.output / "README.txt").string() << '\n';
    return ok;
}

}  // namespace petacq::petlm
