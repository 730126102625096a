#include "net/pcap/replayer.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "net/base/thread.hpp"

namespace petacq::net {

namespace {

// Short, because the pool is empty only while the pipeline is the slowest stage.
constexpr std::size_t max_payload_bytes = 65'535;
constexpr auto pool_wait = std::chrono::microseconds(50);

}  // namespace

std::size_t joined_length(std::span<const std::byte> payload, FrameVersion version) {
    // All have one length except the last, which may be shorter, so the headers are at multiples of that
    // length. Some headers may be damaged, and their sequence numbers need not be consecutive.
    const std::size_t whole = payload.size() / frame_bytes * frame_bytes;
    std::size_t length = 0;
    for (std::size_t at = header_bytes; at + header_bytes <= whole && length != frame_bytes;
         at += frame_bytes) {
        DatagramHeader header;
        if (parse_datagram(Framing::sequenced, version, payload.data() + at, header_bytes, header) ==
            Malformed::none) {
            length = std::gcd(length, at);
        }
    }
    return length == 0 ? payload.size() : length;
}

Replayer::Replayer(const std::vector<std::string>& files, const ReceiverOptions& options,
                   const std::vector<std::uint16_t>& ports, BatchPool& pool, BatchLane& output)
    : framing_(options.framing), admission_(options), pool_(pool), output_(output) {
    if (options.foreign) {
        translator_.emplace(options.foreign);
        foreign_.resize(max_payload_bytes + foreign_slack_bytes);
    }
    for (const std::string& file : files)
        inputs_.push_back(std::unique_ptr<Input>(new Input{PcapReader(file, ports), {}, false}));
    try {
        for (const auto& input : inputs_)
            input->has_datagram = input->reader.next(input->datagram);
        if (const Input* const first = earliest()) first_time_ns_ = first->datagram.time_ns;
    } catch (const std::exception& e) {
        failure_ = e.what();
    }
}

Replayer::~Replayer() {
    stop();
}

void Replayer::start() {
    thread_ = start_thread("replay", [this] { run(); });
}

void Replayer::stop() {
    stopping_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
}

PcapCounts Replayer::packets() const {
    PcapCounts all;
    for (const auto& input : inputs_)
        all += input->reader.counts();
    return all;
}

std::optional<std::uint64_t> Replayer::dropped() const {
    std::optional<std::uint64_t> all;
    for (const auto& input : inputs_)
        if (const auto dropped = input->reader.dropped()) all = all.value_or(0) + *dropped;
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
        while (Input* const input = failure_.empty() ? earliest() : nullptr) {
            if (stopping_.load(std::memory_order_relaxed)) break;
            take(*input);
            const std::uint64_t before = input->reader.position();
            input->has_datagram = input->reader.next(input->datagram);
            read_.add(input->reader.position() - before);
        }
    } catch (const std::exception& e) {
        failure_ = e.what();
    }
    finish();
    output_.close();
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

void Replayer::take(const Input& input) {
    const CapturedDatagram& datagram = input.datagram;
    if (translator_ && !input.reader.is_one_datagram_each()) {
        translate(datagram);
        return;
    }
    std::span<const std::byte> rest = datagram.payload;
    const bool may_be_joined = framing_ == Framing::sequenced && !input.reader.is_one_datagram_each();
    const std::size_t length = may_be_joined ? joined_length(rest, admission_.frames().version) : rest.size();
    do {
        const std::size_t size = std::min(length, rest.size());
        take_one(datagram, rest.first(size));
        rest = rest.subspan(size);
    } while (!rest.empty());
}

void Replayer::take_one(const CapturedDatagram& datagram, std::span<const std::byte> payload) {
    DatagramHeader header;
    const Admitted admitted = admission_.judge(datagram.from, payload.data(), payload.size(), header);
    const std::span<const std::byte> frames =
        admitted == Admitted::yes ? payload.subspan(admission_.header_size()) : payload.first(0);
    if (!make_room(frames.size())) return;
    Datagram& d = add_record(datagram, admitted);
    std::byte* const first = batch_->data + d.offset;
    std::copy(frames.begin(), frames.end(), first);
    if (admitted == Admitted::yes) admission_.describe(header, datagram.from, first, payload.size(), d);
    d.bytes = static_cast<std::uint32_t>(payload.size());
    batch_->used = d.offset + frames.size();
    batch_->join_last();
}

/// The same for a datagram of a foreign format.
void Replayer::translate(const CapturedDatagram& datagram) {
    const std::size_t size = std::min(datagram.payload.size(), max_payload_bytes);
    std::copy_n(datagram.payload.begin(), size, foreign_.begin());
    DatagramHeader header;
    std::size_t frames = 0;
    const auto parse = [&] { return translator_->parse(foreign_.data(), size, header, frames); };
    const Admitted admitted = admission_.judge(datagram.from, header, parse);
    if (admitted != Admitted::yes) frames = 0;
    if (!make_room(frames * frame_bytes)) return;
    Datagram& d = add_record(datagram, admitted);
    std::byte* const first = batch_->data + d.offset;
    d.bytes = static_cast<std::uint32_t>(size);
    if (admitted != Admitted::yes) return;
    d.lost =
        saturated(translator_->translate(foreign_.data(), size, datagram.from, d.arrival_ns, header, first));
    const std::size_t own_size = admission_.header_size() + frames * frame_bytes;
    admission_.describe(header, datagram.from, first, own_size, d);
    d.bytes = static_cast<std::uint32_t>(own_size);
    batch_->used = d.offset + frames * frame_bytes;
    batch_->join_last();
}

/// A record at the end of the batch, for data that follow.
Datagram& Replayer::add_record(const CapturedDatagram& datagram, Admitted admitted) {
    if (batch_->datagrams.empty()) batch_->to = datagram.to;
    Datagram& d = batch_->datagrams.emplace_back(Datagram());
    d.admitted = admitted;
    // Frames lie as a receiver would have left them, behind their header.
    d.offset = static_cast<std::uint32_t>(batch_->used + admission_.header_size());
    d.arrival_ns = now_ns_ = std::max(now_ns_, datagram.time_ns);
    d.address = datagram.from.address;
    d.port = datagram.from.port;
    return d;
}

/// Waits for a batch with room. A datagram that joins another takes up to two places in the list of members.
/// False if stop() was called meanwhile.
bool Replayer::make_room(std::size_t bytes) {
    if (batch_ != nullptr &&
        (batch_->capacity - batch_->used < bytes + admission_.header_size() || batch_->room() < 2)) {
        finish();
    }
    while (batch_ == nullptr) {
        if (stopping_.load(std::memory_order_relaxed)) return false;
        batch_ = pool_.take();
        if (batch_ == nullptr) std::this_thread::sleep_for(pool_wait);
    }
    return true;
}

void Replayer::finish() {
    if (batch_ == nullptr) return;
    if (batch_->datagrams.empty()) {
        pool_.put(batch_);
    } else {
        output_.finish(*batch_);
        output_.advance(now_ns_);
    }
    batch_ = nullptr;
}

}  // namespace petacq::net
