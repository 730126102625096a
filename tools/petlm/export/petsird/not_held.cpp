#include "tools/petlm/export/petsird/not_held.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/coverage/unknown.hpp"

namespace petacq::petsird {
namespace {

class Phrases {
  public:
    explicit Phrases(const RunFacts& facts)
        : facts_(facts), options_(facts.options), rules_(*facts.source.coverage().rules.coincidence) {}

    std::vector<std::string> all() {
        bins();
        scanner();
        kinds_of_records();
        examination();
        said_.emplace_back(
            "attenuation, scatter, randoms by pair, dead time of pairs, decay: no correction is written");
        if (!facts_.normalised)
            said_.emplace_back("normalisation and calibration: not known (--normalisation)");
        return std::move(said_);
    }

  private:
    template <class Value>
    [[nodiscard]] bool all_types_have(std::optional<Value> ModuleType::*value) const {
        return std::all_of(facts_.bins.types.begin(), facts_.bins.types.end(),
                           [&](const ModuleType& type) { return (type.*value).has_value(); });
    }

    void bins() {
        said_.push_back(fmt::format("times: known to {} ms, the length of a time block ({} ps in the run)",
                                    options_.block_ms, facts_.scanner.tick_ps));
        const daemon::Coverage& coverage = facts_.source.coverage();
        const std::uint32_t count = facts_.bins.pair_energies.count;
        said_.push_back(fmt::format("energies: {} from {} to {} keV",
                                    count == 1 ? std::string("one bin") : fmt::format("{} bins", count),
                                    facts_.bins.lowest_keV(), facts_.bins.highest_keV()));
        if (!daemon::tells(coverage, daemon::unknown_energies))
            said_.emplace_back("energies: not known of any photon, the one bin has all");
        if (!daemon::tells(coverage, daemon::unknown_dt)) {
            said_.emplace_back("time differences: not known, one TOF bin has all");
        } else if (options_.tof_bin_ticks == 0) {
            said_.emplace_back("time differences: left out");
        } else if (options_.tof_bin_ticks > 1) {
            said_.push_back(fmt::format("time differences: in bins of {} ticks", options_.tof_bin_ticks));
        }
        if (facts_.bins.tof_bin_ticks != 0 && !options_.tof_resolution_ps &&
            !all_types_have(&ModuleType::time_resolution_ps))
            said_.emplace_back("TOF resolution: not known, written as 0");
        if (!options_.energy_resolution && !all_types_have(&ModuleType::energy_resolution))
            said_.emplace_back("energy resolution: not known, written as 0");
    }

    void scanner() {
        if (facts_.scanner.is_ring()) {
            said_.emplace_back("material of the crystals: not known");
        } else {
            said_.emplace_back("BDMs and DUs: the format numbers modules and their elements");
            const auto rule = facts_.scanner.long_form->find("good_pairs");
            for (const char* key : {"max_z_difference_mm", "cylinder", "box"}) {
                if (rule != facts_.scanner.long_form->end() && rule->is_object() && rule->contains(key) &&
                    !rule->at(key).is_null())
                    said_.push_back(fmt::format("good_pairs/{}: the format has no place for it", key));
            }
        }
        if (rules_.max_ring_difference) {
            said_.push_back(fmt::format("max_ring_difference {}: the format has no place for it",
                                        *rules_.max_ring_difference));
        }
    }

    void kinds_of_records() {
        if (facts_.source.may_hold_delayeds()) {
            said_.emplace_back(options_.no_delayeds ? "delayed coincidences: left out"
                                                    : "the delay of delayed coincidences, and their weight");
        }
        if (facts_.triples && !facts_.bins.gamma_energy) said_.emplace_back("triples: left out");
        if (facts_.bins.gamma_energy) {
            said_.emplace_back(
                "triples with a delayed gamma, and those of delayed pairs: the format has no place for them");
            said_.emplace_back(
                "the rules of the gammas but their energies, and the efficiency for gammas, written as 0");
        }
        if (facts_.singles) said_.emplace_back("singles: not converted one by one");
        if (rules_.multiples_policy != config::MultiplesPolicy::remove_multiples) {
            said_.emplace_back(
                "which pairs come from one group of three or more: the pairs are prompts like others");
        }
    }

    void examination() {
        const nlohmann::json said = facts_.source.said_by_operator();
        if (options_.version == Version::v0_9_1) {
            for (const auto& [key, value] : said.items()) {
                if (key == "subject" || key == "bed_mm") continue;
                said_.emplace_back(
                    "nuclide, activity and keys of the operator: the header has no place for them");
                break;
            }
            return;
        }
        if (const auto& activity = facts_.source.coverage().activity) {
            said_.emplace_back(
                "half-life and branching ratio of the nuclide: the header has no place for them");
            if (!activity->assay) {
                said_.emplace_back(
                    "activity and time of its administration: not known, written as 0 and the start");
            }
        }
        const auto note = facts_.source.run().find("note");
        if (note != facts_.source.run().end() && note->is_string() && *note != "")
            said_.emplace_back("the note: the header has no place for it");
        const auto keys = said.find("keys");
        if (keys != said.end() && !keys->empty())
            said_.emplace_back("keys of the operator: the header has no place for them");
    }

    const RunFacts& facts_;
    const PetsirdOptions& options_;
    const config::Coincidence& rules_;
    std::vector<std::string> said_;
};

}  // namespace

std::vector<std::string> not_held(const RunFacts& facts) {
    return Phrases(facts).all();
}

}  // namespace petacq::petsird
