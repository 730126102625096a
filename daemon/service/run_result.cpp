#include "daemon/service/run_result.hpp"

#include <nlohmann/json.hpp>

#include "daemon/system/logging.hpp"

namespace petacq::daemon {

bool RunResult::failed() const {
    return !failure.empty() || !ledger.open_identities().empty();
}

nlohmann::json stop_answer(const RunResult& result, const config::Configuration& configuration) {
    const auto if_saved = [](bool saved, std::uint64_t records) {
        return saved ? nlohmann::json(records) : nlohmann::json();
    };
    nlohmann::json answer = {
        {"run", result.id},
        {"began", result.began},
        {"reason", result.reason},
        {"seconds", result.seconds},
        {"prompts", if_saved(configuration.listmode.write_coincidences, result.ledger.pairs.prompts_found)},
        {"delayeds", if_saved(configuration.listmode.write_coincidences, result.ledger.pairs.delayeds_found)},
        {"singles", if_saved(configuration.listmode.write_singles, result.ledger.saved_singles.found)},
        {"triples", if_saved(configuration.finds_triples(), result.ledger.gammas.triples)},
        {"delayed_triples", if_saved(configuration.finds_triples(), result.ledger.gammas.delayed)},
        {"ledger_closed", result.ledger.open_identities().empty()},
        {"ledger", to_json(result.ledger)},
        {"verdict", to_json(result.verdict)},
        {"failure", nullptr},
        {"capture", nullptr}};
    if (!result.failure.empty()) answer["failure"] = result.failure;
    if (result.capture) answer["capture"] = to_json(*result.capture);
    return answer;
}

EndedRun ended_run(const RunResult& result) {
    std::string reason = result.failed() ? "the ledger does not close" : result.reason;
    if (!result.failure.empty()) reason = result.failure;
    return {result.id, std::chrono::system_clock::now(), std::move(reason), result.failed(),
            name_of(result.verdict.state)};
}

void log_result(const RunResult& result, const config::Configuration& configuration) {
    if (!result.failure.empty()) {
        log_error("run {} failed: {}", result.id, result.failure);
    } else {
        log_info("run {} complete ({}): {}", result.id, result.reason,
                 records_text(result.ledger, configuration));
    }
    if (result.capture && result.capture->counts.dropped > 0) {
        log_warning("run {}: the raw capture lacks {} of {} datagrams", result.id,
                    result.capture->counts.dropped, result.capture->counts.offered);
    }
    for (const RunVerdict::Reason& reason : result.verdict.reasons)
        log_warning("run {}: {}", result.id, reason.message);
    for (const std::string& identity : result.ledger.open_identities())
        log_error("run {}: the ledger does not close: {}", result.id, identity);
}

}  // namespace petacq::daemon
