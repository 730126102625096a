#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "config/configuration.hpp"
#include "daemon/backend.hpp"
#include "daemon/host/progress_line.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/seconds/file.hpp"
#include "daemon/settings.hpp"
#include "tools/petlm/commands.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/records/record_file.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/run.hpp"
#include "tools/petlm/records/status.hpp"
#include "tools/petlm/resorted_run.hpp"
#include "tools/petlm/resorted_seconds.hpp"

namespace petacq::petlm {
namespace {

constexpr std::uint32_t slice_singles = 1U << 20;

/// The largest limit that a configuration may have.
constexpr double any_energy_keV = 1'000'000;  // NOLINT(readability-identifier-naming)

/// Sets the given limits. A limit that is not given is that of the saved singles.
void narrow(nlohmann::json& energy, const ResortOptions& options) {
    if (!options.lower_keV && !options.upper_keV) return;
    const bool filtered = energy.at("filter").get<bool>();
    const double lowest = filtered ? energy.at("lower_keV").get<double>() : 0;
    const double highest = filtered ? energy.at("upper_keV").get<double>() : any_energy_keV;
    const double lower = options.lower_keV.value_or(lowest);
    const double upper = options.upper_keV.value_or(highest);
    const auto refuse = [&](const char* option, double found) {
        throw UsageError(fmt::format("{} {}: the run has saved singles from {} to {} keV", option, found,
                                     lowest, highest));
    };
    if (lower < lowest) refuse("--lower-kev", lower);
    if (upper > highest) refuse("--upper-kev", upper);
    energy = {{"filter", true}, {"lower_keV", lower}, {"upper_keV", upper}};
}

/// The configuration of the run with the given settings replaced.
config::Configuration configured(const nlohmann::json& run, const ResortOptions& options) {
    nlohmann::json document = run.at("configuration");
    nlohmann::json& coincidence = document["coincidence"];
    const auto set = [](nlohmann::json& object, const char* key, const auto& value) {
        if (value) object[key] = *value;
    };
    set(coincidence, "window_ticks", options.window_ticks);
    set(coincidence, "window_mode", options.window_mode);
    set(coincidence, "multiples_policy", options.multiples_policy);
    set(coincidence, "max_multiplicity", options.max_multiplicity);
    set(coincidence, "min_module_difference", options.min_module_difference);
    set(coincidence, "max_ring_difference", options.max_ring_difference);
    set(coincidence, "delay_ticks", options.delay_ticks);
    set(coincidence, "delayeds", options.delayeds);
    if (options.no_delay) coincidence.erase("delay_ticks");
    narrow(document.at("energy"), options);
    document["pipeline"]["backend"] = options.backend;
    set(document["pipeline"], "threads", options.threads);
    if (document["pipeline"].value("threads", 0U) == 0) {
        document["pipeline"]["threads"] = std::max(1U, std::thread::hardware_concurrency());
    }
    document["pipeline"]["slice_frames"] = slice_singles;
    document["pipeline"]["max_pending_singles"] = std::uint64_t{16} * slice_singles;
    document["listmode"]["write_singles"] = false;
    return config::configuration_from_json(document, "/");
}

/// Singles need no calibration; only its shape matters.
config::Calibration no_calibration(const config::Geometry& g) {
    const std::size_t units = std::size_t{g.bdm_count} * g.du_count;
    config::Calibration calibration;
    calibration.position_table.assign(units * g.position_size * g.position_size, 0);
    calibration.bins = 1;
    calibration.energy_factor.assign(units * g.crystals_per_du(), 1);
    return calibration;
}

class Resorting {
  public:
    /// Slices are collected in `memory`, which the pipeline reads fastest. `seconds_file`: nullptr if the
    /// seconds are not wanted.
    Resorting(std::unique_ptr<gpu::Pipeline> pipeline, net::MemorySource& memory, RecordFile& out,
              ResortedSeconds& seconds, daemon::SecondsFile* seconds_file)
        : out_(out),
          seconds_(seconds),
          seconds_file_(seconds_file),
          spans_(pipeline->depth() + 1),
          pipeline_(std::move(pipeline)) {
        auto* const singles = reinterpret_cast<gpu::Single*>(
            memory.allocate(spans_.size() * slice_singles * sizeof(gpu::Single)));
        for (std::size_t i = 0; i < spans_.size(); ++i)
            buffers_.push_back(singles + i * slice_singles);
    }
    void add(std::span<const gpu::Single> singles) {
        while (!singles.empty()) {
            const std::uint64_t next = singles.front().time;
            const std::uint64_t end = seconds_.watermark(next);
            if (next >= end) {
                submit(Ends::second, end);
                seconds_.end(next);
                continue;
            }
            auto taken = singles.first(std::min<std::size_t>(singles.size(), slice_singles - filled_));
            if (taken.back().time >= end) {
                const auto after = std::partition_point(taken.begin(), taken.end(),
                                                        [&](const gpu::Single& s) { return s.time < end; });
                taken = taken.first(static_cast<std::size_t>(after - taken.begin()));
            }
            std::copy(taken.begin(), taken.end(), buffers_[filling_] + filled_);
            filled_ += static_cast<std::uint32_t>(taken.size());
            last_ = taken.back().time;
            singles = singles.subspan(taken.size());
            if (filled_ == slice_singles) submit(Ends::nothing, last_);
        }
    }
    void finish() {
        while (seconds_.more(last_)) {
            submit(Ends::second, seconds_.watermark(last_));
            seconds_.end(last_);
        }
        submit(Ends::everything, UINT64_MAX);
        seconds_.end_all(last_);
        while (collect()) {
        }
    }
    [[nodiscard]] const gpu::SingleCounts& counts() const { return counts_; }
    [[nodiscard]] const gpu::FrameCounts& taken() const { return taken_; }
    /// Times of the first and the last coincidence.
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> times() const { return times_; }
    [[nodiscard]] std::string back_end() const { return pipeline_->description(); }

  private:
    enum class Ends : std::uint8_t { nothing, second, everything };

    void submit(Ends ends, std::uint64_t watermark) {
        while (waiting_.size() == pipeline_->depth())
            collect();
        const gpu::Single* const buffer = buffers_[filling_];
        spans_[filling_] = {reinterpret_cast<const std::byte*>(buffer), filled_, 0, UINT64_MAX};
        gpu::Slice slice;
        slice.spans = std::span(&spans_[filling_], filled_ == 0 ? 0 : 1);
        slice.watermark = watermark;
        slice.ends_interval = ends != Ends::nothing;
        if (ends == Ends::everything) slice.close_at = UINT64_MAX;
        pipeline_->submit(slice);
        waiting_.push_back(ends);
        filling_ = (filling_ + 1) % buffers_.size();
        filled_ = 0;
    }
    bool collect() {
        if (!pipeline_->collect(result_, true)) return false;
        const bool ends_second = waiting_.front() != Ends::nothing;
        waiting_.pop_front();
        if (!result_.coincidences.empty()) {
            if (counts_.prompts + counts_.delayeds == 0) times_.first = result_.coincidences.front().time;
            times_.second = result_.coincidences.back().time;
        }
        out_.append(std::span<const gpu::Coincidence>(result_.coincidences));
        counts_ += result_.counts;
        taken_ += result_.frames;
        if (ends_second) seconds_.collect(result_.sums, seconds_file_);
        return true;
    }

    RecordFile& out_;
    ResortedSeconds& seconds_;
    daemon::SecondsFile* seconds_file_;
    std::vector<gpu::FrameSpan> spans_;
    std::vector<gpu::Single*> buffers_;  // a ring; the pipeline may read all but the one being filled
    std::size_t filling_ = 0;
    std::uint32_t filled_ = 0;
    std::deque<Ends> waiting_;  // slices in the pipeline
    std::uint64_t last_ = 0;    // time of the latest single
    gpu::SliceResult result_;
    gpu::SingleCounts counts_;
    gpu::FrameCounts taken_;
    std::pair<std::uint64_t, std::uint64_t> times_;
    std::unique_ptr<gpu::Pipeline> pipeline_;  // destroyed first, because it may still read the spans
};

/// A record of a file that is complete, by its final name.
daemon::ListModePart part_of(const std::filesystem::path& file, std::uint64_t records,
                             std::pair<std::uint64_t, std::uint64_t> times) {
    daemon::ListModePart part{file.filename().string()};
    part.records = records;
    part.bytes = std::filesystem::file_size(Outputs::partial(file));
    std::tie(part.first_time, part.last_time) = times;
    return part;
}

}  // namespace

int resort(const ResortOptions& options) {
    std::string why;
    const nlohmann::json run = run_json(options.run, why);
    if (run.is_null()) throw UsageError(why + "; expected the directory of a run");
    const config::Configuration configuration = configured(run, options);
    const config::Scanner scanner = config::scanner_from_json(run.at("scanner"));
    config::check_against_scanner(configuration, scanner);

    RecordSource source(options.run, daemon::RecordKind::singles);
    daemon::Backend backend = daemon::make_backend(configuration, scanner, no_calibration(scanner.geometry),
                                                   0, gpu::Input::singles);
    const bool one_file = options.output.extension() == ".plm";
    const std::filesystem::path output =
        one_file ? options.output : options.output / daemon::coincidences_file;
    Outputs outputs(options.force);
    if (one_file) {
        outputs.claim(output);
    } else {
        claim_run(outputs, options.run, options.output);
    }
    const nlohmann::json settings = {{"coincidence", configuration.document->at("coincidence")},
                                     {"energy", configuration.document->at("energy")}};
    nlohmann::json description = source.description();
    const config::Coincidence& c = configuration.coincidence;
    description["window_ticks"] = c.window_ticks;
    description["delay_ticks"] = c.delay_ticks ? nlohmann::json(*c.delay_ticks) : nlohmann::json();
    description["delayeds"] = c.delay_ticks ? nlohmann::json(name_of(c.delayeds)) : nlohmann::json();
    description["resorted"] = settings;
    RecordFile out(Outputs::partial(output), daemon::RecordKind::coincidences, source.block_bytes(),
                   description);
    const gpu::CoincidenceRules rules = daemon::coincidence_rules(configuration);
    const std::filesystem::path seconds_path = options.output / daemon::seconds_file;
    std::optional<daemon::SecondsFile> seconds_file;
    if (!one_file) {
        description["window_mode"] = name_of(rules.mode);
        description["multiples_policy"] = name_of(rules.policy);
        std::filesystem::remove(Outputs::partial(seconds_path));  // of a program that was killed
        seconds_file.emplace(Outputs::partial(seconds_path), scanner.geometry, description,
                             config::Compression::none, std::chrono::minutes(1));
    }
    ResortedSeconds seconds(options.run, scanner.geometry, scanner.tick_ps, rules);
    Resorting resorting(std::move(backend.pipeline), *backend.memory, out, seconds,
                        seconds_file ? &*seconds_file : nullptr);
    {
        daemon::ProgressLine progress("finding coincidences", source.total_bytes());
        while (source.next()) {
            resorting.add(source.reader().singles());
            progress.show(source.bytes_done());
        }
        resorting.finish();
    }
    if (resorting.taken().bad_address != 0) {
        throw BadInput(fmt::format("{}: {} singles name crystals that the scanner does not have",
                                   options.run.string(), resorting.taken().bad_address));
    }
    out.close();
    if (seconds_file) {
        const daemon::SecondsCounts written = seconds_file->finish();
        if (!seconds_file->failure().empty()) throw std::runtime_error(seconds_file->failure());
        const daemon::ListModePart& part = seconds_file->part();
        complete_run(
            options.run, run, settings,
            {resorting.counts(), resorting.taken(), seconds.total(),
             part_of(output, out.records(), resorting.times()),
             part_of(seconds_path, written.written, {part.first_time, part.last_time}), resorting.back_end()},
            options.output);
    }
    outputs.commit();
    std::cout << fmt::format("{}: {} prompts, {} delayeds from {} singles ({})\n", options.output.string(),
                             resorting.counts().prompts, resorting.counts().delayeds,
                             resorting.taken().accepted, resorting.back_end());
    return ok;
}

}  // namespace petacq::petlm
