#include "tools/petsim/transmit.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace petacq::sim {

namespace {

constexpr std::size_t block_bytes = 16U << 20;
constexpr std::size_t max_bytes_at_once = 1U << 20;

std::int64_t now_ns() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

void StreamStore::add(const Datagram& datagram) {
    const std::size_t destination = datagram.source % blocks_.size();
    Chain& chain = blocks_[destination];
    const std::size_t size = datagram.bytes.size();
    if (chain.blocks.empty()) {
        chain.blocks.push_back({std::make_unique_for_overwrite<std::byte[]>(block_bytes)});  // NOLINT
    } else if (chain.blocks[chain.current].used + size > block_bytes) {
        if (++chain.current == chain.blocks.size()) {
            chain.blocks.push_back({std::make_unique_for_overwrite<std::byte[]>(block_bytes)});  // NOLINT
        }
    }
    StreamBlock& block = chain.blocks[chain.current];
    std::byte* const place = block.data.get() + block.used;
    std::memcpy(place, datagram.bytes.data(), size);
    block.used += size;
    bytes_ += size;
    entries_.push_back({datagram.due_ticks, place, static_cast<std::uint32_t>(size),
                        static_cast<std::uint32_t>(destination)});
}

void StreamStore::clear() {
    for (Chain& chain : blocks_) {
        for (StreamBlock& block : chain.blocks)
            block.used = 0;
        chain.current = 0;
    }
    entries_.clear();
    bytes_ = 0;
}

Transmitter::Transmitter(const TransmitOptions& options, const std::atomic<bool>& stop)
    : stop_(stop),
      ns_per_tick_(options.pace > 0 ? options.tick_ps * 1e-3 / options.pace : 0),
      burst_ns_(options.burst_us * 1e3),
      lists_(options.destinations.size()),
      store_(options.destinations.size()) {
    for (const auto& destination : options.destinations) {
        senders_.push_back(std::make_unique<net::Sender>(destination));
    }
}

std::uint64_t Transmitter::burst_of(std::uint64_t due_ticks) const {
    return static_cast<std::uint64_t>(static_cast<double>(due_ticks) * ns_per_tick_ / burst_ns_);
}

void Transmitter::add(const Datagram& datagram) {
    const std::uint64_t burst = burst_of(datagram.due_ticks);
    if (burst != burst_ || store_.bytes() >= max_bytes_at_once) {
        flush();
        burst_ = burst;
    }
    if (store_.entries().empty()) wait_for(datagram.due_ticks);
    store_.add(datagram);
}

void Transmitter::flush() {
    send(store_.entries());
    store_.clear();
}

void Transmitter::play(const StreamStore& stream, const std::function<void(double)>& report) {
    const std::span<const StreamStore::StreamEntry> entries = stream.entries();
    for (std::size_t i = 0; i < entries.size() && !stop_.load(std::memory_order_relaxed);) {
        const std::uint64_t burst = burst_of(entries[i].due_ticks);
        std::size_t j = i;
        for (std::size_t bytes = 0; j < entries.size() && bytes < max_bytes_at_once; ++j) {
            if (burst_of(entries[j].due_ticks) != burst) break;
            bytes += entries[j].size;
        }
        wait_for(entries[i].due_ticks);
        send(entries.subspan(i, j - i));
        i = j;
        report(static_cast<double>(i) / static_cast<double>(entries.size()));
    }
}

void Transmitter::wait_for(std::uint64_t due_ticks) {
    if (ns_per_tick_ <= 0) return;
    const std::int64_t now = now_ns();
    const auto after = static_cast<std::int64_t>(static_cast<double>(due_ticks) * ns_per_tick_);
    if (start_ns_ < 0) start_ns_ = now - after;
    const std::int64_t due = start_ns_ + after;
    worst_delay_s_ = std::max(worst_delay_s_, static_cast<double>(now - due) * 1e-9);
    if (due <= now) return;
    const timespec until{due / 1'000'000'000, due % 1'000'000'000};
    while (!stop_.load(std::memory_order_relaxed) &&
           clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
}

void Transmitter::send(std::span<const StreamStore::StreamEntry> entries) {
    if (entries.empty()) return;
    for (auto& list : lists_)
        list.clear();
    for (const auto& e : entries)
        lists_[e.destination].emplace_back(e.data, e.size);
    for (std::size_t d = 0; d < lists_.size(); ++d) {
        if (!lists_[d].empty()) senders_[d]->send(lists_[d]);
    }
}

std::uint64_t Transmitter::datagrams_sent() const {
    std::uint64_t sum = 0;
    for (const auto& sender : senders_)
        sum += sender->datagrams_sent();
    return sum;
}

}  // namespace petacq::sim
