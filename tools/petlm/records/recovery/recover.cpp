#include "tools/petlm/records/recovery/recover.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config/base/answer.hpp"
#include "daemon/listmode/file.hpp"
#include "daemon/listmode/reader.hpp"
#include "daemon/listmode/set.hpp"
#include "daemon/marks/marks.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/space/reserve.hpp"
#include "daemon/system/progress_line.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/origin.hpp"
#include "tools/petlm/records/recovery/recovered_run.hpp"
#include "tools/petlm/records/recovery/surviving_times.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {
namespace {

struct Scan {
    daemon::Condition condition;
    RecoveredFile found;
    daemon::Coverage whole;  ///< of the original
    bool says_coverage = false;

    /// What the remaining records cover. `seconds` and `run_begin`: as for covered_by_survivors().
    [[nodiscard]] daemon::Coverage covered(const daemon::Intervals& seconds,
                                           std::optional<std::uint64_t> run_begin) const {
        if (condition.state != daemon::FileState::complete)
            return covered_by_survivors(whole, found.times, found.first_time(), seconds, run_begin);
        daemon::Coverage same = whole;
        const bool complete = !same.intervals || seconds.intersect(*same.intervals) == *same.intervals;
        same.loss.seconds_complete = same.loss.seconds_complete && complete;
        return same;
    }
};

/// The times of the records in the block of a file of seconds.
void add_seconds(const daemon::ListModeReader& reader, std::vector<gpu::TickRange>& times) {
    const std::size_t bytes = reader.header().record_bytes;
    for (std::size_t i = 0; i < reader.block().records; ++i) {
        std::array<std::uint64_t, 2> second{};  // start and length
        std::memcpy(second.data(), reader.payload().data() + i * bytes, sizeof second);
        times.push_back({second[0], second[0] + second[1]});
    }
}

std::uint64_t prompts_in(std::span<const gpu::Coincidence> pairs) {
    return static_cast<std::uint64_t>(std::count_if(
        pairs.begin(), pairs.end(), [](const gpu::Coincidence& c) { return c.kind == gpu::Kind::prompt; }));
}

Scan scan(const std::filesystem::path& file) {
    daemon::ListModeReader reader(file);
    daemon::ProgressLine progress("scanning " + file.filename().string(), reader.file_bytes());
    RecoveredFile found;
    found.name = reader.path().filename().string();
    found.kind = reader.kind();
    const std::uint32_t files = reader.condition().files;
    for (std::uint32_t i = 0; i < files; ++i)
        found.parts.push_back({files == 1 ? found.name : daemon::file_of_set(found.name, i).string()});
    SurvivingTimes times(reader.description().value("part", 1) == 1);
    std::vector<gpu::TickRange> seconds;
    while (reader.next()) {
        const daemon::BlockHeader& block = reader.block();
        times.add(block);
        daemon::ListModePart& part = found.parts[block.number % found.parts.size()];
        if (part.records == 0) {
            part.first_record = found.records;
            part.first_time = block.first_time;
        }
        part.last_time = block.last_time;
        part.records += block.records;
        found.records += block.records;
        if (found.kind == daemon::RecordKind::coincidences)
            found.prompts += prompts_in(reader.coincidences());
        if (found.kind == daemon::RecordKind::seconds) add_seconds(reader, seconds);
        progress.show(reader.bytes_done());
    }
    const daemon::Condition& condition = reader.condition();
    found.state = daemon::name_of(condition.state);
    found.missing_records = condition.missing_records;
    found.lost_bytes = condition.damaged_bytes + condition.tail_bytes;
    times.finish(reader.trailer());
    found.times = found.kind == daemon::RecordKind::seconds ? daemon::Intervals(seconds) : times.times();
    const nlohmann::json& description = reader.description();
    daemon::Coverage whole = coverage_of_files(file, found.kind, {description}, run_of(file, description));
    const bool says_coverage = description.contains("coverage");
    // A file that was closed knows where it ends, though its run may not have come to say so.
    const bool closed = condition.state == daemon::FileState::complete && says_coverage;
    if (closed && whole.intervals && found.kind != daemon::RecordKind::seconds)
        found.times = *whole.intervals;
    return {condition, found, std::move(whole), says_coverage};
}

/// Where the run of these files begins, if one of them was closed and says so.
std::optional<std::uint64_t> told_begin(const std::vector<std::filesystem::path>& files) {
    for (const auto& file : files) {
        try {
            const daemon::ListModeReader reader(file);
            const nlohmann::json& description = reader.description();
            if (!reader.trailer() || !description.contains("coverage") || description.value("part", 1) != 1)
                continue;
            const daemon::Coverage told = coverage_of_files(file, reader.kind(), {description}, {});
            if (told.intervals && !told.intervals->empty()) return told.span().start;
        } catch (const daemon::NotListMode&) {
            continue;  // it is lost, as is said later
        }
    }
    return std::nullopt;
}

/// The description of the file, with a note that records are missing.
nlohmann::json described(const daemon::ListModeReader& reader, const daemon::Condition& condition,
                         const daemon::Coverage& covered) {
    auto description = reader.description();
    const bool says = description.contains("coverage");
    if (says || condition.state != daemon::FileState::complete)
        description["coverage"] = daemon::to_json(covered);
    if (condition.state != daemon::FileState::complete) {
        description["recovered"] = {{"from", reader.path().filename().string()},
                                    {"state", daemon::name_of(condition.state)},
                                    {"missing_records", condition.missing_records},
                                    {"lost_bytes", condition.damaged_bytes + condition.tail_bytes}};
    }
    return description;
}

void copy_blocks(daemon::ListModeReader& reader, daemon::ListModeFile& out) {
    daemon::ProgressLine progress("copying " + reader.path().filename().string(), reader.file_bytes());
    while (reader.next()) {
        out.write_block(reader.payload());
        progress.show(reader.bytes_done());
    }
    out.close();
}

/// What became of a file, which was found in that condition. Returns its facts, to be added to.
nlohmann::json& report(const std::filesystem::path& file, const daemon::Condition& condition,
                       config::Written& written) {
    written.text += fmt::format("{}: {}\n", file.string(), condition.summary());
    nlohmann::json missing = nlohmann::json::array();
    for (const auto& damage : condition.damage) {
        written.text += fmt::format("missing: {}at offset {}, {} bytes: {}\n",
                                    damage.file.empty() ? "" : damage.file + " ", damage.offset, damage.bytes,
                                    damage.what);
        missing.push_back({{"file", damage.file.empty() ? file.filename().string() : damage.file},
                           {"offset", damage.offset},
                           {"bytes", damage.bytes},
                           {"what", damage.what}});
    }
    if (condition.tail_bytes != 0)
        written.text += fmt::format("missing: {} bytes after the last whole block\n", condition.tail_bytes);
    return written.facts["recovered"].emplace_back(
        nlohmann::json{{"file", file.string()},
                       {"state", daemon::name_of(condition.state)},
                       {"records", condition.records},
                       {"missing", std::move(missing)},
                       {"missing_records", condition.missing_records},
                       {"tail_bytes", condition.tail_bytes}});
}

void recover_file(const std::filesystem::path& file, const daemon::Condition& condition,
                  const daemon::Coverage& covered, const std::filesystem::path& output,
                  config::Written& written) {
    daemon::ListModeReader reader(file);
    daemon::ListModeFile out(output, reader.kind(), reader.header().block_bytes,
                             described(reader, condition, covered), config::Compression::none,
                             reader.header().record_bytes);
    copy_blocks(reader, out);
    nlohmann::json& facts = report(file, condition, written);
    facts["blocks"] = out.blocks();
    written.text +=
        fmt::format("{}: {} blocks, {} records recovered\n", output.string(), out.blocks(), out.records());
    written.files.push_back(output);
}

/// Links the file where the file system can: a complete file never changes again.
void link_or_copy(const std::filesystem::path& file, const std::filesystem::path& output) {
    std::error_code failed;
    std::filesystem::create_hard_link(file, output, failed);
    if (failed) std::filesystem::copy_file(file, output);
}

/// Writes run.json, and copies the files that describe the run.
void describe_run(const std::filesystem::path& run, const std::filesystem::path& output,
                  const std::vector<RecoveredFile>& files, const daemon::Intervals& seconds,
                  std::optional<std::uint64_t> run_begin, config::Written& written) {
    for (const char* name :
         {daemon::histograms_file, daemon::spectra_file, daemon::ledger_file, daemon::marks_file}) {
        if (!std::filesystem::exists(run / name)) continue;
        std::filesystem::copy_file(run / name, output / name);
        written.files.push_back(output / name);
    }
    std::string why;
    const nlohmann::json original = run_json(run, why);
    if (original.is_null())
        written.warnings.push_back(why + "; the recovered run.json holds only what the files tell");
    const nlohmann::json content = recovered_description(
        run, original, files, recovered_coverage(run, original, files, seconds, run_begin));
    daemon::write_json_atomically(output / daemon::run_file, content);
    written.files.push_back(output / daemon::run_file);
    const nlohmann::json::json_pointer missing("/ledger/pairs/write_failed");
    if (content.contains(missing) && content[missing].is_number() && content[missing] > 0) {
        written.warnings.push_back(fmt::format("{}: at least {} coincidences are missing", output.string(),
                                               content[missing].dump()));
    }
}

int recover_run(std::filesystem::path run, std::filesystem::path output, config::Written& written) {
    if (!run.has_filename()) run = run.parent_path();  // trailing slash
    if (daemon::is_being_written(run)) throw UsageError(run.string() + ": the run is in progress");
    if (output.empty()) output = run.string() + ".recovered";
    const auto files = listmode_files(run);
    const auto run_begin = told_begin(files);
    if (!std::filesystem::create_directory(output)) {
        throw UsageError(output.string() + " exists, nothing was written; name another with --output");
    }
    int status = ok;
    const daemon::Intervals seconds = recorded_times(run);
    const bool has_seconds = std::filesystem::exists(run / daemon::seconds_file);
    std::vector<RecoveredFile> recovered;
    for (const auto& file : files) {
        const std::string name = file.filename().string();
        try {
            const Scan scanned = scan(file);
            const daemon::Condition& condition = scanned.condition;
            recovered.push_back(scanned.found);
            RecoveredFile& last = recovered.back();
            const daemon::Coverage covered = scanned.covered(seconds, run_begin);
            const bool lacks_seconds = scanned.says_coverage && has_seconds &&
                                       covered.loss.seconds_complete != scanned.whole.loss.seconds_complete;
            if (condition.state == daemon::FileState::complete && !lacks_seconds) {
                for (const daemon::ListModePart& part : last.parts) {
                    link_or_copy(run / part.name, output / part.name);
                    written.files.push_back(output / part.name);
                }
                report(file, condition, written);
            } else {
                last.join();
                recover_file(file, condition, covered, output / last.name, written);
            }
            for (daemon::ListModePart& part : last.parts)
                part.bytes = std::filesystem::file_size(output / part.name);
            if (condition.state == daemon::FileState::damaged) status = has_problems;
        } catch (const daemon::NotListMode& error) {
            RecoveredFile lost;
            lost.name = name;
            lost.state = "lost";
            lost.why = error.what();
            if (name.starts_with("singles")) lost.kind = daemon::RecordKind::singles;
            if (name.starts_with("seconds")) lost.kind = daemon::RecordKind::seconds;
            if (name.starts_with("triples")) lost.kind = daemon::RecordKind::triples;
            if (name.starts_with("tags")) lost.kind = daemon::RecordKind::tags;
            recovered.push_back(lost);
            written.text += std::string(error.what()) + ": nothing of it can be recovered\n";
            written.facts["recovered"].push_back(
                {{"file", file.string()}, {"state", lost.state}, {"why", lost.why}});
            status = has_problems;
        }
    }
    describe_run(run, output, recovered, seconds, run_begin, written);
    return status;
}

int recover_one(const std::filesystem::path& target, std::filesystem::path output, config::Written& written) {
    if (output.empty()) {
        output = daemon::ListModeReader(target).path();
        output.replace_extension(".recovered.plm");
    }
    if (std::filesystem::exists(output)) {
        throw UsageError(output.string() + " exists, nothing was written; name another with --output");
    }
    const Scan scanned = scan(target);
    const daemon::Condition& condition = scanned.condition;
    const auto seconds = recorded_times(std::filesystem::absolute(target).parent_path());
    recover_file(target, condition, scanned.covered(seconds, {}), output, written);
    return condition.state == daemon::FileState::damaged ? has_problems : ok;
}

}  // namespace

int recover(const RecoverOptions& options) {
    config::Written written;
    written.facts["recovered"] = nlohmann::json::array();
    const int status = std::filesystem::is_directory(options.target)
                           ? recover_run(options.target, options.output, written)
                           : recover_one(options.target, options.output, written);
    config::print_written(std::move(written), options.as_json, "petlm");
    return status;
}

}  // namespace petacq::petlm
