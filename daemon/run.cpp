#include "daemon/run.hpp"

#include "daemon/version.hpp"

namespace petacq::daemon {

namespace {

RunDirectory make_directory(const RunSetting& setting, const RunRequest& request,
                            std::chrono::system_clock::time_point now) {
    const std::filesystem::path& data = setting.configuration->data_dir;
    return request.id ? RunDirectory::create(data, *request.id) : RunDirectory::create(data, now);
}

}  // namespace

Run::Run(const RunSetting& setting, const RunRequest& request)
    : setting_(setting),
      request_(request),
      started_(std::chrono::system_clock::now()),
      directory_(make_directory(setting, request, started_)),
      coincidences_(make_writer(RecordKind::coincidences, coincidences_file)) {
    if (setting.configuration->listmode.write_singles)
        singles_ = make_writer(RecordKind::singles, singles_file);
    nlohmann::json content = description();
    content["state"] = "running";
    directory_.write_run_json(content);
}

std::unique_ptr<ListModeWriter> Run::make_writer(RecordKind kind, const char* file) const {
    const config::ListMode& listmode = setting_.configuration->listmode;
    const config::Coincidence& c = setting_.configuration->coincidence;
    ListModeOptions o;
    o.kind = kind;
    o.block_bytes = listmode.block_bytes;
    o.sync_interval_ms = listmode.sync_interval_ms;
    o.queue_blocks = listmode.queue_blocks;
    o.description = {{"run_id", directory_.run_id()},
                     {"start_utc", utc_text(started_)},
                     {"version", version},
                     {"scanner", setting_.scanner->name},
                     {"tick_ps", setting_.scanner->tick_ps},
                     {"crystals", setting_.scanner->geometry.crystal_count()},
                     {"crystals_in_ring", setting_.scanner->geometry.crystals_in_ring()},
                     {"window_ticks", c.window_ticks}};
    o.description["delay_ticks"] = c.delay_ticks ? nlohmann::json(*c.delay_ticks) : nlohmann::json();
    return std::make_unique<ListModeWriter>(directory_.file(file), std::move(o));
}

nlohmann::json Run::description() const {
    nlohmann::json content;
    content["run_id"] = directory_.run_id();
    content["start_utc"] = utc_text(started_);
    content["note"] = request_.note;
    content["duration_s"] = request_.duration_s ? nlohmann::json(*request_.duration_s) : nlohmann::json();
    content["version"] = version;
    content["backend"] = setting_.backend;
    content["configuration"] = setting_.configuration->document;
    content["scanner"] = config::to_json(*setting_.scanner);
    content["calibration_sha256"] = setting_.calibration_sha256;
    return content;
}

void Run::append(const gpu::SliceResult& result) {
    coincidences_->append(std::span<const gpu::Coincidence>(result.coincidences));
    if (singles_) singles_->append(std::span<const gpu::Single>(result.singles));
}

std::string Run::write_failure() const {
    std::string failure = coincidences_->failure();
    if (failure.empty() && singles_) failure = singles_->failure();
    return failure;
}

namespace {

template <class Section>
void fill(Section& section, const ListModeCounts& counts) {
    section.written = counts.written;
    section.write_failed = counts.write_failed;
    section.in_queue = counts.appended - counts.written - counts.write_failed;
}

}  // namespace

void Run::complete(Ledger& ledger) const {
    fill(ledger.pairs, coincidences_->counts());
    if (singles_) fill(ledger.saved_singles, singles_->counts());
}

Ledger Run::finish(const RunEnd& end, std::string& failure) {
    Ledger ledger = end.ledger;
    coincidences_->finish();
    if (singles_) singles_->finish();
    complete(ledger);
    const std::vector<std::string> open = ledger.open_identities();
    failure = end.failed ? end.reason : write_failure();

    nlohmann::json content = description();
    content["stop_utc"] = utc_text(std::chrono::system_clock::now());
    content["stop_reason"] = failure.empty() ? end.reason : failure;
    content["start_ticks"] = end.start_ticks;
    content["stop_ticks"] = end.stop_ticks;
    content["ledger"] = to_json(ledger);
    content["state"] = !failure.empty() ? "failed" : !open.empty() ? "bad-ledger" : "complete";
    try {
        directory_.write_run_json(content);
    } catch (const std::exception& e) {
        if (failure.empty()) failure = std::string("run.json: ") + e.what();
    }
    return ledger;
}

}  // namespace petacq::daemon
