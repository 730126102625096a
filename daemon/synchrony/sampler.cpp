#include "daemon/synchrony/sampler.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "daemon/system/background_thread.hpp"

namespace petacq::daemon {

namespace {

constexpr std::uint64_t sample_frames = 131'072;
constexpr std::size_t max_hits = 8 * sample_frames;
/// At low rates as many seconds are judged together.
constexpr std::size_t max_samples = 64;

/// [bdm] what is known of those that were compared as one, with their boards.
std::vector<ModuleSynchrony> of_modules(const std::vector<ModuleSynchrony>& compared,
                                        const gpu::Sectors& sectors, const SynchronyOptions& options) {
    std::vector<ModuleSynchrony> modules;
    for (std::uint32_t bdm = 0; bdm < sectors.bdm_count; ++bdm) {
        ModuleSynchrony& module = modules.emplace_back(compared[sectors.of_module(bdm)]);
        if (!options.sources.empty()) module.source = options.sources[bdm];
    }
    return modules;
}

}  // namespace

SynchronyWatch::SynchronyWatch(const gpu::PipelineOptions& pipeline, const config::Calibration& calibration,
                               const SynchronyOptions& options, std::uint64_t second, bool threaded)
    : pipeline_(pipeline),
      options_(options),
      second_(second),
      compared_(compared_modules(pipeline.geometry)),
      tables_(std::make_shared<gpu::OwnedTables>(pipeline, calibration)) {
    if (!threaded) return;
    constexpr int lowest = 19;
    thread_ = background_thread("synchrony", lowest, [this](const std::stop_token& stop) { work(stop); });
}

SynchronyWatch::~SynchronyWatch() {
    {
        const net::MutexLock lock(mutex_);
        stopping_ = true;
    }
    arrived_.notify_all();
}

void SynchronyWatch::set_calibration(const config::Calibration& calibration) {
    tables_ = std::make_shared<gpu::OwnedTables>(pipeline_, calibration);
    room_ = 0;
    begun_ = UINT64_MAX;
    const net::MutexLock lock(mutex_);
    waiting_ = {};
    report_.reset();
}

std::shared_ptr<const SynchronyReport> SynchronyWatch::report() const {
    const net::MutexLock lock(mutex_);
    return report_;
}

void SynchronyWatch::offer(std::span<const gpu::FrameSpan> spans, std::uint64_t watermark) {
    if (spans.empty()) return;
    // The watermark may start again below.
    const bool second_over = watermark < begun_ || watermark - begun_ >= second_;
    if (room_ > 0 && second_over) hand_over();
    if (room_ == 0) {
        if (!second_over) return;
        begun_ = watermark;
        room_ = sample_frames;
        filling_.spans.clear();
        filling_.frames.clear();
        filling_.frames.reserve(sample_frames * net::frame_bytes);
        filling_.tables = tables_;
    }
    for (const gpu::FrameSpan& span : spans) {
        for (std::uint32_t i = 0; i < span.datagrams; ++i) {
            gpu::FrameSpan taken = span.datagram(i);
            taken.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(taken.count, room_));
            const std::size_t at = filling_.frames.size();
            const std::size_t bytes = std::size_t{taken.count} * net::frame_bytes;
            filling_.frames.resize(at + bytes);
            if (bytes > 0) std::memcpy(filling_.frames.data() + at, taken.frames, bytes);
            filling_.spans.push_back(taken);
            room_ -= taken.count;
            if (room_ == 0) return hand_over();
        }
    }
}

/// A sample that nobody has taken yet gives way.
void SynchronyWatch::hand_over() {
    room_ = 0;
    if (!thread_.joinable()) return take(filling_);
    {
        const net::MutexLock lock(mutex_);
        std::swap(waiting_, filling_);
    }
    arrived_.notify_one();
}

void SynchronyWatch::work(const std::stop_token& /*stopping*/) {
    Sample sample;
    for (;;) {
        {
            net::MutexLock lock(mutex_);
            while (!stopping_ && !waiting_.tables)
                arrived_.wait(lock.native());
            if (stopping_) return;
            std::swap(sample, waiting_);
            waiting_.tables.reset();
        }
        take(sample);
    }
}

void SynchronyWatch::take(const Sample& sample) {
    if (tables_of_hits_ != sample.tables) {
        tables_of_hits_ = sample.tables;
        hits_.clear();
        samples_ = 0;
        known_ = 0;
    }
    convert(sample);
    ++samples_;
    const bool many = hits_.size() >= max_hits || samples_ >= max_samples;
    if (many || std::has_single_bit(samples_)) judge();
}

void SynchronyWatch::convert(const Sample& sample) {
    if (sample.tables->view().version == net::FrameVersion::one) {
        convert_frames<net::FrameVersion::one>(sample);
    } else {
        convert_frames<net::FrameVersion::two>(sample);
    }
}

/// Converts frames as the pipeline does, but does not check that a module belongs to its source.
template <net::FrameVersion version>
void SynchronyWatch::convert_frames(const Sample& sample) {
    const gpu::ConversionTables& t = sample.tables->view();
    const std::byte* frame = sample.frames.data();
    for (const gpu::FrameSpan& span : sample.spans) {
        const auto guard = gpu::TimeGuard::of(span.time_low, span.time_high);
        for (std::uint32_t i = 0; i < span.count; ++i, frame += net::frame_bytes) {
            const net::FrameWords w = net::load_frame(frame);
            if (!gpu::markers_match<version>(w, t)) continue;
            const std::uint32_t cell = gpu::frame_cell<version>(w, t);
            if (cell == gpu::no_cell) continue;
            const std::uint32_t local = gpu::local_of(cell, t);
            if (local >= t.crystals_per_du) continue;
            const std::uint32_t slot = gpu::frame_unit<version>(w, t) * t.crystals_per_du + local;
            const float energy = gpu::frame_energy(net::adc_of(w), slot, t);
            const std::uint64_t raw = net::time_of(w);
            bool bad = false;
            const std::uint64_t time = gpu::corrected_time(raw, t.crystals[slot].time_offset, bad);
            if (bad || guard.refuses(raw) || energy < t.lower || energy > t.upper) continue;
            hits_.push_back({time, compared_.of_module(net::bdm_of<version>(w))});
        }
    }
}

void SynchronyWatch::judge() {
    std::sort(hits_.begin(), hits_.end(),
              [](const TimedSingle& a, const TimedSingle& b) { return a.time < b.time; });
    SynchronyReport found = judge_synchrony(hits_, options_);
    found.modules = of_modules(found.modules, compared_, options_);
    auto report = std::make_shared<const SynchronyReport>(std::move(found));
    const bool over = report->complete || hits_.size() >= max_hits || samples_ >= max_samples;
    // The first seconds of the next samples say less than all of the latest did.
    if (over || report->known() >= known_) {
        known_ = report->known();
        const net::MutexLock lock(mutex_);
        report_ = std::move(report);
    }
    if (!over) return;
    hits_.clear();
    samples_ = 0;
}

}  // namespace petacq::daemon
