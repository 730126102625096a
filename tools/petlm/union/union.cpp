#include "tools/petlm/union/union.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "config/base/answer.hpp"
#include "config/base/json_file.hpp"
#include "daemon/run/directory.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/records/union/union_text.hpp"
#include "tools/petlm/resort/result/records_out.hpp"
#include "tools/petlm/resort/result/resorted_run.hpp"
#include "tools/petlm/resort/search/engines.hpp"
#include "tools/petlm/resort/search_whole.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"
#include "tools/petlm/union/growing_search.hpp"
#include "tools/petlm/union/origins.hpp"
#include "tools/petlm/union/stream.hpp"
#include "tools/petlm/union/united_singles.hpp"

namespace petacq::petlm {
namespace {

using nlohmann::json;

/// How often runs that are still written are looked at.
constexpr std::chrono::milliseconds look_interval(200);
constexpr const char* capture_file = "raw.pcap";

InputOptions input_of(const UnionOptions& options) {
    InputOptions input;
    input.runs = options.runs;
    return input;
}

/// The run that is written, as one whose singles are searched: run.json without what only one of the hosts
/// can say.
json united_document(const HeardStream& stream, const daemon::Coverage& covered) {
    json document = stream.first().document();
    for (const char* of_one_host :
         {"ledger", "verdict", "failure", "loss_known", "health", "files", "seconds"})
        document.erase(of_one_host);
    // The interval that was taken is wider than the coverage: replays of the capture go by it.
    gpu::TickRange taken = covered.span();
    document["state"] = "interrupted";
    document.erase("stop_reason");
    for (const HeardRun* run : stream.runs()) {
        const json& own = run->document();
        const auto taken_at = [&](const char* key, std::uint64_t otherwise) {
            const json::json_pointer at(std::string("/taken/") + key);
            const bool known = own.contains(at) && own[at].is_number_unsigned();
            return known ? own[at].get<std::uint64_t>() : otherwise;
        };
        taken.start = std::min(taken.start, taken_at("start_ticks", taken.start));
        taken.end = std::max(taken.end, taken_at("stop_ticks", taken.end));
        // A run that ended as it should covers the end.
        const daemon::Coverage coverage = run->coverage();
        const bool to_the_end = coverage.intervals && coverage.span().end == covered.span().end;
        if (!to_the_end || own.value("state", "") != "complete") continue;
        document["state"] = "complete";
        document["stop_reason"] = own.value("stop_reason", json());
    }
    document["taken"] = {{"start_ticks", taken.start}, {"stop_ticks", taken.end}};
    return document;
}

/// The one run that is searched.
Inputs inputs_of(const HeardStream& stream, const UnionOptions& options,
                 const std::filesystem::path& singles) {
    Inputs inputs;
    inputs.coverages.push_back(stream.coverage());
    inputs.runs.push_back(options.output);
    inputs.files_at.push_back(options.output);
    inputs.documents.push_back(united_document(stream, inputs.coverages.front()));
    inputs.singles.emplace_back(singles);
    inputs.ended.push_back(true);
    inputs.whole_blocks = true;
    for (const HeardRun* run : stream.runs())
        inputs.of_one_stream.push_back(
            {run->directory(), run->coverage().intervals.value_or(daemon::Intervals())});
    InputOptions everything;
    everything.runs = inputs.runs;
    settle_interval(inputs, everything);
    // Times in which no host has data.
    const daemon::Intervals gaps = daemon::Intervals(inputs.interval).without(inputs.searched);
    for (const gpu::TickRange& gap : gaps.ranges())
        inputs.missing.push_back({options.output.string(), gap});
    return inputs;
}

/// What the files of the union begin with: what is known of the run that began first before it has ended.
struct Beginning {
    const HeardRun* run = nullptr;
    daemon::Coverage coverage;
    json singles;  ///< the description in the header of the singles
    bool operator==(const Beginning& other) const { return run == other.run && singles == other.singles; }
};

/// Absent: no run has singles yet.
std::optional<Beginning> beginning_of(const HeardStream& stream) {
    Beginning beginning;
    for (const HeardRun* run : stream.runs())
        if (beginning.run == nullptr && run->singles() != nullptr) beginning.run = run;
    if (beginning.run == nullptr) return std::nullopt;
    if (stream.first().singles() != nullptr) beginning.run = &stream.first();
    daemon::Coverage& coverage = beginning.coverage = beginning.run->coverage();
    if (coverage.span().ticks() == 0 && !stream.ended()) return std::nullopt;
    // Known at the end.
    coverage.intervals.reset();
    coverage.open_ticks.reset();
    coverage.anchor.reset();
    coverage.loss = {};
    for (daemon::OriginRun& origin : coverage.origin.runs)
        origin.times.reset();
    beginning.singles = beginning.run->singles()->header_description();
    beginning.singles["coverage"] = daemon::to_json(coverage);
    return beginning;
}

/// The run as far as it is known when its files are created.
Inputs begun_inputs(const Beginning& beginning, const UnionOptions& options,
                    const std::filesystem::path& singles) {
    Inputs inputs;
    inputs.coverages.push_back(beginning.coverage);
    inputs.runs.push_back(options.output);
    inputs.files_at.push_back(options.output);
    inputs.documents.push_back(beginning.run->document());
    inputs.singles.push_back(SinglesFiles::followed(singles));
    inputs.ended.push_back(false);
    return inputs;
}

/// Adds the singles to the files of the run, and where the hits came from. `file`: run.json.
json complete_document(const std::filesystem::path& file, const Origins& origins, const UnitedSingles& united,
                       const std::filesystem::path& singles) {
    json document = config::read_json_file(file, config::max_run_json_bytes);
    document["united"] = to_json(origins);
    document["ledger"]["saved_singles"] = {
        {"found", united.hits()}, {"written", united.hits()}, {"write_failed", 0}, {"in_queue", 0}};
    document["files"].push_back(file_entry(
        part_of(Outputs::final_name(singles), united.hits(), united.times().start, united.times().end),
        daemon::RecordKind::singles));
    if (origins.capture) {
        const std::uint64_t datagrams = origins.capture->datagrams;
        document["capture"] = {{"file", capture_file},
                               {"datagrams_offered", datagrams},
                               {"datagrams_written", datagrams},
                               {"datagrams_dropped", 0},
                               {"bytes", std::filesystem::file_size(
                                             file.parent_path() / (std::string(capture_file) + ".partial"))},
                               {"failure", nullptr}};
    }
    write_text(Outputs::final_name(file), document.dump(2) + '\n');
    return document;
}

Engines engines_of(const json& document, const UnionOptions& options) {
    ResortOptions resort;
    resort.input = input_of(options);
    resort.output = options.output;
    resort.backend = options.backend;
    resort.threads = options.threads;
    Engines engines = engines_for(document, resort);
    const json listmode = document["configuration"].value("listmode", json::object());
    // Hosts that save singles alone have no search.
    engines.rules.search = listmode.value("write_coincidences", true);
    engines.configuration.listmode.write_coincidences = engines.rules.search;
    return engines;
}

void wait(HeardStream& stream) {
    std::this_thread::sleep_for(look_interval);
    stream.look();
}

/// Waits for the singles of a run, if the runs are followed.
Beginning await_beginning(HeardStream& stream) {
    while (true) {
        if (std::optional<Beginning> beginning = beginning_of(stream)) return *std::move(beginning);
        if (stream.ended()) {
            throw daemon::NotListMode(stream.runs().front()->directory().string() +
                                      ": none of the runs has singles; 'listmode.write_singles' saves them");
        }
        wait(stream);
    }
}

/// The singles and their coincidences, which grow as the runs do.
class GrowingUnion {
  public:
    GrowingUnion(HeardStream& stream, const UnionOptions& options, const std::filesystem::path& singles)
        : stream_(stream),
          options_(options),
          file_(singles),
          beginning_(await_beginning(stream)),
          engines_(engines_of(beginning_.run->document(), options)),
          singles_(singles, beginning_.run->singles()->block_bytes(), beginning_.singles,
                   engines_.scanner.geometry),
          search_(begun_inputs(beginning_, options, singles), engines_, options.output) {}

    /// Until all runs have ended. Returns why another union must begin, as what came late changes what was
    /// written; empty: this one holds.
    std::string follow() {
        std::size_t known = runs_that_began();
        while (true) {
            const bool ended = stream_.ended();
            const std::size_t by_now = runs_that_began();
            if (by_now != std::exchange(known, by_now) && beginning_of(stream_) != beginning_)
                return began_earlier;
            singles_.advance(stream_.runs());
            if (singles_.was_overtaken()) return "a run that came late has earlier hits";
            if (ended) return settle();
            search_.advance();
            wait(stream_);
        }
    }
    /// REQUIRES: follow() has returned, without a reason.
    ResortedRun finish(Outputs& outputs) { return search_.finish(*inputs_, outputs); }
    [[nodiscard]] const UnitedSingles& singles() const { return singles_; }
    [[nodiscard]] const Engines& engines() const { return engines_; }

  private:
    static constexpr const char* began_earlier = "another run began first";

    [[nodiscard]] std::size_t runs_that_began() const {
        const auto runs = stream_.runs();
        return static_cast<std::size_t>(
            std::count_if(runs.begin(), runs.end(), [](const HeardRun* run) { return run->has_begun(); }));
    }
    /// Everything is known. Returns as follow().
    std::string settle() {
        if (beginning_of(stream_) != beginning_) return began_earlier;
        json description = beginning_.run->singles()->description();
        description["coverage"] = daemon::to_json(stream_.coverage());
        singles_.close(closing_of(beginning_.singles, description));
        inputs_ = inputs_of(stream_, options_, file_);
        // Singles in such times do not count, and seconds end there.
        const bool gaps = inputs_->searched.ranges().size() > 1;
        return gaps && search_.has_begun() ? "no run has data of some time in between" : "";
    }

    HeardStream& stream_;
    const UnionOptions& options_;
    const std::filesystem::path file_;
    const Beginning beginning_;
    const Engines engines_;
    UnitedSingles singles_;
    GrowingSearch search_;
    std::optional<Inputs> inputs_;
};

/// Those that an earlier union has begun, or that a program that was killed has left.
void remove_partial_records(const std::filesystem::path& directory) {
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        const std::filesystem::path& file = entry.path();
        if (file.extension() == ".partial" && file.stem().extension() == ".plm")
            std::filesystem::remove(file);
    }
}

/// The captures of all runs as one, if all of them have captures.
std::optional<UnitedCapture> unite_captures_of(const HeardStream& stream,
                                               const std::filesystem::path& output) {
    std::vector<std::filesystem::path> captures;
    for (const HeardRun* run : stream.runs()) {
        captures.push_back(run->directory() / capture_file);
        if (!std::filesystem::exists(captures.back())) return std::nullopt;
    }
    const json& document = stream.first().document();
    const json receive = document["configuration"].value("receive", json::object());
    const bool bare = receive.value("framing", json()) == "bare";
    return unite_captures(captures, output, bare ? net::Framing::bare : net::Framing::sequenced,
                          config::scanner_from_json(document["scanner"]).frame_version);
}

}  // namespace

int unite(const UnionOptions& options) {
    if (options.runs.size() < 2) throw UsageError("expected the runs of two hosts or more");
    check_output(options.output, input_of(options));
    Outputs outputs(options.force);
    HeardStream stream(options);
    claim_records(outputs, options.output);
    const std::filesystem::path singles = options.output / daemon::singles_file;
    outputs.claim(singles);
    const std::filesystem::path capture = options.output / capture_file;
    outputs.claim(capture);
    std::optional<GrowingUnion> all;
    while (!all) {
        remove_partial_records(options.output);
        all.emplace(stream, options, Outputs::partial(singles));
        const std::string why = all->follow();
        if (why.empty()) break;
        config::print_warning("petlm", why + ": the union begins again");
        all.reset();
    }
    std::vector<std::string> warnings;
    for (const HeardRun* run : stream.runs())
        if (const std::string why = run->damage(); !why.empty())
            warnings.push_back(fmt::format("{}: {}", run->directory().string(), why));
    if (const std::string why = stream.doubt(); !why.empty()) warnings.push_back(why);
    for (const std::string& warning : warnings)
        config::print_warning("petlm", warning);

    const ResortedRun made = all->finish(outputs);
    const Origins origins =
        origins_of(stream, all->singles(), unite_captures_of(stream, Outputs::partial(capture)), made,
                   all->engines().scanner);
    const json document = complete_document(Outputs::partial(options.output / daemon::run_file), origins,
                                            all->singles(), Outputs::partial(singles));
    outputs.commit();
    config::Written written = summary(options.output, made, outputs);
    for (const auto& [what, value] : union_lines(document))
        written.text += fmt::format("  {}: {}\n", what, value);
    written.facts["united"] = document.value("united", json());
    written.printed = std::move(warnings);
    config::print_written(std::move(written), options.as_json, "petlm");
    return ok;
}

}  // namespace petacq::petlm
