// The CPU back-end. The calling thread hands slices over; the threads of a pool do all work, as tasks of
// about a tenth of a millisecond. A slice goes through three stages:
//
// - Conversion. The frames are divided into parts, one task each. A task converts frames into chunks of
// singles
//   and groups each chunk by time while it is in the cache. Nothing else is needed: the parts of all slices
//   in flight may be converted at once. Between chunks a task lets the urgent tasks of the other stages go
//   first.
// - Order. The singles below the watermark are joined by time range, and a task sorts some of the ranges
//   straight into their place. In front stands what the slice before left undecided (its carry).
// - Search. Each task finds the coincidences of a share of the ordered singles.
//
// Order and search each work on one slice at a time, in order of submission: while a slice is searched, the
// next one is ordered, and others are converted. No thread waits for another one. The thread that completes
// the last task of a stage does the short serial work between stages, and starts what can start (advance()).
//
// A slot owns what belongs to one slice; the stage that works on the slice owns the slot. What passes from
// slice to slice belongs to the stage: the waiting singles to order (Orderer), the held records and the
// singles taken by groups to search. mutex_ guards only the states of the slots.
#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <stdexcept>
#include <utility>

#include "gpu/conversion_tables.hpp"
#include "gpu/host/chunk.hpp"
#include "gpu/host/coincidence.hpp"
#include "gpu/host/convert.hpp"
#include "gpu/host/order.hpp"
#include "gpu/host/task_pool.hpp"
#include "gpu/host/thread_histograms.hpp"
#include "gpu/pipeline.hpp"
#include "net/mutex.hpp"

namespace petacq::gpu {

namespace {

// A part is long enough that its histograms (ThreadHistograms) cost little.
constexpr std::size_t part_frames = 65'536;

/// Walks through the frames of a slice.
class FrameCursor {
  public:
    FrameCursor(std::span<const FrameSpan> spans, std::uint64_t skipped) : spans_(spans) {
        while (skipped > 0) {
            const std::uint64_t step = std::min<std::uint64_t>(skipped, spans_.front().count - used_);
            skipped -= step;
            advance(static_cast<std::uint32_t>(step));
        }
    }
    /// The next frames of one span, at most `most`. REQUIRES: there are some.
    FrameSpan next(std::size_t most) {
        while (spans_.front().count == used_)
            advance(0);
        FrameSpan span = spans_.front();
        span.frames += std::size_t{used_} * net::frame_bytes;
        span.count = static_cast<std::uint32_t>(std::min<std::size_t>(span.count - used_, most));
        advance(span.count);
        return span;
    }

  private:
    void advance(std::uint32_t frames) {
        used_ += frames;
        if (used_ < spans_.front().count) return;
        used_ = 0;
        spans_ = spans_.subspan(1);
    }
    std::span<const FrameSpan> spans_;
    std::uint32_t used_ = 0;  // frames of the first span
};

class HostPipeline final : public Pipeline {
  public:
    HostPipeline(const PipelineOptions& options, const config::Calibration& calibration)
        : options_(options),
          convert_(options.input == Input::singles ? take_singles : convert_span),
          tables_(options, calibration),
          orderer_(chunks_),
          finder_(PairRule::of(options.geometry, options.rules), options.rules),
          pool_(options.threads, [this](const std::string& reason) { fail(reason); }) {
        for (std::uint32_t i = 0; i < options.threads; ++i)
            threads_.push_back(std::make_unique<Thread>(options.geometry));
        // Slices to be converted by all threads, and as many waiting, ordered, searched or collected.
        const std::size_t parts = std::max<std::size_t>(1, options.max_slice_frames / part_frames);
        const std::size_t slices = (options.threads + parts - 1) / parts;
        for (std::size_t i = 0; i < 2 * slices + 2; ++i)
            slots_.push_back(std::make_unique<Slot>(*this));
    }
    ~HostPipeline() override { pool_.stop(); }
    HostPipeline(const HostPipeline&) = delete;
    HostPipeline& operator=(const HostPipeline&) = delete;

    [[nodiscard]] std::size_t depth() const override { return slots_.size(); }

    void submit(const Slice& slice) override {
        if (submitted_ - collected_ == depth()) {
            throw std::logic_error("pipeline: submit with depth() slices not collected");
        }
        throw_if_failed();
        Slot& s = slot(submitted_);
        s.number = submitted_++;
        s.result.id = slice.id;
        s.spans = slice.spans;
        s.late_below = std::exchange(watermark_, slice.watermark);
        s.watermark = slice.watermark;
        s.close_at = slice.close_at;
        s.frames = 0;
        for (const FrameSpan& span : slice.spans)
            s.frames += span.count;
        s.parts.resize(std::clamp<std::size_t>(s.frames / part_frames, 1, options_.threads));
        {
            const net::MutexLock lock(mutex_);
            s.state = State::converting;
        }
        pool_.post(s.converting, s.parts.size(), TaskPool::Priority::normal);
    }

    bool collect(SliceResult& result, bool wait) override {
        if (collected_ == submitted_) return false;
        Slot& s = slot(collected_);
        {
            net::MutexLock lock(mutex_);
            while (wait && s.state != State::finished && failure_.empty())
                changed_.wait(lock.native());
            if (failure_.empty() && s.state != State::finished) return false;
            s.state = State::free;
        }
        throw_if_failed();
        std::swap(result, s.result);
        ++collected_;
        return true;
    }

    void histograms(SinglesHistograms& out) override {
        out = make_histograms(options_.geometry);
        for (const auto& thread : threads_)
            thread->histograms.add_to(out, collected_);
    }

    void reset() override {
        if (submitted_ != collected_) {
            throw std::logic_error("pipeline: reset with slices that were not collected");
        }
        throw_if_failed();
        orderer_.reset();
        carry_ = {};
        taken_ = 0;
        held_.clear();
        pending_ = 0;
        newest_ = 0;
        watermark_ = 0;
    }

    [[nodiscard]] std::uint64_t memory_bytes() const override {
        // Chunks may be half empty. The ordered singles of a slice begin with those that it has taken over. A
        // single contributes half a pair under the winner policies, and as many as it has partners under
        // TakeAllGoods; pairs are held in the shares of the search and in the result. Buffers grow by half.
        const CoincidenceRules& rules = options_.rules;
        const bool many = rules.policy == MultiplesPolicy::take_all_goods || rules.mode == WindowMode::every;
        const std::uint64_t records = many ? rules.max_multiplicity / 2 : 1;
        const std::uint64_t slices = std::uint64_t{options_.max_slice_frames} * depth();
        const std::uint64_t singles = 2 * (slices + options_.max_pending_singles) * 3 / 2;
        const std::uint64_t pairs = slices * records * 2 * sizeof(Coincidence);
        const std::uint64_t one_histogram = std::uint64_t{options_.geometry.crystal_count()} +
                                            std::uint64_t{options_.geometry.bdm_count} * 256;
        return singles * sizeof(Single) + pairs + tables_.bytes() +
               one_histogram * options_.threads * (8 + 3 * 4);
    }

    [[nodiscard]] std::string description() const override {
        return fmt::format("cpu, {} thread{}", options_.threads, options_.threads == 1 ? "" : "s");
    }

  private:
    enum class State : std::uint8_t { free, converting, converted, ordering, ordered, searching, finished };

    /// What a part of a slice was converted to.
    struct alignas(64) Part {
        FrameCounts counts;
        std::vector<std::unique_ptr<Chunk>> chunks;
    };

    struct Slot {
        explicit Slot(HostPipeline& p)
            : converting(
                  [this, &p](std::uint32_t thread, std::size_t part) { p.convert(*this, thread, part); },
                  [this, &p] { p.to_state(*this, State::converted); }),
              refitting([&p](std::uint32_t, std::size_t i) { p.orderer_.refit(i); },
                        [this, &p] { p.plan_order(*this); }),
              ordering([this, &p](std::uint32_t, std::size_t i) { p.order(*this, i); },
                       [this, &p] { p.ordered(*this); }),
              searching([this, &p](std::uint32_t, std::size_t i) { p.finder_.find(search, i); },
                        [this, &p] { p.searched(*this); }) {}
        std::uint64_t number = 0;
        std::span<const FrameSpan> spans;
        std::uint64_t frames = 0;
        std::uint64_t late_below = 0;
        std::uint64_t watermark = 0;
        std::optional<std::uint64_t> close_at;
        std::vector<Part> parts;
        std::uint64_t newest = 0;   // accepted single
        SingleBuffer singles;       // ordered: the carry of the slice before, and what is below the watermark
        std::uint64_t horizon = 0;  // records from here on are held
        Search search;
        SliceResult result;
        State state = State::free;  // guarded by mutex_
        TaskPool::Job converting;
        TaskPool::Job refitting;
        TaskPool::Job ordering;
        TaskPool::Job searching;
    };

    struct alignas(64) Thread {
        explicit Thread(const config::Geometry& geometry) : histograms(geometry) {}
        SingleBuffer converted;
        ThreadHistograms histograms;
    };

    Slot& slot(std::uint64_t number) { return *slots_[number % slots_.size()]; }

    void fail(const std::string& reason) {
        {
            const net::MutexLock lock(mutex_);
            failure_ = reason;
        }
        changed_.notify_all();
    }
    /// After a failure no thread reads frames any more.
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

    void to_state(Slot& s, State state) {
        {
            const net::MutexLock lock(mutex_);
            s.state = state;
        }
        advance();
    }

    /// Starts the next slice of each stage that is idle, if it is ready.
    void advance() {
        Slot* order = nullptr;
        Slot* search = nullptr;
        {
            const net::MutexLock lock(mutex_);
            if (!ordering_ && slot(next_to_order_).state == State::converted) {
                order = &slot(next_to_order_++);
                order->state = State::ordering;
                ordering_ = true;
            }
            if (!searching_ && slot(next_to_search_).state == State::ordered) {
                search = &slot(next_to_search_++);
                search->state = State::searching;
                searching_ = true;
            }
        }
        if (search != nullptr) start_search(*search);
        if (order != nullptr) start_order(*order);
    }

    // Conversion:

    void convert(Slot& s, std::uint32_t thread_number, std::size_t part_number) {
        Thread& thread = *threads_[thread_number];
        Part& part = s.parts[part_number];
        part.counts = {};
        const std::uint64_t begin = s.frames * part_number / s.parts.size();
        const std::uint64_t end = s.frames * (part_number + 1) / s.parts.size();
        if (begin == end) return;
        FrameCursor cursor(s.spans, begin);
        LocalHistograms& histograms = thread.histograms.of_slice(s.number, collected_);
        thread.converted.resize(Chunk::most_singles + 1);
        Single* const out = thread.converted.data();
        for (std::uint64_t at = begin; at < end;) {
            std::size_t n = 0;
            for (std::uint64_t chunk_end = std::min(end, at + Chunk::most_singles); at < chunk_end;) {
                const FrameSpan span = cursor.next(chunk_end - at);
                n = convert_(span, s.late_below, tables_.view(), part.counts, histograms, out, n);
                at += span.count;
            }
            if (n > 0) {
                part.chunks.push_back(chunks_.take());
                part.chunks.back()->fill({out, n}, orderer_.bin_width());
            }
            if (!pool_.help(thread_number)) return;
        }
    }

    // Order:

    void start_order(Slot& s) {
        std::vector<std::unique_ptr<Chunk>>& all = s.parts.front().chunks;
        for (Part& part : s.parts) {
            if (&part == &s.parts.front()) continue;
            std::move(part.chunks.begin(), part.chunks.end(), std::back_inserter(all));
            part.chunks.clear();
        }
        s.newest = 0;
        for (const auto& chunk : all)
            s.newest = std::max(s.newest, chunk->high());
        const bool everything = s.close_at == UINT64_MAX;
        orderer_.start(all, everything ? std::nullopt : std::optional(s.watermark));
        if (orderer_.misfits() > 0) {
            pool_.post(s.refitting, orderer_.misfits(), TaskPool::Priority::urgent);
        } else {
            plan_order(s);
        }
    }

    void plan_order(Slot& s) {
        orderer_.plan();
        s.singles.clear();
        s.singles.resize(carry_.size() + orderer_.size());
        pool_.post(s.ordering, 1 + orderer_.groups(), TaskPool::Priority::urgent);
    }

    /// Task 0 copies the carry, each other one sorts a group.
    void order(Slot& s, std::size_t task) {
        if (task == 0) {
            std::copy(carry_.begin(), carry_.end(), s.singles.data());
        } else {
            orderer_.sort(task - 1, s.singles.data() + carry_.size());
        }
    }

    /// Decides all windows that end below the watermark, or below the end of the segment.
    void ordered(Slot& s) {
        orderer_.finish();
        const std::span<const Single> singles = s.singles.view();
        const std::uint64_t reach = options_.rules.window + options_.rules.delay.value_or(0);
        s.horizon = s.watermark > reach ? s.watermark - reach : 0;
        const std::uint64_t limit = s.close_at.value_or(s.horizon);
        const auto end = std::partition_point(singles.begin(), singles.end(),
                                              [=](const Single& x) { return x.time < limit; });
        s.search.decided =
            s.close_at == UINT64_MAX ? singles.size() : static_cast<std::size_t>(end - singles.begin());
        s.search.singles = s.close_at ? singles.first(s.search.decided) : singles;
        carry_ = singles.subspan(s.search.decided);
        {
            const net::MutexLock lock(mutex_);
            s.state = State::ordered;
            ordering_ = false;
        }
        advance();
    }

    // Search:

    void start_search(Slot& s) {
        if (s.close_at) taken_ = std::min(taken_, s.search.decided);
        finder_.divide(s.search, taken_, held_);
        pool_.post(s.searching, s.search.count, TaskPool::Priority::urgent);
    }

    void searched(Slot& s) {
        const std::span<Search::Share> shares = s.search.in_use();
        s.result.frames = {};
        for (const Part& part : s.parts)
            s.result.frames += part.counts;
        s.result.counts = {};
        for (const Search::Share& share : shares)
            s.result.counts += share.counts;
        pending_ += s.result.frames.accepted;
        pending_ -= s.result.counts.decided;
        newest_ = std::max(newest_, s.newest);
        s.result.pending = pending_;
        s.result.latest_pending_time = pending_ > 0 ? newest_ : 0;
        held_.clear();
        taken_ = 0;
        if (!s.close_at) {
            for (Search::Share& share : shares)
                hold(share.records, s.horizon);
            // The scan of an empty share ends where it starts.
            for (const Search::Share& share : shares)
                taken_ = std::max(taken_, share.next);
            taken_ -= s.search.decided;
        }
        {
            const net::MutexLock lock(mutex_);
            searching_ = false;
        }
        advance();
        deliver(s);
    }

    /// A pair within a group may start at or above the horizon. It is held back, since delayeds of that time
    /// are still to come.
    void hold(std::vector<Coincidence>& records, std::uint64_t horizon) {
        if (records.empty() || records.back().time < horizon) return;
        const auto from = std::partition_point(records.begin(), records.end(),
                                               [=](const Coincidence& c) { return c.time < horizon; });
        held_.insert(held_.end(), from, records.end());
        records.erase(from, records.end());
    }

    void deliver(Slot& s) {
        std::vector<Coincidence>& out = s.result.coincidences;
        std::size_t records = 0;
        for (const Search::Share& share : s.search.in_use())
            records += share.records.size();
        out.clear();
        if (out.capacity() < records) out.reserve(records + records / 8);
        for (const Search::Share& share : s.search.in_use())
            out.insert(out.end(), share.records.begin(), share.records.end());
        const auto decided = s.singles.view().first(options_.emit_singles ? s.search.decided : 0);
        s.result.singles.assign(decided.begin(), decided.end());
        {
            const net::MutexLock lock(mutex_);
            s.state = State::finished;
        }
        changed_.notify_all();
    }

    const PipelineOptions options_;
    decltype(&convert_span) convert_;
    const OwnedTables tables_;
    ChunkStore chunks_;
    std::vector<std::unique_ptr<Thread>> threads_;
    std::vector<std::unique_ptr<Slot>> slots_;  // a ring

    // Of the calling thread:
    std::uint64_t submitted_ = 0;
    std::atomic<std::uint64_t> collected_ = 0;
    std::uint64_t watermark_ = 0;

    // Of order:
    Orderer orderer_;
    std::span<const Single> carry_;  // of the slot of the slice ordered last

    // Of search:
    const CoincidenceFinder finder_;
    std::size_t taken_ = 0;  // singles of the carry that already belong to a prompt group
    std::vector<Coincidence> held_;
    std::uint64_t pending_ = 0;  // accepted and undecided
    std::uint64_t newest_ = 0;   // time of the newest accepted single

    net::Mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t next_to_order_ PETACQ_GUARDED_BY(mutex_) = 0;
    std::uint64_t next_to_search_ PETACQ_GUARDED_BY(mutex_) = 0;
    bool ordering_ PETACQ_GUARDED_BY(mutex_) = false;
    bool searching_ PETACQ_GUARDED_BY(mutex_) = false;
    std::string failure_ PETACQ_GUARDED_BY(mutex_);
    TaskPool pool_;
};

}  // namespace

std::unique_ptr<Pipeline> make_host_pipeline(const PipelineOptions& options,
                                             const config::Calibration& calibration) {
    if (options.threads == 0) throw std::invalid_argument("pipeline threads: expected at least 1");
    check_rules(options.rules);
    config::check_calibration(options.geometry, calibration);
    return std::make_unique<HostPipeline>(options, calibration);
}

}  // namespace petacq::gpu
