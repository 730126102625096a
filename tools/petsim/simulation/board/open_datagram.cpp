#include "tools/petsim/simulation/board/open_datagram.hpp"

#include <cmath>
#include <utility>

namespace petacq::sim {

OpenDatagram::OpenDatagram(const Options& options, const InverseCalibration& calibration,
                           const Detector* detector, double tick_ps, StreamOutput& output)
    : options_(options),
      calibration_(calibration),
      detector_(detector),
      output_(output),
      tick_ps_(tick_ps),
      convert_all_(detector != nullptr || options.physics.block_pile_up_ns > 0 ||
                   hits_several_crystals(options)),
      header_(options.wire.framing == net::Framing::sequenced ? net::header_bytes : 0),
      capacity_(static_cast<std::uint32_t>((options.wire.payload - header_) / net::frame_bytes)) {}

void OpenDatagram::begin(const ClockShift& shift) {
    buffer_ = output_.take_buffer();
    buffer_.resize(header_ + static_cast<std::size_t>(capacity_) * net::frame_bytes);
    shift_ = shift;
    truth_.clear();
}

void OpenDatagram::add(const Hit& hit, std::uint16_t hits, std::int16_t temperature_16ths) {
    const std::uint32_t du_count = calibration_.geometry().du_count;
    net::Frame frame{};
    frame.head_marker = options_.wire.head_marker;
    frame.tail_marker = options_.wire.tail_marker;
    frame.du = static_cast<std::uint8_t>(hit.unit % du_count);
    frame.bdm = static_cast<std::uint16_t>(hit.unit / du_count);
    frame.time = hit.raw_time + shift_.ticks;
    frame.x = hit.x;
    frame.y = hit.y;
    frame.energy = hit.adc;
    frame.temperature_16ths = temperature_16ths;
    net::encode_frame(frame, next_frame(), calibration_.frame_version());
    Conversion found{Conversion::Status::good, hit.crystal, hit.energy, 0};
    if (convert_all_ || shift_.flags != 0)  // a shifted time may leave the range
        found = calibration_.convert(frame, frame.head_marker, frame.tail_marker);
    ++by_status_[static_cast<std::size_t>(found.status)];
    ++count_;
    if (!output_.want_truth) return;
    truth_.push_back(truth_of(hit, frame, found));
    truth_.back().hits = hits;
}

void OpenDatagram::add(const net::TagFrame& tag) {
    net::TagFrame frame = tag;
    frame.time += shift_.ticks;
    net::encode_tag(frame, next_frame(), calibration_.frame_version());
    ++count_;
    ++tags_;
    if (!output_.want_truth) return;
    TruthRecord& record = truth_.emplace_back();
    record.annihilation = truth_of_tag(tag.channel, tag.kind, tag.value);
    record.time = frame.time;
    record.crystal = no_crystal;
    record.flags = truth_tag;
}

Packet OpenDatagram::take() {
    if (count_ == 0) begin({});
    Packet packet;
    packet.flags = std::exchange(shift_, {}).flags;
    packet.tags = std::exchange(tags_, 0);
    packet.frames = count_ - packet.tags;
    packet.by_status = std::exchange(by_status_, {});
    packet.bytes = std::move(buffer_);
    packet.bytes.resize(header_ + static_cast<std::size_t>(std::exchange(count_, 0)) * net::frame_bytes);
    return packet;
}

TruthRecord OpenDatagram::truth_of(const Hit& hit, const net::Frame& frame, const Conversion& found) const {
    const bool good = found.status == Conversion::Status::good;
    const std::uint32_t whose = good ? found.crystal : hit.crystal;
    TruthRecord record;
    record.annihilation = hit.annihilation;
    record.crystal = good ? found.crystal : no_crystal;
    record.energy = good ? found.energy : hit.energy;
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
    record.object_scatters = hit.history & history_scatters;
    record.photon = (hit.history & ~history_gain_step) >> history_photon_shift;
    return record;
}

/// What a daemon with the perfect calibration would add to raw times.
std::int64_t OpenDatagram::true_offset(std::uint32_t crystal) const {
    if (detector_ == nullptr) return calibration_.channel(crystal).time_offset;
    return std::llround(detector_->crystals[crystal].time_offset_ps / tick_ps_);
}

}  // namespace petacq::sim
