// One call of receive(), in the order of its stages:
//
//   prepare_slots   divides the free part of the batch into slots, one per message
//   recvmmsg        the kernel fills the slots; what does not fit a slot goes to its overflow area
//   process         moves a message to its final place, where that is not its slot
//   split           cuts a message into its datagrams and checks each (splitter.hpp)
//   set_rest_aside  only if no batch is free for the rest of the messages: the next call takes them
//   finish_call     publishes the counters, then the datagrams, then the time up to which all have been read
#include "net/receive/intake.hpp"

#include <netinet/udp.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <stdexcept>
#include <string>

#include "net/receive/udp_socket.hpp"

namespace petacq::net {

namespace {

constexpr std::size_t overflow_bytes = std::size_t{64} << 10;  // no message is longer
constexpr std::size_t first_stride = 2048;
// A call takes no more than this, so that its data are still in the cache when they are checked. Each call
// finds the code and the counters of the receiver outside the nearest caches, because the kernel has copied.
constexpr std::size_t max_call_bytes = std::size_t{512} << 10;
// Slots that are longer leave holes which cost a GPU a copy of its own for each message. They are used only
// while all messages have the same size.
constexpr std::size_t short_stride = 4080;
constexpr unsigned steady_from = 16;  // messages of the same size

constexpr std::size_t rounded_up(std::size_t bytes) {
    return (bytes + frame_bytes - 1) / frame_bytes * frame_bytes;
}

std::int64_t ns_of(const timespec& t) {
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

std::int64_t clock_ns(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return ns_of(t);
}

}  // namespace

MessageFacts facts_of(msghdr& header, std::size_t size) {
    MessageFacts facts{size, 0};
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int segment = 0;
            std::memcpy(&segment, CMSG_DATA(c), sizeof segment);
            if (segment > 0) facts.segment = std::min(static_cast<std::size_t>(segment), size);
        } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            timespec stamp{};
            std::memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
            facts.realtime_ns = ns_of(stamp);
        }
    }
    return facts;
}

Intake::Intake(int fd, Endpoint local, const ReceiverOptions& options, BatchPool& pool, BatchLane& output,
               ReceiverCounters& counters, OverloadGate* gate)
    : fd_(fd),
      pool_(pool),
      own_(pool.set_aside()),
      output_(output),
      counters_(counters),
      gate_(gate),
      splitter_(options, counters),
      samples_(options.frames.version),
      local_(local),
      // Pages are touched only when used.
      overflow_(new std::byte[max_messages * overflow_bytes + foreign_slack_bytes]),
      stride_(first_stride) {
    if (pool.batch_bytes() < overflow_bytes) {
        throw std::invalid_argument("batches of " + std::to_string(pool.batch_bytes()) +
                                    " bytes cannot hold every datagram; expected at least " +
                                    std::to_string(overflow_bytes));
    }
    for (unsigned i = 0; i < max_messages; ++i) {
        pieces_[2 * i + 1] = {overflow(i), overflow_bytes};
        msghdr& h = headers_[i].msg_hdr;
        h.msg_name = &senders_[i];
        h.msg_iov = &pieces_[2 * i];
        h.msg_iovlen = 2;
        h.msg_control = &controls_[i];
    }
}

Intake::~Intake() {
    if (batch_ != nullptr) pool_.put(batch_);
}

Batch* Intake::take_batch() {
    Batch* const batch = pool_.take(own_);
    if (batch != nullptr) batch->to = local_;
    return batch;
}

std::byte* Intake::overflow(unsigned i) const {
    return overflow_.get() + i * overflow_bytes;
}

bool Intake::has_records(std::size_t count) const {
    return count <= batch_->room();
}

// The arrival of a message on the steady clock. The kernel's stamp is on the wall clock, which may be set
// while a message waits: the result is never later than now, nor earlier than that of the message before,
// since a socket is a queue.
std::int64_t Intake::arrival_of(std::int64_t realtime_ns) {
    const std::int64_t stamp = realtime_ns == 0 ? read_ns_ : realtime_ns + steady_less_real_;
    arrival_ns_ = std::max(arrival_ns_, std::min(stamp, read_ns_));
    return arrival_ns_;
}

Intake::Taken Intake::receive(WithoutBatch without) {
    // Also while messages wait for a batch: what comes after them can be dropped.
    if (gate_ != nullptr) watch_overload();
    if (!holds_messages()) {
        if (batch_ == nullptr) batch_ = take_batch();
        const bool drops = gate_ != nullptr && gate_->dropping();
        if (batch_ == nullptr && without == WithoutBatch::wait && !drops) return {0, 0, true, true};
        if (read() == 0) return {};
    }
    const unsigned first = next_;
    while (next_ < call_count_ && process(next_, without))
        ++next_;
    if (holds_messages()) set_rest_aside();
    const Taken taken{next_ - first, splitter_.bytes(), more_ || holds_messages(), next_ == first};
    finish_call();
    // While the socket may hold more, only what came before the latest message is certain to have been read.
    // A message that was stamped earlier but comes later arrives, for the lane, after this time.
    if (!taken.more) arrival_ns_ = std::max(arrival_ns_, call_ns_);
    output_.advance(arrival_ns_);
    return taken;
}

// Reads messages into the slots of the batch, or to the overflow areas if there is none. Returns their
// number.
unsigned Intake::read() {
    const unsigned wanted = prepare_slots();
    call_ns_ = clock_ns(CLOCK_MONOTONIC);
    const int got = recvmmsg(fd_, headers_.data(), wanted, MSG_DONTWAIT, nullptr);
    if (got <= 0) {
        // The socket was empty.
        arrival_ns_ = std::max(arrival_ns_, call_ns_);
        output_.advance(arrival_ns_);
        return 0;
    }
    call_count_ = static_cast<unsigned>(got);
    next_ = 0;
    more_ = call_count_ == wanted;
    read_ns_ = clock_ns(CLOCK_MONOTONIC);
    steady_less_real_ = read_ns_ - clock_ns(CLOCK_REALTIME);

    std::size_t longest = 0;
    std::size_t in_slots = 0;
    for (unsigned i = 0; i < call_count_; ++i) {
        const std::size_t size = headers_[i].msg_len;
        longest = std::max(longest, size);
        in_slots += rounded_up(std::min(size, call_stride_));
        steady_ = 16 * size >= 15 * stride_ ? steady_ + 1 : 0;
    }
    if (batch_ != nullptr) {
        const std::size_t slots = call_count_ * call_stride_;
        packed_ = batch_->used;
        tail_ = batch_->used + slots;
        packing_ = 2 * in_slots < slots;
    }
    sampled_ = max_messages;
    if (samples_.wanted()) {
        take_sample();
    } else if (samples_.wants_next()) {
        take_next(0);
    }
    segments_ = 1;
    // The stride shrinks slowly: only a long message in a short slot costs a copy.
    stride_ = std::clamp(rounded_up(longest), rounded_up(stride_ - stride_ / 16), overflow_bytes);
    return call_count_;
}

Endpoint Intake::sender_of(unsigned i) {
    const sockaddr_in6& name = senders_[i];
    const std::uint16_t port = ntohs(name.sin6_port);  // at the same place in both families
    if (name.sin6_family == AF_INET) {
        // Where IPv6 has the flow.
        static_assert(offsetof(sockaddr_in, sin_addr) == offsetof(sockaddr_in6, sin6_flowinfo));
        return {ntohl(name.sin6_flowinfo), port};
    }
    const auto* const words = name.sin6_addr.s6_addr32;
    Numbered& known = numbered_.at(((words[3] ^ words[1]) * 0x9E3779B9U) >> 24);
    if (known.number == 0 || std::memcmp(&known.address, &name.sin6_addr, sizeof(in6_addr)) != 0)
        known = {name.sin6_addr, number_of(name.sin6_addr)};
    return {known.number, port};
}

// Copies bytes of message i from its slot and its overflow area.
void Intake::copy_of(unsigned i, std::size_t from, std::span<std::byte> to) const {
    for (std::byte& byte : to) {
        byte = from < call_stride_ ? slots_[i * call_stride_ + from] : overflow(i)[from - call_stride_];
        ++from;
    }
}

// Of the messages of this call, the first from a sender of whom there is no sample, else the last.
void Intake::take_sample() {
    unsigned i = 0;
    while (i + 1 < call_count_ && samples_.has(sender_of(i)))
        ++i;
    const MessageFacts facts = facts_of(headers_[i].msg_hdr, headers_[i].msg_len);
    DatagramSample sample;
    sample.sender = sender_of(i);
    sample.bytes = facts.segment;
    sample.arrival_ns = read_ns_;
    copy_of(i, 0, std::span(sample.head).first(std::min(facts.segment, sample.head.size())));
    if (const std::size_t size = headers_[i].msg_len; facts.segment < size) {
        sample.next_bytes = std::min(size - facts.segment, sample.next.size());
        copy_of(i, facts.segment, std::span(sample.next).first(sample.next_bytes));
    }
    samples_.add(sample);
    sampled_ = i;
    if (samples_.wants_next()) take_next(i + 1);
}

// The next datagram of the sender of the latest sample, if a message of this call from `first` on has it.
void Intake::take_next(unsigned first) {
    const Endpoint sender = samples_.latest().sender;
    for (unsigned i = first; i < call_count_; ++i) {
        if (sender_of(i) != sender) continue;
        std::array<std::byte, DatagramSample::max_next> beginning{};
        const std::size_t size =
            std::min(facts_of(headers_[i].msg_hdr, headers_[i].msg_len).segment, beginning.size());
        copy_of(i, 0, std::span(beginning).first(size));
        return samples_.add_next(std::span(beginning).first(size));
    }
}

// Divides the free part of the batch into slots. Returns the number of messages that the call may take.
unsigned Intake::prepare_slots() {
    slots_batch_ = batch_;
    std::size_t count = max_messages;
    if (batch_ == nullptr || splitter_.translates()) {
        // Slots of size 0 send everything to the overflow areas, to be dropped or translated.
        slots_batch_ = nullptr;
        call_stride_ = 0;
        slots_ = overflow_.get();
    } else {
        const std::size_t room = batch_->capacity - batch_->used;
        slots_ = batch_->data + batch_->used;
        count = std::min({count, room / stride_, max_call_bytes / stride_, batch_->room() / segments_});
        const bool several = stride_ <= short_stride || steady_ >= steady_from;
        if (several && count > 1) {
            call_stride_ = stride_;
        } else {
            count = 1;
            call_stride_ = std::min(room, overflow_bytes);
        }
    }
    for (unsigned i = 0; i < count; ++i) {
        pieces_[2 * i] = {slots_ + i * call_stride_, call_stride_};
        headers_[i].msg_hdr.msg_namelen = sizeof(sockaddr_in6);
        headers_[i].msg_hdr.msg_controllen = sizeof(ReceiveControl);
    }
    return static_cast<unsigned>(count);
}

void Intake::watch_overload() {
    if (!gate_->pool_is_low()) return;
    const SocketMemory memory = memory_of(fd_);
    if (2 * std::size_t{memory.queued} >= memory.capacity) gate_->press();
}

// Counts the datagrams of message i as dropped.
void Intake::drop(unsigned i, const Splitter::Message& m) {
    if (!splitter_.translates()) {
        Splitter::Message joined = m;
        joined.data = m.size <= call_stride_ ? slots_ + i * call_stride_ : join(i);
        splitter_.split(joined, nullptr);
        return;
    }
    for (std::size_t at = 0; at < std::max<std::size_t>(m.size, 1);)
        at = std::max(splitter_.translate(m, at, nullptr), at + 1);
}

// Moves message i to its final place and splits it. Returns false if there is no room and it should wait.
bool Intake::process(unsigned i, WithoutBatch without) {
    msghdr& header = headers_[i].msg_hdr;
    const std::size_t size = headers_[i].msg_len;
    const MessageFacts facts = facts_of(header, size);
    const std::size_t segments = size == 0 ? 1 : (size + facts.segment - 1) / facts.segment;
    segments_ = std::max(segments_, segments);
    const Endpoint sender = sender_of(i);
    Splitter::Message m{overflow(i),    size,        facts.segment,
                        sender.address, sender.port, arrival_of(facts.realtime_ns)};
    if (gate_ != nullptr && translated_ == 0 && !gate_->keeps(m.arrival_ns)) {
        drop(i, m);
        return true;
    }
    if (splitter_.translates()) return translate(m, without);
    std::byte* const room = find_room(i, size, segments);
    if (room == nullptr && without == WithoutBatch::wait) return false;
    if (room == nullptr) {
        drop(i, m);
        return true;
    }
    m.data = room;
    const std::byte* const slot = slots_ + i * call_stride_;
    const std::size_t head = std::min(size, call_stride_);
    if (room != slot) std::memmove(room, slot, head);
    if (size > head) std::memcpy(room + head, overflow(i), size - head);

    const std::size_t end = splitter_.split(m, batch_);
    if (end == 0) return true;  // no datagram was kept: the room stays free
    const auto used = static_cast<std::size_t>(room - batch_->data) + rounded_up(end);
    assert(used <= batch_->capacity);
    batch_->used = std::max(batch_->used, used);
    if (batch_ == slots_batch_) {
        if (used > tail_) {
            tail_ = used;
        } else {
            packed_ = used;
        }
    }
    return true;
}

// Translates the datagrams of a message. Returns false if there is no room for the next and it should wait.
bool Intake::translate(const Splitter::Message& m, WithoutBatch without) {
    do {  // an empty message is a datagram, too
        const std::size_t need = splitter_.room_for(std::min(m.segment, m.size - translated_));
        const bool full = batch_ != nullptr && (batch_->capacity - batch_->used < need || !has_records(1));
        if (full) {
            splitter_.publish_counts();
            finish(batch_);
        }
        if (full || batch_ == nullptr) batch_ = take_batch();
        if (batch_ == nullptr && without == WithoutBatch::wait) return false;
        const bool sampled = next_ == sampled_ && translated_ == 0 && batch_ != nullptr;
        const std::size_t records = batch_ == nullptr ? 0 : batch_->datagrams.size();
        translated_ = splitter_.translate(m, translated_, batch_);
        if (sampled && batch_->datagrams.size() > records) add_translated_sample(batch_->datagrams.back());
    } while (translated_ < m.size);
    translated_ = 0;
    return true;
}

void Intake::add_translated_sample(const Datagram& d) {
    if (d.admitted != Admitted::yes) return;
    samples_.add_translated({d.flags, d.source, splitter_.sequenced() ? d.sequence : 0},
                            {batch_->data + d.offset, d.frames * frame_bytes});
}

// The place for message i in batch_, or in a fresh batch if it is full; nullptr if no batch is free.
std::byte* Intake::find_room(unsigned i, std::size_t size, std::size_t segments) {
    if (batch_ != nullptr && batch_ == slots_batch_) {
        const std::size_t slot = static_cast<std::size_t>(slots_ - batch_->data) + i * call_stride_;
        const std::size_t here = packing_ ? packed_ : slot;
        // A message may extend to the next slot; the last one may use everything behind it.
        const bool free_behind = i + 1 == call_count_ && tail_ == slot + call_stride_;
        const std::size_t end = free_behind ? batch_->capacity : slot + call_stride_;
        if (has_records(segments)) {
            if (here + size <= end) return batch_->data + here;
            if (tail_ + size <= batch_->capacity) return batch_->data + tail_;
        }
    } else if (batch_ != nullptr && has_records(segments) && batch_->used + size <= batch_->capacity) {
        return batch_->data + batch_->used;
    }
    // Later messages of this call may lie in the old batch: it is passed on at the end of the call.
    if (batch_ != nullptr) full_[full_count_++] = batch_;
    batch_ = take_batch();
    return batch_ == nullptr ? nullptr : batch_->data;
}

// Joins message i in its overflow area.
std::byte* Intake::join(unsigned i) {
    std::byte* const area = overflow(i);
    const std::size_t size = headers_[i].msg_len;
    const std::size_t head = std::min(size, call_stride_);
    std::memmove(area + head, area, size - head);
    std::memcpy(area, slots_ + i * call_stride_, head);
    return area;
}

// The messages that have not been processed leave their slots: the batch may be passed on.
void Intake::set_rest_aside() {
    if (slots_batch_ == nullptr) return;
    for (unsigned i = next_; i < call_count_; ++i)
        join(i);
    slots_batch_ = nullptr;
    slots_ = overflow_.get();
    call_stride_ = 0;
}

// Publishes the counters first, so that every datagram that is visible has been counted.
void Intake::finish_call() {
    splitter_.publish_counts();
    for (std::size_t i = 0; i < full_count_; ++i)
        finish(full_[i]);
    full_count_ = 0;
    if (batch_ == nullptr) return;
    if (batch_->capacity - batch_->used < stride_ || batch_->room() < segments_) {
        pass_on();
    } else {
        output_.publish(*batch_);
    }
}

void Intake::pass_on() {
    if (batch_ != nullptr) finish(batch_);
    batch_ = nullptr;
}

void Intake::finish(Batch* batch) {
    if (batch->datagrams.empty()) {
        pool_.put(batch);
        return;
    }
    counters_.batches.add();
    output_.finish(*batch);
}

}  // namespace petacq::net
