#include "daemon/run/run.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/run/histograms.hpp"
#include "daemon/system/logging.hpp"
#include "daemon/system/utc.hpp"
#include "daemon/system/version.hpp"

namespace petacq::daemon {

namespace {

RunDirectory make_directory(const RunSetting& setting, const RunRequest& request) {
    const std::filesystem::path& data = setting.configuration->data_dir;
    return request.id ? RunDirectory::create(data, *request.id)
                      : RunDirectory::create(data, std::chrono::system_clock::now());
}

/// Lost files named in the failure of a run.
constexpr std::size_t max_lost_named = 3;

/// Null if nothing was measured.
nlohmann::json randoms_of(const RunEnd& end, const RunSetting& setting) {
    const double seconds = static_cast<double>(end.covered.ticks()) * setting.scanner->tick_ps * 1e-12;
    if (!setting.rules.search || end.seconds.length_s <= 0 || seconds <= 0) return nullptr;
    return expected_randoms(end.seconds, seconds, setting.rules.delay.has_value());
}

void add_files(nlohmann::json& files, RecordKind kind, const std::vector<ListModePart>& parts) {
    for (const ListModePart& part : parts) {
        const auto time = [&](std::uint64_t ticks) {
            return part.records == 0 ? nlohmann::json() : nlohmann::json(ticks);
        };
        files.push_back({{"name", part.name},
                         {"kind", name_of(kind)},
                         {"bytes", part.bytes},
                         {"first_record", part.first_record},
                         {"records", part.records},
                         {"first_time", time(part.first_time)},
                         {"last_time", time(part.last_time)}});
    }
}

nlohmann::json failure_or_null(const std::string& failure) {
    return failure.empty() ? nlohmann::json() : nlohmann::json(failure);
}

template <class Section>
void fill(Section& section, const ListModeCounts& counts) {
    section.written = counts.written;
    section.write_failed = counts.write_failed;
    section.in_queue = counts.appended - counts.written - counts.write_failed;
}

}  // namespace

nlohmann::json to_json(const CaptureStatus& capture) {
    return {{"datagrams_offered", capture.counts.offered},
            {"datagrams_written", capture.counts.written},
            {"datagrams_dropped", capture.counts.dropped},
            {"bytes", capture.counts.bytes},
            {"failure", failure_or_null(capture.failure)}};
}

Run::Run(const RunSetting& setting, const RunRequest& request)
    : setting_(setting),
      request_(request),
      started_(request.started.value_or(std::chrono::system_clock::now())),
      directory_(make_directory(setting, request)),
      coverage_(known_coverage()),
      marks_(directory_.file(marks_file)) {
    try {
        open_files();
    } catch (...) {
        discard();
        throw;
    }
}

void Run::open_files() {
    reserve_ = std::make_unique<RunReserve>(directory_.path());
    if (setting_.configuration->listmode.write_coincidences) {
        coincidences_ = make_writer(RecordKind::coincidences, coincidences_file);
    }
    if (setting_.configuration->listmode.write_singles) {
        singles_ = make_writer(RecordKind::singles, singles_file);
    }
    if (setting_.configuration->finds_triples()) triples_ = make_writer(RecordKind::triples, triples_file);
    tags_ = make_writer(RecordKind::tags, tags_file);
    seconds_ = make_seconds();
    if (setting_.configuration->listmode.write_raw && setting_.pool != nullptr) {
        // The receivers keep the other half of the pool.
        capture_ = std::make_unique<Capture>(
            directory_.file("raw.pcap"), setting_.framing, setting_.scanner->frame_version, *setting_.pool,
            setting_.pool->count() / 2, setting_.configuration->health.min_disk_free_bytes,
            std::chrono::milliseconds(setting_.configuration->listmode.sync_interval_ms));
    }
    ledger_series_ = std::make_unique<LedgerSeries>(directory_.file(ledger_file));
    if (counts_spectra()) {
        spectra_memory_ = config::Spectra::none(setting_.scanner->geometry);
        spectra_memory_.calibration_sha256 = setting_.calibration.sha256;
    }
    write_description(description());
}

/// That of a run in progress.
void Run::write_description(nlohmann::json content) {
    content["state"] = "running";
    write_json_atomically(directory_.file(run_file), content);
    description_identity_ = FileIdentity::of(directory_.file(run_file));
}

void Run::note_start() {
    try {
        write_description(description());
    } catch (const std::exception& e) {
        log_warning("run {}: its start could not be written: {}", id(), e.what());
    }
}

void Run::discard() {
    coincidences_.reset();
    singles_.reset();
    triples_.reset();
    tags_.reset();
    seconds_.reset();
    capture_.reset();
    ledger_series_.reset();
    reserve_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(directory_.path(), ignored);
}

std::unique_ptr<ListModeWriter> Run::make_writer(RecordKind kind, const char* file) const {
    const config::ListMode& listmode = setting_.configuration->listmode;
    ListModeOptions o;
    o.kind = kind;
    o.block_bytes = listmode.block_bytes;
    o.sync_interval_ms = listmode.sync_interval_ms;
    o.queue_blocks = listmode.queue_blocks;
    o.on_first_record = kind == RecordKind::tags;
    o.files = o.on_first_record ? 1 : listmode.files;
    o.compression = listmode.compression;
    o.split = {listmode.split_bytes, ticks_of(listmode.split_s, *setting_.scanner)};
    o.closing = closing_of(kind);
    o.cores = setting_.placement.results;
    return std::make_unique<ListModeWriter>(directory_.file(file), o, listmode_description(kind));
}

std::unique_ptr<SecondsFile> Run::make_seconds() const {
    const config::ListMode& listmode = setting_.configuration->listmode;
    nlohmann::json header = listmode_description(RecordKind::seconds);
    header["window_mode"] = name_of(setting_.rules.mode);
    header["multiples_policy"] = name_of(setting_.rules.policy);
    return std::make_unique<SecondsFile>(directory_.file(seconds_file), setting_.scanner->geometry,
                                         std::move(header), listmode.compression,
                                         std::chrono::milliseconds(listmode.sync_interval_ms),
                                         closing_of(RecordKind::seconds), setting_.rules.gammas.has_value());
}

void Run::append(gpu::SliceResult& result) {
    if (coincidences_) coincidences_->append(std::move(result.coincidences));
    if (singles_) singles_->append(std::move(result.singles));
    if (triples_) triples_->append(std::move(result.triples));
    if (!result.tags.empty()) tags_->append(std::move(result.tags));
}

std::vector<Run::Writer> Run::writers() const {
    std::vector<Writer> all;
    if (coincidences_) all.push_back({RecordKind::coincidences, "writer", coincidences_.get()});
    if (singles_) all.push_back({RecordKind::singles, "writer singles", singles_.get()});
    if (triples_) all.push_back({RecordKind::triples, "writer triples", triples_.get()});
    all.push_back({RecordKind::tags, "writer tags", tags_.get()});
    return all;
}

std::string Run::write_failure() const {
    std::string failure;
    for (const Writer& w : writers())
        if (failure.empty()) failure = w.writer->failure();
    if (failure.empty()) failure = seconds_->failure();
    return failure;
}

ListModeCounts Run::written() const {
    ListModeCounts counts;
    for (const Writer& w : writers()) {
        const ListModeCounts more = w.writer->counts();
        counts.bytes += more.bytes;
        counts.stalls += more.stalls;
        counts.queue_blocks = std::max(counts.queue_blocks, more.queue_blocks);
        counts.queue_high_water = std::max(counts.queue_high_water, more.queue_high_water);
    }
    return counts;
}

std::optional<CaptureStatus> Run::capture_status() const {
    if (!capture_) return {};
    return CaptureStatus{capture_->counts(), capture_->failure()};
}

void Run::add_progress(std::vector<StageProgress>& stages) const {
    for (const Writer& w : writers()) {
        if (w.kind == RecordKind::tags && w.writer->counts().appended == 0) continue;
        const std::vector<WritingThread> threads = w.writer->threads();
        const std::string name = w.name;
        for (std::size_t i = 0; i < threads.size(); ++i) {
            const WritingThread& t = threads[i];
            stages.push_back({threads.size() == 1 ? name : name + " " + std::to_string(i + 1), t.calls,
                              t.waiting, t.busy_s, std::chrono::steady_clock::now()});
        }
    }
    const SecondsCounts seconds = seconds_->counts();
    stages.push_back(
        {"writer seconds", seconds.calls, seconds.waiting, seconds.busy_s, std::chrono::steady_clock::now()});
    // The capture never reports work to do and thus never counts as stalled: the run continues without it.
    if (capture_)
        stages.push_back({"capture", 0, false, capture_->counts().busy_s, std::chrono::steady_clock::now()});
}

void Run::add_end_progress(std::vector<StageProgress>& stages) const {
    // Every write changes one of these numbers.
    std::uint64_t work = end_steps_.load(std::memory_order_relaxed) + seconds_->counts().calls;
    for (const Writer& w : writers())
        work += w.writer->counts().calls;
    if (capture_) work += capture_->counts().bytes;
    stages.push_back({"run end", work, true, 0, std::chrono::steady_clock::now()});
}

void Run::complete(Ledger& ledger) const {
    if (coincidences_) fill(ledger.pairs, coincidences_->counts());
    if (singles_) fill(ledger.saved_singles, singles_->counts());
    if (triples_) fill(ledger.triples, triples_->counts());
    fill(ledger.tags, tags_->counts());
}

std::string Run::lost_files() const {
    std::vector<FileIdentity> files;
    for (const Writer& w : writers()) {
        const std::vector<FileIdentity> more = w.writer->identities();
        files.insert(files.end(), more.begin(), more.end());
    }
    files.push_back(seconds_->identity());
    if (capture_) files.push_back(capture_->identity());
    files.push_back(ledger_series_->identity());
    if (const auto marks = marks_.identity()) files.push_back(*marks);
    files.push_back(description_identity_);
    std::string lost;
    std::size_t count = 0;
    for (const FileIdentity& file : files) {
        try {
            file.check();
        } catch (const std::system_error& e) {
            if (++count <= max_lost_named) lost += (count == 1 ? "" : "; ") + std::string(e.what());
        }
    }
    if (count > max_lost_named) lost += "; and " + std::to_string(count - max_lost_named) + " more files";
    return lost;
}

std::string Run::save_spectra(const RunEnd& end) const {
    if (!counts_spectra()) return {};
    if (end.spectra.floods.empty()) return "spectra: their counts were lost with the pipeline";
    try {
        config::save_spectra(directory_.file(spectra_file), setting_.scanner->geometry, end.spectra);
        sync_file(directory_.file(spectra_file));
        return {};
    } catch (const std::exception& e) {
        return e.what();
    }
}

RunVerdict Run::verdict_on(const RunEnd& end, const Ledger& ledger, const std::string& failure) const {
    RunFacts facts{ledger, end.seen, setting_.configuration->health.max_loss_fraction, failure, {}, {}, 0};
    facts.ledger_series_failure = ledger_series_failure();
    if (const auto capture = capture_status()) {
        facts.capture_failure = capture->failure;
        facts.capture_dropped = capture->counts.dropped;
    }
    return judge(facts);
}

Ledger Run::finish(const RunEnd& end, std::string& failure) {
    Ledger ledger = end.ledger;
    coverage_.end(end.covered, end.taken, {end.live});
    const auto done = [&] { end_steps_.fetch_add(1, std::memory_order_relaxed); };
    for (const Writer& w : writers()) {
        w.writer->finish();
        done();
    }
    const SecondsCounts seconds = seconds_->finish();
    done();
    if (capture_) capture_->finish();
    done();
    ledger_series_->finish();
    done();
    complete(ledger);
    const std::vector<std::string> open = ledger.open_identities();
    failure = end.failed ? end.reason : write_failure();
    if (failure.empty()) failure = lost_files();

    const std::string spectra_failure = save_spectra(end);
    if (failure.empty()) failure = spectra_failure;
    done();
    reserve_->make_room();
    try {
        if (!end.histograms.per_crystal.empty()) {
            write_json_atomically(directory_.file(histograms_file),
                                  to_json(end.histograms, setting_.scanner->geometry));
        }
    } catch (const std::exception& e) {
        if (failure.empty()) failure = e.what();
    }
    done();
    nlohmann::json content = description();
    content["stop_utc"] = utc_text(stop_utc(end.covered.end));
    content["stop_reason"] = failure.empty() ? end.reason : failure;
    if (end.covered.ticks() == 0) content["start_ticks"] = content["stop_ticks"] = end.covered.end;
    content["ledger"] = to_json(ledger);
    content["expected_randoms"] = randoms_of(end, setting_);
    content["files"] = nlohmann::json::array();
    for (const Writer& w : writers())
        add_files(content["files"], w.kind, w.writer->parts());
    add_files(content["files"], RecordKind::seconds, {seconds_->part()});
    content["seconds"] = {{"file", seconds_file},
                          {"records", seconds.written},
                          {"write_failed", seconds.write_failed},
                          {"failure", failure_or_null(seconds_->failure())}};
    if (const auto capture = capture_status()) {
        content["capture"] = to_json(*capture);
        content["capture"]["file"] = "raw.pcap";
    }
    if (counts_spectra())
        content["spectra"] = {{"file", spectra_file}, {"failure", failure_or_null(spectra_failure)}};
    const LedgerSeriesStatus series = ledger_series_->status();
    content["ledger_over_time"] = {
        {"file", ledger_file}, {"rows", series.rows}, {"failure", failure_or_null(series.failure)}};
    verdict_ = verdict_on(end, ledger, failure);
    content["verdict"] = to_json(verdict_);
    content["state"] = !failure.empty() ? "failed" : !open.empty() ? "bad-ledger" : "complete";
    try {
        write_json_atomically(directory_.file(run_file), content);
        reserve_->remove();
    } catch (const std::exception& e) {
        if (failure.empty()) failure = e.what();
        verdict_ = verdict_on(end, ledger, failure);
        content["verdict"] = to_json(verdict_);
        content["state"] = "failed";
        content["stop_reason"] = failure;
        try {
            // The name may stand although it could not be synchronised.
            write_json_atomically(directory_.file(run_file), content);
        } catch (const std::exception&) {
            // run.json still says "running", and .reserve stays: the run counts as interrupted.
        }
    }
    reserve_.reset();
    done();
    return ledger;
}

}  // namespace petacq::daemon
