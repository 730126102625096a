#include "net/replayer.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <numeric>

namespace petacq::net {

namespace {

// Short, because the pool is empty only while the pipeline is the slowest stage.
constexpr auto pool_wait = std::chrono::microseconds(50);

}  // namespace

std::size_t joined_length(std::span<const std::byte> payload) {
    // All have one length except the last, which may be shorter, so the headers are at multiples of that
    // length. Some headers may be damaged, and their sequence numbers need not be consecutive.
    const std::size_t whole = payload.size() / frame_bytes * frame_bytes;
    std::size_t length = 0;
    for (std::size_t at = header_bytes; at + header_bytes <= whole && length != frame_bytes;
         at += frame_bytes) {
        DatagramHeader header;
        if (parse_datagram(Framing::sequenced, payload.data() + at, header_bytes, header) ==
            Malformed::none) {
            length = std::gcd(length, at);
        }
    }
    return length == 0 ? payload.size() : length;
}

Replayer::Replayer(const std::vector<std::string>& files, const ReceiverOptions& options,
                   const std::vector<std::uint16_t>& ports, BatchPool& pool, BatchQueue& output)
    : framing_(options.framing),
      admission_(options),
      flush_interval_ns_(std::int64_t{options.flush_interval_ms} * 1'000'000),
      pool_(pool),
      output_(output),
      token_(output) {
    for (const std::string& file : files)
        inputs_.push_back(std::unique_ptr<Input>(new Input{PcapReader(file, ports), {}, false}));
}

Replayer::~Replayer() {
    stop();
}

void Replayer::start() {
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), "replay");
}

void Replayer::stop() {
    stopping_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
}

PcapCounts Replayer::packets() const {
    PcapCounts all;
    for (const auto& input : inputs_) {
        const PcapCounts& c = input->reader.counts();
        all.packets += c.packets;
        all.datagrams += c.datagrams;
        all.other += c.other;
        all.fragments += c.fragments;
        all.fragments_incomplete += c.fragments_incomplete;
    }
    return all;
}

std::uint64_t Replayer::bytes() const {
    std::uint64_t sum = 0;
    for (const auto& input : inputs_)
        sum += input->reader.size();
    return sum;
}

void Replayer::run() {
    try {
        for (const auto& input : inputs_)
            input->has_datagram = input->reader.next(input->datagram);
        while (Input* const input = earliest()) {
            if (stopping_.load(std::memory_order_relaxed)) break;
            take(input->datagram);
            const std::uint64_t before = input->reader.position();
            input->has_datagram = input->reader.next(input->datagram);
            read_.add(input->reader.position() - before);
        }
    } catch (const std::exception& e) {
        failure_ = e.what();
    }
    pass_on();
    done_.store(true, std::memory_order_release);
}

/// The input whose next datagram arrived first; of several with equal times, the one named first.
Replayer::Input* Replayer::earliest() {
    Input* found = nullptr;
    for (const auto& input : inputs_) {
        if (input->has_datagram && (found == nullptr || input->datagram.time_ns < found->datagram.time_ns)) {
            found = input.get();
        }
    }
    return found;
}

void Replayer::take(const CapturedDatagram& datagram) {
    std::span<const std::byte> rest = datagram.payload;
    const std::size_t length = framing_ == Framing::sequenced ? joined_length(rest) : rest.size();
    do {
        const std::size_t size = std::min(length, rest.size());
        take_one(datagram, rest.first(size));
        rest = rest.subspan(size);
    } while (!rest.empty());
}

void Replayer::take_one(const CapturedDatagram& datagram, std::span<const std::byte> payload) {
    counters_.bytes_received.add(payload.size());
    DatagramHeader header;
    switch (admission_.judge(datagram.from.address, payload.data(), payload.size(), header)) {
        case Admitted::malformed:
            counters_.datagrams_malformed.add();
            break;
        case Admitted::unknown_source:
            counters_.datagrams_unknown_source.add();
            break;
        case Admitted::yes:
            if (!append(datagram, payload, header)) return;
            break;
    }
    counters_.datagrams_received.add();
}

/// Appends an accepted datagram to the batch. False if stop() was called while the pool was empty.
bool Replayer::append(const CapturedDatagram& datagram, std::span<const std::byte> payload,
                      const DatagramHeader& header) {
    const std::span<const std::byte> frames = payload.subspan(admission_.header_size());
    if (batch_ != nullptr && datagram.time_ns - batch_->first_arrival_ns >= flush_interval_ns_) pass_on();
    if (!make_room(frames.size())) return false;
    std::byte* const first = batch_->data + batch_->used;
    std::memcpy(first, frames.data(), frames.size());
    if (batch_->datagrams.empty()) {
        batch_->first_arrival_ns = datagram.time_ns;
        batch_->arrival_ns = datagram.time_ns;
        batch_->to = datagram.to;
    }
    Datagram& d = batch_->datagrams.emplace_back();
    admission_.describe(header, first, payload.size(), d);
    d.offset = static_cast<std::uint32_t>(batch_->used);
    d.bytes = static_cast<std::uint32_t>(payload.size());
    d.arrival_ns =
        static_cast<std::uint32_t>(std::max<std::int64_t>(datagram.time_ns - batch_->first_arrival_ns, 0));
    d.address = datagram.from.address;
    d.port = datagram.from.port;
    batch_->arrival_ns = std::max(batch_->arrival_ns, datagram.time_ns);
    batch_->used += frames.size();
    counters_.frames_delivered.add(d.frames);
    counters_.datagrams_delivered.add();
    return true;
}

/// Waits for a batch with room. False if stop() was called meanwhile.
bool Replayer::make_room(std::size_t bytes) {
    if (batch_ != nullptr &&
        (batch_->capacity - batch_->used < bytes || batch_->datagrams.size() == batch_->max_datagrams)) {
        pass_on();
    }
    while (batch_ == nullptr) {
        if (stopping_.load(std::memory_order_relaxed)) return false;
        batch_ = pool_.take();
        if (batch_ == nullptr) std::this_thread::sleep_for(pool_wait);
    }
    return true;
}

void Replayer::pass_on() {
    if (batch_ == nullptr) return;
    // Set before the batch is passed on: a consumer that finds the queue empty has seen all earlier arrivals.
    clock_.store(std::max(clock_.load(std::memory_order_relaxed), batch_->first_arrival_ns),
                 std::memory_order_release);
    counters_.batches.add();
    if (!output_.enqueue(token_, batch_)) throw std::bad_alloc();
    batch_ = nullptr;
}

}  // namespace petacq::net
