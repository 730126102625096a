#include "daemon/acquisition/slice_flow.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "daemon/tracking/saturate.hpp"
#include "net/wire.hpp"

namespace petacq::daemon {

namespace {

/// Sources that are silent for longer, in ticks, are not sending.
std::uint64_t pause_of(const TrackerOptions& tracker) {
    return static_cast<std::uint64_t>(static_cast<double>(tracker.source_timeout_ns) * tracker.ticks_per_ns);
}

/// Undecided frames are counted in parts of the disorder, so that hardly more seem to wait than do; and in
/// parts of a timeout, so that the parts are not too many.
std::uint64_t part_of_waiting(const TrackerOptions& tracker, std::uint64_t timeout) {
    return std::max(tracker.max_disorder / 8, timeout / 4096);
}

}  // namespace

SliceFlow::SliceFlow(const AcquisitionOptions& options, const TrackerOptions& tracker, PipelineFeed& feed,
                     BatchExchange& batches, std::vector<const net::ReceiverCounters*> receivers, Sink sink)
    : options_(options),
      sink_(std::move(sink)),
      feed_(feed),
      batches_(batches),
      tracker_(tracker),
      begin_(pause_of(tracker)),
      undecided_(part_of_waiting(tracker, pause_of(tracker))),
      max_offset_(options.max_offset),
      open_(batches.count() / 16, tracker.source_timeout_ns),
      account_(std::move(receivers), options.framing),
      builder_(options.slice_frames, batches.count()) {
    if (options.framing == net::Framing::bare) copies_.emplace();
    if (options.second == 0) return;
    cuts_.emplace(options.second, options.rules.reach());
    readings_.emplace(options.second, options.geometry.bdm_count, options.framing == net::Framing::sequenced,
                      options.sources);
    std::vector<std::vector<std::uint32_t>> modules;
    for (const SourceModules& source : options.sources)
        modules.push_back(source.bdms);
    presence_.emplace(options.second, pause_of(tracker), options.geometry.bdm_count, modules);
}

/// Whether the group lies in one slice and in one part of a second.
bool SliceFlow::is_simple(const net::Group& group) const {
    if (group.members().empty() || !open_.empty() || !begin_settled_ || !tracker_.time().established())
        return false;
    std::uint64_t frames = 0;
    std::uint64_t first = UINT64_MAX;
    std::uint64_t last = 0;
    for (const net::Datagram& train : group.trains()) {
        frames += std::uint64_t{train.frames} * train.datagrams;
        first = std::min(first, train.last_time);
        last = std::max(last, train.datagrams == 1 ? train.last_time : train.end_last_time);
    }
    return builder_.has_room(frames) && (!readings_ || readings_->in_one_part(first, last));
}

bool SliceFlow::add_group(const net::Group& group, std::int64_t now_ns) {
    if (!is_simple(group) || !tracker_.observe_group(group, now_ns, verdicts_)) return false;
    builder_.add(group, verdicts_);
    for (std::size_t i = 0; i < verdicts_.size(); ++i) {
        const net::Datagram& train = group.trains()[i];
        const std::uint32_t frames = train.frames * train.datagrams;
        const std::uint64_t end = train.datagrams == 1 ? train.last_time : train.end_last_time;
        account_.add_datagram(train);
        account_.add_frames(frames);
        undecided_.add(end, frames);
        if (presence_) {
            presence_->add({verdicts_[i].source, train.first_time, end, train.datagrams, frames, 0,
                            train.first_bdm, train.last_bdm, true});
        }
    }
    if (!readings_) return true;
    const std::uint64_t time = group.trains().front().last_time;
    for (const net::Member& member : group.members()) {
        presence_->note_modules(verdicts_[member.train].source, member.first_bdm, member.last_bdm);
        readings_->add_temperature(time, member.last_bdm, member.temperature_16ths);
    }
    return true;
}

std::uint64_t SliceFlow::add(const net::Batch& batch, const net::Datagram& datagram, std::int64_t now_ns) {
    account_.add_datagram(datagram);
    if (datagram.admitted != net::Admitted::yes) return 0;
    const bool begun = tracker_.time().established();
    const Verdict verdict = tracker_.observe(datagram, now_ns);
    if (!begun) judge_held_frames();
    if (!open_.empty() && tracker_.time().decided_ns() != open_decided_ns_) release_open(now_ns, false);
    if (readings_) read_besides_hits(datagram, verdict);
    if (!verdict.use || datagram.frames == 0) return 0;
    account_.add_frames(datagram.frames);
    if (copies_ && copies_->is_copy(verdict.source, datagram.sequence, datagram.arrival_ns))
        account_.add_suspected_duplicate();
    if (verdict.open && hold_open(datagram, verdict, now_ns)) return 0;
    builder_.add(batch, datagram, verdict);
    if (datagram.timed_frames > 0 && verdict.time_low <= verdict.time_high)
        undecided_.add(std::min(datagram.last_time, verdict.time_high), datagram.frames);
    if (datagram.timed_frames == 0) return 0;
    if (!begin_settled_) look_for_begin(batch, datagram, verdict);
    const std::uint64_t time = datagram.last_time;
    if (!tracker_.time().established()) {
        newest_held_ = std::max(newest_held_.value_or(0), time);
        return 0;
    }
    return verdict.believes(time) ? time : 0;
}

/// The frames wait until the other boards have stepped as well, or have not. Returns false, and the frames
/// are refused for good, if they cannot wait.
bool SliceFlow::hold_open(const net::Datagram& datagram, Verdict verdict, std::int64_t now_ns) {
    // Its sequence number has been accounted for.
    verdict.lost = 0;
    verdict.loss_known = true;
    net::Batch* const batch = batches_.being_read();
    if (open_.hold(batch, datagram, verdict, now_ns, [&] { batches_.hold(batch); })) return true;
    tracker_.refuse_open(verdict.source);
    return false;
}

/// `all`: nothing may wait any longer.
void SliceFlow::release_open(std::int64_t now_ns, bool all) {
    open_decided_ns_ = tracker_.time().decided_ns();
    open_.release(
        now_ns,
        [&](OpenDatagrams::OpenDatagram& entry) {
            tracker_.reconsider(entry.datagram, entry.verdict);
            if (all) entry.verdict.open = false;
        },
        [&](const OpenDatagrams::OpenDatagram& entry) {
            builder_.add(*entry.batch, entry.datagram, entry.verdict);
            if (entry.verdict.refuses_all()) return tracker_.refuse_open(entry.verdict.source);
            undecided_.add(std::min(entry.datagram.last_time, entry.verdict.time_high),
                           entry.datagram.frames);
            if (readings_) read_besides_hits(entry.datagram, entry.verdict);
        },
        [&](net::Batch* batch) { builder_.keep(batch); });
}

/// The first frames of a run may lie anywhere in its first datagrams.
void SliceFlow::look_for_begin(const net::Batch& batch, const net::Datagram& datagram,
                               const Verdict& verdict) {
    const std::uint64_t first = std::min(datagram.first_time, datagram.last_time);
    const std::uint64_t lowest = std::max(subtract_or_zero(first, options_.max_disorder), feed_.watermark());
    const auto earliest_from = [&](std::uint64_t low) {
        return net::earliest_valid_time(options_.frames, batch.data + datagram.offset, datagram.frames, low);
    };
    const std::uint64_t taken = earliest_from(feed_.watermark());
    if (!verdict.refuses_all()) {
        earliest_taken_ = std::min(earliest_taken_, taken);
        if (first >= feed_.watermark()) earliest_taken_ = std::min(earliest_taken_, first);
    }
    const std::uint64_t earliest = taken < lowest ? earliest_from(lowest) : taken;
    if (earliest < first) tracker_.note_earlier(verdict.source, earliest);
    if (!tracker_.time().established()) {
        earliest_held_ = std::min(earliest_held_, earliest);
        return;
    }
    if (earliest == UINT64_MAX || !verdict.believes(earliest) || !verdict.believes(datagram.last_time))
        return;
    begin_.add(earliest, {std::max(datagram.first_time, datagram.last_time), datagram.arrival_ns});
    begin_settled_ = feed_.watermark() > begin_.first();
}

void SliceFlow::watch_data(std::uint64_t from, std::int64_t now_ns) {
    const bool sending = tracker_.time().supported(now_ns);
    const std::uint64_t first = tracker_.time().first_of_members();
    // Boards that have begun after the start were not sending then, and those that have sent past it were.
    const bool before = first < from && (sending || newest().value_or(0) >= from);
    begin_.watch(from, before ? newest() : std::nullopt);
    if (sending && !before && newest()) begin_.add_held(first, *newest());
    begin_settled_ = false;
    earliest_taken_ = feed_.pending() == 0 ? UINT64_MAX : from;
}

void SliceFlow::watch_clock() {
    begin_.watch_clock();
    begin_settled_ = false;
}

std::uint64_t SliceFlow::data_begin(std::uint64_t watermark) const {
    const DataBegin begin = begin_of_members(begin_);
    const auto ticks = begin_ticks(begin);
    return ticks && watermark > std::max(begin.first(), *ticks) ? *ticks : UINT64_MAX;
}

/// Before detector time is known, what is held counts.
std::optional<std::uint64_t> SliceFlow::data_begin_so_far() const {
    DataBegin begin = begin_of_members(begin_);
    if (!tracker_.time().established() && newest_held_) begin.add_held(earliest_held_, *newest_held_);
    return begin_ticks(begin);
}

/// Frames from before detector time started again are in no run: what they overlap with is not complete.
std::optional<std::uint64_t> SliceFlow::begin_ticks(const DataBegin& begin) const {
    const auto ticks = begin.ticks(max_offset_);
    if (!ticks) return std::nullopt;
    return tracker_.time().end_of_time_before(std::max(*ticks, covered_from_), max_offset_);
}

/// The members of detector time decide. One that joins later may have sent before the others, and a source
/// that had been alone before them may have set another time.
DataBegin SliceFlow::begin_of_members(DataBegin begin) const {
    const std::uint64_t first = tracker_.time().first_of_members();
    if (first != UINT64_MAX && first >= begin.from()) begin.set_first(first);
    return begin;
}

std::uint64_t SliceFlow::data_end() const {
    const auto newest = this->newest();
    if (!newest) return 0;
    const std::uint64_t end = add_or_max(*newest, max_offset_ + 1);
    // A wild time, or that of a board far ahead, does not prolong a run. A replay takes every frame.
    const bool wild = !input_ended_ && latest_single_ > add_or_max(*newest, options_.max_disorder);
    return wild ? end : std::max(end, add_or_max(latest_single_, 1));
}

/// Missing datagrams have no time of their own. They count at the time of the datagram that reveals the gap
/// or, if that one has no time either, at the newest time received.
void SliceFlow::read_besides_hits(const net::Datagram& datagram, const Verdict& verdict) {
    const std::uint64_t time = datagram.last_time;
    const bool timed = verdict.use && datagram.timed_frames != 0 && verdict.believes(time);
    if (timed && datagram.hits)
        readings_->add_temperature(time, datagram.last_bdm, datagram.temperature_16ths);
    const bool established = tracker_.time().established();
    const std::uint64_t known = timed && established ? time : tracker_.time().newest();
    if (verdict.lost != 0) readings_->add_lost(known, verdict.lost);
    if (!verdict.loss_known) readings_->add_unnumbered(known);
    if (!timed) return;
    if (!established) return presence_->hold(verdict.source, datagram.first_time, time);
    presence_->add({verdict.source, datagram.first_time, time, 1, datagram.timed_frames, verdict.lost,
                    datagram.first_bdm, datagram.last_bdm, datagram.hits});
}

BoardReport SliceFlow::report_on(gpu::TickRange second) {
    BoardReport report;
    readings_->take(second, report);
    presence_->take(second, report.live);
    return report;
}

/// Once detector time has begun: the frames of the first datagrams that are far from it, and far from the
/// times of their own source if that is a member, are time jumps.
void SliceFlow::judge_held_frames() {
    if (!tracker_.time().established()) return;
    builder_.restrict_times([this](std::uint32_t source) { return tracker_.time().held_times(source); });
    if (const auto newest = this->newest()) begin_.add_held(tracker_.time().first_of_members(), *newest);
    newest_held_.reset();
}

void SliceFlow::establish_time(std::int64_t now_ns) {
    if (tracker_.time().established()) return;
    tracker_.establish_now(now_ns);
    judge_held_frames();
}

void SliceFlow::keep(net::Batch* batch) {
    builder_.keep(batch);
    if (builder_.empty() && feed_.empty()) give_back_batches();
}

/// Before detector time begins, nothing is decided.
bool SliceFlow::too_many_wait() const {
    return builder_.frames() + feed_.pending() >= options_.max_pending_singles;
}

bool SliceFlow::old(std::int64_t now_ns) const {
    if (!tracker_.time().established()) return false;
    const std::chrono::nanoseconds age(builder_.age_ns(now_ns));
    if (age >= options_.slice_interval) return true;
    if (options_.replay || !feed_.empty() || builder_.empty()) return false;
    return age >= options_.idle_slice_interval &&
           (has_many_frames() || age >= std::chrono::nanoseconds(options_.slice_interval) / 4);
}

void SliceFlow::start_slice(std::int64_t now_ns) {
    builder_.start(now_ns);
    if (tracker_.time().established()) return;
    const bool too_many = too_many_wait();
    if (too_many) establish_time(now_ns);
    if (tracker_.time().established()) return;
    builder_.restrict_times(
        [&](std::uint32_t source) { return tracker_.time().own_times(source, !too_many); });
}

SliceFlow::SliceWatermark SliceFlow::next_watermark(std::int64_t now_ns) {
    const bool begun = tracker_.time().established();
    std::uint64_t allowed = tracker_.watermark(now_ns, 0);
    if (!tracker_.held()) {
        // Without a source that holds it, it depends on what the slices in flight leave undecided.
        collect_all();
        allowed = tracker_.watermark(now_ns, feed_.latest_pending_time());
    }
    if (!begun) judge_held_frames();
    if (!open_.empty()) release_open(now_ns, false);
    const std::uint64_t watermark = std::max(feed_.watermark(), allowed);
    undecided_.advance(feed_.watermark());
    const auto fits = [&](std::uint64_t ticks) {
        return undecided_.count_from(ticks) <= options_.max_pending_singles;
    };
    tracker_.believe_until(UINT64_MAX);
    if (fits(watermark)) return {watermark, false};
    // To bound the memory, sources that hold the watermark back are given up.
    establish_time(now_ns);
    const std::uint64_t given = tracker_.watermark_without_slow(now_ns, fits);
    const std::uint64_t next = std::max(watermark, given);
    // Where that is not enough, boards far ahead are refused; the more waits, the less far ahead.
    const std::uint64_t most = options_.max_pending_singles;
    const std::uint64_t excess = subtract_or_zero(undecided_.count_from(next), most);
    tracker_.believe_until(undecided_.fitting_end(next, subtract_or_zero(most, 8 * excess)));
    return {next, given > watermark};
}

bool SliceFlow::submit(SliceEnd end) {
    if ((end.close_at || feed_.failed()) && !open_.empty()) release_open(0, true);
    make_room();
    while (builder_.has_waiting()) {
        SliceContents waiting = builder_.take_waiting();
        if (options_.synchrony != nullptr) options_.synchrony->offer(waiting.spans, end.watermark);
        feed_.submit(waiting, {feed_.watermark(), {}, {}});
        make_room();
    }
    if (options_.synchrony != nullptr) options_.synchrony->offer(builder_.contents().spans, end.watermark);
    end_seconds(end);
    const bool submitted = feed_.submit(builder_.contents(), end);
    if (tracker_.time().established()) {
        collect(false);
    } else {
        collect_all();  // so that feed_.pending() is what waits
    }
    return submitted;
}

/// Submits the slice in pieces up to its last second. All its frames are in the first piece.
void SliceFlow::end_seconds(SliceEnd& end) {
    if (!cuts_) return;
    // Data that begin so late that nothing of theirs has been decided have begun when the segment ends.
    const std::uint64_t begin =
        end.close_at ? data_begin_so_far().value_or(UINT64_MAX) : data_begin(end.watermark);
    const std::uint64_t to = end.close_at ? std::min(*end.close_at, data_end()) : end.watermark;
    cuts_->advance(feed_.watermark(), to, begin, [&](std::uint64_t watermark, gpu::TickRange second) {
        feed_.submit(builder_.contents(), {watermark, {}, {}, second});
        make_room();
    });
    if (!end.close_at) return;
    end.second = cuts_->close(to, begin, [&](gpu::TickRange second) {
        feed_.submit(builder_.contents(), {end.watermark, end.close_at, {}, second, second.end});
        make_room();
    });
}

void SliceFlow::make_room() {
    while (feed_.full())
        collect(true);
}

void SliceFlow::close_segment(std::uint64_t close_at) {
    assert(close_at >= feed_.watermark());
    submit({close_at, close_at, {}});
}

bool SliceFlow::collect(bool wait) {
    CollectedSlice* const slice = feed_.collect(wait);
    if (slice == nullptr) return false;
    latest_single_ = std::max(latest_single_, slice->result.latest_pending_time);
    account_.add(slice->result);
    if (readings_) readings_->add(slice->result.tags);
    sink_(*slice);
    if (builder_.empty() && feed_.empty()) give_back_batches();
    return true;
}

void SliceFlow::collect_all() {
    while (collect(true)) {
    }
}

bool SliceFlow::decide_all() {
    close_segment(UINT64_MAX);
    collect_all();
    undecided_.clear();
    newest_held_.reset();
    earliest_held_ = UINT64_MAX;
    latest_single_ = 0;
    input_ended_ = false;
    begin_.watch(0, std::nullopt);
    begin_.forget_clock();
    begin_settled_ = false;
    earliest_taken_ = UINT64_MAX;
    calibrated_from_ = 0;
    covered_from_ = 0;
    if (cuts_) cuts_->restart();
    if (readings_) readings_->clear();
    if (presence_) presence_->clear();
    return feed_.reset();
}

std::string SliceFlow::set_calibration(const config::Calibration& calibration, std::uint64_t max_offset) {
    collect_all();
    std::string failure = feed_.set_calibration(calibration);
    if (!failure.empty()) return failure;
    if (options_.synchrony != nullptr) options_.synchrony->set_calibration(calibration);
    // No frame received so far has a later time, by whichever calibration, but for those of boards that lead,
    // which wait in the pipeline.
    max_offset_ = std::max(max_offset_, max_offset);
    calibrated_from_ = !newest() ? 0 : add_or_max(end_of_received(), options_.max_disorder);
    calibrated_from_ = std::max(calibrated_from_, add_or_max(feed_.latest_pending_time(), 1));
    max_offset_ = max_offset;
    tracker_.set_max_offset(max_offset);
    return {};
}

bool SliceFlow::restart_time(std::int64_t now_ns) {
    if (!decide_all()) return false;
    tracker_.restart_watermark(now_ns);
    return true;
}

bool SliceFlow::follow_reset(std::int64_t now_ns) {
    if (!decide_all()) return false;
    tracker_.follow_reset(now_ns);
    if (const auto newest = this->newest()) begin_.add_held(tracker_.time().first_of_members(), *newest);
    return true;
}

std::optional<std::uint64_t> SliceFlow::newest() const {
    if (!tracker_.time().established()) return newest_held_;
    return tracker_.time().earliest() == UINT64_MAX ? std::nullopt : std::optional(tracker_.time().newest());
}

std::uint64_t SliceFlow::end_of_received() const {
    return std::max(data_end(), feed_.watermark());
}

std::uint64_t SliceFlow::end_of_input() {
    submit({feed_.watermark(), {}, {}});
    collect_all();
    input_ended_ = true;
    return end_of_received();
}

Ledger SliceFlow::total(Account::ReadingMode reading) const {
    const std::uint64_t under_way = open_.frames() + builder_.frames() + feed_.frames_in_flight();
    return account_.total(reading, tracker_.totals(), under_way, feed_.waiting());
}

void SliceFlow::describe(AcquisitionSnapshot& snapshot, std::int64_t now_ns) const {
    snapshot.total = total(Account::ReadingMode::quick);
    snapshot.taken = BusyTime::Clock::now();
    snapshot.bytes_received = account_.bytes_received();
    snapshot.sources = tracker_.status(now_ns);
    snapshot.watermark = feed_.watermark();
    snapshot.pending = feed_.pending();
    snapshot.latest_tags = account_.latest_tags();
    snapshot.pending_high_water = feed_.pending_high_water();
    snapshot.free_batches_low_water = batches_.free_low_water();
    snapshot.pipeline_busy_s = feed_.busy().seconds(snapshot.taken);
    snapshot.failure = feed_.failure();
}

}  // namespace petacq::daemon
