#include "tools/petsim/capture_file.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <stdexcept>
#include <utility>

#include "config/base/json_schema.hpp"
#include "config/base/seconds_since.hpp"
#include "net/pcap/pcap_reader.hpp"

namespace petacq::sim {

namespace {

constexpr std::uint32_t loopback = 0x7F000001;
constexpr std::uint16_t first_port = 40000;
constexpr std::size_t max_senders = 4096;

}  // namespace

std::vector<net::Endpoint> capture_senders(const std::vector<config::Source>& sources) {
    std::vector<net::Endpoint> senders;
    for (const config::Source& source : sources) {
        net::Endpoint from{loopback, static_cast<std::uint16_t>(first_port + senders.size())};
        if (!source.address.empty()) from.address = net::parse_address(source.address, "source");
        if (source.port != 0) from.port = source.port;
        senders.push_back(from);
    }
    return senders;
}

CaptureFile::CaptureFile(const std::string& file, std::vector<net::Endpoint> from,
                         std::vector<net::Endpoint> to, double tick_ps)
    : file_(file, daemon::IfExists::fail, 0640),
      from_(std::move(from)),
      to_(std::move(to)),
      ns_per_tick_(tick_ps * 1e-3) {
    try {
        file_.append(net::pcap_file_header());
    } catch (...) {
        file_.discard();
        throw;
    }
}

void CaptureFile::add(const Datagram& datagram) {
    if (sources_.size() == net::PcapPackets::max_packets) flush();
    store_.add(datagram);
    sources_.push_back(datagram.source);
}

void CaptureFile::flush() {
    for (std::size_t i = 0; i < sources_.size(); ++i) {
        const StreamStore::StreamEntry& entry = store_.entries()[i];
        const auto time_ns = static_cast<std::int64_t>(static_cast<double>(entry.due_ticks) * ns_per_tick_);
        packets_.add(time_ns, from_.at(sources_[i]), to_[sources_[i] % to_.size()], {},
                     {entry.data, entry.size});
    }
    file_.append(packets_.pieces());
    written_ += packets_.size();
    packets_.clear();
    store_.clear();
    sources_.clear();
}

SentCapture send_capture(const SendCaptureOptions& options, const std::atomic<bool>& stop,
                         const std::function<void(double)>& report) {
    // A first pass finds the senders, so that each has a socket from the start.
    std::map<net::Endpoint, std::uint16_t> senders;
    net::CapturedDatagram captured;
    std::int64_t first_ns = 0;
    std::int64_t last_ns = 0;
    {
        net::PcapReader reader(options.file, {});
        for (bool first = true; reader.next(captured); first = false) {
            if (first) first_ns = captured.time_ns;
            last_ns = std::max(last_ns, captured.time_ns);
            senders.try_emplace(captured.from, static_cast<std::uint16_t>(senders.size()));
            if (senders.size() > max_senders) {
                throw std::runtime_error(options.file + ": more than " + std::to_string(max_senders) +
                                         " senders");
            }
        }
    }
    if (senders.empty()) throw std::runtime_error(options.file + ": holds no UDP datagram");

    TransmitOptions transmit;
    transmit.destinations.assign(senders.size(), options.destination);
    transmit.pace = options.speed;
    transmit.tick_ps = 1000;  // capture times are in nanoseconds
    transmit.burst_us = options.burst_us;
    Transmitter transmitter(transmit, stop);
    const auto began = std::chrono::steady_clock::now();
    net::PcapReader reader(options.file, {});
    std::int64_t due_ns = 0;
    while (!stop.load(std::memory_order_relaxed) && reader.next(captured)) {
        // In captures of several interfaces the time may step back a little.
        due_ns = std::max(due_ns, captured.time_ns - first_ns);
        transmitter.add({senders.at(captured.from), 0, static_cast<std::uint64_t>(due_ns), captured.payload});
        report(last_ns > first_ns ? static_cast<double>(due_ns) / static_cast<double>(last_ns - first_ns)
                                  : 1);
    }
    transmitter.flush();
    return {transmitter.datagrams_sent(), config::seconds_since(began), transmitter.worst_delay_s()};
}

}  // namespace petacq::sim
