#include "daemon/run/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "daemon/system/quantity_text.hpp"
#include "net/endpoint.hpp"

namespace petacq::daemon {

namespace {

/// Share of the data of the boards that may be missing besides lost datagrams: boards do not begin and end at
/// the same moment.
constexpr double max_missing = 0.01;
constexpr std::size_t max_named = 10;

/// With one of these, the data are not what they seem.
constexpr std::array bad_codes{"run_failed",     "ledger_open",      "records_unwritten",
                               "no_data",        "source_silent",    "sequence_meaningless",
                               "packets_unread", "too_many_sources", "boards_out_of_step",
                               "source_clock",   "only_tags"};
/// With one of these, if it concerns `bad_share` of the data or more. What is lost is corrected for, and
/// what is rejected is known: a little of it spoils no run.
constexpr std::array share_codes{"datagrams_lost", "data_missing",        "kernel_drops",
                                 "no_free_batch",  "invalid_frames",      "late_frames",
                                 "time_jumps",     "malformed_datagrams", "duplicates_suspected"};
constexpr double bad_share = 0.1;

class RunJudge {
  public:
    explicit RunJudge(const RunFacts& run) : run_(run) {}

    RunVerdict verdict() {
        if (!run_.failure.empty()) add("run_failed", "the run failed", run_.failure);
        for (const std::string& identity : run_.ledger.open_identities())
            add("ledger_open", "the ledger does not close", identity);
        records();
        if (run_.ledger.frames.received == 0 && run_.ledger.tags.received == 0)
            add("no_data", "the run has no frames",
                "check what the boards send, and to which address and port");
        for (std::size_t i = 0; i < run_.seen.sources.sources.size(); ++i)
            source(static_cast<std::uint32_t>(i));
        LedgerView view{run_.max_loss_fraction};
        view.gave_up = run_.seen.given_up > 0;
        view.frames_wanted = true;
        view.sources_replaced = run_.seen.sources.replaced > run_.seen.sources_at_start.replaced;
        take(find_ledger_problems(run_.ledger, view));
        missing_data();
        for (const DetectorFault& fault : run_.seen.detector)
            problems_.push_back(detector_problem(fault));
        take(run_.seen.reported);
        if (!run_.capture_failure.empty() || run_.capture_dropped > 0) {
            add("capture_incomplete",
                counted_text(run_.capture_dropped, "datagram") + " missing from the raw capture",
                run_.capture_failure);
        }
        if (!run_.ledger_series_failure.empty())
            add("ledger_series_incomplete", "the ledger over time failed", run_.ledger_series_failure);
        return said();
    }

  private:
    void add(const char* code, std::string what, std::string advice) {
        problems_.push_back({code, 0, std::move(what), std::move(advice)});
    }
    void take(std::vector<Problem> problems) {
        for (Problem& problem : problems)
            problems_.push_back(std::move(problem));
    }

    void records() {
        const std::uint64_t unwritten = run_.ledger.pairs.write_failed +
                                        run_.ledger.saved_singles.write_failed +
                                        run_.ledger.tags.write_failed;
        if (unwritten > 0)
            add("records_unwritten", counted_text(unwritten, "record") + " could not be written",
                "the disk failed or was full");
    }

    void source(std::uint32_t i) {
        const SourceStatus& now = run_.seen.sources.sources[i];
        const auto& earlier = run_.seen.sources_at_start.sources;
        const SourceStatus before = i < earlier.size() ? earlier[i] : SourceStatus{};
        const std::string name =
            run_.ledger.numbered ? fmt::to_string(now.id) : net::to_text({now.address, now.port});
        const bool listed = i < run_.seen.sources.expected;
        // Of a run that starts in the past, all datagrams may have come before it started.
        const bool heard = now.datagrams > before.datagrams || now.progress > run_.seen.taken_from;
        if (listed && !heard && run_.ledger.frames.received > 0)
            problems_.push_back(source_problem(source_silent, i, name, "sent nothing in the run"));
        if (now.unnumbered > before.unnumbered)
            problems_.push_back(sequence_problem(i, name, now.latest_numbers));
        if (now.wrong_seconds > before.wrong_seconds && now.latest_rate)
            problems_.push_back(rate_problem(i, name, *now.latest_rate));
        if (now.steps_back > before.steps_back)
            problems_.push_back(source_problem(source_stepped_back, i, name, source_stepped_back.does));
        const auto restarts = [](const SourceStatus& s) {
            return s.sequence.restarted - s.sequence.new_streams;
        };
        if (now.unnumbered == before.unnumbered && restarts(now) > restarts(before))
            problems_.push_back(source_problem(source_restarted, i, name, source_restarted.does));
    }

    /// Besides lost datagrams and boards that sent nothing.
    void missing_data() {
        const Ledger& ledger = run_.ledger;
        if (!run_.seen.live || !ledger.loss_known() || has("source_silent")) return;
        const auto lost = static_cast<double>(ledger.datagrams.lost);
        const auto received = static_cast<double>(ledger.datagrams.received);
        const double known = lost + received > 0 ? lost / (lost + received) : 0;
        const double missing = 1 - *run_.seen.live;
        if (!(missing > known + max_missing)) return;
        add("data_missing", fmt::format("{:.3g} % of the data of the boards did not arrive", 100 * missing),
            "boards were silent for a part of the run: the report shows when");
        problems_.back().size = missing;
    }

    [[nodiscard]] bool has(std::string_view code) const {
        return std::any_of(problems_.begin(), problems_.end(),
                           [&](const Problem& p) { return p.code == code; });
    }

    /// Problems of one code are one reason.
    [[nodiscard]] RunVerdict said() const {
        RunVerdict verdict;
        for (std::size_t i = 0; i < problems_.size(); ++i) {
            const std::string_view code = problems_[i].code;
            const bool told = std::any_of(verdict.reasons.begin(), verdict.reasons.end(),
                                          [&](const RunVerdict::Reason& r) { return r.code == code; });
            if (told) continue;
            const auto among = [&](const auto& codes) {
                return std::find(codes.begin(), codes.end(), code) != codes.end();
            };
            const bool bad = among(bad_codes) || (among(share_codes) && problems_[i].size >= bad_share);
            verdict.reasons.push_back({std::string(code), message_of(i), bad});
            verdict.state =
                std::max(verdict.state, bad ? RunVerdict::State::bad : RunVerdict::State::doubtful);
        }
        std::stable_partition(verdict.reasons.begin(), verdict.reasons.end(),
                              [](const RunVerdict::Reason& r) { return r.bad; });
        return verdict;
    }

    [[nodiscard]] std::string message_of(std::size_t first) const {
        const Problem& one = problems_[first];
        std::string names;
        std::size_t count = 0;
        for (const Problem& p : problems_) {
            if (std::string_view(p.code) != one.code) continue;
            if (++count <= max_named) names += (count == 1 ? "" : ", ") + p.name;
        }
        if (count == 1 || one.several.empty()) return one.message();
        return fmt::format("{} {}: {}{}; the first: {}", count, one.several, names,
                           count > max_named ? ", ..." : "", one.message());
    }

    const RunFacts& run_;
    std::vector<Problem> problems_;
};

}  // namespace

const char* name_of(RunVerdict::State state) {
    constexpr std::array names{"good", "doubtful", "bad"};
    return names.at(static_cast<std::size_t>(state));
}

nlohmann::json to_json(const RunVerdict& verdict) {
    nlohmann::json reasons = nlohmann::json::array();
    for (const RunVerdict::Reason& reason : verdict.reasons)
        reasons.push_back({{"code", reason.code}, {"message", reason.message}});
    return {{"state", name_of(verdict.state)}, {"reasons", std::move(reasons)}};
}

RunVerdict judge(const RunFacts& run) {
    return RunJudge(run).verdict();
}

}  // namespace petacq::daemon
