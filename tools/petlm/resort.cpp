#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "config/configuration.hpp"
#include "daemon/backend.hpp"
#include "daemon/host/progress_line.hpp"
#include "tools/petlm/commands.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/records/record_file.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/run.hpp"
#include "tools/petlm/records/status.hpp"

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
    /// Slices are collected in `memory`, which the pipeline reads fastest.
    Resorting(std::unique_ptr<gpu::Pipeline> pipeline, net::MemorySource& memory, RecordFile& out)
        : out_(out), spans_(pipeline->depth() + 1), pipeline_(std::move(pipeline)) {
        auto* const singles = reinterpret_cast<gpu::Single*>(
            memory.allocate(spans_.size() * slice_singles * sizeof(gpu::Single)));
        for (std::size_t i = 0; i < spans_.size(); ++i)
            buffers_.push_back(singles + i * slice_singles);
    }
    void add(std::span<const gpu::Single> singles) {
        while (!singles.empty()) {
            const auto taken = singles.first(std::min<std::size_t>(singles.size(), slice_singles - filled_));
            std::copy(taken.begin(), taken.end(), buffers_[filling_] + filled_);
            filled_ += static_cast<std::uint32_t>(taken.size());
            singles = singles.subspan(taken.size());
            if (filled_ == slice_singles) submit(false);
        }
    }
    void finish() {
        submit(true);
        while (collect()) {
        }
    }
    [[nodiscard]] const gpu::SingleCounts& counts() const { return counts_; }
    [[nodiscard]] const gpu::FrameCounts& taken() const { return taken_; }
    [[nodiscard]] std::string back_end() const { return pipeline_->description(); }

  private:
    void submit(bool last) {
        while (waiting_ == pipeline_->depth())
            collect();
        const gpu::Single* const buffer = buffers_[filling_];
        if (filled_ != 0) watermark_ = buffer[filled_ - 1].time;
        spans_[filling_] = {reinterpret_cast<const std::byte*>(buffer), filled_, 0, UINT64_MAX};
        gpu::Slice slice;
        slice.spans = std::span(&spans_[filling_], filled_ == 0 ? 0 : 1);
        slice.watermark = last ? UINT64_MAX : watermark_;
        if (last) slice.close_at = UINT64_MAX;
        pipeline_->submit(slice);
        ++waiting_;
        filling_ = (filling_ + 1) % buffers_.size();
        filled_ = 0;
    }
    bool collect() {
        if (!pipeline_->collect(result_, true)) return false;
        --waiting_;
        out_.append(std::span<const gpu::Coincidence>(result_.coincidences));
        counts_ += result_.counts;
        taken_ += result_.frames;
        return true;
    }

    RecordFile& out_;
    std::vector<gpu::FrameSpan> spans_;
    std::vector<gpu::Single*> buffers_;  // a ring; the pipeline may read all but the one being filled
    std::size_t filling_ = 0;
    std::uint32_t filled_ = 0;
    std::size_t waiting_ = 0;
    std::uint64_t watermark_ = 0;
    gpu::SliceResult result_;
    gpu::SingleCounts counts_;
    gpu::FrameCounts taken_;
    std::unique_ptr<gpu::Pipeline> pipeline_;  // destroyed first, because it may still read the spans
};

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
    Outputs outputs(options.force);
    outputs.claim(options.output);
    nlohmann::json description = source.description();
    const config::Coincidence& c = configuration.coincidence;
    description["window_ticks"] = c.window_ticks;
    description["delay_ticks"] = c.delay_ticks ? nlohmann::json(*c.delay_ticks) : nlohmann::json();
    description["delayeds"] = c.delay_ticks ? nlohmann::json(name_of(c.delayeds)) : nlohmann::json();
    description["resorted"] = {{"coincidence", configuration.document->at("coincidence")},
                               {"energy", configuration.document->at("energy")}};
    RecordFile out(Outputs::partial(options.output), daemon::RecordKind::coincidences, source.block_bytes(),
                   description);
    Resorting resorting(std::move(backend.pipeline), *backend.memory, out);
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
    outputs.commit();
    std::cout << fmt::format("{}: {} prompts, {} delayeds from {} singles ({})\n", options.output.string(),
                             resorting.counts().prompts, resorting.counts().delayeds,
                             resorting.taken().accepted, resorting.back_end());
    return ok;
}

}  // namespace petacq::petlm
