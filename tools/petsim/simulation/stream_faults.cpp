// Faults of the network and of a failing board in the finished datagrams of a source.
#include "net/wire.hpp"
#include "tools/petsim/simulation/stream.hpp"

#include <utility>

namespace petacq::sim {

namespace {

// A corrupted time is off by at least this much.
constexpr double wild_s = 60;

}  // namespace

SourceStream::Fate SourceStream::apply_faults(Packet& packet, bool spared) {
    const Faults& faults = options_.faults;
    const auto strikes = [&](double probability) {
        return !spared && probability > 0 && random_.chance(probability);
    };
    std::uint16_t flags = shift_flags_;
    if (strikes(faults.loss)) {
        ++statistics_.datagrams_lost;
        statistics_.frames_lost += packet.frames;
        statistics_.tags_lost += packet.tags;
        output_.spare.push_back(std::move(packet.bytes));
        leave_truth(flags | truth_lost);
        return Fate::lost;
    }
    double u = spared ? 1 : random_.uniform();
    for (std::size_t f = 0; f < field_count; ++f) {
        if (u < faults.corrupt[f]) {
            corrupt(packet, static_cast<Field>(f), flags);
            break;
        }
        u -= faults.corrupt[f];
    }
    if (strikes(faults.duplicate)) {
        packet.copies = 2;
        flags |= truth_duplicated;
        ++statistics_.duplicated;
    }
    const bool held = strikes(faults.reorder);
    if (held) flags |= truth_held_back;
    ++statistics_.datagrams_sent;
    statistics_.frames_sent += packet.frames;
    statistics_.tags_sent += packet.tags;
    statistics_.bytes_sent += packet.bytes.size() * packet.copies;
    leave_truth(flags);
    return held ? Fate::held : Fate::sent;
}

void SourceStream::leave_truth(unsigned flags) {
    if (!output_.want_truth) return;
    for (TruthRecord& record : records_) {
        record.flags |= static_cast<std::uint16_t>(flags);
        output_.truth.push_back(record);
    }
    records_.clear();
}

void SourceStream::push(Packet packet) {
    const std::uint64_t key = packet.key;
    packet.order = order_++;
    output_.packets.push_back(std::move(packet));
    if (held_.empty()) return;
    std::erase_if(held_, [&](Held& h) {
        if (--h.remaining > 0) return false;
        h.packet.key = key;
        h.packet.order = order_++;
        output_.packets.push_back(std::move(h.packet));
        return true;
    });
}

void SourceStream::release_held() {
    for (Held& h : held_) {
        h.packet.key = last_key_;
        h.packet.order = order_++;
        output_.packets.push_back(std::move(h.packet));
    }
    held_.clear();
}

void SourceStream::corrupt(Packet& packet, Field field, std::uint16_t& flags) {
    const std::uint16_t mark =
        truth_corrupted |
        static_cast<std::uint16_t>((static_cast<std::uint16_t>(field) + 1) << truth_field_shift);
    if (!breaks_datagram(field)) {
        if (packet.frames == 0) return;  // neither heartbeats nor tags have such fields
        ++statistics_.corrupted[static_cast<std::size_t>(field)];
        corrupt_frame(packet, field);
        return;
    }
    ++statistics_.corrupted[static_cast<std::size_t>(field)];
    flags |= mark;
    packet.malformed = true;
    if (field == Field::magic) {
        packet.bytes[random_.below(4)] ^= static_cast<std::byte>(1 + random_.below(255));
    } else if (field == Field::version) {
        packet.bytes[4] ^= static_cast<std::byte>(1 + random_.below(255));
    } else {
        packet.bytes.resize(packet.bytes.size() - 1 - random_.below(net::frame_bytes - 1));
    }
}

// A value other than `value`, and an invalid one if the field can hold one.
std::uint32_t SourceStream::other(std::uint32_t value, std::uint32_t valid, std::uint32_t representable) {
    if (valid < representable) return valid + random_.below(representable - valid);
    return (value + 1 + random_.below(representable - 1)) % representable;
}

void SourceStream::corrupt_frame(Packet& packet, Field field) {
    const config::Geometry& g = calibration_.geometry();
    const std::uint32_t frames = packet.frames + packet.tags;
    std::uint32_t index = random_.below(frames);
    const auto at = [&](std::uint32_t i) {
        return packet.bytes.data() + header_ + static_cast<std::size_t>(i) * net::frame_bytes;
    };
    while (net::decode_tag(at(index)).tag_marker == options_.wire.tag_marker)  // hits are corrupted, not tags
        index = (index + 1) % frames;
    std::byte* const place = at(index);
    net::Frame frame = net::decode_frame(place);
    const auto before =
        calibration_.convert(frame, options_.wire.head_marker, options_.wire.tail_marker).status;
    switch (field) {
        case Field::marker: {
            const auto flip = static_cast<std::uint8_t>(1 + random_.below(15));
            const bool would_be_tag = (frame.head_marker ^ flip) == options_.wire.tag_marker;
            if ((random_.bits() & 1) != 0 && !would_be_tag) {
                frame.head_marker ^= flip;
            } else {
                frame.tail_marker ^= flip;
            }
            break;
        }
        case Field::bdm:
            frame.bdm = static_cast<std::uint8_t>(other(frame.bdm, g.bdm_count, 256));
            break;
        case Field::du:
            frame.du = static_cast<std::uint8_t>(other(frame.du, g.du_count, 16));
            break;
        case Field::x:
            frame.x = static_cast<std::uint8_t>(other(frame.x, g.position_size, 256));
            break;
        case Field::time: {
            std::uint32_t bit = 0;
            while (bit < 61 && static_cast<double>(1ULL << bit) * tick_ps_ * 1e-12 < wild_s)
                ++bit;
            frame.time ^= 1ULL << (bit + random_.below(62 - bit));
            break;
        }
        default:
            frame.energy ^= static_cast<std::uint16_t>(1 + random_.below(65535));
            break;
    }
    net::encode_frame(frame, place);
    const Conversion c = calibration_.convert(frame, options_.wire.head_marker, options_.wire.tail_marker);
    if (convert_all_ || shift_flags_ != 0) --packet.by_status[static_cast<std::size_t>(before)];
    ++packet.by_status[static_cast<std::size_t>(c.status)];
    if (!output_.want_truth) return;
    TruthRecord& record = records_[index];
    record.flags |= static_cast<std::uint16_t>(truth_corrupted | (static_cast<std::uint16_t>(field) + 1)
                                                                     << truth_field_shift);
    record.crystal = no_crystal;
    if (c.status != Conversion::Status::good) return;
    record.crystal = c.crystal;
    record.energy = c.energy;
    record.time = c.time;
}

}  // namespace petacq::sim
