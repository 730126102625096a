#include "tools/petlm/records/source.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/base/error.hpp"
#include "daemon/system/progress_line.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/origin.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {
namespace {

constexpr std::uint64_t any_crystal = std::uint64_t{1} << 32U;

nlohmann::json value_of(const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() ? nlohmann::json() : *found;
}

}  // namespace

ExportSource::ExportSource(const std::filesystem::path& target, daemon::RecordKind of_run)
    : target_(target), description_(std::make_unique<nlohmann::json>()) {
    for (const auto& file : record_files(target, of_run))
        look_at(file);
    run_ = std::make_unique<nlohmann::json>(run_of(target_, *description_));
    coverage_ = coverage_of_files(target_, kind_, descriptions_, *run_);
    descriptions_.clear();
}

ExportSource::~ExportSource() = default;

void ExportSource::look_at(const std::filesystem::path& file) {
    const daemon::ListModeReader reader(file);
    const std::string name = file.string();
    if (!reader.trailer()) {
        std::string why;
        const std::filesystem::path directory = file.parent_path().empty() ? "." : file.parent_path();
        const nlohmann::json run = run_json(directory, why);
        const bool running = run.is_object() && state_of_run(directory, run) == "running";
        throw BadInput(
            name +
            (running ? ": the run is still being recorded; nothing was written. Expected a run that has ended"
                     : ": no index: the file is truncated or damaged; nothing was written. petlm recover "
                       "makes a sound file of its whole blocks"));
    }
    if (description_->is_null()) {
        kind_ = reader.kind();
        *description_ = reader.description();
    } else if (reader.kind() != kind_) {
        throw BadInput(name + ": holds " + daemon::name_of(reader.kind()) + ", the previous files hold " +
                       daemon::name_of(kind_));
    }
    descriptions_.push_back(reader.description());
    for (const char* key : {"run_id", "tick_ps", "crystals"}) {
        const auto expected = value_of(*description_, key);
        const auto found = value_of(reader.description(), key);
        if (expected != found) {
            throw BadInput(name + ": its " + key + " is " + json_line(found) +
                           ", that of the first file is " + json_line(expected));
        }
    }
    if (!reader.index().empty()) {
        const std::uint64_t from = reader.index().front().first_time;
        if (records_ == 0) first_time_ = from;
        if (from < last_time_) {
            throw BadInput(name + ": begins at tick " + std::to_string(from) +
                           ", before the end of the previous file at " + std::to_string(last_time_));
        }
        last_time_ = reader.index().back().last_time;
    }
    records_ += reader.trailer()->records;
}

bool ExportSource::may_hold_delayeds() const {
    const auto& rules = coverage_.rules.coincidence;
    return !rules || rules->delay_ticks;
}

nlohmann::json ExportSource::said_by_operator() const {
    const auto in_file = value_of(*description_, "operator");
    return in_file.is_object() ? in_file : value_of(*run_, "operator");
}

std::uint64_t ExportSource::crystals() const {
    const auto value = value_of(*description_, "crystals");
    return value.is_number_unsigned() ? value.get<std::uint64_t>() : any_crystal;
}

config::Scanner ExportSource::scanner(const std::optional<std::filesystem::path>& file) const {
    const auto recorded = value_of(*run_, "scanner");
    if (!file && !recorded.is_object()) {
        throw UsageError(target_.string() +
                         ": no scanner description in a run.json next to it; name one with --scanner");
    }
    const auto from_run = [&] {
        try {
            return config::scanner_from_json(recorded);
        } catch (const config::Error& error) {
            throw BadInput(target_.string() + ": the scanner in run.json: " + error.what());
        }
    };
    config::Scanner scanner = file ? config::load_scanner(*file) : from_run();
    const std::uint32_t count = scanner.geometry.crystal_count();
    if (crystals() != any_crystal && crystals() != count) {
        throw BadInput(target_.string() + ": recorded with " + std::to_string(crystals()) +
                       " crystals, the scanner " + scanner.name + " has " + std::to_string(count));
    }
    const auto tick_ps = value_of(*description_, "tick_ps");
    if (tick_ps.is_number() && tick_ps > 0 && tick_ps != scanner.tick_ps) {
        throw BadInput(target_.string() + ": recorded with ticks of " + json_line(tick_ps) +
                       " ps, the scanner " + scanner.name + " has " + json_line(scanner.tick_ps) + " ps");
    }
    return scanner;
}

std::optional<config::Rotation> ExportSource::rotation(
    const std::optional<std::filesystem::path>& file) const {
    if (!file && !value_of(*run_, "scanner").is_object()) return std::nullopt;
    return scanner(file).rotation;
}

void ExportSource::for_each_block(std::uint64_t crystals,
                                  const std::function<void(const daemon::ListModeReader&)>& use,
                                  const char* activity) const {
    RecordSource source(target_, kind_);
    daemon::ProgressLine progress(std::string(activity) + " " + target_.filename().string(),
                                  source.total_bytes());
    RecordCheck check{crystals, last_time_};
    while (source.next()) {
        const daemon::ListModeReader& reader = source.reader();
        with_records(reader,
                     [&](auto records) { check.all(records, reader.path(), reader.block().first_record); });
        use(reader);
        progress.show(source.bytes_done());
    }
}

}  // namespace petacq::petlm
