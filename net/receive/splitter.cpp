#include "net/receive/splitter.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace petacq::net {

namespace {

constexpr std::size_t source_end = 7;  // the low byte of the source in a header

}  // namespace

Splitter::Splitter(const ReceiverOptions& options, ReceiverCounters& counters)
    : admission_(options),
      test_(options.frames),
      unknown_senders_(options),
      keep_rejected_(options.keep_rejected),
      counters_(counters) {
    if (options.foreign) translator_.emplace(options.foreign);
}

std::size_t Splitter::split(const Message& m, Batch* into) {
    std::size_t kept = 0;
    std::size_t at = 0;
    do {  // an empty message is a datagram, too
        if (const std::size_t end = take_alike(m, at, into); end != at) kept = at = end;
        if (at != 0 && at >= m.size) break;
        if (const std::size_t end = take_one(m, at, into); end != 0) kept = end;
        at += m.segment;
    } while (at < m.size);
    return kept;
}

// The entry for a datagram at `data`: the low bits of its source, or of the port if that is the source.
Splitter::Judged& Splitter::judged(Endpoint sender, const std::byte* data) {
    const unsigned key =
        admission_.header_size() != 0 ? static_cast<unsigned>(data[source_end]) : sender.port;
    return judged_[key % judged_.size()];
}

// Records the datagrams from `at` on, as groups, as long as each is full, one like it has been judged, and it
// has valid frames at both ends. Returns the end of the last one, or `at`.
std::size_t Splitter::take_alike(const Message& m, std::size_t at, Batch* into) {
    const std::size_t before = admission_.header_size();
    if (into == nullptr || m.segment % frame_bytes != 0 || m.segment < before + frame_bytes) return at;
    const Endpoint sender{m.address, m.port};
    const auto frames = static_cast<std::uint32_t>((m.segment - before) / frame_bytes);
    const std::size_t most = std::min((m.size - at) / m.segment, into->room());
    std::size_t records = into->datagrams.size();
    std::size_t members = into->members.size();
    into->datagrams.resize(records + most);
    into->members.resize(members + most);
    // A copy: the compiler cannot know that the records do not change the original.
    const FrameTest test = test_;
    const FrameVersion version = admission_.frames().version;
    Judged* like = nullptr;
    Datagram* group = nullptr;
    std::size_t count = 0;
    for (; count < most; ++count, at += m.segment) {
        const std::byte* const data = m.data + at;
        // Both ends of a later datagram, which the kernel may have left in a lower cache.
        __builtin_prefetch(data + 8 * m.segment);
        __builtin_prefetch(data + 9 * m.segment - 1);
        const FrameWords header = load_frame(data);
        if (like == nullptr || (before != 0 && header.low != like->begin)) {
            like = &judged(sender, data);
            if (like->modules == nullptr || like->sender != sender) break;
            if (before != 0 && header.low != like->begin) break;
        }
        const std::byte* const first = data + before;
        const std::byte* const last = data + m.segment - frame_bytes;
        const std::uint16_t first_bdm = frame_bdm(first, version);
        const std::uint16_t last_bdm = frame_bdm(last, version);
        const Modules& modules = *like->modules;
        if (!test.both_pass(first, last) || !modules[first_bdm] || !modules[last_bdm]) break;
        const std::uint64_t first_time = frame_time(first);
        const std::uint64_t last_time = frame_time(last);
        const std::uint64_t sequence = before != 0 ? swap_bytes(header.high) : fingerprint_of(first, frames);
        const std::int16_t temperature = frame_temperature(last, version);
        const auto offset = static_cast<std::uint32_t>(first - into->data);
        // An end of stream, times that tell little, and what has no number are a matter of one datagram.
        const bool joins = before != 0 && like->flags == 0 && frames > 1 && first_time <= last_time;
        bool follows = group != nullptr && joins && like->group == group_;
        if (follows &&
            (sequence != like->number + 1 || first_time < like->first_time || last_time < like->last_time)) {
            follows = false;
            group = nullptr;
        }
        if (!joins) group = nullptr;
        if (follows) {
            Datagram& train = group[like->train];
            ++train.datagrams;
            train.end_first_time = first_time;
            train.end_last_time = last_time;
        } else {
            Datagram& train = into->datagrams[records++];
            train = {
                .sequence = sequence,
                .first_time = first_time,
                .last_time = last_time,
                .arrival_ns = m.arrival_ns,
                .offset = offset,
                .frames = frames,
                .timed_frames = static_cast<std::uint16_t>(frames),
                .bytes = static_cast<std::uint32_t>(m.segment),
                .address = m.address,
                .port = m.port,
                .source = like->source,
                .flags = like->flags,
                .first_bdm = first_bdm,
                .last_bdm = last_bdm,
                .temperature_16ths = temperature,
            };
            if (group == nullptr) {
                ++group_;
                train.first_member = static_cast<std::uint32_t>(members);
                if (joins) group = &train;
            } else {
                train.trains = 0;
                ++group->trains;
            }
            like->group = group_;
            like->train = group == nullptr ? 0 : static_cast<std::uint32_t>(&train - group);
        }
        like->number = sequence;
        like->first_time = first_time;
        like->last_time = last_time;
        if (group == nullptr) continue;
        into->members[members++] = {content_of(first_time, last_time, frames),
                                    offset,
                                    static_cast<std::uint16_t>(like->train),
                                    temperature,
                                    first_bdm,
                                    last_bdm};
        ++group->members;
    }
    into->datagrams.resize(records);
    into->members.resize(members);
    tally_.received += count;
    tally_.delivered += count;
    tally_.frames += count * frames;
    tally_.bytes += count * m.segment;
    return at;
}

// Records or counts the datagram at `at`, whatever it is. Returns its end; 0 if it was not recorded.
std::size_t Splitter::take_one(const Message& m, std::size_t at, Batch* into) {
    const Endpoint sender{m.address, m.port};
    const std::size_t size = std::min(m.segment, m.size - at);
    std::byte* data = m.data + at;
    ++tally_.received;
    tally_.bytes += size;
    DatagramHeader header;
    const Admitted admitted = admission_.judge(sender, data, size, header);
    if (admitted == Admitted::unknown_source) {
        ++tally_.unknown;
        unknown_senders_.heard(sender, data, size, m.arrival_ns);
        return 0;
    }
    const bool has_record = into != nullptr && into->room() > 0;
    if (admitted == Admitted::malformed) {
        ++tally_.malformed;
        if (!keep_rejected_ || !has_record) return 0;
        add_record(m, *into, data, size).admitted = admitted;
        return at + size;
    }
    if (!has_record) {
        ++tally_.dropped;
        tally_.frames_dropped += (size - admission_.header_size()) / frame_bytes;
        return 0;
    }
    // Frames must lie on the 16-byte grid. Only a datagram that follows a ragged one does not; it is the last
    // of its message, so there is room to move it.
    if (const std::size_t slip = at % frame_bytes; slip != 0) {
        std::memmove(data + frame_bytes - slip, data, size);
        data += frame_bytes - slip;
    }
    const std::byte* const first = data + admission_.header_size();
    Datagram& d = add_record(m, *into, first, size);
    admission_.describe(header, sender, first, size, d);
    ++tally_.delivered;
    tally_.frames += d.frames;
    Judged& like = judged(sender, data);
    like = {};
    like.sender = sender;
    like.begin = load_frame(data).low;
    like.source = header.source;
    like.flags = header.flags;
    like.modules = &admission_.modules_of(header, sender);
    return static_cast<std::size_t>(data - m.data) + size;
}

std::size_t Splitter::translate(const Message& m, std::size_t at, Batch* into) {
    const Endpoint sender{m.address, m.port};
    const std::size_t size = std::min(m.segment, m.size - at);
    const std::byte* const data = m.data + at;
    ++tally_.received;
    tally_.bytes += size;
    DatagramHeader header;
    std::size_t frames = 0;
    const auto parse = [&] { return translator_->parse(data, size, header, frames); };
    const Admitted admitted = admission_.judge(sender, header, parse);
    if (admitted == Admitted::unknown_source) {
        ++tally_.unknown;
        const bool good = parse() == Malformed::none;
        unknown_senders_.heard(sender, good ? &header : nullptr, good ? frames : 0, m.arrival_ns);
        return at + size;
    }
    std::byte* const out = into == nullptr ? nullptr : into->data + into->used;
    if (admitted == Admitted::malformed) {
        ++tally_.malformed;
        if (!keep_rejected_ || into == nullptr) return at + size;
        // Its beginning alone: too short for petacqd's own format, so that a replay finds it malformed, too.
        const std::size_t kept = std::min(size, frame_bytes - 1);
        std::copy_n(data, kept, out);
        add_record(m, *into, out, kept).admitted = admitted;
        into->used += frame_bytes;
        return at + size;
    }
    if (into == nullptr) {
        ++tally_.dropped;
        tally_.frames_dropped += frames;
        return at + size;
    }
    const std::uint64_t lost = translator_->translate(data, size, sender, m.arrival_ns, header, out);
    const std::size_t own_size = admission_.header_size() + frames * frame_bytes;
    Datagram& d = add_record(m, *into, out, own_size);
    admission_.describe(header, sender, out, own_size, d);
    d.lost = saturated(lost);
    into->used += frames * frame_bytes;
    ++tally_.delivered;
    tally_.frames += frames;
    return at + size;
}

Datagram& Splitter::add_record(const Message& m, Batch& into, const std::byte* data, std::size_t size) {
    assert(into.datagrams.size() < into.max_datagrams);
    Datagram& d = into.datagrams.emplace_back(Datagram());
    d.offset = static_cast<std::uint32_t>(data - into.data);
    d.bytes = static_cast<std::uint32_t>(size);
    d.arrival_ns = m.arrival_ns;
    d.address = m.address;
    d.port = m.port;
    return d;
}

void Splitter::publish_counts() {
    counters_.bytes_received.add(tally_.bytes);
    counters_.frames_delivered.add(tally_.frames);
    counters_.datagrams_delivered.add(tally_.delivered);
    if (tally_.delivered != tally_.received) {
        counters_.datagrams_malformed.add(tally_.malformed);
        counters_.datagrams_unknown_source.add(tally_.unknown);
        counters_.datagrams_dropped_no_buffer.add(tally_.dropped);
        counters_.frames_dropped_no_buffer.add(tally_.frames_dropped);
    }
    counters_.datagrams_received.add(tally_.received);
    tally_ = {};
}

}  // namespace petacq::net
