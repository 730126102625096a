#include "daemon/acquisition.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <utility>

#include "daemon/logging.hpp"
#include "daemon/saturate.hpp"
#include "net/receiver_totals.hpp"

namespace petacq::daemon {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds publish_interval{100};
constexpr std::chrono::milliseconds histogram_interval{1'000};

}  // namespace

Acquisition::Acquisition(const AcquisitionOptions& options, const TrackerOptions& tracker,
                         std::unique_ptr<gpu::Pipeline> pipeline, net::BatchPool& pool,
                         net::BatchQueue& filled, std::vector<const net::ReceiverCounters*> receivers,
                         std::function<void(FinishedRun)> on_finished)
    : options_(options),
      tracker_(tracker),
      pipeline_(std::move(pipeline)),
      pool_(pool),
      filled_(filled),
      receivers_(std::move(receivers)),
      on_finished_(std::move(on_finished)),
      most_pending_(options.max_pending_singles +
                    pending_slack * (std::uint64_t{options.slice_frames} + net::max_datagram_frames)),
      decided_after_(add_or_max(tracker.max_offset, tracker.flush_reach)),
      rows_may_end_(options.replay_clock == nullptr) {
    held_.reserve(pool.count());
    in_flight_.resize(pipeline_->depth());
    in_flight_spans_.resize(pipeline_->depth());
    publish(true);
}

Acquisition::~Acquisition() {
    stop();
}

void Acquisition::start() {
    carry_out_commands();  // a run that begins with the data has begun before any come
    thread_ = std::thread([this] { loop(); });
    pthread_setname_np(thread_.native_handle(), "acquisition");
}

void Acquisition::stop() {
    stopping_.store(true, std::memory_order_release);
    if (thread_.joinable()) thread_.join();
}

void Acquisition::begin_run(std::unique_ptr<Run> run, const RunInterval& interval,
                            std::function<void()> begun) {
    // std::function wants what can be copied.
    auto shared = std::make_shared<std::unique_ptr<Run>>(std::move(run));
    const std::lock_guard lock(mutex_);
    commands_.emplace_back(
        [this, shared, interval, begun = std::move(begun)] { begin(std::move(*shared), interval, begun); });
    command_waits_.store(true, std::memory_order_release);
}

void Acquisition::end_run(std::string reason) {
    const std::lock_guard lock(mutex_);
    commands_.emplace_back([this, reason = std::move(reason)] { ask_to_stop(reason); });
    command_waits_.store(true, std::memory_order_release);
}

std::shared_ptr<const AcquisitionSnapshot> Acquisition::snapshot() const {
    const std::lock_guard lock(mutex_);
    return published_;
}

/// What has not come by then is not on its way.
std::int64_t Acquisition::host_ns() const {
    if (options_.replay_clock != nullptr) return options_.replay_clock->load(std::memory_order_acquire);
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

void Acquisition::loop() {
    published_at_ = histograms_at_ = last_slice_ = Clock::now();
    while (!stopping_.load(std::memory_order_acquire)) {
        try {
            work();
        } catch (const std::exception& e) {
            fail(e.what());
        }
    }
    if (waiting_) enter_run();
    if (run_) {
        run_->reason = "daemon stopped";
        finish_run();
    }
    collect_all();
    release(held_);
    publish(false);
}

/// One turn of the loop: a batch if there is one, then whatever is due.
void Acquisition::work() {
    const auto poll = std::clamp<std::chrono::milliseconds>(
        options_.slice_interval / 2, std::chrono::milliseconds(1), std::chrono::milliseconds(5));
    net::Batch* batch = nullptr;
    const bool came = filled_.wait_dequeue_timed(batch, poll);
    turn_began_ = Clock::now();
    progress_.turns.add();
    free_batches_low_water_ = std::min<std::uint64_t>(free_batches_low_water_, pool_.free_count());
    if (came) {
        take_batch(batch);
    } else {
        // Nothing waits in the queue: what has not come by now has not come.
        now_ns_ = std::max(now_ns_, host_ns());
    }
    if (command_waits_.load(std::memory_order_acquire)) carry_out_commands();
    const Clock::time_point now = Clock::now();
    // Batches that are nearly empty must not run the pool dry while a slice fills.
    const bool holds_much = held_.size() * 4 >= pool_.count();
    if (now - last_slice_ >= options_.slice_interval || holds_much) process_slice();
    while (collect(false)) {
    }
    watch_run();
    if (now - published_at_ >= publish_interval) {
        restart_after_common_reset();
        const bool with_histograms = now - histograms_at_ >= histogram_interval;
        publish(with_histograms);
        published_at_ = now;
        if (with_histograms) histograms_at_ = now;
    }
    const Clock::time_point end = Clock::now();
    busy_s_ += std::chrono::duration<double>(end - turn_began_).count();
    turn_began_ = end;
}

void Acquisition::take_batch(net::Batch* batch) {
    now_ns_ = std::max(now_ns_, batch->arrival_ns);
    batch_ = batch;
    batch_seen_ = 0;
    std::uint64_t newest = 0;
    for (const net::Datagram& d : batch->datagrams) {
        ++batch_seen_;
        if (d.rejected) continue;
        ++datagrams_seen_;
        const Verdict verdict = tracker_.observe(d, now_ns_);
        if (!verdict.use || d.frames == 0) continue;
        spans_.push_back({batch->data + d.offset, d.frames, verdict.time_low, verdict.time_high});
        frames_ += d.frames;
        frames_seen_ += d.frames;
        const auto believed = [&](std::uint64_t t) {
            return t >= verdict.time_low && t <= verdict.time_high;
        };
        if (believed(d.first_time)) earliest_time_ = std::min(earliest_time_, d.first_time);
        if (believed(d.last_time)) newest = std::max(newest, d.last_time);
        newest_time_ = std::max(newest_time_, newest);
        if (frames_ >= options_.slice_frames) process_slice();
        if (options_.replay_clock != nullptr && believed(d.last_time)) look_for_row(d.last_time);
    }
    // A replay has no arrivals.
    if (newest != 0 && options_.replay_clock == nullptr) arrivals_.add(batch->first_arrival_ns, newest);
    // It goes back with the next slice: the one that holds its last frames, or a later one.
    batch_ = nullptr;
    held_.push_back(batch);
    if (spans_.empty() && in_flight_count_ == 0) release(held_);
}

void Acquisition::carry_out_commands() {
    std::unique_lock lock(mutex_);
    command_waits_.store(false, std::memory_order_relaxed);
    while (!commands_.empty()) {
        const auto command = std::move(commands_.front());
        commands_.pop_front();
        lock.unlock();
        command();
        lock.lock();
    }
}

/// `gives_up`: whether it goes past sources that it would wait for.
std::uint64_t Acquisition::next_watermark(bool& gives_up) {
    const std::uint64_t watermark = std::max(watermark_, tracker_.watermark(now_ns_, latest_pending_time_));
    gives_up = false;
    if (pending_ <= options_.max_pending_singles) return watermark;
    // Rather than memory, the sources that hold the watermark back are given up. Never past the reference:
    // what waits beyond it may come from a single source whose clock is wrong.
    const std::uint64_t reference = tracker_.status(now_ns_).reference.value_or(0);
    gives_up = reference > watermark;
    return std::max(watermark, reference);
}

/// Near the bound, the next watermark depends on how much the slices under way leave undecided.
void Acquisition::know_what_waits() {
    std::uint64_t under_way = 0;
    for (const InFlight& slice : in_flight_)
        under_way += slice.frames;
    if (pending_ + under_way > options_.max_pending_singles) collect_all();
}

void Acquisition::process_slice(std::optional<std::uint64_t> close_at) {
    last_slice_ = Clock::now();
    if (!failure_.empty()) {
        spans_.clear();
        abandoned_ += std::exchange(frames_, 0);
        release(held_);
        return;
    }
    know_what_waits();
    if (!failure_.empty()) return;  // the pipeline's, met while its results were collected
    bool gives_up = false;
    const std::uint64_t watermark = close_at ? std::max(watermark_, *close_at) : next_watermark(gives_up);
    if (run_ &&
        (run_->start >= earliest_time_ || watermark > add_or_max(earliest_time_, options_.max_offset)))
        settle_duration();
    if (!close_at && run_ && run_->stop && watermark >= *run_->stop) close_at = run_->stop;
    const bool enters = !close_at && waiting_ && watermark >= waiting_->start;
    if (enters) close_at = waiting_->start;
    if (spans_.empty() && watermark == watermark_ && !close_at) return;

    while (in_flight_count_ == in_flight_.size())
        collect(true);
    if (!failure_.empty()) return;
    given_up_ += gives_up ? 1 : 0;
    const std::size_t place = (oldest_ + in_flight_count_) % in_flight_.size();
    std::swap(in_flight_spans_[place], spans_);
    std::swap(in_flight_[place].batches, held_);
    in_flight_[place].frames = std::exchange(frames_, 0);
    in_flight_[place].watermark = watermark;
    in_flight_[place].row = close_at ? std::nullopt : end_row(watermark);
    if (in_flight_count_++ == 0) pipeline_since_ = Clock::now();
    progress_.submitted.add();
    gpu::Slice slice;
    slice.id = slices_++;
    slice.spans = in_flight_spans_[place];
    slice.watermark = watermark;
    slice.close_at = close_at;
    watermark_ = watermark;
    try {
        pipeline_->submit(slice);
    } catch (const std::exception& e) {
        fail(e.what());
        return;
    }
    collect(false);
    if (enters) {
        enter_run();
    } else if (close_at && run_ && run_->stop == close_at) {
        finish_run();
    }
}

bool Acquisition::collect(bool wait) {
    if (in_flight_count_ == 0) return false;
    try {
        if (!pipeline_->collect(result_, wait)) return false;
    } catch (const std::exception& e) {
        fail(e.what());
        return false;
    }
    InFlight& done = in_flight_[oldest_];
    release(done.batches);
    done.frames = 0;
    in_flight_spans_[oldest_].clear();
    oldest_ = (oldest_ + 1) % in_flight_.size();
    progress_.collected.add();
    if (--in_flight_count_ == 0) pipeline_is_empty();
    account(result_, done);
    if (pending_ > most_pending_) {
        fail(fmt::format(
            "{} singles wait to be decided, more than pipeline.max_pending_singles and three slices: a "
            "source whose clock is ahead of the others, or a window and delay that hold so many",
            pending_));
        return false;
    }
    return true;
}

void Acquisition::collect_all() {
    while (collect(true)) {
    }
}

void Acquisition::release(std::vector<net::Batch*>& batches) {
    for (net::Batch* batch : batches) {
        if (capture_ == nullptr || !capture_->offer(batch)) pool_.put(batch);
    }
    batches.clear();
}

void Acquisition::pipeline_is_empty() {
    pipeline_busy_s_ += std::chrono::duration<double>(Clock::now() - pipeline_since_).count();
}

void Acquisition::account(const gpu::SliceResult& result, const InFlight& slice) {
    counted_.frames += result.frames;
    static_cast<gpu::SingleCounts&>(counted_.singles) += result.counts;
    pending_ = result.pending;
    pending_high_water_ = std::max(pending_high_water_, pending_);
    latest_pending_time_ = result.latest_pending_time;
    arrivals_.take_decided(subtract_or_zero(slice.watermark, decided_after_), decided_arrivals_);
    if (!run_) return;
    counted_.pairs.prompts_found += result.counts.prompts;
    counted_.pairs.delayeds_found += result.counts.delayeds;
    counted_.saved_singles.found += result.singles.size();
    run_->run->append(result);
    run_->run->mark(decided_arrivals_);
    if (!slice.row) return;
    Ledger total = totals(Reading::quick);
    total.datagrams = *slice.row;
    run_->run->ledger_series().add(slice.watermark, total);
}

void Acquisition::fail(const std::string& reason) {
    note_failure(reason);
    if (waiting_) enter_run();
    if (run_) {
        run_->reason = failure_;
        run_->failed = true;
        finish_run();
    }
}

/// The pipeline and what it has been given are done with.
void Acquisition::note_failure(const std::string& reason) {
    if (!failure_.empty()) return;
    failure_ = "pipeline: " + reason;
    log_error("{}", failure_);
    for (InFlight& slice : in_flight_)
        release(slice.batches);
    progress_.collected.add(in_flight_count_);
    if (in_flight_count_ != 0) pipeline_is_empty();
    in_flight_count_ = 0;
    spans_.clear();
    abandoned_ += std::exchange(frames_, 0);
    release(held_);
}

/// False when the pipeline has failed, now or before.
bool Acquisition::read_histograms(gpu::SinglesHistograms& histograms) {
    if (!failure_.empty()) return false;
    try {
        pipeline_->histograms(histograms);
    } catch (const std::exception& e) {
        note_failure(e.what());
    }
    return failure_.empty();
}

Ledger Acquisition::totals(Reading reading) const {
    Ledger ledger = counted_;
    DatagramLedger& d = ledger.datagrams;
    const TrackerTotals t = tracker_.totals();
    d.accepted = t.accepted;
    d.duplicate = t.duplicate;
    d.too_many_sources = t.too_many_sources;
    d.lost = t.lost;
    d.reordered = t.reordered;
    d.stray = t.stray;
    d.restarted = t.restarted;
    d.end_of_stream = t.end_of_stream;
    std::uint64_t delivered = 0;
    for (const net::ReceiverCounters* receiver : receivers_) {
        const net::ReceiverTotals r = reading == Reading::one_moment
                                          ? net::read_totals_at_one_moment(*receiver)
                                          : net::read_totals(*receiver);
        d.received += r.datagrams_received;
        d.malformed += r.datagrams_malformed;
        d.unknown_source += r.datagrams_unknown_source;
        d.dropped_no_buffer += r.datagrams_dropped_no_buffer;
        d.dropped_kernel += r.datagrams_dropped_kernel;
        d.discarded_backlog += r.datagrams_discarded_backlog;
        delivered += r.datagrams_delivered;
    }
    d.in_flight_at_end = delivered - datagrams_seen_;
    d.frames = frames_seen_;
    d.frames_in_flight_at_end = frames_ + abandoned_;
    for (const InFlight& slice : in_flight_)
        d.frames_in_flight_at_end += slice.frames;
    ledger.singles.pending_at_end = pending_;
    ledger.loss_known = options_.framing == net::Framing::sequenced;
    return ledger;
}

void Acquisition::publish(bool with_histograms) {
    auto s = std::make_shared<AcquisitionSnapshot>();
    s->total = totals(Reading::quick);
    if (run_) {
        s->run = s->total - run_->at_start;
        run_->run->complete(*s->run);
    }
    // What is written is known run by run.
    s->total.pairs = {};
    s->total.saved_singles = {};
    s->taken = Clock::now();
    for (const net::ReceiverCounters* receiver : receivers_)
        s->bytes_received += receiver->bytes_received.value();
    s->sources = tracker_.status(now_ns_);
    s->watermark = watermark_;
    s->pending = pending_;
    s->busy_s = busy_s_ + std::chrono::duration<double>(s->taken - turn_began_).count();
    s->pipeline_busy_s = pipeline_busy_s_;
    if (in_flight_count_ != 0)
        s->pipeline_busy_s += std::chrono::duration<double>(s->taken - pipeline_since_).count();
    s->pending_high_water = pending_high_water_;
    s->free_batches_low_water = std::min<std::uint64_t>(free_batches_low_water_, pool_.free_count());
    s->given_up = given_up_;
    s->failure = failure_;
    if (with_histograms && failure_.empty()) {
        auto histograms = std::make_shared<gpu::SinglesHistograms>();
        pipeline_->histograms(*histograms);
        s->histograms = std::move(histograms);
        s->histograms_taken = Clock::now();
    }
    const std::lock_guard lock(mutex_);
    if (published_ && s->histograms) {
        s->histograms_before = published_->histograms;
        s->histograms_before_taken = published_->histograms_taken;
    } else if (published_) {
        s->histograms = published_->histograms;
        s->histograms_taken = published_->histograms_taken;
        s->histograms_before = published_->histograms_before;
        s->histograms_before_taken = published_->histograms_before_taken;
    }
    published_ = std::move(s);
}

}  // namespace petacq::daemon
