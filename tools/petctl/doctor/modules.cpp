// Which modules send, and whether the scanner description has them at these sources.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tools/petctl/doctor/evidence.hpp"
#include "tools/petctl/doctor/source_list.hpp"
#include "tools/petctl/text/sources.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using daemon::Level;
using nlohmann::json;

namespace {

/// The BDMs of sources that may send; empty: any may.
std::set<unsigned> bdms_in_use(const Evidence& evidence) {
    std::set<unsigned> all;
    for (const json& source : list(evidence.after, {"reception", "listed"}))
        all.merge(bdms_of(source));
    return all;
}

void judge_singles(const Evidence& evidence, const json& modules, Diagnosis& diagnosis) {
    const std::set<unsigned> in_use = bdms_in_use(evidence);
    std::set<unsigned> missing;
    std::size_t expected = 0;
    for (const json& module : modules) {
        const auto bdm = static_cast<unsigned>(number(at(module, {"bdm"})));
        if (!in_use.empty() && !in_use.contains(bdm)) continue;
        ++expected;
        if (number(at(module, {"singles_per_s"})) <= 0) missing.insert(bdm);
    }
    if (missing.empty()) {
        diagnosis.add(Level::good, "modules", fmt::format("singles from all {} BDMs", expected));
    } else if (missing.size() == expected) {
        diagnosis.add(Level::problem, "modules", "no BDM has singles",
                      "put right what is named above and below first");
    } else {
        diagnosis.add(Level::warning, "modules", fmt::format("no singles from BDM {}", ranges(missing)),
                      "their power, cables and thresholds; is the number of the BDM set in its board?");
    }
}

/// By how much all BDMs of a sender are too high, if that explains them; 0: it does not.
int shift_of(const std::set<unsigned>& seen, const std::set<unsigned>& own) {
    if (seen.empty() || own.empty() || 2 * seen.size() < own.size()) return 0;
    const int first = static_cast<int>(*seen.begin());
    std::vector<int> shifts;
    shifts.reserve(own.size());
    for (const unsigned bdm : own)
        shifts.push_back(first - static_cast<int>(bdm));
    // The smallest first, of two that are equal the one upwards.
    std::sort(shifts.begin(), shifts.end(),
              [](int a, int b) { return std::tuple(std::abs(a), -a) < std::tuple(std::abs(b), -b); });
    for (const int shift : shifts) {
        const auto fits = [&](unsigned bdm) {
            const int meant = static_cast<int>(bdm) - shift;
            return meant >= 0 && own.contains(static_cast<unsigned>(meant));
        };
        if (shift != 0 && std::all_of(seen.begin(), seen.end(), fits)) return shift;
    }
    return 0;
}

/// The BDMs of the scanner description; their numbers may have gaps.
std::set<unsigned> described_bdms(const json& modules) {
    std::set<unsigned> bdms;
    for (const json& module : modules)
        bdms.insert(static_cast<unsigned>(number(at(module, {"bdm"}))));
    return bdms;
}

bool contains_all(const std::set<unsigned>& all, const std::set<unsigned>& some) {
    return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

/// Of the senders with BDMs that are not theirs. Returns whether the sources of the description are to be
/// written anew.
bool judge_places(const Evidence& evidence, const std::set<unsigned>& shared, const json& modules,
                  Diagnosis& diagnosis) {
    const std::set<unsigned> described = described_bdms(modules);
    const bool all = described.empty() || *described.rbegin() + 1 == described.size();
    const std::string allowed = "the scanner description has BDM " +
                                (all ? fmt::format("0 to {}", modules.size() - 1) : ranges(described));
    std::vector<std::string> misplaced;
    bool mistaken_boards = false;
    for (const auto& [name, sender] : evidence.seen.senders) {
        if (name.second && shared.contains(*name.second)) continue;
        const std::set<unsigned>& seen = sender.modules;
        const json* const entry = listed(evidence, name);
        const std::set<unsigned> own = entry == nullptr ? std::set<unsigned>() : bdms_of(*entry);
        const bool beyond = !contains_all(described, seen);
        if (!beyond && (own.empty() || contains_all(own, seen))) continue;
        const std::string sends = fmt::format("{} sends BDM {}", sender_name(name), ranges(seen));
        if (const int shift = shift_of(seen, own); shift != 0) {
            mistaken_boards = true;
            diagnosis.add(
                Level::problem, "modules",
                fmt::format("{}, the scanner description lists {} for it: all are {} too {}{}", sends,
                            ranges(own), shift == 1 || shift == -1 ? "one" : std::to_string(std::abs(shift)),
                            shift > 0 ? "high" : "low", shift == 1 ? ", counted from 1?" : ""),
                "correct the BDM numbers in the board (or its source id, if it is another board)");
        } else if (beyond) {
            mistaken_boards = true;
            diagnosis.add(Level::problem, "modules", fmt::format("{}: {}", sends, allowed),
                          "correct the BDM number in the board, or the scanner description");
        } else {
            std::set<unsigned> strange;
            std::set_difference(seen.begin(), seen.end(), own.begin(), own.end(),
                                std::inserter(strange, strange.end()));
            misplaced.push_back(fmt::format("{} of {}", ranges(strange), sender_name(name)));
        }
    }
    if (misplaced.empty()) return false;
    diagnosis.add(
        Level::problem, "modules",
        fmt::format("BDM {}: the scanner description lists them for another source", joined(misplaced)),
        "correct the numbers in the boards, or bdms of the sources");
    return !mistaken_boards;
}

}  // namespace

bool judge_modules(const Evidence& evidence, const std::set<unsigned>& shared, Diagnosis& diagnosis) {
    const json& modules = list(evidence.after, {"modules"});
    const bool sources =
        evidence.seen.sure_of_framing() && judge_places(evidence, shared, modules, diagnosis);
    judge_singles(evidence, modules, diagnosis);
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
    const CompleteList complete = complete_sources(evidence.after, evidence.seen);
    if (!complete.consistent) return;  // boards would have to share a BDM: it is for them to be put right
    const std::string changes =
        complete.changes.empty() ? "as it is" : "changed: " + joined(complete.changes);
    diagnosis.write("the scanner description (" + changes + ")", "    \"sources\": " + complete.sources);
}

}  // namespace petacq::petctl
