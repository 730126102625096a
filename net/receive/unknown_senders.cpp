#include "net/receive/unknown_senders.hpp"

#include <algorithm>
#include <utility>

#include "net/receive/receiver.hpp"

namespace petacq::net {

UnknownSenders::UnknownSenders(const ReceiverOptions& options)
    : framing_(options.framing), frames_(options.frames) {
    for (List* const list : {&heard_, &published_}) {
        for (UnknownSender& s : list->all)
            s.bdms = Modules(config::max_bdm_count(frames_.version));
    }
}

void UnknownSender::add(const UnknownSender& other) {
    datagrams += other.datagrams;
    frames += other.frames;
    bdms |= other.bdms;
    first_ns = std::min(first_ns, other.first_ns);
    if (other.latest_ns > latest_ns) {
        latest_ns = other.latest_ns;
        sender = other.sender;
    }
}

void UnknownSenders::heard(Endpoint sender, const std::byte* data, std::size_t size, std::int64_t now_ns) {
    DatagramHeader header;
    const bool good = parse_datagram(framing_, frames_.version, data, size, header) == Malformed::none;
    const std::size_t before = framing_ == Framing::sequenced ? header_bytes : 0;
    const std::size_t frames = good ? (size - before) / frame_bytes : 0;
    UnknownSender& s = note(sender, good ? &header : nullptr, frames, now_ns);
    if (frames == 0) return;
    const std::byte* const frame = data + before + s.datagrams % frames * frame_bytes;
    if (frames_.has_markers(frame)) s.bdms.set(frame_bdm(frame, frames_.version));
}

void UnknownSenders::heard(Endpoint sender, const DatagramHeader* header, std::size_t frames,
                           std::int64_t now_ns) {
    note(sender, header, frames, now_ns);
}

UnknownSender& UnknownSenders::note(Endpoint sender, const DatagramHeader* header, std::size_t frames,
                                    std::int64_t now_ns) {
    changed_ = true;
    UnknownSender who;
    who.sender = sender;
    if (header != nullptr && framing_ == Framing::sequenced) who.id = header->source;
    UnknownSender& s = place_of(who, now_ns);
    s.sender = sender;
    s.latest_ns = now_ns;
    ++s.datagrams;
    s.frames += frames;
    return s;
}

UnknownSender& UnknownSenders::place_of(const UnknownSender& who, std::int64_t now_ns) {
    auto* const end = heard_.all.data() + heard_.count;
    auto* found =
        std::find_if(heard_.all.data(), end, [&](const UnknownSender& s) { return s.is_same(who); });
    if (found != end) return *found;
    if (heard_.count < most) {
        ++heard_.count;
    } else {
        found = std::min_element(heard_.all.data(), end, [](const UnknownSender& a, const UnknownSender& b) {
            return a.latest_ns < b.latest_ns;
        });
    }
    Modules bdms = std::move(found->bdms);  // keeps its room
    bdms.clear();
    *found = who;
    found->bdms = std::move(bdms);
    found->first_ns = now_ns;
    return *found;
}

void UnknownSenders::publish() {
    if (!changed_) return;
    changed_ = false;
    const MutexLock lock(mutex_);
    published_ = heard_;
}

std::vector<UnknownSender> UnknownSenders::published() const {
    const MutexLock lock(mutex_);
    const auto* const first = published_.all.data();
    return {first, first + published_.count};
}

}  // namespace petacq::net
