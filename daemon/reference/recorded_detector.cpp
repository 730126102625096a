#include "daemon/reference/recorded_detector.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "config/scanner/meaning_of_records.hpp"
#include "daemon/backend/pipeline_options.hpp"
#include "daemon/coverage/coverage.hpp"
#include "daemon/run/directory.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

[[noreturn]] void fail(const std::filesystem::path& directory, const std::string& why) {
    throw config::Error(directory.string() + ": " + why);
}

/// A change of these makes other singles and other prompts.
void check_same(const std::filesystem::path& directory, const config::Configuration& then,
                const config::Configuration& now) {
    const json& before = *then.document;
    const json& present = *now.document;
    for (const char* pointer : {"/energy", "/coincidence/window_ticks", "/coincidence/window_mode",
                                "/coincidence/multiples_policy", "/coincidence/max_multiplicity",
                                "/coincidence/min_module_difference", "/coincidence/max_ring_difference"}) {
        const json::json_pointer at(pointer);
        if (before.at(at) == present.at(at)) continue;
        fail(directory, std::string("the run was taken with ") + pointer + " = " + before.at(at).dump() +
                            ", expected " + present.at(at).dump() + " as configured");
    }
}

}  // namespace

RecordedDetector::RecordedDetector(const std::filesystem::path& directory) {
    const json run = config::read_json_file(directory / run_file, config::max_run_json_bytes);
    try {
        const Coverage coverage = coverage_of_run(run);
        json document = run.at("configuration");
        if (coverage.rules.coincidence)
            document["coincidence"] = config::to_json(*coverage.rules.coincidence);
        if (coverage.rules.energy) document["energy"] = config::to_json(*coverage.rules.energy);
        configuration_ = config::configuration_from_json(document, "/");
        if (coverage.intervals) start_ = coverage.span().start;
        scanner_ = config::scanner_from_json(run.at("scanner"));
        reader_.emplace(directory / seconds_file);
        sums_.emplace(*reader_, scanner_.geometry);
    } catch (const json::exception&) {
        fail(directory, "expected configuration and scanner in its run.json");
    } catch (const config::Error& error) {
        fail(directory, std::string("run.json: ") + error.what());
    } catch (const std::invalid_argument& error) {
        fail(directory, std::string(seconds_file) + ": " + error.what());
    } catch (const NotListMode& error) {
        throw config::Error(error.what());
    } catch (const std::system_error& error) {
        throw config::Error(error.what());
    }
    ticks_per_s_ = ticks_of(1, scanner_);
    meter_.emplace(scanner_.geometry, coincidence_rules(configuration_), ticks_per_s_);
}

/// What was lost in the present second.
BoardReport RecordedDetector::report() const {
    BoardReport report = BoardReport::none(scanner_.geometry);
    if (const auto* lost = reader_->find("lost")) report.lost = reader_->values(*lost).number();
    const auto* live = reader_->find("module_live");
    if (live != nullptr && live->count == report.live.size()) {
        for (std::size_t bdm = 0; bdm < report.live.size(); ++bdm)
            report.live[bdm] = reader_->values(*live).number(bdm);
    }
    const auto* temperature = reader_->find("module_temperature");
    if (temperature != nullptr && temperature->count == report.temperature_C.size()) {
        for (std::size_t bdm = 0; bdm < report.temperature_C.size(); ++bdm)
            report.temperature_C[bdm] = reader_->values(*temperature).number(bdm);
    }
    return report;
}

std::shared_ptr<const Second> RecordedDetector::next() {
    if (!reader_->next()) return nullptr;
    const gpu::TickRange range{reader_->start(), reader_->start() + reader_->length()};
    return meter_->measure(range, sums_->read(), report());
}

void check_comparable(const std::filesystem::path& directory, const RecordedDetector& recorded,
                      const config::Configuration& configuration, const config::Scanner& scanner) {
    const auto differs = [&](const std::string& key, const std::string& how) {
        fail(directory, "a run of another scanner: its " + key + " is " + how);
    };
    const std::string& name = recorded.scanner().name;
    if (name != scanner.name) differs("name", json(name).dump() + ", expected " + json(scanner.name).dump());
    const json found = config::meaning_of_records(recorded.scanner());
    const json expected = config::meaning_of_records(scanner);
    for (const auto& [key, ours] : expected.items()) {
        const json theirs = found.value(key, json());
        // Modules, units and crystals are compared by their numbers, wherever they are.
        if (theirs == ours || key == "dimensions") continue;
        const bool brief = ours.is_primitive() || scanner.is_ring();
        differs(key, brief ? theirs.dump() + ", expected " + ours.dump() : "not that of the description");
    }
    check_same(directory, recorded.configuration(), configuration);
}

std::shared_ptr<const DetectorBaseline> load_reference(const std::filesystem::path& directory,
                                                       const config::Configuration& configuration,
                                                       const config::Scanner& scanner) {
    RecordedDetector recorded(directory);
    check_comparable(directory, recorded, configuration, scanner);
    DetectorWatch watch(scanner.geometry, recorded.ticks_per_s());
    watch.start_run(recorded.start_ticks().value_or(0));
    while (watch.baseline().length_s < DetectorWatch::longest_baseline_s) {
        const auto second = recorded.next();
        if (!second) break;
        watch.observe(*second);
    }
    if (watch.baseline().length_s == 0) fail(directory, "expected at least two seconds with singles");
    return std::make_shared<DetectorBaseline>(watch.baseline());
}

}  // namespace petacq::daemon
