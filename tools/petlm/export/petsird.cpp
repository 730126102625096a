// PETSIRD: scanner, events, singles, dead time, signals and bed positions in one file.
// docs/reference/formats/petsird.md.
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "daemon/system/progress_line.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/export/petsird/event_blocks.hpp"
#include "tools/petlm/export/petsird/header.hpp"
#include "tools/petlm/export/petsird/not_held.hpp"
#include "tools/petlm/export/petsird/second_blocks.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {
namespace {

using petsird::Bins;
using petsird::OtherBlock;
using petsird::TimeBlocks;

/// The files of a kind that a run directory has; none beside a file of records.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& target, daemon::RecordKind kind) {
    if (!std::filesystem::is_directory(target)) return {};
    const std::string name = daemon::name_of(kind);
    const auto files = listmode_files(target);
    const bool any = std::any_of(files.begin(), files.end(), [&](const std::filesystem::path& file) {
        const std::string of_file = file.filename().string();
        return of_file.starts_with(name) && !std::isalnum(static_cast<unsigned char>(of_file[name.size()]));
    });
    return any ? record_files(target, kind) : std::vector<std::filesystem::path>{};
}

/// All times of records: what the file says it covers, and where its records are. A run of 1.0 knows the
/// start of its data to some microseconds.
daemon::Intervals covered(const ExportSource& source) {
    std::vector<gpu::TickRange> ranges;
    if (source.coverage().intervals) ranges = source.coverage().intervals->ranges();
    if (source.records() != 0) {
        if (ranges.empty()) ranges.push_back({source.first_time(), source.last_time() + 1});
        ranges.front().start = std::min(ranges.front().start, source.first_time());
        ranges.back().end = std::max(ranges.back().end, source.last_time() + 1);
    }
    return daemon::Intervals(std::move(ranges));
}

/// UTC of the first recorded time or, if that is not known, of the start of its run.
std::optional<std::chrono::system_clock::time_point> start_of(const ExportSource& source) {
    const daemon::Coverage& coverage = source.coverage();
    const bool known = coverage.intervals && !coverage.intervals->empty();
    if (const auto utc = coverage.utc_of(known ? coverage.span().start : coverage.reference_ticks()))
        return utc;
    if (!source.run().is_object()) return std::nullopt;
    try {
        const daemon::Coverage of_run = daemon::coverage_of_run(source.run());
        return of_run.utc_of(of_run.reference_ticks());
    } catch (const std::invalid_argument&) {
        return std::nullopt;
    }
}

std::string text_of(const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) return "";
    return found->is_string() ? found->get<std::string>() : json_line(*found);
}

std::optional<std::vector<gpu::Tag>> tags_of_run(const std::filesystem::path& target) {
    if (files_of(target, daemon::RecordKind::tags).empty()) return std::nullopt;
    std::vector<gpu::Tag> tags;
    RecordSource source(target, daemon::RecordKind::tags);
    while (source.next()) {
        const auto found = source.reader().tags();
        tags.insert(tags.end(), found.begin(), found.end());
    }
    return tags;
}

/// One conversion.
class Conversion {
  public:
    Conversion(const ExportSource& source, const ExportOptions& options)
        : source_(source),
          options_(options_of(options)),
          scanner_(source.scanner(options.scanner)),
          has_triples_(!files_of(source.target(), daemon::RecordKind::triples).empty()),
          gammas_(gammas_of_run()),
          bins_(source, scanner_, options_, gammas_),
          time_(covered(source), scanner_.tick_ps, options_.block_ms),
          delayeds_(!options_.no_delayeds && source.may_hold_delayeds()),
          tags_(petsird::tag_blocks(tags_of_run(source.target()), bed_mm(), scanner_.rotation, options_,
                                    time_, bins_.types.size())),
          seconds_(options_.only_events ? std::vector<std::filesystem::path>{}
                                        : files_of(source.target(), daemon::RecordKind::seconds),
                   scanner_.geometry, bins_, time_, options_.version) {
        if (!options.lines.normalisation) return;
        lines_.emplace(scanner_, depth_of_interaction(options.depth_mm, scanner_), options.lines);
    }

    Exported write(OutputFile& out) {
        Exported exported;
        exported.lost = petsird::not_held({source_, scanner_, bins_, options_,
                                           !files_of(source_.target(), daemon::RecordKind::singles).empty(),
                                           has_triples_, lines_.has_value()});
        put_head(out, exported.lost);
        put_blocks(out, exported);
        if (options_.only_events)
            exported.lost.emplace_back("singles histograms, dead time, signals and bed positions: left out");
        exported.lost.insert(exported.lost.end(), seconds_.not_held().begin(), seconds_.not_held().end());
        exported.lost.insert(exported.lost.end(), tags_.not_held.begin(), tags_.not_held.end());
        for (std::string& phrase : exported.lost)
            phrase = "petsird: " + phrase;
        return exported;
    }

  private:
    static petsird::PetsirdOptions options_of(const ExportOptions& options) {
        petsird::PetsirdOptions of = options.petsird;
        of.tof_resolution_ps = options.tof_resolution_ps;
        return of;
    }
    /// The rules of the triples that the file gets.
    std::optional<config::Gammas> gammas_of_run() {
        if (!has_triples_ || options_.no_triples || options_.only_events) return std::nullopt;
        return RecordSource(source_.target(), daemon::RecordKind::triples).coverage().rules.gammas;
    }
    std::optional<double> bed_mm() const {
        const nlohmann::json said = source_.said_by_operator();
        const auto found = said.find("bed_mm");
        return found != said.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
    }

    void put_head(OutputFile& out, std::vector<std::string>& not_held) {
        const petsird::EfficiencySource efficiencies{
            scanner_, source_.coverage().rules.coincidence->min_module_difference.value_or(0),
            lines_ ? &*lines_ : nullptr};
        petsird::HeaderFacts facts{efficiencies, bins_, options_, source_.coverage(), tags_.signals};
        facts.singles = seconds_.any();
        facts.delayeds = delayeds_;
        facts.start = start_of(source_);
        facts.subject = text_of(source_.said_by_operator(), "subject");
        facts.note = text_of(source_.run(), "note");
        out.text(petsird::head_of(facts, not_held));
    }

    void put_blocks(OutputFile& out, Exported& exported) {
        const petsird::EventEncoder encoder(bins_, time_);
        daemon::ProgressLine progress("exporting " + source_.target().filename().string(), source_.records(),
                                      daemon::ProgressUnit::steps);
        std::uint64_t done = 0;
        petsird::EventStream<gpu::Coincidence> pairs(
            source_.target(), encoder, 2 * bins_.pair_lists(),
            [&](std::uint64_t records) { progress.show(done += records); });
        std::optional<petsird::EventStream<gpu::Triple>> triples;
        if (gammas_) triples.emplace(source_.target(), encoder, bins_.triple_lists(), [](std::uint64_t) {});
        const petsird::EventBlocks events(bins_, options_.version, delayeds_);
        const std::function<void(std::string_view)> put = [&](std::string_view bytes) { out.text(bytes); };
        const std::vector<petsird::EventList> none(std::max(2 * bins_.pair_lists(), bins_.triple_lists()));
        for (std::uint64_t block = 0; block < time_.count(); ++block) {
            const petsird::BlockTime at = time_.time_of(block);
            put_others_before(at.end_ms, out);
            const auto& of_pairs = pairs.of(block);
            const auto& of_triples = triples ? triples->of(block) : none;
            events.write(at, of_pairs, of_triples, put);
            count(of_pairs, of_triples, exported);
        }
        check_all_taken(pairs, triples);
        put_others_before(UINT64_MAX, out);
        // STIR 6.5 returns an event only if another time block follows the block of the event.
        events.write({time_.end_ms(), time_.end_ms()}, none, none, put);
        out.text(petsird::Coded().number(0).bytes);  // no more items
    }
    void put_others_before(std::uint64_t ms, OutputFile& out) {
        std::vector<OtherBlock> others;
        for (; next_ < tags_.blocks.size() && tags_.blocks[next_].begin_ms < ms; ++next_)
            others.push_back(std::move(tags_.blocks[next_]));
        seconds_.take_before(ms, others);
        std::stable_sort(others.begin(), others.end(),
                         [](const OtherBlock& a, const OtherBlock& b) { return a.begin_ms < b.begin_ms; });
        for (const OtherBlock& other : others)
            out.text(other.bytes);
    }
    template <class Pairs, class Triples>
    static void check_all_taken(Pairs& pairs, Triples& triples) {
        const auto empty = [](const std::vector<petsird::EventList>& lists) {
            return std::all_of(lists.begin(), lists.end(),
                               [](const petsird::EventList& list) { return list.events == 0; });
        };
        if (!empty(pairs.of(UINT64_MAX)) || (triples && !empty(triples->of(UINT64_MAX))))
            throw BadInput("the records are not in the order of time; petlm verify names the problem");
    }
    void count(const std::vector<petsird::EventList>& pairs, const std::vector<petsird::EventList>& triples,
               Exported& exported) const {
        for (std::size_t list = 0; list < pairs.size(); ++list) {
            const bool prompts = list < bins_.pair_lists();
            if (!prompts && !delayeds_) continue;
            (prompts ? exported.prompts : exported.delayeds) += pairs[list].events;
        }
        for (const petsird::EventList& list : triples)
            exported.triples += list.events;
    }

    const ExportSource& source_;
    petsird::PetsirdOptions options_;
    config::Scanner scanner_;
    bool has_triples_;
    std::optional<config::Gammas> gammas_;
    Bins bins_;
    TimeBlocks time_;
    bool delayeds_;
    petsird::TagBlocks tags_;
    petsird::SecondBlocks seconds_;
    std::optional<corrections::LineFactors> lines_;
    std::size_t next_ = 0;  ///< of the blocks of tags
};

}  // namespace

Exported export_petsird(const ExportSource& source, const ExportOptions& options, Outputs& outputs) {
    petsird::check_signals(options.petsird);
    outputs.claim(options.output);
    Conversion conversion(source, options);
    OutputFile out(options.output);
    Exported exported = conversion.write(out);
    out.close();
    exported.files = {options.output.filename().string() +
                      ": scanner, events and all else, a PETSIRD file of version " +
                      petsird::name_of(options.petsird.version)};
    exported.notes = {"The official Python package petsird of that version reads it; no other version does."};
    return exported;
}

}  // namespace petacq::petlm
