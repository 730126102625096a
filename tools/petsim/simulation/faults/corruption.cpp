#include "tools/petsim/simulation/faults/corruption.hpp"

#include <cstddef>

namespace petacq::sim {

namespace {

// A corrupted time is off by at least this much.
constexpr double wild_s = 60;

// A value other than `value`, and an invalid one if the field can hold one.
std::uint32_t other(std::uint32_t value, std::uint32_t valid, std::uint32_t representable, Random& random) {
    if (valid < representable) return valid + random.below(representable - valid);
    return (value + 1 + random.below(representable - 1)) % representable;
}

std::uint16_t mark_of(Field field) {
    return static_cast<std::uint16_t>(truth_corrupted | (static_cast<unsigned>(field) + 1)
                                                            << truth_field_shift);
}

}  // namespace

Corruption::Corruption(const Options& options, const InverseCalibration& calibration, double tick_ps)
    : options_(options), calibration_(calibration) {
    while (lowest_time_bit_ < 61 && static_cast<double>(1ULL << lowest_time_bit_) * tick_ps * 1e-12 < wild_s)
        ++lowest_time_bit_;
}

std::optional<Field> Corruption::draw(Random& random) const {
    double u = random.uniform();
    for (std::size_t f = 0; f < field_count; ++f) {
        if (u < options_.faults.corrupt[f]) return static_cast<Field>(f);
        u -= options_.faults.corrupt[f];
    }
    return std::nullopt;
}

bool Corruption::apply(Field field, Packet& packet, std::span<TruthRecord> truth, Random& random) const {
    if (breaks_datagram(field)) {
        break_datagram(field, packet, random);
    } else if (packet.frames > 0) {
        corrupt_frame(field, packet, truth, random);
    } else {
        return false;
    }
    return true;
}

void Corruption::break_datagram(Field field, Packet& packet, Random& random) {
    packet.flags |= mark_of(field);
    packet.malformed = true;
    if (field == Field::magic) {
        packet.bytes[random.below(4)] ^= static_cast<std::byte>(1 + random.below(255));
    } else if (field == Field::version) {
        packet.bytes[4] ^= static_cast<std::byte>(1 + random.below(255));
    } else {
        packet.bytes.resize(packet.bytes.size() - 1 - random.below(net::frame_bytes - 1));
    }
}

void Corruption::corrupt_frame(Field field, Packet& packet, std::span<TruthRecord> truth,
                               Random& random) const {
    const std::uint32_t frames = packet.frames + packet.tags;
    const std::size_t header = packet.bytes.size() - std::size_t{frames} * net::frame_bytes;
    std::uint32_t index = random.below(frames);
    const auto at = [&](std::uint32_t i) {
        return packet.bytes.data() + header + std::size_t{i} * net::frame_bytes;
    };
    const net::FrameVersion version = calibration_.frame_version();
    while (net::decode_tag(at(index), version).tag_marker ==
           options_.wire.tag_marker)  // hits are corrupted, not tags
        index = (index + 1) % frames;
    net::Frame frame = net::decode_frame(at(index), version);
    --packet.by_status[static_cast<std::size_t>(convert(frame).status)];
    change(frame, field, random);
    net::encode_frame(frame, at(index), version);
    const Conversion c = convert(frame);
    ++packet.by_status[static_cast<std::size_t>(c.status)];
    if (truth.empty()) return;
    TruthRecord& record = truth[index];
    record.flags |= mark_of(field);
    record.crystal = no_crystal;
    if (c.status != Conversion::Status::good) return;
    record.crystal = c.crystal;
    record.energy = c.energy;
    record.time = c.time;
}

void Corruption::change(net::Frame& frame, Field field, Random& random) const {
    const config::Geometry& g = calibration_.geometry();
    const net::FrameVersion version = calibration_.frame_version();
    switch (field) {
        case Field::marker: {
            auto flip = static_cast<std::uint8_t>(1 + random.below(15));
            const bool would_be_tag = (frame.head_marker ^ flip) == options_.wire.tag_marker;
            if (version != net::FrameVersion::one) {  // without a tail marker
                if (would_be_tag) flip = static_cast<std::uint8_t>(flip % 15 + 1);
                frame.head_marker ^= flip;
            } else if ((random.bits() & 1) != 0 && !would_be_tag) {
                frame.head_marker ^= flip;
            } else {
                frame.tail_marker ^= flip;
            }
            break;
        }
        case Field::bdm:
            frame.bdm = static_cast<std::uint16_t>(
                other(frame.bdm, g.bdm_count, config::max_bdm_count(version), random));
            break;
        case Field::du:
            frame.du = static_cast<std::uint8_t>(other(frame.du, g.du_count, 16, random));
            break;
        case Field::x:
            frame.x = static_cast<std::uint8_t>(other(frame.x, g.position_size, 256, random));
            break;
        case Field::time:
            frame.time ^= 1ULL << (lowest_time_bit_ + random.below(62 - lowest_time_bit_));
            break;
        default:
            frame.energy ^= static_cast<std::uint16_t>(1 + random.below(65535));
            break;
    }
}

}  // namespace petacq::sim
