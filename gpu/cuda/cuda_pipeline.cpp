// The CUDA back-end: a ring of slots, each with the frames, tables and results of one slice.
//
// The calling thread only hands over spans (submit) and takes results (collect). The back-end has three
// threads: the uploader copies frames to the device; the driver launches the stages and reads the few totals
// that the next launch depends on; the deliverer assembles the results, with a few helpers for large copies.
// There are five streams: `up` copies frames, `prepare` makes ordered singles of them, `search` finds the
// coincidences of one slice after the other, `down` copies results, and `books` adds the histograms of
// collected slices to the totals. Events connect the streams, so that a slice is copied and prepared while
// others are searched.
#include "gpu/cuda/cuda_pipeline.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <algorithm>
#include <condition_variable>
#include <memory>
#include <nvtx3/nvtx3.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "gpu/cuda/bus/download.hpp"
#include "gpu/cuda/bus/result.hpp"
#include "gpu/cuda/bus/upload.hpp"
#include "gpu/cuda/histogram_totals.hpp"
#include "gpu/cuda/memory.hpp"
#include "gpu/cuda/requirements.hpp"
#include "gpu/cuda/ring.hpp"
#include "gpu/cuda/slot.hpp"
#include "gpu/cuda/stages.hpp"
#include "net/mutex.hpp"

namespace petacq::gpu {

namespace {

using cuda::check;
using cuda::Memory;
using cuda::RingSlot;
using cuda::Slot;
using cuda::Stages;
using cuda::Stream;
constexpr std::uint32_t most_copiers = 8;

class CudaPipeline final : public Pipeline {
  public:
    CudaPipeline(const PipelineOptions& options, const OwnedTables& tables, TimelineSink timeline)
        : options_(options),
          memory_(Memory::Purpose::use),
          uploader_(options, memory_),
          stages_(options, tables, memory_),
          downloader_(options),
          copiers_(std::clamp(options.threads, 1U, most_copiers)) {
        const unsigned flags = timeline ? cudaEventDefault : cudaEventDisableTiming;
        for (std::size_t i = 0; i < depth_; ++i)
            ring_.push_back(std::make_unique<RingSlot>(i, options, memory_, flags));
        if (timeline) times_ = std::make_unique<cuda::RingTimes>(depth_, std::move(timeline));
        totals_.emplace(ring_.front()->slot.histogram_sizes, memory_, books_);
        check(cudaGetDevice(&device_), "cudaGetDevice", "set-up");
        cudaDeviceProp properties{};
        check(cudaGetDeviceProperties(&properties, device_), "cudaGetDeviceProperties", "set-up");
        description_ =
            fmt::format("cuda, {}, sort {}, {} MiB on the device, {} MiB pinned", properties.name,
                        name_of(options.sort_engine), (memory_.device_bytes() + stages_.table_bytes()) >> 20,
                        memory_.pinned_bytes() >> 20);
        try {
            start(upload_thread_, "cuda upload", [this] { upload_all(); });
            start(driver_, "cuda driver", [this] { drive(); });
            start(deliverer_, "cuda results", [this] { deliver_all(); });
        } catch (...) {
            stop();
            throw;
        }
    }
    CudaPipeline(const CudaPipeline&) = delete;
    CudaPipeline& operator=(const CudaPipeline&) = delete;
    ~CudaPipeline() override {
        stop();
        for (const Stream* stream : {&up_, &prepare_, &search_, &down_, &books_})
            cudaStreamSynchronize(*stream);
    }

    [[nodiscard]] std::size_t depth() const override { return depth_; }
    void submit(const Slice& slice) override {
        const nvtx3::scoped_range range{"submit"};
        if (submitted_ - collected_ == depth_) {
            throw std::logic_error("pipeline: submit with depth() slices not collected");
        }
        throw_if_failed();
        const std::size_t place = submitted_ % depth_;
        RingSlot& r = *ring_[place];
        r.slot.id = slice.id;
        r.slot.late_below = std::exchange(watermark_, slice.watermark);
        r.slot.watermark = slice.watermark;
        r.slot.close_at = slice.close_at;
        r.slot.decide_before = slice.decide_before;
        r.slot.ends_interval = slice.ends_interval;
        r.slot.spectra = slice.spectra;
        r.spans = slice.spans;
        if (times_) times_->mark(place, &SliceTimeline::submit_begin);
        {
            const net::MutexLock lock(mutex_);
            ++submitted_;
        }
        to_upload_.notify_one();
        if (times_) times_->mark(place, &SliceTimeline::submit_end);
    }

    bool collect(SliceResult& result, bool wait) override {
        if (collected_ == submitted_) return false;
        {
            net::MutexLock lock(mutex_);
            while (wait && finished_ == collected_ && failure_.empty())
                to_collect_.wait(lock.native());
            if (!failure_.empty()) throw std::runtime_error(failure_);
            if (finished_ == collected_) return false;
        }
        RingSlot& r = *ring_[collected_ % depth_];
        if (times_) times_->tell(collected_ % depth_, r);
        std::swap(result, r.slot.result);
        ++collected_;
        return true;
    }

    void histograms(SinglesHistograms& out) override {
        fold_to(collected_);
        totals_->copy(out, books_);
    }
    void take_spectra(config::Spectra& out) override {
        require_collected("spectra");
        stages_.spectra().take(out, books_);
    }
    void unit_spectra(std::uint32_t unit, UnitSpectra& out) override {
        stages_.spectra().copy_unit(unit, out, books_);
    }
    void reset() override {
        require_collected("reset");
        // The threads are waiting for the next slice and see the change when it arrives.
        const net::MutexLock lock(mutex_);
        stages_.reset();
        order_.reset();
        tags_.reset();
        watermark_ = 0;
    }
    void set_calibration(const config::Calibration& calibration) override {
        require_collected("another calibration");
        const net::MutexLock lock(mutex_);  // as in reset()
        stages_.set_tables(OwnedTables(options_, calibration));
    }
    [[nodiscard]] std::uint64_t memory_bytes() const override {
        return stages_.table_bytes() + memory_.device_bytes() + memory_.pinned_bytes();
    }
    [[nodiscard]] std::string description() const override { return description_; }

  private:
    void throw_if_failed() {
        const net::MutexLock lock(mutex_);
        if (!failure_.empty()) throw std::runtime_error(failure_);
    }

    void require_collected(const char* call) {
        if (submitted_ != collected_) {
            throw std::logic_error(fmt::format("pipeline: {} with slices that were not collected", call));
        }
        throw_if_failed();
    }

    void stop() {
        {
            const net::MutexLock lock(mutex_);
            stop_ = true;
        }
        wake_all();
        for (std::thread* thread : {&upload_thread_, &driver_, &deliverer_})
            if (thread->joinable()) thread->join();
    }

    /// Runs `work` in a thread of the back-end and keeps its failure for the caller.
    template <class Work>
    void start(std::thread& thread, const char* name, Work work) {
        thread = std::thread([this, work] {
            try {
                check(cudaSetDevice(device_), "cudaSetDevice", "starting");
                work();
            } catch (const std::exception& e) {
                const net::MutexLock lock(mutex_);
                if (failure_.empty()) failure_ = e.what();
            }
            wake_all();
        });
        pthread_setname_np(thread.native_handle(), name);
    }
    /// Adds the histograms of the first `slices` slices to the totals. They must have been collected.
    void fold_to(std::uint64_t slices) {
        const net::MutexLock lock(books_mutex_);
        for (; folded_ < slices; ++folded_) {
            RingSlot& r = *ring_[folded_ % depth_];
            totals_->add(r.slot.histograms, books_);
            r.folded.record(books_);
        }
    }
    void wake_all() {
        for (std::condition_variable* changed : {&to_upload_, &to_launch_, &to_deliver_, &to_collect_})
            changed->notify_all();
    }

    // Called by the uploader thread:

    void upload_all() {
        for (std::uint64_t uploaded = 0;; ++uploaded) {
            {
                net::MutexLock lock(mutex_);
                while (!stop_ && submitted_ == uploaded)
                    to_upload_.wait(lock.native());
                if (stop_) return;
            }
            // The slice that had the slot before.
            if (uploaded >= depth_) fold_to(uploaded + 1 - depth_);
            RingSlot& r = *ring_[uploaded % depth_];
            if (times_) times_->mark(r.place, &SliceTimeline::plan_begin);
            if (times_) times_->begins(r.place).upload.record(up_);
            uploader_.upload(r.spans, r.slot, up_);
            r.uploaded.record(up_);
            if (times_) times_->mark(r.place, &SliceTimeline::plan_end);
            {
                const net::MutexLock lock(mutex_);
                ++sent_up_;
            }
            to_launch_.notify_one();
        }
    }

    // Called by the driver thread:

    void drive() {
        std::uint64_t launched = 0;
        RingSlot* before = nullptr;  // the slice being searched for coincidences
        while (RingSlot* r = next(launched, before == nullptr)) {
            prepare_.wait_for(r->uploaded);
            prepare_.wait_for(r->folded);
            if (times_) times_->begins(r->place).fetch.record(prepare_);
            cuda::fetch_table(r->slot, prepare_);
            if (times_) times_->begins(r->place).convert.record(prepare_);
            stages_.convert(r->slot, prepare_);
            r->converted.record(prepare_);
            // The slice before ends first while the bus is the limit. Otherwise ordering starts first, so
            // that the device has work until the host has read the totals of the slice before.
            if (before != nullptr && !r->uploaded.is_done()) {
                finish(*before);
                before = nullptr;
            }
            r->converted.wait("converting frames");
            stages_.converted(r->slot, prepare_);
            if (times_) times_->begins(r->place).order.record(prepare_);
            stages_.order(r->slot, prepare_);
            r->ordered.record(prepare_);
            if (before != nullptr) finish(*before);
            search_.wait_for(r->ordered);
            if (times_) times_->begins(r->place).find.record(search_);
            stages_.find(r->slot, search_);
            r->found.record(search_);
            ++launched;
            before = r;
            if (next(launched, false) == nullptr) {
                finish(*before);
                before = nullptr;
            }
        }
    }

    /// The next slice to launch; nullptr when there is none yet, or no more.
    RingSlot* next(std::uint64_t launched, bool wait) {
        net::MutexLock lock(mutex_);
        while (wait && !stop_ && sent_up_ == launched)
            to_launch_.wait(lock.native());
        if (stop_ || sent_up_ == launched) return nullptr;
        return ring_[launched % depth_].get();
    }

    /// Waits for the coincidences of a slice and starts copying them to the host.
    void finish(RingSlot& r) {
        Slot& s = r.slot;
        r.found.wait("looking for coincidences");
        if (Stages::has_long_runs(s)) {
            stages_.order_long_runs(s, search_);
            stages_.search(s, search_);
            r.found.record(search_);
            r.found.wait("looking for coincidences");
        }
        if (times_) times_->begins(r.place).down.record(down_);
        downloader_.download(s, stages_, search_, down_);
        r.downloaded.record(down_);
        stages_.found(s);
        {
            const net::MutexLock lock(mutex_);
            ++sent_down_;
        }
        to_deliver_.notify_one();
    }

    // Called by the deliverer thread:

    void deliver_all() {
        for (std::uint64_t delivered = 0;; ++delivered) {
            {
                net::MutexLock lock(mutex_);
                while (!stop_ && failure_.empty() && sent_down_ == delivered)
                    to_deliver_.wait(lock.native());
                if (sent_down_ == delivered) return;
            }
            deliver(*ring_[delivered % depth_]);
        }
    }

    /// Waits for the copies that finish() has started and assembles the result.
    void deliver(RingSlot& r) {
        const nvtx3::scoped_range range{"deliver"};
        Slot& s = r.slot;
        r.downloaded.wait("copying results to the host");
        if (times_) times_->mark(r.place, &SliceTimeline::deliver_begin);
        SliceResult& result = s.result;
        result.id = s.id;
        cuda::take_tags(s);
        result.frames = cuda::frame_counts(s);
        if (s.ends_interval) cuda::copy_sums(s, result.sums);
        result.tag_counts = s.tags.counts;
        tags_.add(s.tags.tags);
        tags_.release(s.watermark, s.close_at, result.tags);
        tags_.describe(result);
        order_.take(s, copiers_, result.coincidences);
        const bool many = !s.many_singles.empty();
        const Single* const singles = many ? s.many_singles.data() : s.host_singles;
        cuda::fill(copiers_, many ? s.many_singles.size() : s.single_count, result.singles,
                   [=](std::size_t begin, std::size_t end, Single* to) {
                       std::copy(singles + begin, singles + end, to);
                   });
        if (times_) times_->mark(r.place, &SliceTimeline::deliver_end);
        {
            const net::MutexLock lock(mutex_);
            ++finished_;
        }
        to_collect_.notify_one();
    }

    const PipelineOptions options_;
    const std::size_t depth_ = Slot::count(options_);
    // The streams come before the memory, because freeing the memory waits for them.
    Stream up_;
    Stream prepare_;
    Stream search_;
    Stream down_;
    Stream books_;
    Memory memory_;
    cuda::Uploader uploader_;
    Stages stages_;
    std::vector<std::unique_ptr<RingSlot>> ring_;
    std::unique_ptr<cuda::RingTimes> times_;
    cuda::Downloader downloader_;
    std::optional<cuda::HistogramTotals> totals_;
    int device_ = 0;
    std::string description_;
    WorkerPool copiers_;
    cuda::RecordOrder order_;
    WaitingTags tags_;

    std::uint64_t collected_ = 0;  // used by the caller only, like watermark_
    std::uint64_t watermark_ = 0;  // of the slice submitted last
    net::Mutex mutex_;
    std::condition_variable to_upload_, to_launch_, to_deliver_, to_collect_;
    std::uint64_t submitted_ = 0;  // the caller writes it with the mutex held, and reads it without
    std::uint64_t sent_up_ PETACQ_GUARDED_BY(mutex_) = 0;
    std::uint64_t sent_down_ PETACQ_GUARDED_BY(mutex_) = 0;
    std::uint64_t finished_ PETACQ_GUARDED_BY(mutex_) = 0;
    std::string failure_ PETACQ_GUARDED_BY(mutex_);
    bool stop_ PETACQ_GUARDED_BY(mutex_) = false;
    net::Mutex books_mutex_;
    std::uint64_t folded_ PETACQ_GUARDED_BY(books_mutex_) = 0;
    std::thread upload_thread_;
    std::thread driver_;
    std::thread deliverer_;
};

}  // namespace

std::unique_ptr<Pipeline> make_cuda_pipeline(const PipelineOptions& options,
                                             const config::Calibration& calibration) {
    return make_timed_cuda_pipeline(options, calibration, {});
}

std::unique_ptr<Pipeline> make_timed_cuda_pipeline(const PipelineOptions& options,
                                                   const config::Calibration& calibration,
                                                   TimelineSink timeline) {
    cuda::check_options(options);
    config::check_calibration(options.geometry, calibration);
    if (const auto reason = cuda_unusable_reason()) throw std::runtime_error(*reason);
    const OwnedTables tables(options, calibration);
    cuda::check_memory(options, tables);
    return std::make_unique<CudaPipeline>(options, tables, std::move(timeline));
}

}  // namespace petacq::gpu
