// One call of receive(), in the order of its stages:
//
//   prepare_slots   divides the free part of the batch into slots, one per message
//   recvmmsg        the kernel fills the slots; what does not fit a slot goes to its overflow area
//   process         moves a message to its final place, where that is not its slot
//   split           cuts a message into its datagrams and checks each
//   finish_call     publishes the counters, then passes on the batches that are full
#include "net/intake.hpp"

#include <netinet/udp.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

namespace petacq::net {

namespace {

constexpr std::size_t overflow_bytes = std::size_t{64} << 10;  // no message is longer
constexpr std::size_t first_stride = 2048;
// A call takes no more than this, so that its data are still in the cache when they are checked. Long
// messages, whose sizes vary, then come one per call and leave no holes.
constexpr std::size_t call_bytes = std::size_t{64} << 10;

constexpr std::size_t rounded_up(std::size_t bytes) {
    return (bytes + frame_bytes - 1) / frame_bytes * frame_bytes;
}

std::int64_t steady_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

std::size_t segment_size(msghdr& header, std::size_t size) {
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int segment = 0;
            std::memcpy(&segment, CMSG_DATA(c), sizeof segment);
            if (segment > 0) return std::min(static_cast<std::size_t>(segment), size);
        }
    }
    return size;
}

Intake::Intake(int fd, Endpoint local, const ReceiverOptions& options, BatchPool& pool, BatchQueue& output,
               ReceiverCounters& counters)
    : fd_(fd),
      pool_(pool),
      output_(output),
      token_(output),
      counters_(counters),
      admission_(options),
      keep_rejected_(options.keep_rejected),
      local_(local),
      overflow_(new std::byte[(max_messages + 1) * overflow_bytes]),  // pages are touched only when used
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

std::int64_t Intake::oldest_ns() const {
    return batch_ == nullptr || batch_->datagrams.empty() ? 0 : batch_->first_arrival_ns;
}

Batch* Intake::take_batch() {
    Batch* const batch = pool_.take();
    if (batch != nullptr) batch->to = local_;
    return batch;
}

std::byte* Intake::overflow(unsigned i) const {
    return overflow_.get() + i * overflow_bytes;
}

bool Intake::has_records(std::size_t count) const {
    return batch_->datagrams.size() + count <= batch_->max_datagrams;
}

Intake::Taken Intake::receive() {
    const unsigned wanted = prepare_slots();
    const int got = recvmmsg(fd_, headers_.data(), wanted, MSG_DONTWAIT, nullptr);
    if (got <= 0) return {};
    const auto count = static_cast<unsigned>(got);
    call_count_ = count;
    now_ns_ = steady_ns();

    std::size_t largest = 0;
    std::size_t in_slots = 0;
    for (unsigned i = 0; i < count; ++i) {
        const std::size_t size = headers_[i].msg_len;
        largest = std::max(largest, size);
        in_slots += rounded_up(std::min(size, call_stride_));
    }
    if (batch_ != nullptr) {
        packed_ = batch_->used;
        tail_ = batch_->used + count * call_stride_;
        packing_ = 2 * in_slots < count * call_stride_;
    }
    segments_ = 1;
    for (unsigned i = 0; i < count; ++i)
        process(i);

    // The stride shrinks slowly: only a long message in a short slot costs a copy.
    stride_ = std::clamp(rounded_up(largest), rounded_up(stride_ - stride_ / 8), overflow_bytes);
    const Taken taken{count, tally_.bytes, count == wanted};
    finish_call();
    return taken;
}

// Divides the free part of the batch into slots. Returns the number of messages that the call may take.
unsigned Intake::prepare_slots() {
    if (batch_ == nullptr) batch_ = take_batch();
    slots_batch_ = batch_;
    std::size_t count = max_messages;
    if (batch_ == nullptr) {
        // The pool is empty. Slots of size 0 send everything to the overflow areas, to be dropped.
        call_stride_ = 0;
        slots_ = overflow_.get();
    } else {
        call_stride_ = stride_;
        slots_ = batch_->data + batch_->used;
        count = std::min({count, (batch_->capacity - batch_->used) / stride_,
                          std::max<std::size_t>(call_bytes / stride_, 1),
                          (batch_->max_datagrams - batch_->datagrams.size()) / segments_});
        count = std::max<std::size_t>(count, 1);  // an empty batch always has room for one message
    }
    for (unsigned i = 0; i < count; ++i) {
        pieces_[2 * i] = {slots_ + i * call_stride_, call_stride_};
        headers_[i].msg_hdr.msg_namelen = sizeof(sockaddr_in);
        headers_[i].msg_hdr.msg_controllen = sizeof(Control);
    }
    return static_cast<unsigned>(count);
}

// Moves message i to its final place and splits it.
void Intake::process(unsigned i) {
    msghdr& header = headers_[i].msg_hdr;
    const std::size_t size = headers_[i].msg_len;
    const std::size_t segment = segment_size(header, size);
    const std::size_t segments = size == 0 ? 1 : (size + segment - 1) / segment;
    segments_ = std::max(segments_, segments);
    Message m{overflow(i), size, segment, ntohl(senders_[i].sin_addr.s_addr), ntohs(senders_[i].sin_port)};
    if (slots_batch_ == nullptr) {
        split(m, nullptr);
        return;
    }
    std::byte* const slot = slots_ + i * call_stride_;
    const std::size_t head = std::min(size, call_stride_);
    std::byte* const room = find_room(i, size, segments);
    m.data = room != nullptr ? room : overflow(max_messages);
    if (m.data != slot) std::memmove(m.data, slot, head);
    if (size > head) std::memcpy(m.data + head, overflow(i), size - head);

    const std::size_t end = split(m, room != nullptr ? batch_ : nullptr);
    if (end == 0) return;  // no datagram was kept: the room stays free
    const auto used = static_cast<std::size_t>(m.data - batch_->data) + rounded_up(end);
    assert(used <= batch_->capacity);
    batch_->used = std::max(batch_->used, used);
    if (batch_ == slots_batch_) {
        if (used > tail_) {
            tail_ = used;
        } else {
            packed_ = used;
        }
    }
}

// The place for message i in batch_, or in a fresh batch if it is full; nullptr if the pool is empty.
std::byte* Intake::find_room(unsigned i, std::size_t size, std::size_t segments) {
    if (batch_ == slots_batch_) {
        const std::size_t slot = static_cast<std::size_t>(slots_ - batch_->data) + i * call_stride_;
        const std::size_t here = packing_ ? packed_ : slot;
        // A message may extend to the next slot; the last one may use everything behind it.
        const bool free_behind = i + 1 == call_count_ && tail_ == slot + call_stride_;
        const std::size_t end = free_behind ? batch_->capacity : slot + call_stride_;
        if (has_records(segments)) {
            if (here + size <= end) return batch_->data + here;
            if (tail_ + size <= batch_->capacity) return batch_->data + tail_;
        }
    } else if (has_records(segments) && batch_->used + size <= batch_->capacity) {
        return batch_->data + batch_->used;
    }
    Batch* fresh = take_batch();
    if (fresh == nullptr) return nullptr;
    // Later messages of this call may lie in the old batch: pass it on at the end of the call.
    full_[full_count_++] = batch_;
    batch_ = fresh;
    return batch_->data;
}

// Records the datagrams of a message that lies in `into`; without a batch, counts them as dropped. Returns
// the end of the last recorded datagram, relative to m.data; 0 if none was recorded.
std::size_t Intake::split(const Message& m, Batch* into) {
    std::size_t kept = 0;
    std::size_t at = 0;
    do {
        const std::size_t size = std::min(m.segment, m.size - at);
        std::byte* data = m.data + at;
        at += m.segment;
        ++tally_.received;
        tally_.bytes += size;
        DatagramHeader header;
        const Admitted admitted = admission_.judge(m.address, data, size, header);
        const bool has_record = into != nullptr && into->datagrams.size() < into->max_datagrams;
        if (admitted != Admitted::yes) {
            ++(admitted == Admitted::malformed ? tally_.malformed : tally_.unknown);
            if (!keep_rejected_ || !has_record) continue;
            add_record(m, *into, data, size).rejected = true;
            kept = static_cast<std::size_t>(data - m.data) + size;
            continue;
        }
        if (!has_record) {
            ++tally_.dropped;
            tally_.frames_dropped += (size - admission_.header_size()) / frame_bytes;
            continue;
        }
        // Frames must lie on the 16-byte grid. Only a datagram that follows a ragged one does not; it is the
        // last of its message, so there is room to move it.
        if (const std::size_t slip = static_cast<std::size_t>(data - m.data) % frame_bytes; slip != 0) {
            std::memmove(data + frame_bytes - slip, data, size);
            data += frame_bytes - slip;
        }
        const std::byte* first = data + admission_.header_size();
        Datagram& d = add_record(m, *into, first, size);
        admission_.describe(header, first, size, d);
        ++tally_.delivered;
        tally_.frames += d.frames;
        kept = static_cast<std::size_t>(data - m.data) + size;
    } while (at < m.size);
    if (kept != 0) into->arrival_ns = now_ns_;
    return kept;
}

Datagram& Intake::add_record(const Message& m, Batch& into, const std::byte* data, std::size_t size) const {
    assert(into.datagrams.size() < into.max_datagrams);
    if (into.datagrams.empty()) into.first_arrival_ns = now_ns_;
    Datagram& d = into.datagrams.emplace_back();
    d.offset = static_cast<std::uint32_t>(data - into.data);
    d.bytes = static_cast<std::uint32_t>(size);
    // 32 bits hold 4 s: a batch is passed on long before that.
    d.arrival_ns = static_cast<std::uint32_t>(now_ns_ - into.first_arrival_ns);
    d.address = m.address;
    d.port = m.port;
    return d;
}

// Publishes the counters before the batches, so that every batch that is visible has been counted.
void Intake::finish_call() {
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
    for (std::size_t i = 0; i < full_count_; ++i)
        push(full_[i]);
    full_count_ = 0;
    if (batch_ != nullptr && (batch_->capacity - batch_->used < stride_ ||
                              batch_->max_datagrams - batch_->datagrams.size() < segments_)) {
        pass_on();
    }
}

void Intake::pass_on() {
    if (batch_ != nullptr) push(batch_);
    batch_ = nullptr;
}

void Intake::push(Batch* batch) {
    if (batch->datagrams.empty()) {
        pool_.put(batch);
        return;
    }
    counters_.batches.add();
    if (!output_.enqueue(token_, batch)) throw std::bad_alloc();
}

}  // namespace petacq::net
