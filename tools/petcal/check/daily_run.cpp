#include "tools/petcal/check/daily_run.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "daemon/coverage/coverage.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/system/utc.hpp"

namespace petacq::petcal {

namespace {

using nlohmann::json;

[[noreturn]] void fail(const std::filesystem::path& directory, const std::string& why) {
    throw config::Error(directory.string() + ": " + why);
}

json run_json(const std::filesystem::path& directory) {
    if (!std::filesystem::is_directory(directory)) fail(directory, "expected the directory of a run");
    return config::read_json_file(directory / daemon::run_file, config::max_run_json_bytes);
}

/// A text of run.json; empty if it has none.
std::string text_at(const json& run, const char* pointer) {
    const json::json_pointer at(pointer);
    return run.contains(at) && run.at(at).is_string() ? run.at(at).get<std::string>() : "";
}

/// Both must say the same if both say anything.
void check_same(const std::filesystem::path& directory, const std::string& then, const std::string& now,
                const std::string& what) {
    if (then.empty() || now.empty() || then == now) return;
    fail(directory, "the reference was taken with another " + what + ": " + then + ", expected " + now +
                        " as in the run; take another reference");
}

std::string nuclide_of(const daemon::Coverage& coverage) {
    return coverage.activity ? coverage.activity->nuclide : "";
}

/// The same of the long form: the randoms of two modules are in proportion to those of both, among modules
/// that had prompts.
void add_true_pairs_of_long_form(const config::Geometry& g, const daemon::Second& second,
                                 const daemon::DetectorSums& sums, std::vector<double>& pairs) {
    const std::uint32_t n = g.bdm_count;
    const gpu::Sectors sectors = gpu::Sectors::of(g);
    double all = 0;
    double products = 0;
    std::vector<double> randoms(n);
    for (std::uint32_t a = 0; a < n; ++a) {
        randoms[a] = std::max(sums.modules[a].ends - sums.modules[a].trues, 0.0);
        all += randoms[a];
    }
    const auto prompts = [&](std::uint32_t a, std::uint32_t b) {
        return sectors.share(second.sums.module_pairs, a, b) + sectors.share(second.sums.module_pairs, b, a);
    };
    for (std::uint32_t a = 0; a < n; ++a)
        for (std::uint32_t b = 0; b < n; ++b)
            products += prompts(a, b) > 0 ? randoms[a] * randoms[b] : 0;
    const double scale = products > 0 ? all / products : 0;
    for (std::uint32_t a = 0; a < n; ++a) {
        for (std::uint32_t b = 0; b < n; ++b)
            if (prompts(a, b) > 0)
                pairs[std::size_t{a} * n + b] += prompts(a, b) - scale * randoms[a] * randoms[b];
    }
}

/// Adds the true prompts of each pair of modules in a second. Randoms are known for modules around the ring;
/// along the axis they are spread as those of the modules.
void add_true_pairs(const config::Geometry& g, const daemon::Second& second, const daemon::DetectorSums& sums,
                    std::vector<double>& pairs) {
    if (!g.is_ring()) return add_true_pairs_of_long_form(g, second, sums, pairs);
    const std::size_t n = g.bdm_count;
    const std::size_t ring = g.modules_in_ring();
    std::vector<double> randoms(n);
    std::vector<double> of_column(ring);
    for (std::size_t bdm = 0; bdm < n; ++bdm) {
        randoms[bdm] = std::max(sums.modules[bdm].ends - sums.modules[bdm].trues, 0.0);
        of_column[bdm % ring] += randoms[bdm];
    }
    const auto share = [&](std::size_t bdm) {
        return of_column[bdm % ring] > 0 ? randoms[bdm] / of_column[bdm % ring] : 0;
    };
    const gpu::Sectors sectors = gpu::Sectors::of(g);
    for (std::uint32_t a = 0; a < n; ++a) {
        for (std::uint32_t b = 0; b < n; ++b) {
            pairs[a * n + b] +=
                sectors.share(second.sums.module_pairs, a, b) + sectors.share(second.sums.module_pairs, b, a);
            if (second.randoms.module_pairs.empty()) continue;
            const double orders = a % ring == b % ring ? 2 : 1;
            pairs[a * n + b] -=
                orders * share(a) * share(b) * second.randoms.module_pairs[a % ring * ring + b % ring];
        }
    }
}

/// Seconds keep the pairs of larger scanners by sectors, of several modules each. Within them a module has as
/// many as its own true prompts say.
void share_by_trues(const gpu::Sectors& sectors, const daemon::ModuleTable& modules,
                    std::vector<double>& pairs) {
    if (sectors.shift == 0) return;
    const auto trues = [&](std::size_t a) { return std::max(modules[a].trues, 0.0); };
    std::vector<double> of_sector(sectors.count());
    for (std::uint32_t a = 0; a < modules.size(); ++a)
        of_sector[sectors.of_module(a)] += trues(a);
    const auto weight = [&](std::uint32_t a) {
        const double sum = of_sector[sectors.of_module(a)];
        return sum > 0 ? trues(a) * sectors.modules_with(a) / sum : 1;
    };
    for (std::uint32_t a = 0; a < modules.size(); ++a) {
        for (std::uint32_t b = 0; b < modules.size(); ++b)
            pairs[a * modules.size() + b] *= weight(a) * weight(b);
    }
}

void add_seconds(daemon::RecordedDetector& recorded, DailyRun& run) {
    const config::Geometry& g = run.scanner.geometry;
    const auto crystals = daemon::crystals_by_unit(g);
    run.sums = daemon::DetectorSums::none(g);
    run.singles.resize(g.crystal_count());
    run.module_true.resize(std::size_t{g.bdm_count} * g.bdm_count);
    while (const auto second = recorded.next()) {
        run.length_s += second->length_s;
        run.live.add(*second, g);
        const daemon::DetectorSums sums = daemon::detector_sums(*second, g, crystals);
        run.sums += sums;
        for (std::size_t i = 0; i < run.singles.size(); ++i)
            run.singles[i] += static_cast<double>(second->sums.unpaired[i]) + second->sums.grouped[i];
        add_true_pairs(g, *second, sums, run.module_true);
    }
    share_by_trues(gpu::Sectors::of(g), run.sums.modules, run.module_true);
    for (double& pairs : run.module_true)
        pairs = std::max(pairs, 0.0);
}

}  // namespace

DailyRun load_daily_run(const std::filesystem::path& directory) {
    const json content = run_json(directory);
    const std::string state = text_at(content, "/state");
    if (state != "complete")
        fail(directory, "expected a run whose state is complete, found " + (state.empty() ? "none" : state));
    if (const std::string why = text_at(content, "/spectra/failure"); !why.empty())
        fail(directory, "its spectra were not saved: " + why);
    if (!std::filesystem::exists(directory / daemon::spectra_file))
        fail(directory,
             std::string("expected ") + daemon::spectra_file + "; set spectra.enabled in the configuration");
    DailyRun run;
    run.directory = directory;
    if (const auto anchor = daemon::coverage_of_run(content).anchor)
        run.started = daemon::utc_text(anchor->utc);
    daemon::RecordedDetector recorded(directory);
    run.scanner = recorded.scanner();
    if (const std::uint32_t modules = run.scanner.geometry.bdm_count; modules > max_checked) {
        fail(directory, "expected a scanner of at most " + std::to_string(max_checked) +
                            " BDMs, whose pairs fit into memory, found " + std::to_string(modules));
    }
    run.spectra = config::load_spectra(directory / daemon::spectra_file, run.scanner.geometry);
    add_seconds(recorded, run);
    return run;
}

DailyRun load_daily_reference(const std::filesystem::path& directory, const std::filesystem::path& run) {
    const daemon::RecordedDetector now(run);
    std::filesystem::path place = directory;
    if (place.empty()) place = now.configuration().detector_reference;
    if (place.empty()) fail(run, "its configuration has no detector_reference; expected --reference");
    const json then = run_json(place);
    daemon::check_comparable(place, daemon::RecordedDetector(place), now.configuration(), now.scanner());
    const daemon::Coverage of_reference = daemon::coverage_of_run(then);
    const daemon::Coverage of_run = daemon::coverage_of_run(run_json(run));
    check_same(place, of_reference.origin.calibration_sha256, of_run.origin.calibration_sha256,
               "calibration");
    check_same(place, nuclide_of(of_reference), nuclide_of(of_run), "nuclide");
    return load_daily_run(place);
}

}  // namespace petacq::petcal
