// Which modules send, and whether the scanner description has them at these sources.
#include <fmt/core.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/petctl/doctor/evidence.hpp"
#include "tools/petctl/doctor/source_list.hpp"
#include "tools/petctl/sources.hpp"
#include "tools/petctl/values.hpp"

namespace petacq::petctl {

using daemon::Level;
using nlohmann::json;

namespace {

void judge_singles(const json& modules, Diagnosis& diagnosis) {
    std::vector<std::string> missing;
    for (const json& module : modules)
        if (number(at(module, {"singles_per_s"})) <= 0) missing.push_back(at(module, {"bdm"}).dump());
    if (missing.empty()) {
        diagnosis.add(Level::good, "modules", fmt::format("singles from all {} BDMs", modules.size()));
    } else if (missing.size() == modules.size()) {
        diagnosis.add(Level::problem, "modules", "no BDM has singles",
                      "put right what is named above and below first");
    } else {
        diagnosis.add(Level::warning, "modules", fmt::format("no singles from BDM {}", joined(missing)),
                      "their power, cables and thresholds; is the number of the BDM set in its board?");
    }
}

/// What the samples say about modules, against the scanner description. Returns whether its sources are
/// wrong.
bool judge_places(const Evidence& evidence, const json& modules, Diagnosis& diagnosis) {
    std::vector<std::string> beyond;
    std::vector<std::string> misplaced;
    for (const auto& [name, sender] : evidence.seen.senders) {
        const json* const entry = listed(evidence, name);
        for (const unsigned bdm : sender.modules) {
            const std::string who = fmt::format("{} of {}", bdm, sender_name(name));
            if (bdm >= modules.size()) {
                beyond.push_back(who);
            } else if (entry != nullptr && !bdms_of(*entry).contains(bdm)) {
                misplaced.push_back(who);
            }
        }
    }
    if (!beyond.empty()) {
        diagnosis.add(Level::problem, "modules",
                      fmt::format("BDM {}: the scanner description has BDM 0 to {}", joined(beyond),
                                  modules.size() - 1),
                      "correct the BDM number in the board, or geometry of the scanner description");
    }
    if (!misplaced.empty()) {
        diagnosis.add(
            Level::problem, "modules",
            fmt::format("BDM {}: the scanner description lists them for another source", joined(misplaced)),
            "correct bdms of the sources as below");
    }
    return !misplaced.empty();
}

}  // namespace

bool judge_modules(const Evidence& evidence, Diagnosis& diagnosis) {
    const json& modules = list(evidence.after, {"modules"});
    const bool sources = evidence.seen.sure_of_framing() && judge_places(evidence, modules, diagnosis);
    judge_singles(modules, diagnosis);
    return sources;
}

void write_sources(const Evidence& evidence, Diagnosis& diagnosis) {
    if (evidence.other_framing()) {
        diagnosis.write(
            "the scanner description (bdms: of a few samples; petctl sources has all of them when the "
            "framing "
            "is right)",
            "    \"sources\": " + list_text(sampled_sources(evidence.seen)));
        return;
    }
    const json heard = heard_sources(evidence.after, evidence.seen);
    std::string remark = "bdms: seen so far";
    if (const std::string left_out = joined(not_heard(evidence.after, heard)); !left_out.empty())
        remark += "; configured but silent, and not in this list: " + left_out;
    diagnosis.write("the scanner description (" + remark + ")", "    \"sources\": " + list_text(heard));
}

}  // namespace petacq::petctl
