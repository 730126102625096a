// The CPU back-end. The calling thread hands slices over; the threads of a pool do all work, as tasks of
// about a tenth of a millisecond. A slice goes through three stages (stages.hpp):
//
// - Conversion. The frames are divided into parts. The task of a part converts its frames into chunks of
//   singles and groups each chunk by time while it is in the cache. It needs nothing else, so all slices in
//   flight may be converted at once. Between chunks it lets the urgent tasks of the other stages go first.
// - Order. The chunks are joined by time range, and each task sorts some ranges below the watermark straight
//   into their place. In front stands what the slice before left undecided.
// - Search. Each task finds the coincidences of a share of the ordered singles.
//
// Order and search work on one slice each, in order of submission: while a slice is searched, the next one is
// ordered, and others are converted. No thread waits for another one. The thread that completes the last task
// of a stage does the short serial work in between, and starts what can start (advance()).
//
// A HostSlice owns what belongs to one slice, and the stage at work owns it. What passes from slice to slice
// belongs to a stage. mutex_ guards only the states; no other function is called while it is held.
#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <stdexcept>
#include <utility>

#include "gpu/cpu/host_slice.hpp"
#include "gpu/cpu/stages.hpp"
#include "gpu/cpu/task_pool.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/rules/multiples.hpp"
#include "net/base/mutex.hpp"

namespace petacq::gpu {

namespace {

/// Slices to be converted by all threads, as many that wait for that, and one each in order and search.
std::size_t slices_for(const PipelineOptions& options) {
    const std::size_t parts =
        std::max<std::size_t>(1, options.max_slice_frames / ConversionStage::part_frames);
    return 2 * ((options.threads + parts - 1) / parts) + 2;
}

class HostPipeline final : public Pipeline {
  public:
    HostPipeline(const PipelineOptions& options, const config::Calibration& calibration)
        : options_(options),
          conversion_(options, calibration, chunks_),
          order_(options.rules, chunks_),
          search_(options),
          pool_(options.threads, [this](const std::string& reason) { fail(reason); }) {
        for (std::size_t i = 0; i < slices_for(options); ++i)
            ring_.push_back(std::make_unique<ScheduledSlice>(*this));
    }
    ~HostPipeline() override { pool_.stop(); }
    HostPipeline(const HostPipeline&) = delete;
    HostPipeline& operator=(const HostPipeline&) = delete;

    [[nodiscard]] std::size_t depth() const override { return ring_.size(); }

    void submit(const Slice& slice) override {
        if (submitted_ - collected_ == depth()) {
            throw std::logic_error("pipeline: submit with depth() slices not collected");
        }
        throw_if_failed();
        ScheduledSlice& r = at(submitted_);
        HostSlice& s = r.slice;
        s.number = submitted_++;
        s.input = slice;
        s.late_below = std::exchange(watermark_, slice.watermark);
        s.result.id = slice.id;
        s.frames = 0;
        for (const FrameSpan& span : slice.spans)
            s.frames += span.total();
        s.parts.resize(std::clamp<std::size_t>(s.frames / ConversionStage::part_frames, 1, options_.threads));
        {
            const net::MutexLock lock(mutex_);
            r.state = SliceState::converting;
        }
        pool_.post(r.convert, s.parts.size(), TaskPool::Priority::normal);
    }

    bool collect(SliceResult& result, bool wait) override {
        if (collected_ == submitted_) return false;
        ScheduledSlice& r = at(collected_);
        {
            net::MutexLock lock(mutex_);
            while (wait && r.state != SliceState::finished && failure_.empty())
                changed_.wait(lock.native());
            if (r.state != SliceState::finished && failure_.empty()) return false;
        }
        throw_if_failed();
        std::swap(result, r.slice.result);
        ++collected_;
        return true;
    }

    void histograms(SinglesHistograms& out) override { conversion_.histograms(out, collected_); }

    void take_spectra(config::Spectra& out) override {
        require_collected("spectra");
        conversion_.spectra().take(out);
    }

    void unit_spectra(std::uint32_t unit, UnitSpectra& out) override {
        conversion_.spectra().copy_unit(unit, out);
    }

    void reset() override {
        require_collected("reset");
        order_.reset();
        search_.reset();
        watermark_ = 0;
    }

    void set_calibration(const config::Calibration& calibration) override {
        require_collected("another calibration");
        conversion_.set_calibration(options_, calibration);
    }

    [[nodiscard]] std::uint64_t memory_bytes() const override {
        // Singles are held in chunks, which may be half empty, and in order; buffers grow by half. A single
        // contributes half a pair under the winner policies, and as many as it has partners under
        // TakeAllGoods. Pairs are held in the shares of the search, in the result and by the caller.
        const CoincidenceRules& rules = options_.rules;
        const bool many = !takes_one_pair(rules.policy) || !rules.one_window_each();
        const std::uint64_t records = many ? rules.max_multiplicity / 2 : 1;
        const std::uint64_t slices = std::uint64_t{options_.max_slice_frames} * depth();
        const std::uint64_t singles = (slices + options_.max_pending_singles) * 3 * 3 / 2;
        const std::uint64_t pairs = slices * records * 3 * sizeof(Coincidence);
        // Several gammas may belong to a pair, but usually at most one coincident and one delayed do.
        const std::uint64_t triples = rules.gammas ? slices * 2 * sizeof(Triple) : 0;
        const std::uint64_t one_histogram = std::uint64_t{options_.geometry.crystal_count()} +
                                            std::uint64_t{options_.geometry.bdm_count} * 256;
        // Each thread has one of 64 bits, and usually three of 32.
        return singles * sizeof(Single) + pairs + triples + conversion_.table_bytes() +
               one_histogram * options_.threads * (8 + 3 * 4);
    }

    [[nodiscard]] std::string description() const override {
        return fmt::format("cpu, {} thread{}", options_.threads, options_.threads == 1 ? "" : "s");
    }

  private:
    enum class SliceState : std::uint8_t {
        free,
        converting,
        converted,
        ordering,
        ordered,
        searching,
        finished
    };

    struct ScheduledSlice {
        explicit ScheduledSlice(HostPipeline& p)
            : convert([this, &p](std::uint32_t thread, std::size_t i) { p.convert(*this, i, thread); },
                      [this, &p] { p.converted(*this); }),
              refit([&p](std::uint32_t /*thread*/, std::size_t i) { p.order_.refit(i); },
                    [this, &p] { p.plan(*this); }),
              order([this, &p](std::uint32_t /*thread*/, std::size_t i) { p.order_.order(slice, i); },
                    [this, &p] { p.ordered(*this); }),
              search([this, &p](std::uint32_t thread, std::size_t i) { p.search_.search(slice, i, thread); },
                     [this, &p] { p.searched(*this); }) {}
        HostSlice slice;
        SliceState state = SliceState::free;  // guarded by mutex_
        TaskPool::Job convert;
        TaskPool::Job refit;
        TaskPool::Job order;
        TaskPool::Job search;
    };

    ScheduledSlice& at(std::uint64_t number) { return *ring_[number % ring_.size()]; }

    void fail(const std::string& reason) {
        {
            const net::MutexLock lock(mutex_);
            failure_ = reason;
        }
        changed_.notify_all();
    }
    /// When it throws, no thread reads frames any more.
    void throw_if_failed() {
        std::string failure;
        {
            const net::MutexLock lock(mutex_);
            failure = failure_;
        }
        if (failure.empty()) return;
        pool_.stop();
        throw std::runtime_error(failure);
    }

    void require_collected(const char* call) {
        if (submitted_ != collected_) {
            throw std::logic_error(fmt::format("pipeline: {} with slices that were not collected", call));
        }
        throw_if_failed();
    }

    // Called by the threads of the pool:

    /// Starts the next slice in the stages that are idle, if it is ready.
    void advance() {
        ScheduledSlice* order = nullptr;
        ScheduledSlice* search = nullptr;
        {
            const net::MutexLock lock(mutex_);
            if (!ordering_ && at(next_to_order_).state == SliceState::converted) {
                order = &at(next_to_order_++);
                order->state = SliceState::ordering;
                ordering_ = true;
            }
            if (!searching_ && at(next_to_search_).state == SliceState::ordered) {
                search = &at(next_to_search_++);
                search->state = SliceState::searching;
                searching_ = true;
            }
        }
        if (search != nullptr) {
            pool_.post(search->search, search_.start(search->slice), TaskPool::Priority::urgent);
        }
        if (order == nullptr) return;
        if (const std::size_t refits = order_.start(order->slice); refits > 0) {
            pool_.post(order->refit, refits, TaskPool::Priority::urgent);
        } else {
            plan(*order);
        }
    }

    void convert(ScheduledSlice& r, std::size_t part, std::uint32_t thread) {
        conversion_.convert(r.slice, part, thread, pool_, collected_, order_.bin_widths());
    }

    void converted(ScheduledSlice& r) {
        {
            const net::MutexLock lock(mutex_);
            r.state = SliceState::converted;
        }
        advance();
    }

    void plan(ScheduledSlice& r) { pool_.post(r.order, order_.plan(r.slice), TaskPool::Priority::urgent); }

    void ordered(ScheduledSlice& r) {
        order_.finish(r.slice);
        {
            const net::MutexLock lock(mutex_);
            r.state = SliceState::ordered;
            ordering_ = false;
        }
        advance();
    }

    void searched(ScheduledSlice& r) {
        search_.finish(r.slice);
        {
            const net::MutexLock lock(mutex_);
            searching_ = false;
        }
        advance();
        search_.deliver(r.slice);
        {
            const net::MutexLock lock(mutex_);
            r.state = SliceState::finished;
        }
        changed_.notify_all();
    }

    const PipelineOptions options_;
    ChunkStore chunks_;
    ConversionStage conversion_;
    OrderStage order_;
    SearchStage search_;
    std::vector<std::unique_ptr<ScheduledSlice>> ring_;

    // The calling thread writes these three. The threads of the pool read collected_.
    std::uint64_t submitted_ = 0;
    std::atomic<std::uint64_t> collected_ = 0;
    std::uint64_t watermark_ = 0;

    net::Mutex mutex_;
    std::condition_variable changed_;  // a slice is finished, or the back-end has failed
    std::uint64_t next_to_order_ PETACQ_GUARDED_BY(mutex_) = 0;
    std::uint64_t next_to_search_ PETACQ_GUARDED_BY(mutex_) = 0;
    bool ordering_ PETACQ_GUARDED_BY(mutex_) = false;
    bool searching_ PETACQ_GUARDED_BY(mutex_) = false;
    std::string failure_ PETACQ_GUARDED_BY(mutex_);
    TaskPool pool_;
};

}  // namespace

std::unique_ptr<Pipeline> make_cpu_pipeline(const PipelineOptions& options,
                                            const config::Calibration& calibration) {
    if (options.threads == 0) throw std::invalid_argument("pipeline threads: expected at least 1");
    check_rules(options.rules);
    check_spectra(options);
    config::check_calibration(options.geometry, calibration);
    return std::make_unique<HostPipeline>(options, calibration);
}

}  // namespace petacq::gpu
