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
#include "tools/petlm/resort/result/resorted_run.hpp"
#include "tools/petlm/resort/search/engines.hpp"
#include "tools/petlm/resort/search/shard.hpp"
#include "tools/petlm/resort/search_whole.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"
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

/// The description of the singles of the run that is written.
json singles_description(const HeardRun& first) {
    json description = first.singles()->description();
    for (const char* of_a_file : {"part", "file", "files"})
        description.erase(of_a_file);
    if (description.contains("coverage")) description["coverage"]["intervals"] = nullptr;  // known at the end
    return description;
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

Engines engines_of(const HeardStream& stream, const UnionOptions& options) {
    ResortOptions resort;
    resort.input = input_of(options);
    resort.output = options.output;
    resort.backend = options.backend;
    resort.threads = options.threads;
    const json& document = stream.first().document();
    Engines engines = engines_for(document, resort);
    const json listmode = document["configuration"].value("listmode", json::object());
    // Hosts that save singles alone have no search.
    engines.rules.search = listmode.value("write_coincidences", true);
    engines.configuration.listmode.write_coincidences = engines.rules.search;
    return engines;
}

/// Waits for the runs if they are followed, and unites their singles.
class FollowedSingles {
  public:
    FollowedSingles(HeardStream& stream, const UnionOptions& options, const std::filesystem::path& file)
        : stream_(stream), follow_(options.follow), file_(file) {
        while (follow_ && stream_.runs().empty())
            wait();
        do {
            unite();
        } while (united_->was_overtaken());
    }
    [[nodiscard]] const UnitedSingles& united() const { return *united_; }

  private:
    void wait() {
        std::this_thread::sleep_for(look_interval);
        stream_.look();
    }
    void unite() {
        united_.reset();
        std::filesystem::remove(file_);
        const HeardRun* of_singles = nullptr;
        while (of_singles == nullptr) {
            for (const HeardRun* run : stream_.runs())
                if (of_singles == nullptr && run->singles() != nullptr) of_singles = run;
            if (of_singles != nullptr) break;
            if (stream_.ended()) {
                throw daemon::NotListMode(
                    stream_.runs().front()->directory().string() +
                    ": none of the runs has singles; 'listmode.write_singles' saves them");
            }
            wait();
        }
        const config::Scanner scanner = config::scanner_from_json(of_singles->document()["scanner"]);
        united_.emplace(file_, of_singles->singles()->block_bytes(), singles_description(*of_singles),
                        scanner.geometry);
        while (true) {
            const bool ended = stream_.ended();
            united_->advance(stream_.runs());
            if (ended || united_->was_overtaken()) break;
            wait();
        }
        if (!united_->was_overtaken()) united_->close(stream_.coverage());
    }

    HeardStream& stream_;
    const bool follow_;
    const std::filesystem::path file_;
    std::optional<UnitedSingles> united_;
};

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
    const FollowedSingles all(stream, options, Outputs::partial(singles));
    std::vector<std::string> warnings;
    for (const HeardRun* run : stream.runs())
        if (const std::string why = run->damage(); !why.empty())
            warnings.push_back(fmt::format("{}: {}", run->directory().string(), why));
    if (const std::string why = stream.doubt(); !why.empty()) warnings.push_back(why);

    const Inputs inputs = inputs_of(stream, options, Outputs::partial(singles));
    const Engines engines = engines_of(stream, options);
    const ResortedRun made = search_whole(inputs, engines, shard_singles, options.output, outputs);
    const Origins origins = origins_of(
        stream, all.united(), unite_captures_of(stream, Outputs::partial(capture)), made, engines.scanner);
    const json document = complete_document(Outputs::partial(options.output / daemon::run_file), origins,
                                            all.united(), Outputs::partial(singles));
    outputs.commit();
    config::Written written = summary(options.output, made, outputs);
    for (const auto& [what, value] : union_lines(document))
        written.text += fmt::format("  {}: {}\n", what, value);
    written.facts["united"] = document.value("united", json());
    written.warnings = std::move(warnings);
    config::print_written(std::move(written), options.as_json, "petlm");
    return ok;
}

}  // namespace petacq::petlm
