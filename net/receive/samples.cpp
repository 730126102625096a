#include "net/receive/samples.hpp"

#include <algorithm>

namespace petacq::net {

bool Samples::has(const Endpoint& sender) const {
    return std::any_of(taken_.all.data(), taken_.all.data() + taken_.count, [&](const DatagramSample& s) {
        return s.sender.address == sender.address && s.sender.port == sender.port;
    });
}

void Samples::add(const DatagramSample& sample) {
    taken_.all.at(taken_.next) = sample;
    taken_.next = (taken_.next + 1) % most;
    taken_.count = std::min(taken_.count + 1, most);
    wanted_ = false;
    wants_next_ = sample.next_bytes == 0;
    changed_ = true;
}

const DatagramSample& Samples::latest() const {
    return taken_.all.at(latest_place());
}

void Samples::add_next(std::span<const std::byte> beginning) {
    DatagramSample& sample = taken_.all.at(latest_place());
    sample.next_bytes = std::min(beginning.size(), sample.next.size());
    std::copy_n(beginning.data(), sample.next_bytes, sample.next.data());
    wants_next_ = false;
    changed_ = true;
}

void Samples::add_translated(const DatagramHeader& header, std::span<const std::byte> frames) {
    DatagramSample& sample = taken_.all.at(latest_place());
    encode_header(header, sample.translated.data(), version_);
    const std::size_t bytes = std::min(frames.size(), sample.translated.size() - header_bytes);
    std::copy_n(frames.data(), bytes, sample.translated.data() + header_bytes);
    sample.translated_bytes = header_bytes + bytes;
    changed_ = true;
}

void Samples::publish() {
    wanted_ = true;
    wants_next_ = false;
    if (!changed_) return;
    changed_ = false;
    const MutexLock lock(mutex_);
    published_ = taken_;
}

std::vector<DatagramSample> Samples::published() const {
    const MutexLock lock(mutex_);
    const auto* const first = published_.all.data();
    return {first, first + published_.count};
}

}  // namespace petacq::net
