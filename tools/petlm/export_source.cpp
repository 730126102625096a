#include "tools/petlm/export_source.hpp"

#include <algorithm>
#include <utility>

#include "config/error.hpp"
#include "tools/petlm/commands.hpp"
#include "tools/petlm/progress.hpp"
#include "tools/petlm/run.hpp"

namespace petacq::petlm {
namespace {

constexpr std::uint64_t any_crystal = std::uint64_t{1} << 32U;

std::string text_of(const nlohmann::json& value) {
    return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

nlohmann::json value_of(const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() ? nlohmann::json() : *found;
}

/// What the CRCs cannot tell: records that a sound writer does not make.
struct RecordCheck {
    std::uint64_t crystals;
    std::uint64_t end;       ///< latest time that the index has
    std::uint64_t last = 0;  ///< time of the record before

    bool good(const gpu::Coincidence& c) {
        const bool in_order = c.time >= std::exchange(last, c.time) && c.time <= end;
        return in_order && c.crystal_a < crystals && c.crystal_b < crystals && c.kind <= gpu::Kind::delayed;
    }
    bool good(const gpu::Single& s) {
        return s.time >= std::exchange(last, s.time) && s.time <= end && s.crystal < crystals;
    }
    template <class Record>
    void all(std::span<const Record> records, const std::string& file, std::uint64_t first) {
        for (std::size_t i = 0; i < records.size(); ++i) {
            if (good(records[i])) continue;
            throw BadInput(file + ": record " + std::to_string(first + i) +
                           " is out of time order, or has a crystal of " + std::to_string(crystals) +
                           " or above, or is neither prompt nor delayed; petlm verify tells which");
        }
    }
};

}  // namespace

ExportSource::ExportSource(const std::filesystem::path& target)
    : target_(target), files_(record_files(target, daemon::RecordKind::coincidences)) {
    for (const auto& file : files_)
        look_at(file);
    find_run();
}

void ExportSource::look_at(const std::filesystem::path& file) {
    const daemon::ListModeReader reader(file);
    const std::string name = file.string();
    if (!reader.trailer()) {
        throw BadInput(name +
                       ": no index: the file is truncated or damaged, nothing was made of it; petlm recover "
                       "makes a sound file of what is whole");
    }
    if (bytes_ == 0) {
        kind_ = reader.kind();
        description_ = reader.description();
    } else if (reader.kind() != kind_) {
        throw BadInput(name + ": holds " + daemon::name_of(reader.kind()) + ", the files before hold " +
                       daemon::name_of(kind_));
    }
    for (const char* key : {"run_id", "tick_ps", "crystals"}) {
        const auto expected = value_of(description_, key);
        const auto found = value_of(reader.description(), key);
        if (expected != found) {
            throw BadInput(name + ": its " + key + " is " + text_of(found) + ", that of the first file is " +
                           text_of(expected));
        }
    }
    if (!reader.index().empty()) {
        const std::uint64_t from = reader.index().front().first_time;
        if (records_ == 0) first_time_ = from;
        if (from < last_time_) {
            throw BadInput(name + ": begins at tick " + std::to_string(from) +
                           ", before the end of the file before at " + std::to_string(last_time_));
        }
        last_time_ = reader.index().back().last_time;
    }
    records_ += reader.trailer()->records;
    bytes_ += reader.file_bytes();
}

void ExportSource::find_run() {
    const bool is_run = std::filesystem::is_directory(target_);
    std::string ignored;
    run_ = run_json(is_run ? target_ : std::filesystem::absolute(target_).parent_path(), ignored);
    const auto run_id = value_of(description_, "run_id");
    if (!run_.is_null() && (run_id.is_null() || value_of(run_, "run_id") != run_id)) run_ = nullptr;
}

std::uint64_t ExportSource::time_origin() const {
    const auto start = run_.is_null() ? nlohmann::json() : value_of(run_, "start_ticks");
    if (!start.is_number_unsigned()) return first_time_;
    return records_ == 0 ? start.get<std::uint64_t>() : std::min(first_time_, start.get<std::uint64_t>());
}

std::uint64_t ExportSource::time_end() const {
    const auto stop = run_.is_null() ? nlohmann::json() : value_of(run_, "stop_ticks");
    if (!stop.is_number_unsigned()) return last_time_;
    return std::max(last_time_, stop.get<std::uint64_t>());
}

std::optional<double> ExportSource::tick_ps() const {
    const auto value = value_of(description_, "tick_ps");
    if (value.is_number() && value.get<double>() > 0) return value.get<double>();
    return std::nullopt;
}

std::optional<std::uint64_t> ExportSource::window_ticks() const {
    const auto value = value_of(description_, "window_ticks");
    if (value.is_number_unsigned()) return value.get<std::uint64_t>();
    return std::nullopt;
}

bool ExportSource::may_hold_delayeds() const {
    const auto found = description_.find("delay_ticks");
    return found == description_.end() || !found->is_null();
}

nlohmann::json ExportSource::configured(const std::string& pointer) const {
    const nlohmann::json::json_pointer at("/configuration" + pointer);
    return !run_.is_null() && run_.contains(at) ? run_[at] : nlohmann::json();
}

std::uint64_t ExportSource::crystals() const {
    const auto value = value_of(description_, "crystals");
    return value.is_number_unsigned() ? value.get<std::uint64_t>() : any_crystal;
}

config::Scanner ExportSource::scanner(const std::optional<std::filesystem::path>& file) const {
    const auto recorded = run_.is_null() ? nlohmann::json() : value_of(run_, "scanner");
    if (!file && !recorded.is_object()) {
        throw UsageError(target_.string() +
                         ": no scanner description in a run.json beside it; name one with --scanner");
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
    if (tick_ps() && *tick_ps() != scanner.tick_ps) {
        throw BadInput(target_.string() + ": recorded with ticks of " + text_of(*tick_ps()) +
                       " ps, the scanner " + scanner.name + " has " + text_of(scanner.tick_ps) + " ps");
    }
    return scanner;
}

void ExportSource::for_each_block(std::uint64_t crystals,
                                  const std::function<void(const daemon::ListModeReader&)>& use,
                                  const char* activity) const {
    Progress progress(std::string(activity) + " " + target_.filename().string(), bytes_);
    RecordCheck records{crystals, last_time_};
    std::uint64_t done = 0;
    for (const auto& file : files_) {
        daemon::ListModeReader reader(file);
        const auto check = [&] {
            if (reader.condition().state == daemon::FileState::complete) return;
            throw BadInput(file.string() + ": " + reader.condition().summary() +
                           "; nothing was made of it; petlm recover makes a sound file of what is whole");
        };
        while (reader.next()) {
            check();
            const std::uint64_t first = reader.block().first_record;
            if (kind_ == daemon::RecordKind::coincidences) {
                records.all(reader.coincidences(), file.string(), first);
            } else {
                records.all(reader.singles(), file.string(), first);
            }
            use(reader);
            progress.show(done + reader.block_offset());
        }
        check();
        done += reader.file_bytes();
    }
}

}  // namespace petacq::petlm
