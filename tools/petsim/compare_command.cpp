// `petsim compare`: reads the files and prints the comparison.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "config/base/error.hpp"
#include "config/base/exit_status.hpp"
#include "config/base/json_file.hpp"
#include "daemon/listmode/reader.hpp"
#include "tools/petsim/compare.hpp"

namespace petacq::sim {

namespace {

nlohmann::json read_json(const std::filesystem::path& file) {
    return config::read_json_file(file, config::max_run_json_bytes);
}

/// What the truth says of frames is what a daemon with its calibration makes of them.
void check_same_calibration(const nlohmann::json& truth, const nlohmann::json& run) {
    const std::string of_truth = truth.value("calibration_sha256", "");
    const std::string of_run = run.value("calibration_sha256", "");
    if (of_truth.empty() || of_run.empty() || of_truth == of_run) return;
    throw config::Error("expected a run with the calibration of the truth (SHA-256 " + of_truth +
                        "), found one with another (" + of_run +
                        "): write the truth again with --calibration FILE, the one of the run");
}

double share(std::uint64_t part, std::uint64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

}  // namespace

PairingRules rules_from_configuration(const nlohmann::json& configuration) {
    PairingRules rules;
    try {
        const auto& c = configuration.at("coincidence");
        rules.window_ticks = c.at("window_ticks").get<std::uint32_t>();
        rules.every = c.at("window_mode") == "every";
        rules.remove_multiples = c.at("multiples_policy") == "RemoveMultiples";
        const auto limit = [&](const char* key, std::uint32_t otherwise) {
            return c.contains(key) && c[key].is_number() ? c[key].get<std::uint32_t>() : otherwise;
        };
        rules.min_module_difference = limit("min_module_difference", 0);
        rules.max_ring_difference = limit("max_ring_difference", UINT32_MAX);
        const auto& e = configuration.at("energy");
        rules.filter = e.at("filter").get<bool>();
        rules.lower = static_cast<float>(e.at("lower_keV").get<double>());
        rules.upper = static_cast<float>(e.at("upper_keV").get<double>());
        if (const auto& gammas = configuration.value("gammas", nlohmann::json()); !gammas.is_null())
            rules.gammas = config::gammas_from_json(gammas);
    } catch (const nlohmann::json::exception& e) {
        throw std::runtime_error(std::string("run.json: its configuration is incomplete: ") + e.what());
    }
    return rules;
}

// The keys are the names of the members.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Comparison, frames, tags, singles, moved, pairs_sent, detectable, found,
                                   in_multiples, consumed, unexplained, prompts, trues, scattered, randoms,
                                   one_photon, spurious, intrinsic, foreign, delayeds)

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TripleComparison, gammas, triples, trues, spurious, randoms, delayeds,
                                   foreign, expected, missing)

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CalibrationErrors, frames, outside, right, energy_mean, energy_rms,
                                   time_mean, time_rms)

nlohmann::json to_json(const Comparison& c, double decays) {
    nlohmann::json j = c;
    j["found_share"] = share(c.found, c.detectable);
    j["randoms_fraction"] = share(c.randoms, c.prompts);
    j["delayed_fraction"] = share(c.delayeds, c.prompts);
    j["agrees"] = c.agrees();
    if (c.prompts_expected) {
        j["prompts_expected"] = *c.prompts_expected;
        j["prompts_missing"] = c.prompts_missing;
        j["prompts_surplus"] = c.prompts_surplus;
    }
    if (c.triples) j["triples"] = *c.triples;
    if (c.calibration) j["calibration"] = *c.calibration;
    if (decays > 0) j["sensitivity"] = static_cast<double>(c.found) / decays;
    return j;
}

std::string to_text(const Comparison& c, double decays) {
    const auto n = [](std::uint64_t v) { return std::to_string(v); };
    const auto percent = [](double v) { return fmt::format("{:.4f} %", 100 * v); };
    std::string out;
    out += "frames             " + n(c.frames) + ", accepted as singles " + n(c.singles) + ", and " +
           n(c.tags) + " tags\n";
    out += "detectable pairs   " + n(c.detectable) + " of " + n(c.pairs_sent) + " with both singles sent\n";
    out += "found              " + n(c.found) + " (" + percent(share(c.found, c.detectable)) + ")\n";
    out += "not found          " + n(c.in_multiples) + " in groups of more than two, " + n(c.consumed) +
           " split by an earlier window, " + n(c.unexplained) + " unexplained\n";
    out += "prompts            " + n(c.prompts) + ": " + n(c.trues) + " true, " + n(c.scattered) +
           " scattered, " + n(c.randoms) + " random, " + n(c.foreign) + " foreign\n";
    if (c.one_photon + c.intrinsic > 0) {
        out += "                   " + n(c.one_photon) + " of one photon, " + n(c.intrinsic) +
               " of one intrinsic decay\n";
    }
    if (c.spurious > 0) out += "                   " + n(c.spurious) + " with a gamma of their decay\n";
    out += "randoms fraction   " + percent(share(c.randoms, c.prompts));
    if (c.delayeds > 0) out += ", by delayeds " + percent(share(c.delayeds, c.prompts));
    out += "\n";
    if (c.prompts_expected) {
        out += "whole list         " + n(*c.prompts_expected) + " prompts expected, " + n(c.prompts_missing) +
               " missing, " + n(c.prompts_surplus) + " surplus\n";
    }
    if (c.triples) {
        const TripleComparison& t = *c.triples;
        out += "triples            " + n(t.triples) + ": " + n(t.trues) + " true, " + n(t.spurious) +
               " spurious, " + n(t.randoms) + " random, " + n(t.delayeds) + " delayed, " + n(t.foreign) +
               " foreign\n";
        out += "                   " + n(t.expected) + " expected of " + n(t.gammas) + " gammas, " +
               n(t.missing) + " missing\n";
    }
    if (decays > 0) {
        out += "sensitivity        " + percent(static_cast<double>(c.found) / decays) +
               " of positrons emitted\n";
    }
    if (c.calibration) {
        const CalibrationErrors& e = *c.calibration;
        out += "calibration        " + percent(share(e.right, e.frames)) + " of frames in their crystal, " +
               percent(share(e.outside, e.frames)) + " outside any; of the former\n";
        out += "                   energy " + percent(e.energy_mean) + ", rms " + percent(e.energy_rms) +
               "; time " + fmt::format("{:.2f} ticks, rms {:.2f}\n", e.time_mean, e.time_rms);
    }
    if (c.moved > 0) {
        out += "note               " + n(c.moved) +
               " frames with a clock jump or after a reset were left out; " + "the comparison is not exact\n";
    }
    out += c.agrees() ? "list-mode and truth agree\n" : "LIST-MODE AND TRUTH DO NOT AGREE\n";
    return out;
}

int compare_files(const std::string& truth_file, const std::string& run_directory, bool json) {
    const std::filesystem::path run(run_directory);
    const nlohmann::json description = read_json(run / "run.json");
    if (!description.contains("configuration")) {
        throw std::runtime_error((run / "run.json").string() + ": no \"configuration\"");
    }
    const PairingRules rules = rules_from_configuration(description["configuration"]);
    nlohmann::json description_of_truth;
    std::vector<TruthRecord> truth = read_truth(truth_file, &description_of_truth);
    check_same_calibration(description_of_truth, description);
    const config::Scanner scanner = config::scanner_from_json(description_of_truth.at("scanner"));
    bool whole = true;
    const auto read = [&]<class Record>(const char* file, std::vector<Record>& records, auto block_of) {
        daemon::ListModeReader reader(run / file);
        while (reader.next()) {
            const auto block = block_of(reader);
            records.insert(records.end(), block.begin(), block.end());
        }
        const daemon::FileState state = reader.condition().state;
        if (state != daemon::FileState::complete) {
            whole = false;
            std::cerr << "petsim: " << reader.path().string() << ": " << reader.condition().summary() << '\n';
        }
        return state;
    };
    std::vector<gpu::Coincidence> coincidences;
    const daemon::FileState list_mode =
        read("coincidences.plm", coincidences, [](const auto& reader) { return reader.coincidences(); });
    std::vector<gpu::Triple> triples;
    std::optional<daemon::FileState> of_triples;
    if (rules.gammas)
        of_triples = read("triples.plm", triples, [](const auto& reader) { return reader.triples(); });
    const double decays = description_of_truth.value("decays", 0.0);
    const Comparison c =
        compare(scanner.geometry, rules, std::move(truth), std::move(coincidences), std::move(triples));
    if (json) {
        nlohmann::json out = to_json(c, decays);
        out["list_mode"] = daemon::name_of(list_mode);
        if (of_triples) out["triples"]["list_mode"] = daemon::name_of(*of_triples);
        std::cout << out.dump(2) << '\n';
    } else {
        std::cout << to_text(c, decays);
    }
    return c.agrees() && whole ? exit_status::ok : exit_status::has_problems;
}

}  // namespace petacq::sim
