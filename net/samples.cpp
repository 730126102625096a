#include "net/samples.hpp"

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
    changed_ = true;
}

void Samples::publish() {
    wanted_ = true;
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
