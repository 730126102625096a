#include "tools/petlm/reconstruction/image/setup.hpp"
#include "tools/petlm/reconstruction/image/sensitivity_cache.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/reconstruction/corrections/fits.hpp"
#include "tools/petlm/reconstruction/image/corrections.hpp"

namespace petacq::image {
namespace {

using petlm::UsageError;

constexpr double default_smoothing = 2;  // voxels, FWHM

void check_options(const petlm::ImageOptions& o) {
    const auto expect = [](bool good, const char* option, const char* what, double found) {
        if (!good) throw UsageError(fmt::format("{}: expected {}, found {}", option, what, found));
    };
    expect(!(o.voxel_mm && o.size), "--size", "it or --voxel-mm, not both", o.size.value_or(0));
    if (o.size) expect(*o.size >= 1 && *o.size <= 1024, "--size", "1 to 1024 voxels", *o.size);
    expect(o.iterations >= 1 && o.iterations <= 1000, "--iterations", "1 to 1000", o.iterations);
    expect(o.subsets >= 1 && o.subsets <= 1000, "--subsets", "1 to 1000", o.subsets);
    expect(o.replicates != 1 && o.replicates <= 1000, "--replicates", "2 to 1000, or 0", o.replicates);
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

/// By absorption, or that of the normalisation, unless another is asked for.
config::DepthOfInteraction depth_of(const petlm::ImageOptions& options, const config::Scanner& scanner) {
    return petlm::depth_of_interaction(
        options.depth_mm ? options.depth_mm : corrections::depth_of_normalisation(options.lines, scanner),
        scanner);
}

const petlm::ImageOptions& checked(const petlm::ImageOptions& options) {
    check_options(options);
    return options;
}

QuickLookOptions how_to_make(const petlm::ImageOptions& options, const config::Scanner& scanner) {
    QuickLookOptions how;
    how.grid = choose_grid(scanner, options);
    how.iterations = options.iterations;
    how.subsets = options.subsets;
    how.psf_mm = options.psf_mm.value_or(0);
    if (!options.no_cache) how.cache = cache_of_user();
    how.smooth_mm = options.smooth_mm.value_or(default_smoothing * how.grid.voxel_mm);
    how.backend = options.backend;
    how.max_memory = options.max_memory_gb ? static_cast<std::uint64_t>(*options.max_memory_gb * 1e9)
                                           : memory_by_default();
    within_memory([&] { check_before_reading(how); });
    return how;
}

/// The largest width across the axis of what attenuates, otherwise of the image.
double object_width(const petlm::ImageOptions& options, const Grid& grid) {
    const auto object = corrections::AttenuatingObject::of(options.lines.attenuation);
    if (object.empty()) return grid.n[0] * grid.voxel_mm;
    const auto extent = object.extent();
    return std::max(extent.high[0] - extent.low[0], extent.high[1] - extent.low[1]);
}

config::Scanner scanner_of(const petlm::ExportSource& source, const petlm::ImageOptions& options) {
    if (source.kind() != daemon::RecordKind::coincidences) {
        throw UsageError(options.target.string() + " holds " + daemon::name_of(source.kind()) +
                         "; an image takes coincidences");
    }
    return source.scanner(options.scanner);
}

}  // namespace

Setup::Setup(const petlm::ImageOptions& given)
    : options(checked(given)),
      source(given.target),
      scanner(scanner_of(source, given)),
      depth(depth_of(given, scanner)),
      how(how_to_make(given, scanner)),
      tof(choose_tof(given.tof, source, scanner, object_width(given, how.grid))),
      rule(petlm::pair_rule(source, scanner.geometry)),
      angles(source, scanner, how.grid),
      pool(given.threads != 0 ? given.threads : std::max(1U, std::thread::hardware_concurrency())) {}

/// Sentences about problems of the run, and about what the file does not tell.
std::vector<std::string> doubts_about(const petlm::ExportSource& source) {
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

}  // namespace petacq::image
