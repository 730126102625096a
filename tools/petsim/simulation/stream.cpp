#include "tools/petsim/simulation/stream.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "net/wire.hpp"

namespace petacq::sim {

std::vector<std::byte> StreamOutput::take_buffer() {
    if (spare.empty()) return {};
    std::vector<std::byte> buffer = std::move(spare.back());
    spare.pop_back();
    return buffer;
}

SourceStream::SourceStream(std::uint16_t number, const config::Source& source, const config::Scanner& scanner,
                           const InverseCalibration& calibration, const Detector* detector,
                           const Options& options, std::uint64_t begin_ticks, std::vector<net::TagFrame> tags,
                           StreamOutput& output)
    : calibration_(calibration),
      detector_(detector),
      options_(options),
      output_(output),
      number_(number),
      id_(source.id.value_or(0)),
      random_(options.seed, Purpose::stream, number),
      tick_ps_(scanner.tick_ps),
      flush_(std::max<std::uint64_t>(ticks_of(options.wire.flush_us * 1e-6, scanner), 1)),
      heartbeat_(ticks_of(options.wire.heartbeat_ms * 1e-3, scanner)),
      jitter_(options.wire.skew_us * 0.25 * 1e6 / tick_ps_),
      temperature_step_(ticks_of(1, scanner)),
      pile_up_(ticks_of(options.physics.block_pile_up_ns * 1e-9, scanner)),
      convert_all_(detector != nullptr || pile_up_ > 0 || hits_several_crystals(options)),
      header_(options.wire.framing == net::Framing::sequenced ? net::header_bytes : 0),
      capacity_(static_cast<std::uint32_t>((options.wire.payload - header_) / net::frame_bytes)),
      tags_(std::move(tags)),
      temperatures_(options.seed, options.physics.temperature_c, scanner.geometry, options.start_s,
                    options.faults.temperature_steps) {
    skew_ = ticks_of(options.wire.skew_us * 1e-6 * random_.uniform(), scanner);
    if (header_ == 0) heartbeat_ = 0;  // bare framing has none
    if (heartbeat_ > 0) heartbeat_at_ = begin_ticks + heartbeat_;
    const auto at = [&](double seconds) { return begin_ticks + ticks_of(seconds, scanner); };
    for (const auto& j : options.faults.jumps) {
        if (j.source == number) {
            jumps_.push_back({at(j.at_s), static_cast<std::uint64_t>(j.ticks), j.datagrams.value_or(never)});
        }
    }
    for (const auto& r : options.faults.resets) {
        if (r.source == number) resets_.push_back(at(r.at_s));
    }
    for (const auto& s : options.faults.silences) {
        if (s.source == number) silences_.push_back({at(s.from_s), at(s.to_s)});
    }
    for (const auto& s : options.faults.silent_units) {
        const std::uint32_t unit = s.bdm * scanner.geometry.du_count + s.du;
        silent_units_.emplace_back(unit, Interval{at(s.from_s), at(s.to_s)});
    }
    std::sort(resets_.rbegin(), resets_.rend());
    std::sort(silences_.begin(), silences_.end(),
              [](const Interval& a, const Interval& b) { return a.from > b.from; });
    const std::size_t units =
        static_cast<std::size_t>(scanner.geometry.bdm_count) * scanner.geometry.du_count;
    ready_.assign(units, 0);
    temperature_.assign(units, 0);
    update_temperatures(begin_ticks);
    for (const std::uint32_t bdm : source.bdms) {
        for (std::uint32_t du = 0; du < scanner.geometry.du_count; ++du)
            units_.push_back(bdm * scanner.geometry.du_count + du);
    }
    if (options.tags.dead_time) {
        dead_time_step_ = std::max<std::uint64_t>(ticks_of(options.tags.dead_time->interval_s, scanner), 1);
        dead_time_tag_at_ = begin_ticks + dead_time_step_;
    }
    if (!tags_.empty()) tag_at_ = tags_.front().time;
    schedule();
}

void SourceStream::take(std::span<const Hit> hits, std::uint64_t limit) {
    const auto earlier = [](const Hit& a, const Hit& b) { return a.raw_time < b.raw_time; };
    std::span<const Hit> rest = hits;
    if (!carry_.empty()) {  // a few, unless the time offsets are longer than a chunk
        merged_.resize(carry_.size() + hits.size());
        std::merge(carry_.begin(), carry_.end(), hits.begin(), hits.end(), merged_.begin(), earlier);
        rest = merged_;
    }
    process(rest, limit);
    advance(limit);
}

void SourceStream::finish(std::uint64_t end) {
    take({}, end);
    // Hits that were detected in time but have a later raw time.
    if (!carry_.empty()) end = carry_.back().raw_time;
    merged_ = carry_;
    process(merged_, never);
    if (count_ > 0) complete(end, false);
    release_held();
    if (options_.wire.end_of_stream && header_ > 0) complete(end, true);
}

/// Those before `limit`; the others are carried over.
void SourceStream::process(std::span<const Hit> hits, std::uint64_t limit) {
    std::size_t i = 0;
    if (pile_up_ == 0) {
        constexpr std::size_t ahead = 12;
        for (; i < hits.size() && hits[i].raw_time < limit; ++i) {
            if (convert_all_ && i + ahead < hits.size()) {
                const Hit& later = hits[i + ahead];
                calibration_.prefetch(later.unit, {later.x, later.y});
            }
            if (takes(hits[i])) append(hits[i], 1);
        }
        carry_.assign(hits.begin() + static_cast<std::ptrdiff_t>(i), hits.end());
        return;
    }
    piled_.assign(hits.size(), 0);
    for (; i < hits.size() && hits[i].raw_time < limit; ++i) {
        if (piled_[i] == 0 && takes(hits[i])) append_pile(hits, i);
    }
    carry_.clear();
    for (; i < hits.size(); ++i) {
        if (piled_[i] == 0) carry_.push_back(hits[i]);
    }
}

/// Whether the hit begins a frame.
bool SourceStream::takes(const Hit& hit) {
    if (hit.raw_time >= next_event_) advance(hit.raw_time);
    ++statistics_.hits;
    if (hit.raw_time < ready_[hit.unit]) {
        ++statistics_.dead_time;
        extend_dead_time(hit);
        return false;
    }
    ready_[hit.unit] = hit.raw_time + options_.physics.dead_time_ticks;
    blind_ += options_.physics.dead_time_ticks;
    if (hit.raw_time < silent_until_ || silent(hit)) {
        ++statistics_.silenced;
        return false;
    }
    return true;
}

/// Whether its detector unit is.
bool SourceStream::silent(const Hit& hit) const {
    return std::any_of(silent_units_.begin(), silent_units_.end(), [&](const auto& s) {
        return s.first == hit.unit && s.second.from <= hit.raw_time && hit.raw_time < s.second.to;
    });
}

void SourceStream::begin_datagram(std::uint64_t time) {
    buffer_ = output_.take_buffer();
    buffer_.resize(header_ + static_cast<std::size_t>(capacity_) * net::frame_bytes);
    shift_ = std::uint64_t{0} - base_;
    shift_flags_ = epoch_ > 0 ? truth_reset : 0;
    for (Jump& j : jumps_) {
        if (time < j.at || j.datagrams == 0) continue;
        if (j.datagrams != never) --j.datagrams;
        shift_ += j.ticks;
        shift_flags_ |= truth_clock_jump;
    }
    flush_at_ = time + flush_;
    schedule();
}

/// Where the next frame goes. It belongs to the datagram being filled, or begins one.
std::byte* SourceStream::next_frame(std::uint64_t time) {
    if (count_ == 0) begin_datagram(time);
    return buffer_.data() + header_ + static_cast<std::size_t>(count_) * net::frame_bytes;
}

void SourceStream::count_frame(std::uint64_t time) {
    if (++count_ == capacity_) complete(time, false);
}

void SourceStream::append(const Hit& hit, std::uint16_t hits) {
    std::byte* const place = next_frame(hit.raw_time);
    const std::uint32_t du_count = calibration_.geometry().du_count;
    net::Frame frame{};
    frame.head_marker = options_.wire.head_marker;
    frame.tail_marker = options_.wire.tail_marker;
    frame.du = static_cast<std::uint8_t>(hit.unit % du_count);
    frame.bdm = static_cast<std::uint8_t>(hit.unit / du_count);
    frame.time = hit.raw_time + shift_;
    frame.x = hit.x;
    frame.y = hit.y;
    frame.energy = hit.adc;
    frame.temperature_16ths = temperature_[hit.unit];
    net::encode_frame(frame, place);
    Conversion found{Conversion::Status::good, hit.crystal, hit.energy, 0};
    if (convert_all_ || shift_flags_ != 0) {  // a shifted time may leave the range
        found = calibration_.convert(frame, frame.head_marker, frame.tail_marker);
        ++by_status_[static_cast<std::size_t>(found.status)];
    }
    if (output_.want_truth) {
        const bool good = found.status == Conversion::Status::good;
        TruthRecord record;
        record.annihilation = hit.annihilation;
        record.crystal = good ? found.crystal : no_crystal;
        record.energy = good ? found.energy : hit.energy;
        const std::uint32_t whose = good ? found.crystal : hit.crystal;
        record.time = frame.time + static_cast<std::uint64_t>(
                                       static_cast<std::int64_t>(calibration_.channel(whose).time_offset));
        record.flags = hit.kind;
        if ((hit.history & history_gain_step) != 0) record.flags |= truth_gain_step;
        record.true_time = hit.raw_time + static_cast<std::uint64_t>(true_offset(hit.crystal));
        record.true_crystal = hit.crystal;
        record.true_energy = hit.energy;
        record.adc = hit.adc;
        record.x = hit.x;
        record.y = hit.y;
        record.hits = hits;
        record.object_scatters = hit.history & history_scatters;
        record.photon = (hit.history & ~history_gain_step) >> history_photon_shift;
        note_truth(record);
    }
    ++statistics_.frames;
    count_frame(hit.raw_time);
}

/// Adds what all frames have in common.
void SourceStream::note_truth(TruthRecord record) {
    record.sequence = sequence_;
    record.source = number_;
    record.index = static_cast<std::uint16_t>(count_);
    record.epoch = epoch_;
    records_.push_back(record);
}

void SourceStream::schedule() {
    next_event_ = std::min({flush_at_, heartbeat_at_, temperature_at_, tag_at_, dead_time_tag_at_});
    if (!resets_.empty()) next_event_ = std::min(next_event_, resets_.back());
    if (!silences_.empty()) next_event_ = std::min(next_event_, silences_.back().from);
}

void SourceStream::advance(std::uint64_t time) {
    while (next_event_ <= time) {
        handle_event();
        schedule();
    }
}

void SourceStream::handle_event() {
    const std::uint64_t now = next_event_;
    if (now == temperature_at_) {
        update_temperatures(now);
    } else if (now != flush_at_ && now == dead_time_tag_at_) {
        send_dead_time(now);
    } else if (now != flush_at_ && now == tag_at_) {
        send_tags(now);
    } else if (now != flush_at_ && !silences_.empty() && now == silences_.back().from) {
        if (count_ > 0) complete(now, false);
        silent_until_ = std::max(silent_until_, silences_.back().to);
        silences_.pop_back();
        if (heartbeat_ > 0) heartbeat_at_ = silent_until_ + heartbeat_;
    } else if (now != flush_at_ && !resets_.empty() && now == resets_.back()) {
        if (count_ > 0) complete(now, false);
        release_held();
        resets_.pop_back();
        base_ = now;
        sequence_ = 0;
        ++epoch_;
        epoch_begins_ = true;
        ++statistics_.resets;
    } else {
        complete(now, false);  // a flush or a heartbeat
    }
}

// The result depends only on the time, not on the chunks before it.
void SourceStream::update_temperatures(std::uint64_t time) {
    const double second = std::floor(static_cast<double>(time) * tick_ps_ * 1e-12);
    for (std::size_t unit = 0; unit < temperature_.size(); ++unit) {
        const double sixteenths = temperatures_.celsius(unit, second) * 16;
        temperature_[unit] = static_cast<std::int16_t>(std::clamp(std::lround(sixteenths), -2048L, 2047L));
    }
    temperature_at_ = (time / temperature_step_ + 1) * temperature_step_;
}

/// The datagram that has been filled, with its header and the time at which it is sent.
Packet SourceStream::seal(std::uint64_t at, bool end_of_stream) {
    if (count_ == 0) buffer_ = output_.take_buffer();
    Packet packet;
    packet.source = number_;
    packet.epoch = epoch_;
    packet.sequence = sequence_++;
    packet.frames = count_ - tag_count_;
    packet.tags = tag_count_;
    packet.by_status = by_status_;
    packet.bytes = std::move(buffer_);
    packet.bytes.resize(header_ + static_cast<std::size_t>(count_) * net::frame_bytes);
    if (header_ > 0) {
        const std::uint8_t flags = end_of_stream ? net::flag_end_of_stream : 0;
        net::encode_header({flags, id_, packet.sequence}, packet.bytes.data());
    }
    const auto jitter = static_cast<std::uint64_t>(jitter_ * random_.uniform());
    packet.key = last_key_ = std::max(last_key_, at + skew_ + jitter);
    ++statistics_.datagrams;
    if (count_ == 0 && !end_of_stream) ++statistics_.heartbeats;
    return packet;
}

void SourceStream::complete(std::uint64_t at, bool end_of_stream) {
    Packet packet = seal(at, end_of_stream);
    if ((shift_flags_ & truth_clock_jump) != 0) ++statistics_.clock_jumped;
    // The first and the last datagram always arrive whole, so that a loss shows in the sequence numbers.
    const bool spared = epoch_begins_ || end_of_stream;
    epoch_begins_ = false;
    const Fate fate = apply_faults(packet, spared);
    count_ = 0;
    tag_count_ = 0;
    by_status_ = {};
    shift_flags_ = 0;
    flush_at_ = never;
    if (heartbeat_ > 0) heartbeat_at_ = std::max(at, silent_until_) + heartbeat_;
    schedule();
    if (fate == Fate::sent) {
        push(std::move(packet));
    } else if (fate == Fate::held) {
        ++statistics_.held_back;
        held_.push_back({std::move(packet), 1 + random_.below(options_.faults.reorder_span)});
    }
}

}  // namespace petacq::sim
