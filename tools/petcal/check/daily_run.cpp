#include "tools/petcal/check/daily_run.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "config/error.hpp"
#include "config/json_file.hpp"
#include "daemon/run/directory.hpp"

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
void check_same(const std::filesystem::path& directory, const json& reference, const json& run,
                const char* pointer, const std::string& what) {
    const std::string then = text_at(reference, pointer);
    const std::string now = text_at(run, pointer);
    if (then.empty() || now.empty() || then == now) return;
    fail(directory, "the reference was taken with another " + what + ": " + then + ", expected " + now +
                        " as in the run; take another reference");
}

/// Randoms are spread over the pairs of modules as the prompts are.
std::vector<double> true_pairs(const std::vector<double>& prompts, const daemon::ModuleTable& modules) {
    std::vector<double> share;
    share.reserve(modules.size());
    for (const daemon::ModuleSums& m : modules)
        share.push_back(m.ends > 0 ? std::sqrt(std::max(m.trues / m.ends, 0.0)) : 0);
    std::vector<double> trues(prompts.size());
    for (std::size_t a = 0; a < modules.size(); ++a)
        for (std::size_t b = 0; b < modules.size(); ++b)
            trues[a * modules.size() + b] =
                share[a] * share[b] * (prompts[a * modules.size() + b] + prompts[b * modules.size() + a]);
    return trues;
}

void add_seconds(daemon::RecordedDetector& recorded, DailyRun& run) {
    const config::Geometry& g = run.scanner.geometry;
    const auto crystals = daemon::crystals_by_unit(g);
    run.sums = daemon::DetectorSums::none(g);
    run.singles.resize(g.crystal_count());
    std::vector<double> pairs(std::size_t{g.bdm_count} * g.bdm_count);
    while (const auto second = recorded.next()) {
        run.length_s += second->length_s;
        run.sums += daemon::detector_sums(*second, g, crystals);
        for (std::size_t i = 0; i < run.singles.size(); ++i)
            run.singles[i] += static_cast<double>(second->sums.unpaired[i]) + second->sums.grouped[i];
        for (std::size_t i = 0; i < pairs.size(); ++i)
            pairs[i] += second->sums.module_pairs[i];
    }
    run.module_true = true_pairs(pairs, run.sums.modules);
}

}  // namespace

DailyRun load_daily_run(const std::filesystem::path& directory) {
    const json content = run_json(directory);
    const std::string state = text_at(content, "/state");
    if (state != "complete") fail(directory, "expected a run whose state is complete, found " + state);
    if (const std::string why = text_at(content, "/spectra/failure"); !why.empty())
        fail(directory, "its spectra were not saved: " + why);
    if (!std::filesystem::exists(directory / daemon::spectra_file))
        fail(directory,
             std::string("expected ") + daemon::spectra_file + "; set spectra.enabled in the configuration");
    DailyRun run;
    run.directory = directory;
    run.started = text_at(content, "/start_utc");
    daemon::RecordedDetector recorded(directory);
    run.scanner = recorded.scanner();
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
    const json content = run_json(run);
    check_same(place, then, content, "/calibration_sha256", "calibration");
    check_same(place, then, content, "/operator/nuclide", "nuclide");
    return load_daily_run(place);
}

}  // namespace petacq::petcal
