// What a run says about itself: in run.json, in the headers of its files and when they are closed.
#include <nlohmann/json.hpp>

#include "daemon/run/run.hpp"
#include "daemon/system/utc.hpp"
#include "daemon/system/version.hpp"

namespace petacq::daemon {

namespace {

template <class Number>
nlohmann::json number_or_null(const std::optional<Number>& number) {
    return number ? nlohmann::json(*number) : nlohmann::json();
}

}  // namespace

/// What is known of the coverage of a run before its data.
Coverage Run::known_coverage() const {
    Coverage coverage;
    coverage.tick_ps = setting_.scanner->tick_ps;
    const config::Configuration& configuration = *setting_.configuration;
    coverage.rules = {configuration.coincidence, configuration.energy, configuration.gammas};
    coverage.activity = stated_activity(request_.operator_data);
    coverage.origin = {
        {{directory_.run_id(), std::filesystem::absolute(directory_.path()).lexically_normal()}},
        setting_.calibration.sha256,
        scanner_sha256(*setting_.scanner)};
    return coverage;
}

void Run::begin_data(std::uint64_t ticks, const std::optional<Arrival>& arrival, std::uint64_t taken_from) {
    std::optional<std::chrono::system_clock::time_point> utc;
    if (arrival) {
        using std::chrono::nanoseconds;
        using std::chrono::system_clock;
        const auto clock_time = [&] {
            if (!request_.replayed.empty())
                return system_clock::time_point(
                    std::chrono::duration_cast<system_clock::duration>(nanoseconds(arrival->host_ns)));
            const auto ago =
                std::chrono::steady_clock::now().time_since_epoch() - nanoseconds(arrival->host_ns);
            return system_clock::now() - std::chrono::duration_cast<system_clock::duration>(ago);
        };
        Coverage at_arrival;
        at_arrival.tick_ps = setting_.scanner->tick_ps;
        at_arrival.anchor = TimeAnchor{arrival->ticks, clock_time()};
        utc = at_arrival.utc_of(ticks);
    }
    coverage_.begin(ticks, utc, taken_from);
}

/// That of the first data; before them, that of the command.
std::chrono::system_clock::time_point Run::start_utc() const {
    const auto anchor = coverage_.of(RecordKind::coincidences).anchor;
    return anchor ? anchor->utc : started_;
}

nlohmann::json Run::listmode_description(RecordKind kind) const {
    const config::Coincidence& c = setting_.configuration->coincidence;
    nlohmann::json header = {{"run_id", directory_.run_id()},
                             {"start_utc", utc_text(started_)},
                             {"version", version},
                             {"scanner", setting_.scanner->name},
                             {"tick_ps", setting_.scanner->tick_ps},
                             {"crystals", setting_.scanner->geometry.crystal_count()},
                             {"window_ticks", c.window_ticks},
                             {"coverage", to_json(coverage_.of(kind))}};
    const config::Geometry& geometry = setting_.scanner->geometry;
    header["crystals_in_ring"] =
        geometry.is_ring() ? nlohmann::json(geometry.crystals_in_ring()) : nlohmann::json();
    header["delay_ticks"] = c.delay_ticks ? nlohmann::json(*c.delay_ticks) : nlohmann::json();
    header["delayeds"] = c.delay_ticks ? nlohmann::json(name_of(c.delayeds)) : nlohmann::json();
    if (const auto said = to_json(request_.operator_data, started_); !said.is_null())
        header["operator"] = said;
    return header;
}

/// What is known only at the end of a file.
Closing Run::closing_of(RecordKind kind) const {
    return [this, kind](const PartTimes& times) {
        nlohmann::json closing = {{"coverage", to_json(coverage_.of_part(kind, times))},
                                  {"start_utc", utc_text(start_utc())}};
        if (const auto said = to_json(request_.operator_data, start_utc()); !said.is_null())
            closing["operator"] = said;
        return closing;
    };
}

nlohmann::json Run::description() const {
    nlohmann::json content;
    content["run_id"] = directory_.run_id();
    const Coverage coverage = coverage_.of(RecordKind::coincidences);
    content["start_utc"] = utc_text(start_utc());
    if (coverage.intervals) {
        content["start_ticks"] = coverage.span().start;
        content["stop_ticks"] = coverage.span().end;
    } else if (coverage.anchor) {
        content["start_ticks"] = coverage.anchor->ticks;
    }
    content["coverage"] = to_json(coverage);
    const RunCoverage::TakenTimes taken = coverage_.taken();
    content["taken"] = {{"start_ticks", number_or_null(taken.start)},
                        {"stop_ticks", number_or_null(taken.stop)}};
    content["asked"] = {{"start_ticks", number_or_null(request_.start_ticks)},
                        {"stop_ticks", number_or_null(request_.stop_ticks)},
                        {"duration_s", number_or_null(request_.duration_s)}};
    content["note"] = request_.note;
    if (const auto said = to_json(request_.operator_data, start_utc()); !said.is_null())
        content["operator"] = said;
    content["duration_s"] = number_or_null(request_.duration_s);
    content["version"] = version;
    content["backend"] = setting_.backend;
    content["backend_choice"] = setting_.backend_choice;
    content["configuration"] = *setting_.configuration->document;
    content["scanner"] = config::to_json(*setting_.scanner);
    content["calibration_sha256"] = setting_.calibration.sha256;
    if (const auto fwhm = setting_.calibration.coincidence_fwhm_ps) content["coincidence_fwhm_ps"] = *fwhm;
    content["energy_factor_spread"] = setting_.calibration.energy_factor_spread;
    if (!request_.replayed.empty()) content["replayed"] = request_.replayed;
    return content;
}

/// Of the end of the data; a run without data ended when it was stopped.
std::chrono::system_clock::time_point Run::stop_utc(std::uint64_t ticks) const {
    if (const auto utc = coverage_.of(RecordKind::coincidences).utc_of(ticks)) return *utc;
    if (!request_.replayed.empty()) return started_;
    return started_ + std::chrono::duration_cast<std::chrono::system_clock::duration>(
                          std::chrono::steady_clock::now() - started_steady_);
}

}  // namespace petacq::daemon
