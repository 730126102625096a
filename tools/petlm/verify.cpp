#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>

#include "config/base/answer.hpp"
#include "config/base/colour.hpp"
#include "config/base/sha256.hpp"
#include "daemon/listmode/reader.hpp"
#include "daemon/listmode/set.hpp"
#include "daemon/system/progress_line.hpp"
#include "net/base/mutex.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/commands.hpp"
#include "tools/petlm/records/in_order.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/run.hpp"
#include "tools/petlm/records/seconds_check.hpp"

namespace petacq::petlm {
namespace {

using namespace nlohmann::literals;

constexpr std::uint64_t max_reported = 20;  // problems of records per file

/// Checks the records of one file.
class RecordCheck {
  public:
    RecordCheck(const daemon::ListModeReader& reader, std::string& text) : reader_(reader), text_(text) {
        const auto crystals = reader.description().find("crystals");
        if (crystals != reader.description().end() && crystals->is_number_unsigned()) {
            crystal_count_ = crystals->get<std::uint64_t>();
        }
        if (reader.kind() == daemon::RecordKind::seconds) describe_seconds();
        if (reader.description().contains("coverage")) {
            report_unreadable(
                [&] { covered_ = daemon::coverage_of(reader.description(), nullptr, false).intervals; });
            // Records of one time may lie on both sides of the boundary between two parts of a run.
            if (covered_ && reader.description().contains("part")) {
                const gpu::TickRange span = covered_->span();
                covered_ = covered_->unite(gpu::TickRange{span.end, span.end + 1});
            }
        }
    }
    void block() {
        first_of_pair_.reset();
        if (reader_.kind() == daemon::RecordKind::seconds) return seconds_of_block();
        with_records(reader_, [this](auto all) {
            using Record = std::remove_const_t<typename decltype(all)::element_type>;
            records(all, std::get<std::optional<Record>>(last_));
        });
    }
    /// Of a file of seconds whose header describes them.
    [[nodiscard]] const std::optional<SecondsCheck>& seconds() const { return seconds_; }
    std::uint64_t prompts = 0;
    std::uint64_t problems = 0;

  private:
    template <class Record>
    void records(std::span<const Record> all, std::optional<Record>& last) {
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (last && !follows(*last, all[i])) report(i, "is not in order");
            last = all[i];
            fields(i, all[i]);
            const std::uint64_t time = daemon::time_of(all[i]);
            if (!covers({time, time + 1})) report_outside(i);
        }
    }
    template <class Record>
    bool follows(const Record& last, const Record& next) {
        return daemon::in_order(last, next);
    }
    /// Pairs that are equal have the same triples: those of the second start again with the first.
    bool follows(const gpu::Triple& last, const gpu::Triple& next) {
        const bool same_pair =
            daemon::in_order(next.pair, last.pair) && daemon::in_order(last.pair, next.pair);
        if (!same_pair) {
            first_of_pair_ = next;
            return daemon::in_order(last, next);
        }
        if (daemon::in_order(last, next)) return true;
        // A block may begin amid the triples of a pair.
        return !first_of_pair_ ||
               (daemon::in_order(*first_of_pair_, next) && daemon::in_order(next, *first_of_pair_));
    }
    void fields(std::size_t i, const gpu::Coincidence& pair) {
        if (pair.kind == gpu::Kind::prompt) {
            ++prompts;
        } else if (pair.kind != gpu::Kind::delayed) {
            report(i, "is neither prompt nor delayed");
        }
        if (pair.crystal_a >= crystal_count_ || pair.crystal_b >= crystal_count_) report_crystal(i);
    }
    void fields(std::size_t i, const gpu::Triple& triple) {
        if (triple.pair.kind > gpu::Kind::delayed) report(i, "is neither prompt nor delayed");
        if (triple.third > gpu::ThirdPhoton::delayed)
            report(i, "has a gamma that is neither coincident nor delayed");
        if (triple.pair.crystal_a >= crystal_count_ || triple.pair.crystal_b >= crystal_count_ ||
            triple.gamma_crystal >= crystal_count_)
            report_crystal(i);
    }
    void fields(std::size_t i, const gpu::Single& single) {
        if (single.crystal >= crystal_count_) report_crystal(i);
    }
    void fields(std::size_t i, const gpu::Tag& tag) {
        constexpr std::uint8_t channels = 16;
        if (tag.channel >= channels) report(i, "has a channel beyond 15");
    }
    void describe_seconds() {
        report_unreadable([&] { seconds_.emplace(reader_.description(), reader_.header().record_bytes); });
    }
    /// `read` reads a part of the description.
    template <class Read>
    void report_unreadable(Read read) {
        try {
            read();
        } catch (const std::invalid_argument& error) {
            ++problems;
            text_ += fmt::format("{}: {}\n", reader_.path().string(), error.what());
        }
    }
    /// Whether the file says that it covers all of these times, or does not say what it covers.
    bool covers(gpu::TickRange times) {
        if (!covered_) return true;
        // No set holds 2^64-1, the last tick of a file that covers all times from then on.
        if (times.end == 0) times = {times.start - 1, times.start};
        if (times.start < covering_.start || times.end > covering_.end)
            covering_ = covered_->range_at(times.start);
        return covering_.start <= times.start && times.end <= covering_.end;
    }
    void report_outside(std::size_t i) { report(i, "is of a time that the file does not cover"); }
    void seconds_of_block() {
        if (!seconds_) return;
        const std::size_t bytes = reader_.header().record_bytes;
        for (std::size_t i = 0; i < reader_.block().records; ++i) {
            const std::string wrong = seconds_->next(reader_.payload().subspan(i * bytes, bytes));
            if (!wrong.empty()) report(i, wrong);
            if (!covers(seconds_->last())) report_outside(i);
        }
    }
    void report_crystal(std::size_t i) {
        report(i, "has a crystal beyond the scanner's " + std::to_string(crystal_count_));
    }
    void report(std::size_t i, const std::string& what) {
        if (++problems <= max_reported) {
            text_ += fmt::format("{}: record {} (block {}) {}\n", reader_.path().string(),
                                 reader_.block().first_record + i, reader_.block().number, what);
        }
    }

    const daemon::ListModeReader& reader_;
    std::string& text_;
    std::uint64_t crystal_count_ = UINT64_MAX;
    std::tuple<std::optional<gpu::Coincidence>, std::optional<gpu::Single>, std::optional<gpu::Tag>,
               std::optional<gpu::Triple>>
        last_;
    std::optional<gpu::Triple> first_of_pair_;  ///< if the block has it
    std::optional<SecondsCheck> seconds_;
    std::optional<daemon::Intervals> covered_;  ///< absent: the file does not say
    gpu::TickRange covering_;                   ///< of these, the one with the last record
};

/// Numbers of records in a file, or in all files of a run.
struct Totals {
    std::uint64_t pairs = 0;
    std::uint64_t prompts = 0;
    std::optional<std::uint64_t> singles;
    std::optional<std::uint64_t> triples;
    std::optional<std::uint64_t> tags;
    std::optional<SecondsTotals> seconds;

    void operator+=(const Totals& other) {
        pairs += other.pairs;
        prompts += other.prompts;
        if (other.singles) singles = singles.value_or(0) + *other.singles;
        if (other.triples) triples = triples.value_or(0) + *other.triples;
        if (other.tags) tags = tags.value_or(0) + *other.tags;
        if (other.seconds) seconds = other.seconds;  // a run has one file of them
    }
};

/// The result for one file.
struct FileVerdict {
    int status = ok;
    std::string text;  ///< lines for the operator
    Totals totals;
    nlohmann::json document;  ///< the same for programs
};

/// Takes lines that end in \n, and their colour.
using Say = std::function<void(const std::string& text, const char* colour)>;

/// Called with the bytes that were read. Thread-safe.
using AddProgress = std::function<void(std::uint64_t)>;

FileVerdict verify_file(const std::filesystem::path& file, const AddProgress& add_progress) {
    daemon::ListModeReader reader(file);
    FileVerdict verdict;
    RecordCheck check(reader, verdict.text);
    config::Sha256 digest;
    while (reader.next()) {
        digest.add(reader.payload());
        check.block();
        add_progress(sizeof(daemon::BlockHeader) + reader.payload().size());
    }
    const auto& condition = reader.condition();
    const std::string name = reader.path().string();
    std::string& text = verdict.text;
    for (const auto& damage : condition.damage) {
        const std::string where = damage.file.empty() ? name : (file.parent_path() / damage.file).string();
        text += fmt::format("{}: offset {}: {}", where, damage.offset, damage.what);
        if (damage.bytes != 0) text += fmt::format(", {} bytes not readable", damage.bytes);
        text += '\n';
    }
    if (condition.damage_count > condition.damage.size()) {
        text += fmt::format("{}: {} more faults\n", name, condition.damage_count - condition.damage.size());
    }
    if (check.problems > max_reported) {
        text += fmt::format("{}: {} more records with problems\n", name, check.problems - max_reported);
    }
    const std::string sha256 = digest.text();  // only once
    text += name + ": " + condition.summary();
    if (reader.kind() == daemon::RecordKind::coincidences) {
        text += fmt::format(" ({} prompt, {} delayed)", check.prompts, condition.records - check.prompts);
    }
    text += fmt::format("\n{}: payload crc32c {:08x} sha256 {}\n", name, condition.payload_crc, sha256);
    const bool clean = condition.state == daemon::FileState::complete && check.problems == 0;
    verdict.status = clean ? ok : has_problems;
    verdict.document = {{"file", name},
                        {"good", clean},
                        {"complete", condition.state == daemon::FileState::complete},
                        {"kind", daemon::name_of(reader.kind())},
                        {"records", condition.records},
                        {"problems_of_records", check.problems},
                        {"payload_crc32c", fmt::format("{:08x}", condition.payload_crc)},
                        {"payload_sha256", sha256}};
    if (reader.kind() == daemon::RecordKind::coincidences) {
        verdict.document["prompts"] = check.prompts;
        verdict.document["delayeds"] = condition.records - check.prompts;
    }
    if (reader.kind() == daemon::RecordKind::coincidences) {
        verdict.totals = {condition.records, check.prompts, {}, {}, {}, {}};
    } else if (reader.kind() == daemon::RecordKind::triples) {
        verdict.totals.triples = condition.records;
    } else if (reader.kind() == daemon::RecordKind::tags) {
        verdict.totals.tags = condition.records;
    } else if (reader.kind() == daemon::RecordKind::singles) {
        verdict.totals.singles = condition.records;
    } else if (check.seconds()) {
        verdict.totals.seconds = check.seconds()->totals();
    }
    return verdict;
}

FileVerdict verify_any(const std::filesystem::path& file, const AddProgress& add_progress) {
    FileVerdict verdict;
    try {
        return verify_file(file, add_progress);
    } catch (const daemon::NotListMode& error) {
        verdict.status = bad_data;
        verdict.text = error.what();
    } catch (const std::system_error& error) {
        verdict.status = io_failure;
        verdict.text = error.what();
    }
    verdict.text += '\n';
    verdict.document = {{"file", file.string()}, {"good", false}};
    return verdict;
}

std::uint64_t bytes_of(const std::vector<std::filesystem::path>& files) {
    std::uint64_t sum = 0;
    for (const auto& file : files)
        sum += daemon::bytes_of_files(file);
    return sum;
}

/// What run.json says about the coverage must agree with the files that say something.
template <class Problem>
void verify_coverage(const std::filesystem::path& directory, const nlohmann::json& run, bool recovered,
                     Problem problem) {
    if (!run.contains("coverage")) return;
    try {
        const daemon::Coverage stated = daemon::coverage_of_run(run);
        for (const daemon::RecordKind kind : {daemon::RecordKind::coincidences, daemon::RecordKind::singles,
                                              daemon::RecordKind::triples, daemon::RecordKind::tags}) {
            try {
                const RecordSource files(directory, kind);
                const daemon::Coverage& found = files.coverage();
                if (!files.description().contains("coverage")) {
                    if (recovered) return;
                    continue;
                }
                if (found.intervals != stated.intervals) {
                    problem(
                        fmt::format("its coverage has other intervals than its {}", daemon::name_of(kind)));
                }
                const bool has_rules = kind == daemon::RecordKind::coincidences;
                if (has_rules && to_json(found).at("rules") != to_json(stated).at("rules"))
                    problem("its coverage has other rules than its coincidences");
                // Of each kind something else may have survived.
                if (recovered) return;
            } catch (const daemon::NotListMode&) {
                // the run has none of them, or a file that was reported
            }
        }
    } catch (const std::exception& error) {
        problem(error.what());
    }
}

/// The ledger in run.json must agree with the files.
int verify_run(const std::filesystem::path& directory, const Totals& totals, const Say& say) {
    std::string why;
    const auto run = run_json(directory, why);
    if (run.is_null()) {
        say(why + '\n', config::colour::bad);
        return has_problems;
    }
    int status = ok;
    const auto problem = [&](const std::string& what) {
        say(directory.string() + "/run.json: " + what + '\n', config::colour::bad);
        status = has_problems;
    };
    const std::string state = state_of_run(directory, run);
    if (state == "recovered" || state == "partial") {
        say(directory.string() + ": " + state + "; run.json says what is missing\n", config::colour::warning);
    } else if (state != "complete") {
        problem("the run's state is \"" + state + "\", expected \"complete\"" +
                (state == "interrupted" ? ": petlm recover saves what the run holds" : ""));
    }
    for (const auto& file : run.value("files", nlohmann::json::array())) {
        if (!file.is_object() || !file.contains("name") || !file["name"].is_string()) continue;
        const auto name = file["name"].get<std::string>();
        if (!std::filesystem::exists(directory / name)) problem("there is no " + name);
    }
    verify_coverage(directory, run, state == "recovered", problem);
    if (!run.contains("ledger")) return status;
    const auto compare = [&](const char* counter, std::uint64_t found, const char* where = "files") {
        const nlohmann::json::json_pointer at(std::string("/ledger") + counter);
        if (!run.contains(at)) {
            problem(std::string("the ledger has no ") + counter);
        } else if (run[at] != found) {
            problem(std::string("the ledger's ") + counter + " is " + run[at].dump() + ", the " + where +
                    " hold " + std::to_string(found));
        }
    };
    compare("/pairs/written", totals.pairs);
    const auto write_failed = "/ledger/pairs/write_failed"_json_pointer;
    if (run.contains(write_failed) && run[write_failed] == 0) {
        compare("/pairs/prompts_found", totals.prompts);
        compare("/pairs/delayeds_found", totals.pairs - totals.prompts);
    }
    if (totals.singles) compare("/saved_singles/written", *totals.singles);
    if (totals.triples) compare("/triples/written", *totals.triples);
    if (totals.tags) compare("/tags/written", *totals.tags);
    // A recovered run may lack seconds that its coincidences have.
    if (totals.seconds && state == "complete") {
        compare("/pairs/prompts_found", totals.seconds->prompts, "seconds");
        compare("/pairs/delayeds_found", totals.seconds->delayeds, "seconds");
    }
    return status;
}

/// Adds the files to `documents`.
int verify_target(const std::filesystem::path& target, const Say& say, nlohmann::json& documents) {
    std::vector<std::filesystem::path> files;
    try {
        files = listmode_files(target);
    } catch (const daemon::NotListMode& error) {
        say(std::string(error.what()) + '\n', config::colour::bad);
        return bad_data;
    }
    int status = ok;
    Totals totals;
    {
        daemon::ProgressLine progress("verifying " + target.filename().string(), bytes_of(files));
        net::Mutex mutex;
        std::uint64_t done = 0;
        const AddProgress add_progress = [&](std::uint64_t bytes) {
            const net::MutexLock lock(mutex);
            progress.show(done += bytes);
        };
        // The parts of a run in parallel: a digest keeps one core busy.
        InOrder<FileVerdict> verdicts([&](const FileVerdict& verdict) {
            const net::MutexLock lock(mutex);
            progress.clear();
            say(verdict.text, verdict.status == ok ? "" : config::colour::bad);
            documents.push_back(verdict.document);
            status = std::max(status, verdict.status);
            totals += verdict.totals;
        });
        for (const auto& file : files)
            verdicts.add([&file, &add_progress] { return verify_any(file, add_progress); });
        verdicts.finish();
    }
    if (std::filesystem::is_directory(target)) status = std::max(status, verify_run(target, totals, say));
    return status;
}

}  // namespace

int verify(const VerifyOptions& options) {
    int status = ok;
    nlohmann::json document = nlohmann::json::array();
    for (const auto& target : options.targets) {
        nlohmann::json files = nlohmann::json::array();
        nlohmann::json messages = nlohmann::json::array();
        const Say say = [&](const std::string& text, const char* colour) {
            if (!options.as_json) {
                config::print_coloured(text, colour);
                config::flush_output();
                return;
            }
            std::istringstream lines(text);
            for (std::string line; std::getline(lines, line);)
                messages.push_back(line);
        };
        const int of_target = verify_target(target, say, files);
        status = std::max(status, of_target);
        document.push_back({{"target", target.string()},
                            {"good", of_target == ok},
                            {"files", std::move(files)},
                            {"messages", std::move(messages)}});
    }
    if (options.as_json) {
        config::print_answer({{"targets", std::move(document)}}, "", true);
    }
    return status;
}

}  // namespace petacq::petlm
