// The CUDA back-end: a ring of slots, each with the frames, tables and results of one slice.
//
// The calling thread copies frames up (submit) and takes results (collect). Two threads are the back-end's
// own: the driver launches the stages and reads the few totals that the next launch depends on; the deliverer
// makes the results of what has come down, with a few helpers for the copying. Three streams: `up` copies
// frames, `compute` runs the stages of one slice after the other, `down` copies results; events tie them
// together, so that the copies of slices overlap the computation of others. The fourth, `books`, adds the
// histograms of collected slices to the totals.
#include "gpu/cuda/cuda_pipeline.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <nvtx3/nvtx3.hpp>
#include <thread>
#include <vector>

#include "gpu/cuda/memory.hpp"
#include "gpu/cuda/result.hpp"
#include "gpu/cuda/ring.hpp"
#include "gpu/cuda/slot.hpp"
#include "gpu/cuda/stages.hpp"
#include "gpu/host/coincidence.hpp"

namespace petacq::gpu {

namespace {

using cuda::check;
using cuda::Event;
using cuda::Memory;
using cuda::RingSlot;
using cuda::Slot;
using cuda::Stages;
using cuda::Stream;

constexpr std::size_t slots_in_ring = 4;
constexpr std::uint32_t most_copiers = 4;
constexpr std::uint32_t most_slice_frames = 1U << 27;
constexpr std::uint64_t most_singles = std::uint64_t{1} << 31;
constexpr std::uint32_t most_multiplicity = 4096;

void check_options(const PipelineOptions& o) {
    if (o.rules.max_multiplicity < 2 || o.rules.max_multiplicity > most_multiplicity) {
        throw std::invalid_argument(fmt::format("max_multiplicity of {}: expected 2 to {} on CUDA",
                                                o.rules.max_multiplicity, most_multiplicity));
    }
    if (o.rules.delay && *o.rules.delay <= o.rules.window) {
        throw std::invalid_argument(fmt::format("delay of {} ticks: expected more than the window of {}",
                                                *o.rules.delay, o.rules.window));
    }
    if (o.rules.delay && *o.rules.delay > (std::uint64_t{1} << 62)) {
        throw std::invalid_argument("delay: expected at most 2^62 ticks");
    }
    if (o.max_slice_frames > most_slice_frames) {
        throw std::invalid_argument(fmt::format("max_slice_frames of {}: expected at most {} on CUDA",
                                                o.max_slice_frames, most_slice_frames));
    }
    if (o.max_pending_singles > most_singles - most_slice_frames) {
        throw std::invalid_argument(fmt::format("max_pending_singles of {}: expected at most {} on CUDA",
                                                o.max_pending_singles, most_singles - most_slice_frames));
    }
}

class CudaPipeline final : public Pipeline {
  public:
    CudaPipeline(const PipelineOptions& options, const OwnedTables& tables, TimelineSink timeline)
        : memory_(Memory::Purpose::use),
          stages_(options, tables, memory_),
          options_(options),
          copiers_(std::clamp(options.threads, 1U, most_copiers)) {
        const unsigned flags = timeline ? cudaEventDefault : cudaEventDisableTiming;
        for (std::size_t i = 0; i < slots_in_ring; ++i)
            ring_.push_back(std::make_unique<RingSlot>(i, options, memory_, flags));
        if (timeline) times_ = std::make_unique<cuda::RingTimes>(slots_in_ring, std::move(timeline));
        sizes_ = ring_.front()->slot.histogram_sizes;
        totals_ = memory_.device<std::uint64_t>(sizes_.total());
        host_totals_ = memory_.pinned<std::uint64_t>(sizes_.total());
        check(cudaMemsetAsync(totals_, 0, sizes_.total() * sizeof(std::uint64_t), books_), "cudaMemsetAsync",
              "set-up");
        check(cudaGetDevice(&device_), "cudaGetDevice", "set-up");
        cudaDeviceProp properties{};
        check(cudaGetDeviceProperties(&properties, device_), "cudaGetDeviceProperties", "set-up");
        description_ = fmt::format("cuda, {}, sort {}, {} MiB on the device, {} MiB pinned", properties.name,
                                   name_of(options.sort_engine), memory_.device_bytes() >> 20,
                                   memory_.pinned_bytes() >> 20);
        driver_ = std::thread([this] { guarded([this] { drive(); }); });
        deliverer_ = std::thread([this] { guarded([this] { deliver_all(); }); });
    }
    CudaPipeline(const CudaPipeline&) = delete;
    CudaPipeline& operator=(const CudaPipeline&) = delete;
    ~CudaPipeline() override {
        {
            const std::lock_guard lock(mutex_);
            stop_ = true;
        }
        changed_.notify_all();
        driver_.join();
        deliverer_.join();
        for (cudaStream_t stream :
             {cudaStream_t{up_}, cudaStream_t{compute_}, cudaStream_t{down_}, cudaStream_t{books_}}) {
            cudaStreamSynchronize(stream);
        }
    }

    [[nodiscard]] std::size_t depth() const override { return slots_in_ring; }

    void submit(const Slice& slice) override {
        const nvtx3::scoped_range range{"submit"};
        if (submitted_ - collected_ == slots_in_ring) {
            throw std::logic_error("pipeline: submit with depth() slices not collected");
        }
        throw_if_failed();
        const std::size_t place = submitted_ % slots_in_ring;
        RingSlot& r = *ring_[place];
        r.slot.id = slice.id;
        r.slot.watermark = slice.watermark;
        r.slot.close_at = slice.close_at;
        if (times_) times_->submitting(place, up_);
        cuda::upload(slice.spans, r.slot, up_);
        r.uploaded.record(up_);
        if (times_) times_->mark(place, &SliceTimeline::submit_end);
        {
            const std::lock_guard lock(mutex_);
            ++submitted_;
        }
        changed_.notify_all();
    }

    bool collect(SliceResult& result, bool wait) override {
        if (collected_ == submitted_) return false;
        {
            std::unique_lock lock(mutex_);
            if (wait) changed_.wait(lock, [&] { return finished_ > collected_ || !failure_.empty(); });
            if (!failure_.empty()) throw std::runtime_error(failure_);
            if (finished_ == collected_) return false;
        }
        RingSlot& r = *ring_[collected_ % slots_in_ring];
        if (times_) times_->tell(collected_ % slots_in_ring, r);
        std::swap(result, r.slot.result);
        cuda::launch_fold(r.slot.histograms, sizes_, totals_, books_);
        r.folded.record(books_);
        ++collected_;
        return true;
    }

    void histograms(SinglesHistograms& out) override {
        const std::size_t bytes = sizes_.total() * sizeof(std::uint64_t);
        check(cudaMemcpyAsync(host_totals_, totals_, bytes, cudaMemcpyDeviceToHost, books_),
              "cudaMemcpyAsync", "copying histograms");
        check(cudaStreamSynchronize(books_), "cudaStreamSynchronize", "copying histograms");
        const std::uint64_t* from = host_totals_;
        const auto next = [&](auto& to, std::uint32_t count) {
            to.assign(from, from + count);
            from += count;
        };
        next(out.per_crystal, sizes_.crystals);
        next(out.energy, sizes_.energies);
        next(out.temperature_count, sizes_.units);
        next(out.temperature_sum_16ths, sizes_.units);
    }

    void reset() override {
        if (submitted_ != collected_) {
            throw std::logic_error("pipeline: reset with slices that were not collected");
        }
        throw_if_failed();
        // Driver and deliverer are waiting for the next slice, and see this when it comes.
        const std::lock_guard lock(mutex_);
        stages_.reset();
        order_.reset();
    }

    [[nodiscard]] std::uint64_t memory_bytes() const override {
        return memory_.device_bytes() + memory_.pinned_bytes();
    }
    [[nodiscard]] std::string description() const override { return description_; }

  private:
    void throw_if_failed() {
        const std::lock_guard lock(mutex_);
        if (!failure_.empty()) throw std::runtime_error(failure_);
    }

    /// What goes wrong on a thread of the back-end is told to the caller.
    template <class Work>
    void guarded(Work work) {
        try {
            check(cudaSetDevice(device_), "cudaSetDevice", "starting");
            work();
        } catch (const std::exception& e) {
            const std::lock_guard lock(mutex_);
            if (failure_.empty()) failure_ = e.what();
        }
        changed_.notify_all();
    }

    // What follows runs on the driver's thread.

    void drive() {
        std::uint64_t launched = 0;
        RingSlot* before = nullptr;  // its coincidences are being looked for
        while (RingSlot* r = next(launched, before == nullptr)) {
            compute_.wait_for(r->uploaded);
            compute_.wait_for(r->folded);
            if (times_) times_->begins(r->place).convert.record(compute_);
            stages_.convert(r->slot, compute_);
            r->converted.record(compute_);
            if (before != nullptr) finish(*before);
            r->converted.wait("converting frames");
            stages_.converted(r->slot);
            if (times_) times_->begins(r->place).order.record(compute_);
            stages_.order(r->slot, compute_);
            stages_.find(r->slot, compute_);
            r->found.record(compute_);
            ++launched;
            before = r;
            if (next(launched, false) == nullptr) {
                finish(*before);
                before = nullptr;
            }
        }
    }

    /// The next slice to launch; nullptr when there is none (yet).
    RingSlot* next(std::uint64_t launched, bool wait) {
        std::unique_lock lock(mutex_);
        if (wait) changed_.wait(lock, [&] { return stop_ || submitted_ > launched; });
        if (stop_ || submitted_ == launched) return nullptr;
        return ring_[launched % slots_in_ring].get();
    }

    /// Waits for the coincidences of a slice and sends them down.
    void finish(RingSlot& r) {
        Slot& s = r.slot;
        r.found.wait("looking for coincidences");
        if (Stages::has_long_runs(s)) {
            stages_.order_long_runs(s, compute_);
            stages_.find(s, compute_);
            r.found.record(compute_);
            r.found.wait("looking for coincidences");
        }
        const nvtx3::scoped_range range{"download"};
        const cuda::FindTotals& t = *s.host_found;
        if (times_) times_->begins(r.place).down.record(down_);
        s.many_records.clear();
        s.record_count = 0;
        if (t.prompts + t.delayeds <= s.record_room) {
            s.record_count = static_cast<std::uint32_t>(t.prompts + t.delayeds);
            down(s.host_records, s.records, s.record_count);
        } else {
            fetch_many(s);
        }
        s.many_singles.clear();
        s.single_count = 0;
        if (options_.emit_singles) {
            if (t.decided <= s.single_room) {
                s.single_count = t.decided;
                down(s.host_singles, stages_.singles(), t.decided);
            } else {
                s.many_singles.resize(t.decided);
                down(s.many_singles.data(), stages_.singles(), t.decided);
            }
            stages_.singles_read(down_);
        }
        r.downloaded.record(down_);
        stages_.found(s);
        {
            const std::lock_guard lock(mutex_);
            ++sent_down_;
        }
        changed_.notify_all();
    }

    // What follows runs on the deliverer's thread.

    void deliver_all() {
        for (std::uint64_t delivered = 0;; ++delivered) {
            {
                std::unique_lock lock(mutex_);
                changed_.wait(lock, [&] { return stop_ || !failure_.empty() || sent_down_ > delivered; });
                if (sent_down_ == delivered) return;
            }
            deliver(*ring_[delivered % slots_in_ring]);
        }
    }

    /// Waits for what finish() has sent down, and makes the result of it.
    void deliver(RingSlot& r) {
        const nvtx3::scoped_range range{"deliver"};
        Slot& s = r.slot;
        r.downloaded.wait("copying results to the host");
        if (times_) times_->mark(r.place, &SliceTimeline::deliver_begin);
        SliceResult& result = s.result;
        result.id = s.id;
        result.frames = cuda::frame_counts(s);
        order_.take(s, copiers_, result.coincidences);
        const bool many = !s.many_singles.empty();
        result.singles.resize(many ? s.many_singles.size() : s.single_count);
        cuda::copy_many<Single>(copiers_, many ? s.many_singles.data() : s.host_singles,
                                result.singles.size(), result.singles.data());
        if (times_) times_->mark(r.place, &SliceTimeline::deliver_end);
        {
            const std::lock_guard lock(mutex_);
            ++finished_;
        }
        changed_.notify_all();
    }

    template <class T>
    void down(T* host, const T* device, std::size_t count) {
        if (count == 0) return;
        check(cudaMemcpyAsync(host, device, count * sizeof(T), cudaMemcpyDeviceToHost, down_),
              "cudaMemcpyAsync", "copying results to the host");
    }

    /// More records than there is room for: in parts, ordered here.
    void fetch_many(Slot& s) {
        const cuda::FindTotals t = *s.host_found;
        fetch_kind(s, Kind::prompt, t.prompts, many_prompts_);
        fetch_kind(s, Kind::delayed, t.delayeds, many_delayeds_);
        s.many_records.resize(many_prompts_.size() + many_delayeds_.size());
        std::merge(many_prompts_.begin(), many_prompts_.end(), many_delayeds_.begin(), many_delayeds_.end(),
                   s.many_records.begin(),
                   [](const Coincidence& a, const Coincidence& b) { return before(a, b); });
    }
    void fetch_kind(Slot& s, Kind kind, std::uint64_t total, std::vector<Coincidence>& all) {
        all.resize(total);
        for (std::uint64_t low = 0; low < total; low += s.record_room) {
            stages_.emit_part(s, kind, low, compute_);
            r_part_.record(compute_);
            down_.wait_for(r_part_);
            down(all.data() + low, s.records, std::min<std::uint64_t>(total - low, s.record_room));
            check(cudaStreamSynchronize(down_), "cudaStreamSynchronize", "copying results to the host");
        }
        order_equal_times(all);
    }

    // Streams are declared before the memory, whose freeing waits for them.
    Stream up_;
    Stream compute_;
    Stream down_;
    Stream books_;
    Event r_part_;
    Memory memory_;
    Stages stages_;
    std::vector<std::unique_ptr<RingSlot>> ring_;
    std::unique_ptr<cuda::RingTimes> times_;
    PipelineOptions options_;
    cuda::HistogramSizes sizes_;
    std::uint64_t* totals_ = nullptr;
    std::uint64_t* host_totals_ = nullptr;
    int device_ = 0;
    std::string description_;
    // Of fetch_many(); kept for their memory.
    std::vector<Coincidence> many_prompts_;
    std::vector<Coincidence> many_delayeds_;
    WorkerPool copiers_;
    cuda::RecordOrder order_;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t submitted_ = 0;  // written by the caller, under the mutex
    std::uint64_t sent_down_ = 0;  // written by the driver, under the mutex
    std::uint64_t finished_ = 0;   // written by the deliverer, under the mutex
    std::uint64_t collected_ = 0;  // the caller's own
    std::string failure_;
    bool stop_ = false;
    std::thread driver_;
    std::thread deliverer_;
};

}  // namespace

std::optional<std::string> cuda_unusable_reason() {
    // Kernels are loaded now, not by the first slice that needs them: that would allocate device memory and
    // wait for the device in the middle of a run. Read when CUDA starts; a user's own setting stands.
    ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);  // NOLINT(concurrency-mt-unsafe): set-up
    int devices = 0;
    cudaError_t status = cudaGetDeviceCount(&devices);
    if (status == cudaSuccess && devices == 0) status = cudaErrorNoDevice;
    if (status == cudaSuccess) status = cuda::probe_kernels();
    if (status == cudaSuccess) return std::nullopt;
    cudaGetLastError();  // not to be reported again
    return fmt::format("CUDA: {} ({})", cudaGetErrorString(status), cudaGetErrorName(status));
}

std::unique_ptr<Pipeline> make_cuda_pipeline(const PipelineOptions& options,
                                             const config::Calibration& calibration) {
    return make_timed_cuda_pipeline(options, calibration, {});
}

std::unique_ptr<Pipeline> make_timed_cuda_pipeline(const PipelineOptions& options,
                                                   const config::Calibration& calibration,
                                                   TimelineSink timeline) {
    check_options(options);
    config::check_calibration(options.geometry, calibration);
    if (const auto reason = cuda_unusable_reason()) throw std::runtime_error(*reason);
    const OwnedTables tables(options, calibration);
    Memory plan(Memory::Purpose::plan);
    {
        const Stages stages(options, tables, plan);
        for (std::size_t i = 0; i < slots_in_ring; ++i)
            const Slot slot(options, plan);
    }
    std::size_t free_bytes = 0;
    std::size_t all_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo", "asking for free memory");
    if (plan.device_bytes() > free_bytes) {
        throw DeviceMemoryError(
            fmt::format("the CUDA back-end needs {} MiB of GPU memory for slices of {} frames and {} pending "
                        "singles, and {} MiB are free",
                        plan.device_bytes() >> 20, options.max_slice_frames, options.max_pending_singles,
                        free_bytes >> 20));
    }
    return std::make_unique<CudaPipeline>(options, tables, std::move(timeline));
}

}  // namespace petacq::gpu
