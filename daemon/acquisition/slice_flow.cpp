#include "daemon/acquisition/slice_flow.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "daemon/tracking/saturate.hpp"
#include "net/wire.hpp"

namespace petacq::daemon {

SliceFlow::SliceFlow(const AcquisitionOptions& options, const TrackerOptions& tracker,
                     std::unique_ptr<gpu::Pipeline> pipeline, BatchExchange& batches,
                     std::vector<const net::ReceiverCounters*> receivers, AcquisitionProgress& progress,
                     Sink sink)
    : options_(options),
      sink_(std::move(sink)),
      batches_(batches),
      tracker_(tracker),
      account_(std::move(receivers), options.framing),
      builder_(options.slice_frames, batches.count()),
      feed_(std::move(pipeline),
            options.max_pending_singles +
                pending_slack * (std::uint64_t{options.slice_frames} + net::max_datagram_frames),
            batches, progress) {}

std::optional<std::uint64_t> SliceFlow::add(const net::Batch& batch, const net::Datagram& datagram,
                                            std::int64_t now_ns) {
    if (datagram.rejected) return std::nullopt;
    account_.add_datagram();
    const Verdict verdict = tracker_.observe(datagram, now_ns);
    if (!verdict.use || datagram.frames == 0) return std::nullopt;
    account_.add_frames(datagram.frames);
    builder_.add(batch, datagram, verdict);
    return received_.add(datagram, verdict);
}

void SliceFlow::keep(net::Batch* batch) {
    builder_.keep(batch);
    if (builder_.empty() && feed_.empty()) give_back_batches();
}

SliceFlow::Watermark SliceFlow::next_watermark(std::int64_t now_ns) {
    // Near the bound, the next watermark depends on how much the slices in flight leave undecided.
    if (feed_.pending() + feed_.frames_in_flight() > options_.max_pending_singles) collect_all();
    const std::uint64_t watermark =
        std::max(feed_.watermark(), tracker_.watermark(now_ns, feed_.latest_pending_time()));
    if (feed_.pending() <= options_.max_pending_singles) return {watermark, false};
    // To bound the memory, the sources that hold the watermark back are given up. Never past the reference:
    // singles that wait beyond it may come from a single source whose clock is wrong.
    const std::uint64_t reference = tracker_.status(now_ns).reference.value_or(0);
    return {std::max(watermark, reference), reference > watermark};
}

bool SliceFlow::submit(const SliceEnd& end) {
    while (feed_.full())
        collect(true);
    const bool submitted = feed_.submit(builder_.contents(), end);
    collect(false);
    return submitted;
}

void SliceFlow::close_segment(std::uint64_t close_at) {
    assert(close_at >= feed_.watermark());
    restart_interval();
    submit({close_at, close_at, {}});
}

bool SliceFlow::collect(bool wait) {
    const CollectedSlice* const slice = feed_.collect(wait);
    if (slice == nullptr) return false;
    account_.add(slice->result);
    sink_(*slice);
    return true;
}

void SliceFlow::collect_all() {
    while (collect(true)) {
    }
}

bool SliceFlow::restart_time() {
    close_segment(UINT64_MAX);
    collect_all();
    if (!feed_.reset()) return false;
    tracker_.restart_watermark();
    received_.clear();
    return true;
}

std::uint64_t SliceFlow::end_of_received(const TrackerStatus& sources) const {
    if (received_.newest() == 0) return feed_.watermark();
    std::uint64_t progress = 0;
    for (const SourceStatus& source : sources.sources)
        progress = std::max(progress, source.progress);
    const std::uint64_t newest = std::min(received_.newest(), add_or_max(progress, options_.max_disorder));
    return std::max(add_or_max(newest, options_.max_offset + 1), feed_.watermark());
}

Ledger SliceFlow::total(Account::Reading reading) const {
    return account_.total(reading, tracker_.totals(), builder_.frames() + feed_.frames_in_flight(),
                          feed_.pending());
}

void SliceFlow::describe(AcquisitionSnapshot& snapshot, std::int64_t now_ns) const {
    snapshot.total = total(Account::Reading::quick);
    snapshot.taken = BusyTime::Clock::now();
    snapshot.bytes_received = account_.bytes_received();
    snapshot.sources = tracker_.status(now_ns);
    snapshot.watermark = feed_.watermark();
    snapshot.pending = feed_.pending();
    snapshot.pending_high_water = feed_.pending_high_water();
    snapshot.free_batches_low_water = batches_.free_low_water();
    snapshot.pipeline_busy_s = feed_.busy().seconds(snapshot.taken);
    snapshot.failure = feed_.failure();
}

}  // namespace petacq::daemon
