#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "config/configuration.hpp"
#include "daemon/backend.hpp"
#include "daemon/host/progress_line.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/seconds/file.hpp"
#include "daemon/settings.hpp"
#include "tools/petlm/commands.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/records/record_file.hpp"
#include "tools/petlm/records/status.hpp"
#include "tools/petlm/resort/inputs.hpp"
#include "tools/petlm/resort/resorted_run.hpp"
#include "tools/petlm/resort/resorted_seconds.hpp"
#include "tools/petlm/resort/settings.hpp"
#include "tools/petlm/resort/workers.hpp"

namespace petacq::petlm {
namespace {

/// Singles need no calibration; only its shape matters.
config::Calibration no_calibration(const config::Geometry& g) {
    const std::size_t units = std::size_t{g.bdm_count} * g.du_count;
    config::Calibration calibration;
    calibration.position_table.assign(units * g.position_size * g.position_size, 0);
    calibration.bins = 1;
    calibration.energy_factor.assign(units * g.crystals_per_du(), 1);
    return calibration;
}

/// The pipelines of all workers.
struct Engines {
    config::Configuration configuration;
    std::size_t workers = 1;
    std::uint32_t slice_singles = 0;
    unsigned gpus = 0;  ///< 0: the CPU
};

Engines engines_for(const nlohmann::json& run, const ResortOptions& options) {
    Engines engines;
    engines.configuration = resort_configuration(run, options, cpu_slice_singles);
    engines.slice_singles = cpu_slice_singles;
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

/// The list-mode file that the coincidences go to.
class CoincidencesOut {
  public:
    CoincidencesOut(const std::filesystem::path& path, std::uint32_t block_bytes,
                    const nlohmann::json& description)
        : file_(Outputs::partial(path), daemon::RecordKind::coincidences, block_bytes, description),
          path_(path) {}
    void append(std::span<const gpu::Coincidence> records) {
        if (records.empty()) return;
        if (file_.records() == 0 && first_ > records.front().time) first_ = records.front().time;
        last_ = records.back().time;
        file_.append(records);
    }
    daemon::ListModePart close() {
        file_.close();
        return part_of(path_, file_.records(), first_, last_);
    }

  private:
    RecordFile file_;
    const std::filesystem::path path_;
    std::uint64_t first_ = UINT64_MAX;
    std::uint64_t last_ = 0;
};

nlohmann::json description_of(const Inputs& inputs, const config::Configuration& configuration,
                              const nlohmann::json& settings) {
    nlohmann::json description = inputs.singles.front().description();
    const config::Coincidence& c = configuration.coincidence;
    description["window_ticks"] = c.window_ticks;
    description["delay_ticks"] = c.delay_ticks ? nlohmann::json(*c.delay_ticks) : nlohmann::json();
    description["delayeds"] = c.delay_ticks ? nlohmann::json(name_of(c.delayeds)) : nlohmann::json();
    description["resorted"] = settings;
    return description;
}

}  // namespace

int resort(const ResortOptions& options) {
    const nlohmann::json run = run_document(options.input.runs.front());
    const Engines engines = engines_for(run, options);
    const config::Configuration& configuration = engines.configuration;
    const config::Scanner scanner = config::scanner_from_json(run.at("scanner"));
    config::check_against_scanner(configuration, scanner);
    const config::Calibration calibration = no_calibration(scanner.geometry);
    const Inputs inputs = open_inputs(options.input);

    const bool one_file = options.output.extension() == ".plm";
    const std::filesystem::path output =
        one_file ? options.output : options.output / daemon::coincidences_file;
    Outputs outputs(options.force);
    if (one_file) {
        outputs.claim(output);
    } else {
        claim_run(outputs, options.output);
    }
    const nlohmann::json settings = {{"coincidence", configuration.document->at("coincidence")},
                                     {"energy", configuration.document->at("energy")}};
    nlohmann::json description = description_of(inputs, configuration, settings);
    CoincidencesOut out(output, inputs.singles.front().block_bytes(), description);
    const gpu::CoincidenceRules rules = daemon::coincidence_rules(configuration);
    const std::filesystem::path seconds_path = options.output / daemon::seconds_file;
    std::optional<daemon::SecondsFile> seconds_file;
    if (!one_file) {
        description["window_mode"] = name_of(rules.mode);
        description["multiples_policy"] = name_of(rules.policy);
        std::filesystem::remove(Outputs::partial(seconds_path));  // of a program that was killed
        seconds_file.emplace(Outputs::partial(seconds_path), scanner.geometry, description,
                             config::Compression::none, std::chrono::minutes(1));
    }
    const auto ticks_per_s = static_cast<std::uint64_t>(std::llround(1e12 / scanner.tick_ps));
    ResortedSeconds seconds(inputs.runs,
                            second_ranges(inputs.runs, inputs.singles, ticks_per_s, inputs.interval),
                            scanner.geometry, ticks_per_s, rules, seconds_file ? &*seconds_file : nullptr);

    const auto shards =
        plan_shards(inputs.singles, inputs.interval, options.shard_singles.value_or(default_shard_singles));
    const std::uint64_t reach = rules.window + rules.delay.value_or(0);
    const auto make = [&](std::size_t worker) {
        const unsigned gpu = engines.gpus == 0 ? 0 : static_cast<unsigned>(worker % engines.gpus);
        return std::make_unique<ShardSearch>(
            daemon::make_backend(configuration, scanner, calibration, 0, gpu::Input::singles, gpu),
            engines.slice_singles, reach);
    };
    Workers workers(std::min(engines.workers, shards.size()),
                    {inputs.singles, shards, seconds.ranges(), rules, accepted_energies(configuration)},
                    make);
    ResortedRun made;
    {
        daemon::ProgressLine progress("finding coincidences", shards.size(), daemon::ProgressUnit::steps);
        for (std::size_t i = 0; i < shards.size(); ++i) {
            const ShardResult shard = workers.next();
            for (const auto& records : shard.coincidences)
                out.append(records);
            for (const auto& [second, sums] : shard.sums)
                seconds.add(second, sums);
            made.taken += shard.taken;
            made.singles += shard.counts;
            progress.show(i + 1);
        }
        seconds.finish();
    }
    if (made.taken.bad_address != 0) {
        throw BadInput(fmt::format("{}: {} singles name crystals that the scanner does not have",
                                   inputs.runs.front().string(), made.taken.bad_address));
    }
    made.coincidences_file = out.close();
    made.back_end = workers.description();
    if (seconds_file) {
        const daemon::SecondsCounts written = seconds_file->finish();
        if (!seconds_file->failure().empty()) throw std::runtime_error(seconds_file->failure());
        const daemon::ListModePart& part = seconds_file->part();
        made.seconds_file = part_of(seconds_path, written.written, part.first_time, part.last_time);
        made.seconds = seconds.total();
        complete_run(inputs, settings, made, options.output);
    }
    outputs.commit();
    std::cout << fmt::format("{}: {} prompts, {} delayeds from {} singles ({})\n", options.output.string(),
                             made.singles.prompts, made.singles.delayeds, made.taken.accepted, made.back_end);
    return ok;
}

}  // namespace petacq::petlm
