#include "tools/petlm/records/rearrange.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <queue>

#include "config/base/answer.hpp"
#include "daemon/system/progress_line.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/records/record_file.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/run.hpp"
#include "tools/petlm/records/tags.hpp"

namespace petacq::petlm {
namespace {

using daemon::RecordKind;

/// A file has a kind. Of a run, coincidences are taken unless others are asked for.
RecordKind kind_of(const std::filesystem::path& target, bool singles, bool triples, bool seconds = false) {
    if (!std::filesystem::is_directory(target)) return daemon::ListModeReader(target).kind();
    if (seconds) return RecordKind::seconds;
    if (triples) return RecordKind::triples;
    return singles ? RecordKind::singles : RecordKind::coincidences;
}

/// Appends the records with times in the intervals, which are in order.
template <class Record>
void cut_records(RecordSource& source, std::span<const gpu::TickRange> intervals, RecordFile& out) {
    daemon::ProgressLine progress("cutting", source.total_bytes());
    source.select(intervals.empty() ? 0 : intervals.front().start,
                  intervals.empty() ? 0 : intervals.back().end);
    while (source.next()) {
        progress.show(source.bytes_done());
        const auto all = records_of<Record>(source.reader());
        // Records are in order of time, so the intervals that have been passed are not needed again.
        for (auto at = all.begin(); at != all.end() && !intervals.empty();) {
            const gpu::TickRange& wanted = intervals.front();
            const auto begin = std::partition_point(
                at, all.end(), [&](const Record& r) { return daemon::time_of(r) < wanted.start; });
            at = std::partition_point(begin, all.end(),
                                      [&](const Record& r) { return daemon::time_of(r) < wanted.end; });
            out.append(std::span<const Record>(begin, at));
            if (at != all.end()) intervals = intervals.subspan(1);
        }
    }
}

/// Writes the seconds that lie in the interval as a whole. Returns which times they are.
daemon::Intervals cut_seconds(RecordSource& source, gpu::TickRange wanted, daemon::ListModeFile& out) {
    std::vector<gpu::TickRange> kept;
    source.select(wanted.start, wanted.end);
    while (source.next()) {
        const daemon::ListModeReader& reader = source.reader();
        const std::size_t bytes = reader.header().record_bytes;
        for (std::size_t i = 0; i < reader.block().records; ++i) {
            const auto record = reader.payload().subspan(i * bytes, bytes);
            std::uint64_t length = 0;  // the second field
            std::memcpy(&length, record.data() + sizeof length, sizeof length);
            const std::uint64_t start = daemon::time_of(record.data());
            if (start < wanted.start || start > wanted.end || length > wanted.end - start) continue;
            out.write_block(record);
            kept.push_back({start, start + length});
        }
    }
    return daemon::Intervals(std::move(kept));
}

/// What a file of 1.0 does not tell, its interval, is not made up from one that has no end.
daemon::Coverage part_covered(const daemon::Coverage& whole, const daemon::Intervals& wanted) {
    return whole.intervals || wanted.span().end != UINT64_MAX ? daemon::part_of(whole, wanted) : whole;
}

/// 'records of the run "r" in /data/r'
std::string origin_text(const daemon::Coverage& coverage) {
    if (coverage.origin.runs.empty()) return "records of a run that it does not name";
    std::vector<std::string> runs;
    for (const daemon::OriginRun& run : coverage.origin.runs) {
        runs.push_back(fmt::format("{}{}", json_line(run.run_id),
                                   run.directory.empty() ? "" : " in " + run.directory.string()));
    }
    return fmt::format("records of the run{} {}", runs.size() == 1 ? "" : "s", fmt::join(runs, ", "));
}

/// Why a cut is empty: the interval, or the times at which the gate is open, lie outside the input. None if
/// they do not.
std::vector<std::string> why_empty(const CutOptions& options, const daemon::Coverage& whole,
                                   const daemon::Intervals& open) {
    if (options.from >= options.to || !whole.intervals || !whole.intervals->intersect(open).empty())
        return {};
    if (whole.intervals->empty()) {
        return {fmt::format("{}: covers no time, so the file is empty, too. It is a part of the {}",
                            options.target.string(), origin_text(whole))};
    }
    const auto in_s = [&](std::uint64_t ticks) { return static_cast<double>(ticks) * whole.tick_ps * 1e-12; };
    const gpu::TickRange has = whole.span();
    // In the unit in which the interval was asked for.
    const bool seconds = options.in_seconds.any();
    const auto text_of = [&](std::uint64_t from, std::uint64_t to) {
        if (!seconds) return fmt::format("ticks {} to {}", from, to);
        if (to == UINT64_MAX) return fmt::format("seconds from {:.9g} on", in_s(from));
        return fmt::format("seconds {:.9g} to {:.9g}", in_s(from), in_s(to));
    };
    const std::string wanted = text_of(options.from, options.to);
    const bool outside = whole.intervals->ticks_in({options.from, options.to}) == 0;
    return {fmt::format("{}: {}; the file is empty. The interval of the input: {}{}", options.target.string(),
                        outside
                            ? wanted + " lie outside of it"
                            : fmt::format("the gate of channel {} is not open in {}", *options.gate, wanted),
                        text_of(has.start, has.end),
                        seconds ? "" : fmt::format(", {:.9g} to {:.9g} s", in_s(has.start), in_s(has.end)))};
}

/// Strictly before.
template <class Record>
bool before(const Record& a, const Record& b) {
    return !daemon::in_order(b, a);
}

/// One of the inputs of a merge, at its current record.
template <class Record>
struct Head {
    RecordSource* source;
    std::span<const Record> left;
    std::size_t number;

    bool advance(std::size_t records) {
        left = left.subspan(records);
        while (left.empty()) {
            if (!source->next()) return false;
            left = records_of<Record>(source->reader());
        }
        return true;
    }
    /// For a queue that yields the earliest record; among equal ones, that of the input named first.
    bool operator<(const Head& o) const {
        if (before(left.front(), o.left.front())) return false;
        return before(o.left.front(), left.front()) || number > o.number;
    }
};

/// Hosts that receive different boards never have the same record, however alike their runs are called.
template <class Record>
void refuse_same_record(const RecordSource& a, const RecordSource& b, const Record& record) {
    if constexpr (std::is_same_v<Record, gpu::Tag>)
        if (record.source == gpu::Tag::no_source) return;
    throw UsageError(
        fmt::format("{} cannot be merged with {}: they overlap: both have the same record of tick {}; it "
                    "would count twice",
                    b.reader().path().string(), a.reader().path().string(), daemon::time_of(record)));
}

template <class Record>
void merge_records(std::vector<std::unique_ptr<RecordSource>>& sources, RecordFile& out) {
    std::uint64_t total = 0;
    for (const auto& source : sources)
        total += source->total_bytes();
    daemon::ProgressLine progress("merging", total);
    std::priority_queue<Head<Record>> heads;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        while (sources[i]->next()) {
            const auto records = records_of<Record>(sources[i]->reader());
            if (records.empty()) continue;
            heads.push({sources[i].get(), records, i});
            break;
        }
    }
    std::uint64_t since_shown = 0;
    while (!heads.empty()) {
        Head<Record> head = heads.top();
        heads.pop();
        // Take all records that come before the earliest of the others: often the whole block.
        std::size_t records = head.left.size();
        if (!heads.empty()) {
            const Head<Record>& other = heads.top();
            const auto end =
                std::partition_point(head.left.begin() + 1, head.left.end(), [&](const Record& r) {
                    return head.number < other.number ? !before(other.left.front(), r)
                                                      : before(r, other.left.front());
                });
            records = static_cast<std::size_t>(end - head.left.begin());
            const Record& last = head.left[records - 1];
            if (!before(last, other.left.front())) refuse_same_record(*head.source, *other.source, last);
        }
        out.append(head.left.first(records));
        since_shown += records;
        if (head.advance(records)) heads.push(head);
        if (since_shown < 65'536) continue;
        since_shown = 0;
        std::uint64_t done = 0;
        for (const auto& source : sources)
            done += source->bytes_done();
        progress.show(done);
    }
}

/// Files can be merged only if these keys, which give the records their meaning, agree.
void check_alike(const RecordSource& a, const RecordSource& b) {
    for (const char* key : {"tick_ps", "crystals", "crystals_in_ring"}) {
        const auto value = [&](const RecordSource& s) {
            return s.description().value(key, nlohmann::json());
        };
        if (value(a) != value(b)) {
            throw UsageError(fmt::format("{} and {} do not belong together: their {} are {} and {}",
                                         a.reader().path().string(), b.reader().path().string(), key,
                                         value(a).dump(), value(b).dump()));
        }
    }
}

/// What the operators of all inputs have said alike: members that differ are those of none of them. Null if
/// there is nothing.
nlohmann::json said_alike(const std::vector<std::unique_ptr<RecordSource>>& sources) {
    const auto said = [](const RecordSource& s) {
        return s.description().value("operator", nlohmann::json());
    };
    nlohmann::json alike = said(*sources.front());
    if (!alike.is_object()) return nullptr;
    for (const auto& source : sources) {
        const nlohmann::json other = said(*source);
        for (auto member = alike.begin(); member != alike.end();) {
            const bool same = other.is_object() && other.value(member.key(), nlohmann::json()) == *member;
            member = same ? std::next(member) : alike.erase(member);
        }
    }
    return alike.empty() ? nlohmann::json() : alike;
}

/// Singles and tags of several hosts may be of the same time.
daemon::Coverage united_coverage(const std::vector<std::unique_ptr<RecordSource>>& sources, RecordKind kind) {
    daemon::Coverage all = sources.front()->coverage();
    for (std::size_t i = 1; i < sources.size(); ++i) {
        try {
            all = daemon::united(std::array{all, sources[i]->coverage()},
                                 kind == RecordKind::singles || kind == RecordKind::tags);
        } catch (const daemon::CoverageError& error) {
            throw UsageError(fmt::format("{} cannot be merged with the files before it: {}",
                                         sources[i]->reader().path().string(), error.what()));
        }
    }
    return all;
}

}  // namespace

int cut(const CutOptions& given) {
    const RecordKind kind = kind_of(given.target, given.singles, given.triples, given.seconds);
    RecordSource source(given.target, kind);
    CutOptions options = given;
    if (given.in_seconds.any())
        set_ticks(given.in_seconds, tick_ps_of(source.description(), given.target), options.from, options.to);
    if (options.from > options.to) {
        throw UsageError(
            fmt::format("--from-ticks {}: expected at most --to-ticks {}", options.from, options.to));
    }
    Outputs outputs(options.force);
    outputs.claim(options.output);
    const daemon::Coverage& whole = source.coverage();
    daemon::Intervals wanted(gpu::TickRange{options.from, options.to});
    nlohmann::json description = source.description();
    description["cut"] = {{"from_ticks", options.from}, {"to_ticks", options.to}};
    const auto path = Outputs::partial(options.output);
    std::uint64_t records = 0;
    if (kind == RecordKind::seconds) {
        if (options.gate)
            throw UsageError("--gate: seconds have no gate; expected coincidences, singles or triples");
        daemon::ListModeFile out(path, kind, source.block_bytes(), description, config::Compression::none,
                                 source.reader().header().record_bytes, true);
        const daemon::Intervals kept = cut_seconds(source, {options.from, options.to}, out);
        out.close({{"coverage", daemon::to_json(daemon::part_of(whole, kept))}});
        records = out.records();
    } else {
        if (options.gate)
            wanted = wanted.intersect(open_times(tags_of(options.target, whole, *options.gate)));
        const daemon::Coverage part = part_covered(whole, wanted);
        description["coverage"] = daemon::to_json(part);
        if (options.gate) {
            description["cut"]["gate"] = *options.gate;
            description["cut"]["open_ticks"] = part.ticks();
        }
        RecordFile out(path, kind, source.block_bytes(), description);
        with_record_of(kind,
                       [&](auto record) { cut_records<decltype(record)>(source, wanted.ranges(), out); });
        out.close();
        records = out.records();
    }
    outputs.commit();
    const std::uint64_t all = source.records_in_files();
    config::print_written(
        {.facts = {{"kind", daemon::name_of(kind)}, {"records", records}, {"records_of_input", all}},
         .text =
             fmt::format("{}: {} of {} {}\n", options.output.string(), records, all, daemon::name_of(kind)),
         .files = outputs.written(),
         .warnings = why_empty(options, whole, wanted)},
        options.as_json, "petlm");
    return ok;
}

int merge(const MergeOptions& options) {
    const RecordKind kind = kind_of(options.targets.front(), options.singles, options.triples);
    if (kind == RecordKind::seconds)
        throw UsageError(options.targets.front().string() + " holds seconds, which cannot be merged");
    std::vector<std::unique_ptr<RecordSource>> sources;
    nlohmann::json from = nlohmann::json::array();
    for (const auto& target : options.targets) {
        sources.push_back(std::make_unique<RecordSource>(target, kind));
        check_alike(*sources.front(), *sources.back());
        from.push_back(target.string());
    }
    Outputs outputs(options.force);
    outputs.claim(options.output);
    nlohmann::json description = sources.front()->description();
    if (sources.size() > 1) description["merged"] = from;
    description.erase("operator");
    if (const nlohmann::json said = said_alike(sources); !said.is_null()) description["operator"] = said;
    description["coverage"] = daemon::to_json(united_coverage(sources, kind));
    for (const char* of_one : {"cut", "gate"})
        if (sources.size() > 1) description.erase(of_one);
    RecordFile out(Outputs::partial(options.output), kind, sources.front()->block_bytes(), description);
    with_record_of(kind, [&](auto record) { merge_records<decltype(record)>(sources, out); });
    out.close();
    outputs.commit();
    config::print_written(
        {.facts = {{"kind", daemon::name_of(kind)}, {"records", out.records()}},
         .text = fmt::format("{}: {} {}\n", options.output.string(), out.records(), daemon::name_of(kind)),
         .files = outputs.written(),
         .warnings = {}},
        options.as_json, "petlm");
    return ok;
}

}  // namespace petacq::petlm
