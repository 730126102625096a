#include "tools/petlm/plot/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {
namespace {

using nlohmann::json;

const json* value_at(const json& object, const char* pointer) {
    const json::json_pointer place(pointer);
    return object.is_object() && object.contains(place) ? &object.at(place) : nullptr;
}

std::string string_at(const json& object, const char* pointer) {
    const json* text = value_at(object, pointer);
    return text != nullptr && text->is_string() ? text->get<std::string>() : "";
}

std::optional<std::int64_t> count_at(const json& object, const char* pointer) {
    const json* count = value_at(object, pointer);
    return count != nullptr && count->is_number_integer() ? std::optional(count->get<std::int64_t>())
                                                          : std::nullopt;
}

/// "2 datagrams were lost (4.2e-05 %); 4,797,798 were received.": good up to the share at which the daemon
/// complained.
std::optional<Judgement> judgement_of_loss(const json& run) {
    const auto lost = count_at(run, "/ledger/datagrams/lost");
    const auto received = count_at(run, "/ledger/datagrams/received");
    if (!lost || !received || *lost < 0 || *received < 0 || *lost + *received == 0) return {};
    const std::string all = grouped(static_cast<std::uint64_t>(*received));
    if (*lost == 0) return Judgement{true, fmt::format("No datagram was lost; {} were received.", all)};
    // As the picture of the loss over time counts them: of those that were sent, without duplicates.
    const auto accepted = count_at(run, "/ledger/datagrams/accepted").value_or(*received);
    const double fraction = static_cast<double>(*lost) / static_cast<double>(*lost + accepted);
    const json* most = value_at(run, "/configuration/health/max_loss_fraction");
    const bool good = most != nullptr && most->is_number() && fraction <= most->get<double>();
    return Judgement{good, fmt::format("{} datagrams were lost ({:.2g} %); {} were received.",
                                       grouped(static_cast<std::uint64_t>(*lost)), 100 * fraction, all)};
}

/// What the daemon found, besides what the state of the run says. Runs of earlier versions have no verdict.
std::vector<Judgement> reasons_of(const json& run) {
    std::vector<Judgement> judgements;
    const json* state = value_at(run, "/verdict/state");
    const json* reasons = value_at(run, "/verdict/reasons");
    if (state == nullptr || reasons == nullptr || !reasons->is_array()) return judgements;
    if (*state == "good") judgements.push_back({true, "The verdict on this run is good."});
    for (const json& reason : *reasons) {
        const std::string code = string_at(reason, "/code");
        if (code == "run_failed" || code == "ledger_open") continue;
        judgements.push_back({false, string_at(reason, "/message") + '.'});
    }
    return judgements;
}

}  // namespace

std::vector<Judgement> verdict_of(const json& run, const PictureData& data) {
    std::vector<Judgement> verdict;
    if (const std::string state = string_at(run, "/state"); !state.empty()) {
        const std::string reason = string_at(run, "/stop_reason");
        // A reason may begin with the state: "interrupted: the daemon was killed".
        const std::string what = reason.empty()              ? state
                                 : reason.starts_with(state) ? reason
                                                             : state + ": " + reason;
        verdict.push_back({state == "complete", fmt::format("The state of this run is {}.", what)});
    }
    if (const json* closed = value_at(run, "/ledger/closed"); closed != nullptr) {
        verdict.push_back(*closed == true
                              ? Judgement{true, "The ledger is closed: everything is accounted for."}
                              : Judgement{false, "The ledger is not closed."});
    }
    const std::vector<Judgement> reasons = reasons_of(run);
    verdict.insert(verdict.end(), reasons.begin(), reasons.end());
    if (auto judgement = judgement_of_loss(run); judgement && (judgement->good || reasons.empty()))
        verdict.push_back(std::move(*judgement));
    for (const std::string* trouble : {&data.ledger_trouble, &data.seconds_trouble}) {
        if (!trouble->empty()) verdict.push_back({false, *trouble});
    }
    if (data.detector && !data.detector->run.empty()) {
        const std::size_t faults = data.detector->count();
        const auto& modules = data.detector->run;
        const bool examined =
            std::any_of(modules.begin(), modules.end(), [](const auto& m) { return m.singles > 0; });
        verdict.push_back(
            {faults == 0 && examined,
             !examined ? "It is unknown whether the detector has a fault: no single was accepted."
             : faults == 0
                 ? "No fault of the detector was found."
                 : fmt::format("Faults of the detector: {}; they are listed below.", grouped(faults))});
    }
    return verdict;
}

}  // namespace petacq::petlm
