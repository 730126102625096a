#include "tools/petlm/resort/search/engines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "daemon/backend/backend.hpp"
#include "daemon/backend/pipeline_options.hpp"
#include "gpu/rules/partners.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/resort/search/settings.hpp"

namespace petacq::petlm {
namespace {

/// Most singles in a slice of a pipeline.
constexpr std::uint32_t cpu_slice_singles = 1U << 18;
constexpr std::uint32_t gpu_slice_singles = 1U << 20;
/// Workers of one GPU: some read while the pipelines of others are busy.
constexpr unsigned gpu_workers = 2;

/// Singles need no calibration; only its shape matters.
config::Calibration no_calibration(const config::Geometry& g) {
    const std::size_t units = std::size_t{g.bdm_count} * g.du_count;
    config::Calibration calibration;
    calibration.position_table.assign(units * g.position_size * g.position_size, 0);
    calibration.bins = 1;
    calibration.energy_factor.assign(units * g.crystals_per_du(), 1);
    return calibration;
}

}  // namespace

nlohmann::json Engines::settings() const {
    const nlohmann::json& document = *configuration.document;
    nlohmann::json settings = {{"coincidence", document.at("coincidence")},
                               {"energy", document.at("energy")}};
    if (configuration.gammas) settings["gammas"] = document.at("gammas");
    return settings;
}

nlohmann::json Engines::description(daemon::RecordKind kind, const Inputs& inputs,
                                    daemon::Coverage covered) const {
    nlohmann::json description = inputs.singles.front().description();
    description["run_id"] = inputs.documents[inputs.first()].value("run_id", description["run_id"]);
    const config::Coincidence& c = configuration.coincidence;
    description["window_ticks"] = c.window_ticks;
    description["delay_ticks"] = c.delay_ticks ? nlohmann::json(*c.delay_ticks) : nlohmann::json();
    description["delayeds"] = c.delay_ticks ? nlohmann::json(name_of(c.delayeds)) : nlohmann::json();
    description["resorted"] = settings();
    if (kind == daemon::RecordKind::triples) covered.rules.gammas = configuration.gammas;
    description["coverage"] = daemon::to_json(covered);
    return description;
}

std::uint64_t Engines::ticks_per_s() const {
    return static_cast<std::uint64_t>(std::llround(1e12 / scanner.tick_ps));
}

gpu::EnergyWindow Engines::energies() const {
    const auto& energy = configuration.energy;
    if (!energy.filter) return {false, 0, std::numeric_limits<float>::infinity()};
    return {true, static_cast<float>(energy.lower_keV), static_cast<float>(energy.upper_keV)};
}

std::unique_ptr<ShardSearch> Engines::make_search(std::size_t worker) const {
    config::Configuration of_worker = configuration;
    of_worker.gammas.reset();  // ShardGammas finds them
    of_worker.pipeline.devices.reset();
    if (gpus > 0) of_worker.pipeline.devices = std::vector{static_cast<std::uint32_t>(worker % gpus)};
    return std::make_unique<ShardSearch>(
        daemon::make_backend(of_worker, scanner, no_calibration(scanner.geometry), 0, gpu::Input::singles),
        slice_singles, rules, scanner.geometry.crystal_count());
}

Engines engines_for(const nlohmann::json& run, const ResortOptions& options) {
    Engines engines;
    engines.configuration = resort_configuration(run, options, cpu_slice_singles);
    engines.slice_singles = cpu_slice_singles;
    engines.scanner = config::scanner_from_json(run.at("scanner"));
    config::check_against_scanner(engines.configuration, engines.scanner);
    engines.rules = daemon::coincidence_rules(engines.configuration);
    gpu::check_any_good_pair(engines.scanner, engines.rules);
    const bool may_use_gpus = engines.configuration.pipeline.backend != config::Backend::cpu;
    const unsigned usable = may_use_gpus ? daemon::usable_gpus() : 0;
    engines.gpus = std::min(options.gpus.value_or(usable), usable);
    if (options.gpus && *options.gpus > usable)
        throw UsageError(fmt::format("--gpus {}: {} can be used", *options.gpus, usable));
    const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
    const std::uint32_t asked = options.threads.value_or(0);
    if (engines.gpus > 0) {
        engines.configuration = resort_configuration(run, options, gpu_slice_singles);
        engines.slice_singles = gpu_slice_singles;
        engines.workers = asked != 0 ? asked : engines.gpus * gpu_workers;
    } else {
        engines.workers = asked != 0 ? asked : cores;
    }
    return engines;
}

}  // namespace petacq::petlm
