// The CPU back-end. It converts, orders and searches one slice at a time and spreads each step over the
// threads of a pool.
//
// Between slices it keeps two sets of singles: `carry_`, ordered singles below the last watermark whose
// windows reach beyond it, and `pending_`, unordered singles above the watermark. `carry_` starts with the
// first single that has not opened its windows; its first `taken_` singles already belong to a prompt group.
// `pending_` consists of chunks of about one slice. Only chunks that hold singles below the watermark are
// touched, so a watermark that is held back for long does not cost a copy of all pending singles with every
// slice.
#include <fmt/format.h>
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "gpu/conversion_tables.hpp"
#include "gpu/host/coincidence.hpp"
#include "gpu/host/convert.hpp"
#include "gpu/host/order.hpp"
#include "gpu/host/single_buffer.hpp"
#include "gpu/host/worker_pool.hpp"
#include "gpu/pipeline.hpp"
#include "net/mutex.hpp"

namespace petacq::gpu {

namespace {

// With less work than this per thread, more threads do not pay.
constexpr std::size_t singles_per_worker = 8192;
constexpr std::size_t chunk_singles = 65'536;

class HostPipeline final : public Pipeline {
  public:
    HostPipeline(const PipelineOptions& options, const config::Calibration& calibration)
        : options_(options),
          convert_(options.input == Input::singles ? take_singles : convert_span),
          tables_(options, calibration),
          pool_(options.threads),
          orderer_(pool_),
          finder_(PairRule::of(options.geometry, options.rules), options.rules, pool_),
          totals_(make_histograms(options.geometry)) {
        workers_.reserve(options.threads);
        for (std::uint32_t i = 0; i < options.threads; ++i)
            workers_.emplace_back(options.geometry);
    }

    [[nodiscard]] std::size_t depth() const override { return 1; }

    void submit(const Slice& slice) override {
        if (ready_) throw std::logic_error("pipeline: submit before the slice before was collected");
        result_.id = slice.id;
        result_.coincidences.clear();
        result_.singles.clear();
        result_.frames = {};
        result_.counts = {};
        convert(slice.spans);
        order(slice.watermark, slice.close_at == UINT64_MAX);
        if (slice.close_at) {
            close(*slice.close_at);
        } else {
            decide();
        }
        const std::size_t undecided = carry_.size() - taken_;
        result_.pending = undecided + pending_count_;
        // All accepted singles newer than the watermark are in pending_.
        result_.latest_pending_time = pending_count_ > 0 ? newest_ : undecided > 0 ? carry_.back().time : 0;
        ready_ = true;
    }

    bool collect(SliceResult& result, bool /*wait*/) override {
        if (!ready_) return false;
        std::swap(result, result_);
        ready_ = false;
        return true;
    }

    void histograms(SinglesHistograms& out) override {
        for (Worker& w : workers_)
            w.histograms.flush_into(totals_);
        out = totals_;
    }

    void reset() override {
        carry_.clear();
        taken_ = 0;
        for (Chunk& chunk : pending_)
            spare_.push_back(std::move(chunk));
        pending_.clear();
        pending_count_ = 0;
        held_.clear();
        watermark_ = 0;
        newest_ = 0;
    }

    [[nodiscard]] std::uint64_t memory_bytes() const override {
        // The converted slice, the pending singles, and their copies during ordering. Buffers grow by half,
        // so a third of them may be unused. A single contributes half a pair under the winner policies and as
        // many as it has partners under TakeAllGoods. Pairs are held three times: in the workers' shares, the
        // result and the caller's.
        const CoincidenceRules& rules = options_.rules;
        const bool many = rules.policy == MultiplesPolicy::take_all_goods || rules.mode == WindowMode::every;
        const std::uint64_t records = many ? rules.max_multiplicity / 2 : 1;
        const std::uint64_t slice = options_.max_slice_frames;
        const std::uint64_t singles = (slice + (slice + options_.max_pending_singles) * 3) * 3 / 2;
        const std::uint64_t pairs = slice * records * 3 * sizeof(Coincidence);
        const std::uint64_t one_histogram = std::uint64_t{options_.geometry.crystal_count()} +
                                            std::uint64_t{options_.geometry.bdm_count} * 256;
        return singles * sizeof(Single) + pairs + tables_.bytes() +
               one_histogram * (4 * options_.threads + 8);
    }

    [[nodiscard]] std::string description() const override {
        return fmt::format("cpu, {} thread{}", options_.threads, options_.threads == 1 ? "" : "s");
    }

  private:
    struct Worker {
        explicit Worker(const config::Geometry& g) : histograms(g) {}
        LocalHistograms histograms;
        FrameCounts counts;
        SingleBuffer singles;  // of the current slice
        TimeRange range;
    };

    /// Unordered singles above the watermark.
    struct Chunk {
        SingleBuffer singles;
        TimeRange range;
    };
    static std::size_t pending_in(const std::vector<Chunk>& chunks) {
        std::size_t n = 0;
        for (const Chunk& chunk : chunks)
            n += chunk.singles.size();
        return n;
    }

    [[nodiscard]] std::uint32_t workers_for(std::size_t items) const {
        return static_cast<std::uint32_t>(
            std::clamp<std::size_t>(items / singles_per_worker, 1, options_.threads));
    }

    void convert(std::span<const FrameSpan> spans) {
        std::size_t frames = 0;
        for (const FrameSpan& span : spans)
            frames += span.count;
        const std::uint32_t workers = workers_for(frames);
        // Each worker gets a run of consecutive spans with about the same number of frames.
        const std::size_t share = (frames + workers - 1) / workers;
        run_starts_.assign(workers + 1, spans.size());
        run_starts_[0] = 0;
        std::size_t seen = 0;
        for (std::size_t i = 0, w = 1; i < spans.size() && w < workers; ++i) {
            seen += spans[i].count;
            while (w < workers && seen >= share * w)
                run_starts_[w++] = i + 1;
        }
        for (Worker& w : workers_) {
            w.singles.clear();
            w.range = {};
        }
        pool_.run(workers, [&](std::uint32_t index) {
            Worker& w = workers_[index];
            w.counts = {};
            const auto run = spans.subspan(run_starts_[index], run_starts_[index + 1] - run_starts_[index]);
            std::size_t most = 1;
            for (const FrameSpan& span : run)
                most += span.count;
            w.singles.resize(most);
            std::size_t count = 0;
            for (const FrameSpan& span : run)
                count = convert_piecewise(span, w, count);
            w.singles.resize(count);
            w.range.include(w.singles.view());
        });
        for (std::uint32_t i = 0; i < workers; ++i)
            result_.frames += workers_[i].counts;
    }

    /// Converts a span of any length in pieces that the local histograms can count without overflow.
    std::size_t convert_piecewise(FrameSpan span, Worker& w, std::size_t count) {
        while (span.count > 0) {
            FrameSpan piece = span;
            piece.count =
                static_cast<std::uint32_t>(std::min<std::uint64_t>(span.count, LocalHistograms::max_frames));
            if (w.histograms.nearly_full(piece.count)) {
                const net::MutexLock lock(totals_mutex_);
                w.histograms.flush_into(totals_);
            }
            count =
                convert_(piece, watermark_, tables_.view(), w.counts, w.histograms, w.singles.data(), count);
            span.frames += std::size_t{piece.count} * net::frame_bytes;
            span.count -= piece.count;
        }
        return count;
    }

    /// Moves the singles below `watermark`, or all of them, to the end of carry_, in order.
    void order(std::uint64_t watermark, bool everything) {
        parts_.clear();
        const auto limit = everything ? std::nullopt : std::optional(watermark);
        std::size_t total = 0;
        TimeRange range;
        const auto take = [&](const SingleBuffer& singles, const TimeRange& times) {
            parts_.push_back(singles.view());
            total += singles.size();
            range.include(times);
        };
        std::size_t kept = 0;
        used_.clear();
        for (Chunk& chunk : pending_) {
            if (!limit || chunk.range.low < *limit) {
                used_.push_back(std::move(chunk));
                take(used_.back().singles, used_.back().range);
            } else {
                if (&chunk != &pending_[kept]) pending_[kept] = std::move(chunk);
                ++kept;
            }
        }
        pending_.resize(kept);
        for (const Worker& w : workers_) {
            if (!w.singles.empty()) take(w.singles, w.range);
        }
        pending_count_ = pending_count_ + total - pending_in(used_);
        newest_ = std::max(newest_, range.high);
        Chunk later = spare_.empty() ? Chunk{} : std::move(spare_.back());
        if (!spare_.empty()) spare_.pop_back();
        const std::size_t before = carry_.size();
        orderer_.order(parts_, range, limit, workers_for(total), carry_, later.singles);
        pending_count_ -= carry_.size() - before;
        for (Chunk& chunk : used_)
            spare_.push_back(std::move(chunk));
        keep(std::move(later));
        watermark_ = watermark;
    }

    void keep(Chunk later) {
        later.range = {};
        later.range.include(later.singles.view());
        // Put small slices into one chunk.
        if (!pending_.empty() && pending_.back().singles.size() + later.singles.size() <= chunk_singles) {
            pending_.back().singles.append(later.singles.view());
            pending_.back().range.include(later.range);
            spare_.push_back(std::move(later));
        } else if (later.singles.empty()) {
            spare_.push_back(std::move(later));
        } else {
            pending_.push_back(std::move(later));
        }
    }

    /// Decides all windows that end below the watermark.
    void decide() {
        const std::uint64_t reach = options_.rules.window + options_.rules.delay.value_or(0);
        const std::uint64_t horizon = watermark_ > reach ? watermark_ - reach : 0;
        const std::size_t decided = count_below(horizon);
        const std::size_t next = find(carry_.view(), decided);
        // A pair within a group may start at or above the horizon. Hold it back: delayeds of that time are
        // still to come.
        auto& out = result_.coincidences;
        const auto hold = std::partition_point(out.begin(), out.end(),
                                               [=](const Coincidence& c) { return c.time < horizon; });
        held_.assign(hold, out.end());
        out.erase(hold, out.end());
        let_go(decided);
        taken_ = next - decided;
    }

    /// Ends the segment below `at`.
    void close(std::uint64_t at) {
        const std::size_t decided = at == UINT64_MAX ? carry_.size() : count_below(at);
        taken_ = std::min(taken_, decided);
        find(carry_.view().first(decided), decided);
        let_go(decided);
        held_.clear();
        taken_ = 0;
    }

    [[nodiscard]] std::size_t count_below(std::uint64_t time) const {
        const std::span<const Single> carry = carry_.view();
        const auto end =
            std::partition_point(carry.begin(), carry.end(), [=](const Single& s) { return s.time < time; });
        return static_cast<std::size_t>(end - carry.begin());
    }

    /// Removes the first `n` singles of carry_, which are decided.
    void let_go(std::size_t n) {
        const std::span<const Single> done = carry_.view().first(n);
        if (options_.emit_singles) result_.singles.assign(done.begin(), done.end());
        carry_.drop_front(n);
    }

    std::size_t find(std::span<const Single> singles, std::size_t decided) {
        result_.coincidences.assign(held_.begin(), held_.end());
        return finder_.find(singles, taken_, decided, workers_for(singles.size()), result_.coincidences,
                            result_.counts);
    }

    PipelineOptions options_;
    decltype(&convert_span) convert_;
    OwnedTables tables_;
    WorkerPool pool_;
    Orderer orderer_;
    CoincidenceFinder finder_;

    std::vector<Worker> workers_;
    std::vector<std::size_t> run_starts_;
    net::Mutex totals_mutex_;  // guards totals_ while workers add their full local counts
    SinglesHistograms totals_;

    std::uint64_t watermark_ = 0;
    std::uint64_t newest_ = 0;  // time of the newest accepted single
    SingleBuffer carry_;
    std::size_t taken_ = 0;
    std::vector<Chunk> pending_;
    std::size_t pending_count_ = 0;  // number of pending singles
    std::vector<Chunk> used_;        // chunks that the current slice takes apart
    std::vector<Chunk> spare_;       // empty chunks, kept for their memory
    std::vector<Coincidence> held_;
    std::vector<std::span<const Single>> parts_;

    SliceResult result_;
    bool ready_ = false;
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
