#include "tools/petsim/simulation/board/stream.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "gpu/base/records.hpp"

namespace petacq::sim {

SourceStream::SourceStream(std::uint16_t number, const config::Source& source, const RunClock& clock,
                           const InverseCalibration& calibration, const Detector* detector,
                           const Options& options, TagSchedule tags, StreamOutput& output)
    : options_(options),
      output_(output),
      number_(number),
      id_(source.id.value_or(0)),
      version_(calibration.frame_version()),
      sequenced_(options.wire.framing == net::Framing::sequenced),
      random_(options.seed, Purpose::stream, number),
      dead_time_(options, source, clock),
      pile_up_(clock.ticks(options.physics.block_pile_up_ns * 1e-9)),
      thermometers_(options, source, clock),
      tags_(std::move(tags)),
      silences_(options.faults, number, clock),
      resets_(options.faults.resets, number, clock),
      jumps_(options.faults.jumps, number, clock),
      datagram_(options, calibration, detector, clock.scanner.tick_ps, output),
      corruption_(options, calibration, clock.scanner.tick_ps),
      network_(options.faults, output.packets),
      flush_(std::max<std::uint64_t>(clock.ticks(options.wire.flush_us * 1e-6), 1)),
      heartbeat_(sequenced_ ? clock.ticks(options.wire.heartbeat_ms * 1e-3) : 0),
      skew_(clock.ticks(options.wire.skew_us * 1e-6 * random_.uniform())),
      jitter_(options.wire.skew_us * 0.25 * 1e6 / clock.scanner.tick_ps) {
    if (heartbeat_ > 0) heartbeat_at_ = clock.begin + heartbeat_;
    schedule();
}

void SourceStream::take(std::span<const Hit> hits, std::uint64_t limit) {
    process(hits, limit);
    advance(limit);
}

void SourceStream::finish(std::uint64_t floor, std::uint64_t end) {
    const std::span<const Hit> late = process({}, floor);
    advance(floor);
    // Hits that were detected in time but have a later raw time.
    std::uint64_t last = late.empty() ? floor : late.back().raw_time;
    process({}, never);
    while (tags_.next() < end) {
        last = std::max(last, tags_.next());
        advance(tags_.next());
    }
    if (!datagram_.empty()) complete(last, false);
    network_.release(last_key_);
    if (options_.wire.end_of_stream && sequenced_) complete(last, true);
}

/// Those before `limit`. Returns the others, which wait.
std::span<const Hit> SourceStream::process(std::span<const Hit> hits, std::uint64_t limit) {
    pile_up_.add(hits);
    while (const Hit* const hit = pile_up_.next(limit)) {
        if (const Hit* const later = pile_up_.ahead()) datagram_.prefetch(*later);
        if (takes(*hit)) append(*hit);
    }
    return pile_up_.keep();
}

/// Whether the hit begins a frame.
bool SourceStream::takes(const Hit& hit) {
    if (hit.raw_time >= next_event_) advance(hit.raw_time);
    ++statistics_.hits;
    if (!dead_time_.takes(hit)) {
        ++statistics_.dead_time;
        return false;
    }
    if (silences_.cover(hit.raw_time, hit.unit)) {
        ++statistics_.silenced;
        return false;
    }
    return true;
}

void SourceStream::append(const Hit& hit) {
    std::optional<LightSum> light;  // of several hits
    std::uint16_t count = 1;
    pile_up_.take_later([&](const Hit& later) {
        ++count;
        ++statistics_.hits;
        ++statistics_.piled_up;
        dead_time_.extend(later);
        if (!light) light.emplace(hit);
        light->add(later);
    });
    begin_datagram(hit.raw_time);
    datagram_.add(light ? light->result() : hit, count, thermometers_.sixteenths(hit.unit));
    ++statistics_.frames;
    if (datagram_.full()) complete(hit.raw_time, false);
}

void SourceStream::append_tag(const net::TagFrame& tag) {
    if (silences_.cover(tag.time)) {
        ++statistics_.tags_silenced;
        return;
    }
    begin_datagram(tag.time);
    datagram_.add(tag);
    ++statistics_.tags;
    if (datagram_.full()) complete(tag.time, false);
}

/// Unless one has begun.
void SourceStream::begin_datagram(std::uint64_t time) {
    if (!datagram_.empty()) return;
    ClockShift shift = jumps_.of_datagram(time);
    shift.ticks -= resets_.base();
    if (resets_.epoch() > 0) shift.flags |= truth_reset;
    datagram_.begin(shift);
    flush_at_ = time + flush_;
    schedule();
}

void SourceStream::schedule() {
    next_event_ = std::min({flush_at_, heartbeat_at_, thermometers_.next(), tags_.next(),
                            dead_time_.next_tag(), resets_.next(), silences_.next()});
}

void SourceStream::advance(std::uint64_t time) {
    while (next_event_ <= time) {
        handle_event();
        schedule();
    }
}

void SourceStream::handle_event() {
    const std::uint64_t now = next_event_;
    if (now == thermometers_.next()) {
        thermometers_.read(now);
    } else if (now == flush_at_) {  // NOLINT(bugprone-branch-clone): before tags; a heartbeat comes last
        complete(now, false);
    } else if (now == dead_time_.next_tag()) {
        append_tag({options_.wire.tag_marker, options_.tags.dead_time->channel,
                    static_cast<std::uint8_t>(gpu::TagKind::dead_time), now, dead_time_.report(),
                    options_.wire.tail_marker});
    } else if (now == tags_.next()) {
        append_tag(tags_.take());
    } else if (now == silences_.next()) {
        if (!datagram_.empty()) complete(now, false);
        silences_.begin();
        if (heartbeat_ > 0) heartbeat_at_ = silences_.until() + heartbeat_;
    } else if (now == resets_.next()) {
        if (!datagram_.empty()) complete(now, false);
        network_.release(last_key_);
        resets_.reset();
        sequence_ = 0;
        epoch_begins_ = true;
        ++statistics_.resets;
    } else {
        complete(now, false);  // a heartbeat
    }
}

void SourceStream::complete(std::uint64_t at, bool end_of_stream) {
    // The first and the last datagram always arrive whole, so that a loss shows in the sequence numbers.
    const bool spared = std::exchange(epoch_begins_, false) || end_of_stream;
    transmit(seal(at, end_of_stream), spared);
    flush_at_ = never;
    if (heartbeat_ > 0) heartbeat_at_ = std::max(at, silences_.until()) + heartbeat_;
    schedule();
}

/// The datagram that has been filled, with its header and the time at which it is sent.
Packet SourceStream::seal(std::uint64_t at, bool end_of_stream) {
    Packet packet = datagram_.take();
    packet.source = number_;
    packet.epoch = resets_.epoch();
    packet.sequence = sequence_++;
    if (sequenced_) {
        const std::uint8_t flags = end_of_stream ? net::flag_end_of_stream : 0;
        net::encode_header({flags, id_, packet.sequence}, packet.bytes.data(), version_);
    }
    const auto jitter = static_cast<std::uint64_t>(jitter_ * random_.uniform());
    packet.key = last_key_ = std::max(last_key_, at + skew_ + jitter);
    ++statistics_.datagrams;
    if (packet.frames + packet.tags == 0 && !end_of_stream) ++statistics_.heartbeats;
    if ((packet.flags & truth_clock_jump) != 0) ++statistics_.clock_jumped;
    return packet;
}

/// `spared`: by all faults.
void SourceStream::transmit(Packet packet, bool spared) {
    bool held_back = false;
    if (!spared) {
        if (network_.loses(random_)) {
            ++statistics_.datagrams_lost;
            statistics_.frames_lost += packet.frames;
            statistics_.tags_lost += packet.tags;
            packet.flags |= truth_lost;
            leave_truth(packet);
            output_.spare.push_back(std::move(packet.bytes));
            return;
        }
        const std::optional<Field> field = corruption_.draw(random_);
        if (field && corruption_.apply(*field, packet, datagram_.truth(), random_))
            ++statistics_.corrupted[static_cast<std::size_t>(*field)];
        if (network_.duplicates(random_)) {
            packet.copies = 2;
            packet.flags |= truth_duplicated;
            ++statistics_.duplicated;
        }
        held_back = network_.holds_back(random_);
    }
    ++statistics_.datagrams_sent;
    statistics_.frames_sent += packet.frames;
    statistics_.tags_sent += packet.tags;
    statistics_.bytes_sent += packet.bytes.size() * packet.copies;
    if (held_back) {
        packet.flags |= truth_held_back;
        ++statistics_.held_back;
    }
    leave_truth(packet);
    if (held_back) {
        network_.hold_back(std::move(packet), random_);
    } else {
        network_.send(std::move(packet));
    }
}

/// The truth of its frames is final.
void SourceStream::leave_truth(const Packet& packet) {
    std::uint16_t index = 0;
    for (TruthRecord& record : datagram_.truth()) {
        record.sequence = packet.sequence;
        record.source = packet.source;
        record.epoch = packet.epoch;
        record.index = index++;
        record.flags |= packet.flags;
        output_.truth.push_back(record);
    }
}

}  // namespace petacq::sim
