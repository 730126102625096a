#include "tools/petlm/plot/histograms.hpp"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <numbers>
#include <thread>
#include <utility>

namespace petacq::petlm {
namespace {

constexpr std::uint32_t most_differences = 401;
constexpr std::uint32_t most_ring_bins = 1024;
constexpr std::uint32_t most_angles = 1024;
constexpr std::uint32_t most_radial = 1024;
/// Of a bin: lines that lie on an edge but for rounding belong to the bin above it.
constexpr double edge = 1e-9;
constexpr std::size_t most_in_table = std::size_t{1} << 22U;

void add(Counts& to, const Counts& more) {
    std::transform(to.begin(), to.end(), more.begin(), to.begin(), std::plus<>());
}

void add_pair(const PairBins& bins, const gpu::Coincidence& c, std::uint32_t time_bin, PairHistograms& h) {
    ++h.pairs;
    ++h.energy[energy_bin(c.energy_a)];
    ++h.energy[energy_bin(c.energy_b)];
    ++h.crystals[c.crystal_a];
    ++h.crystals[c.crystal_b];
    ++h.time[time_bin];
    if (c.dt <= bins.differences.window) {
        const std::int64_t signed_dt = c.crystal_b > c.crystal_a ? std::int64_t{c.dt} : -std::int64_t{c.dt};
        ++h.difference[bins.differences.of(signed_dt)];
    } else {
        ++h.beyond_window;
    }
    const std::uint32_t ring_a = c.crystal_a / bins.in_ring;
    const std::uint32_t ring_b = c.crystal_b / bins.in_ring;
    const std::uint32_t a = c.crystal_a - ring_a * bins.in_ring;
    const std::uint32_t b = c.crystal_b - ring_b * bins.in_ring;
    ++h.planes[ring_a + ring_b];
    const std::uint32_t first = (a <= b ? ring_a : ring_b) / bins.rings_per_bin;
    const std::uint32_t second = (a <= b ? ring_b : ring_a) / bins.rings_per_bin;
    ++h.michelogram[std::size_t{first} * bins.ring_bins + second];
    const std::uint32_t line = bins.lines.of(a, b);
    if (line == LineBins::outside) {
        ++h.beyond_sinogram;
    } else {
        ++h.sinogram[line];
    }
}

/// Blocks of pairs for threads of which each has histograms of its own.
class Workers {
  public:
    Workers(const PairBins& bins, unsigned count) : bins_(bins) {
        for (unsigned i = 0; i < count; ++i)
            parts_.push_back({PairHistograms(bins), PairHistograms(bins)});
        for (KindHistograms& part : parts_)
            threads_.emplace_back([this, &part] { work(part); });
    }
    ~Workers() { join(); }
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    /// Waits while the threads have enough to do.
    void give(std::span<const gpu::Coincidence> pairs) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return waiting_.size() < 2 * threads_.size(); });
        std::vector<gpu::Coincidence> block;
        if (!free_.empty()) {
            block = std::move(free_.back());
            free_.pop_back();
        }
        lock.unlock();
        block.assign(pairs.begin(), pairs.end());
        lock.lock();
        waiting_.push_back(std::move(block));
        changed_.notify_all();
    }
    KindHistograms result() {
        join();
        KindHistograms all = std::move(parts_.front());
        for (std::size_t i = 1; i < parts_.size(); ++i) {
            all.prompts += parts_[i].prompts;
            all.delayeds += parts_[i].delayeds;
        }
        return all;
    }

  private:
    void work(KindHistograms& part) {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return !waiting_.empty() || done_; });
            if (waiting_.empty()) return;
            std::vector<gpu::Coincidence> block = std::move(waiting_.back());
            waiting_.pop_back();
            changed_.notify_all();
            lock.unlock();
            add_pairs(bins_, block, part);
            lock.lock();
            free_.push_back(std::move(block));
        }
    }
    void join() {
        {
            const std::lock_guard lock(mutex_);
            done_ = true;
            changed_.notify_all();
        }
        for (std::thread& thread : threads_) {
            if (thread.joinable()) thread.join();
        }
    }

    const PairBins& bins_;
    std::vector<KindHistograms> parts_;
    std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    std::vector<std::vector<gpu::Coincidence>> waiting_;
    std::vector<std::vector<gpu::Coincidence>> free_;
    bool done_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace

std::uint32_t energy_bin(float energy) {
    const auto bin = energy * static_cast<float>(1 / energy_bin_keV);  // a power of two: exact
    // Also what is not a number.
    if (!(bin >= 0 && bin < static_cast<float>(energy_bins))) return energy_bins - 1;
    return static_cast<std::uint32_t>(bin);
}

TimeBins TimeBins::covering(std::uint64_t begin, std::uint64_t end, double tick_ps, std::uint32_t most) {
    const double ticks = static_cast<double>(end - begin) + 1;
    const double tick_s = tick_ps * 1e-12;
    const double least_s = ticks * tick_s / most;
    double step_s = std::pow(10, std::floor(std::log10(least_s)));
    for (const double factor : {2.0, 2.5, 2.0}) {  // 1, 2, 5, 10
        if (step_s >= least_s * (1 - 1e-9)) break;
        step_s *= factor;
    }
    TimeBins bins;
    bins.begin = begin;
    bins.width = static_cast<std::uint64_t>(std::clamp(std::round(step_s / tick_s), 1.0, 9e18));
    bins.count = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>((end - begin) / bins.width + 1, 1, std::uint64_t{most} + 1));
    return bins;
}

DifferenceBins DifferenceBins::covering(std::uint32_t window) {
    DifferenceBins bins;
    bins.window = window;
    const std::uint64_t ticks = 2 * std::uint64_t{window} + 1;
    const std::uint64_t width = (ticks + most_differences - 1) / most_differences;
    bins.width = static_cast<std::uint32_t>(width | 1U);
    bins.least = -static_cast<std::int32_t>((std::uint64_t{window} + bins.width / 2) / bins.width);
    return bins;
}

LineBins::LineBins(const config::Scanner& scanner, double depth_mm) {
    const std::uint32_t n = scanner.geometry.crystals_in_ring();
    const config::Dimensions& d = scanner.dimensions;
    angles_ = std::clamp(n / 2, 1U, most_angles);
    radius_ = d.ring_radius_mm;
    const double columns = std::round(2 * radius_ / (d.crystal_pitch_y_mm / 2));
    radial_ = static_cast<std::uint32_t>(std::clamp(columns, 1.0, static_cast<double>(most_radial)));
    for (std::uint32_t crystal = 0; crystal < n; ++crystal) {
        const auto point = config::point_at_depth(config::crystal_place(scanner, crystal), depth_mm);
        x_.push_back(point[0]);
        y_.push_back(point[1]);
    }
    if (std::size_t{n} * n > most_in_table) return;
    std::vector<std::uint32_t> table;
    table.reserve(std::size_t{n} * n);
    for (std::uint32_t a = 0; a < n; ++a) {
        for (std::uint32_t b = 0; b < n; ++b)
            table.push_back(line(a, b));
    }
    table_ = std::move(table);
}

std::uint32_t LineBins::line(std::uint32_t a, std::uint32_t b) const {
    if (a == b) return outside;
    if (a > b) std::swap(a, b);  // rounding must not make a difference of which comes first
    constexpr double pi = std::numbers::pi;
    double phi = std::atan2(x_[a] - x_[b], y_[b] - y_[a]);  // of the normal
    if (phi < 0) phi += pi;
    if (phi >= pi - edge) phi -= pi;
    const double s = x_[a] * std::cos(phi) + y_[a] * std::sin(phi);
    const auto row = std::min(static_cast<std::uint32_t>(phi * (angles_ / pi) + edge), angles_ - 1);
    const double column = std::floor((s + radius_) * (radial_ / (2 * radius_)) + edge);
    if (column < 0 || column >= radial_) return outside;
    return row * radial_ + static_cast<std::uint32_t>(column);
}

PairBins::PairBins(const config::Scanner& scanner, double depth_mm, const TimeBins& time_bins,
                   std::uint32_t window)
    : in_ring(scanner.geometry.crystals_in_ring()),
      rings(scanner.geometry.rings()),
      rings_per_bin((rings + most_ring_bins - 1) / most_ring_bins),
      ring_bins((rings + rings_per_bin - 1) / rings_per_bin),
      times(time_bins),
      differences(DifferenceBins::covering(window)),
      lines(scanner, depth_mm) {}

PairHistograms::PairHistograms(const PairBins& bins)
    : energy(energy_bins),
      crystals(std::size_t{bins.in_ring} * bins.rings),
      difference(bins.differences.count()),
      time(bins.times.count),
      michelogram(std::size_t{bins.ring_bins} * bins.ring_bins),
      sinogram(std::size_t{bins.lines.angles()} * bins.lines.radial()),
      planes(2 * std::size_t{bins.rings} - 1) {}

PairHistograms& PairHistograms::operator+=(const PairHistograms& other) {
    pairs += other.pairs;
    beyond_window += other.beyond_window;
    beyond_sinogram += other.beyond_sinogram;
    add(energy, other.energy);
    add(crystals, other.crystals);
    add(difference, other.difference);
    add(time, other.time);
    add(michelogram, other.michelogram);
    add(sinogram, other.sinogram);
    add(planes, other.planes);
    return *this;
}

void add_pairs(const PairBins& bins, std::span<const gpu::Coincidence> pairs, KindHistograms& to) {
    // They are in the order of time: as a rule the bin is that of the pair before.
    std::uint32_t bin = 0;
    std::uint64_t bin_begin = 1;
    std::uint64_t bin_end = 0;
    for (const gpu::Coincidence& c : pairs) {
        if (c.time < bin_begin || c.time >= bin_end) {
            bin = bins.times.of(c.time);
            bin_begin = bins.times.begin + bin * bins.times.width;
            const std::uint64_t left = UINT64_MAX - bin_begin;
            bin_end = left < bins.times.width ? UINT64_MAX : bin_begin + bins.times.width;
        }
        add_pair(bins, c, bin, c.kind == gpu::Kind::prompt ? to.prompts : to.delayeds);
    }
}

KindHistograms histograms_of(const ExportSource& source, const PairBins& bins, unsigned threads) {
    Workers workers(bins, std::max(1U, threads));
    const std::uint64_t crystals = std::uint64_t{bins.in_ring} * bins.rings;
    source.for_each_block(
        crystals, [&](const daemon::ListModeReader& reader) { workers.give(reader.coincidences()); },
        "plotting");
    return workers.result();
}

}  // namespace petacq::petlm
