#include "tools/petlm/union/united_capture.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "daemon/system/file.hpp"
#include "daemon/tracking/sequence_tracker.hpp"
#include "net/pcap/pcap_packets.hpp"
#include "net/pcap/pcap_reader.hpp"

namespace petacq::petlm {
namespace {

/// Copies of a datagram arrive within this time, once the clocks are known.
constexpr std::int64_t same_ns = 2'000'000'000;
/// One of so many datagrams tells how far clocks are apart.
constexpr std::uint64_t sampled = 64;
/// By this share of what a copy tells a clock is corrected: it may drift.
constexpr std::int64_t inertia = 64;

/// What a datagram is known by.
struct Identity {
    bool numbered = false;
    std::uint16_t source = 0;
    std::uint64_t sequence = 0;
    std::uint64_t content = 0;
    bool operator==(const Identity&) const = default;
};

struct IdentityHash {
    std::size_t operator()(const Identity& id) const {
        return (id.content ^ (id.sequence * 0x9E3779B97F4A7C15ULL)) + id.source;
    }
};

/// The datagrams of a capture, one after the other.
class Captured {
  public:
    Captured(const std::filesystem::path& file, net::Framing framing, net::FrameVersion version)
        : framing_(framing), version_(version) {
        try {
            reader_.emplace(file.string(), std::vector<std::uint16_t>());
        } catch (const net::PcapError& error) {
            why_ = error.what();  // a power cut may leave a file without its header
        }
        advance();
    }
    [[nodiscard]] bool ended() const { return ended_; }
    [[nodiscard]] const net::CapturedDatagram& front() const { return datagram_; }
    [[nodiscard]] const Identity& id() const { return id_; }
    [[nodiscard]] const std::string& why() const { return why_; }
    void advance() {
        try {
            ended_ = !reader_ || !reader_->next(datagram_);
        } catch (const net::PcapError& error) {
            ended_ = true;
            why_ = error.what();
        }
        if (ended_) return;
        net::DatagramHeader header{};
        const auto& payload = datagram_.payload;
        id_.numbered = framing_ == net::Framing::sequenced &&
                       net::parse_datagram(framing_, version_, payload.data(), payload.size(), header) ==
                           net::Malformed::none;
        id_.source = header.source;
        id_.sequence = header.sequence;
        id_.content =
            std::hash<std::string_view>()({reinterpret_cast<const char*>(payload.data()), payload.size()});
    }

  private:
    std::optional<net::PcapReader> reader_;
    const net::Framing framing_;
    const net::FrameVersion version_;
    net::CapturedDatagram datagram_;
    Identity id_;
    bool ended_ = false;
    std::string why_;
};

/// Times of some datagrams by the clock of a host.
using Sample = std::unordered_map<std::uint64_t, std::int64_t>;

Sample sample_of(const std::filesystem::path& file, net::Framing framing, net::FrameVersion version) {
    Sample sample;
    for (Captured capture(file, framing, version); !capture.ended(); capture.advance()) {
        const std::uint64_t hash = IdentityHash()(capture.id());
        if (hash % sampled == 0) sample.try_emplace(hash, capture.front().time_ns);
    }
    return sample;
}

/// [capture] what its clock is ahead of that of the first one, ns, as far as captures have datagrams in
/// common.
std::vector<std::int64_t> clocks_ahead(std::span<const std::filesystem::path> captures, net::Framing framing,
                                       net::FrameVersion version) {
    std::vector<Sample> samples;
    for (const std::filesystem::path& file : captures)
        samples.push_back(sample_of(file, framing, version));
    std::vector<std::int64_t> ahead(captures.size(), 0);
    std::vector<bool> known(captures.size(), false);
    known[0] = true;
    for (bool found = true; found;) {
        found = false;
        for (std::size_t i = 0; i < captures.size(); ++i) {
            if (known[i]) continue;
            std::vector<std::int64_t> differences;
            for (std::size_t j = 0; j < captures.size(); ++j) {
                if (!known[j]) continue;
                for (const auto& [hash, time] : samples[i])
                    if (const auto other = samples[j].find(hash); other != samples[j].end())
                        differences.push_back(time - other->second + ahead[j]);
            }
            if (differences.empty()) continue;
            const auto middle = differences.begin() + static_cast<std::ptrdiff_t>(differences.size() / 2);
            std::nth_element(differences.begin(), middle, differences.end());
            ahead[i] = *middle;
            known[i] = found = true;
        }
    }
    return ahead;
}

/// Writes packets, whose payloads it copies.
class PacketsOut {
  public:
    explicit PacketsOut(const std::filesystem::path& file) : file_(file, daemon::IfExists::discard) {
        file_.append(net::pcap_file_header());
    }
    void add(const net::CapturedDatagram& datagram, std::int64_t time_ns) {
        if (packets_.full()) flush();
        payloads_.emplace_back(datagram.payload.begin(), datagram.payload.end());
        packets_.add(time_ns, datagram.from, datagram.to, {}, payloads_.back());
    }
    void close() {
        flush();
        file_.sync();
        file_.close();
    }

  private:
    void flush() {
        file_.append(packets_.pieces());
        packets_.clear();
        payloads_.clear();
    }
    daemon::File file_;
    net::PcapPackets packets_;
    std::deque<std::vector<std::byte>> payloads_;
};

/// Datagrams that copies may still arrive of.
class Copies {
  public:
    Copies(std::size_t hosts, UnitedCapture& united) : hosts_(hosts), united_(united) {}

    struct Arrival {
        bool is_new = false;       ///< none that was seen before
        std::size_t first_by = 0;  ///< the host whose copy came first, and by how much
        std::int64_t later_ns = 0;
    };
    Arrival take(const Identity& id, std::size_t host, std::int64_t time_ns) {
        while (!order_.empty() && order_.front().second < time_ns - same_ns)
            forget();
        const auto [seen, is_new] = seen_.try_emplace(id);
        CopyCounts& copies = seen->second;
        if (is_new) {
            copies.by.resize(hosts_);
            copies.first_by = host;
            copies.first_ns = time_ns;
            order_.emplace_back(id, time_ns);
        }
        const bool goes_on = ++copies.by[host] > copies.taken;
        copies.taken += goes_on ? 1 : 0;
        return {goes_on, copies.first_by, time_ns - copies.first_ns};
    }
    void finish() {
        while (!order_.empty())
            forget();
    }

  private:
    struct CopyCounts {
        std::vector<std::uint32_t> by;  ///< [host] how often
        std::uint32_t taken = 0;
        std::size_t first_by = 0;
        std::int64_t first_ns = 0;
    };
    void forget() {
        const auto found = seen_.find(order_.front().first);
        const Identity& id = found->first;
        DatagramOrigins& origins = id.numbered ? united_.sources[id.source] : united_.others;
        origins.only.resize(hosts_);
        for (std::uint32_t i = 0; i < found->second.taken; ++i) {
            const auto has = [i](std::uint32_t count) { return count > i; };
            const auto& by = found->second.by;
            if (std::count_if(by.begin(), by.end(), has) > 1) {
                ++origins.several;
            } else {
                ++origins
                      .only[static_cast<std::size_t>(std::find_if(by.begin(), by.end(), has) - by.begin())];
            }
        }
        seen_.erase(found);
        order_.pop_front();
    }

    const std::size_t hosts_;
    UnitedCapture& united_;
    std::unordered_map<Identity, CopyCounts, IdentityHash> seen_;
    std::deque<std::pair<Identity, std::int64_t>> order_;
};

}  // namespace

UnitedCapture unite_captures(std::span<const std::filesystem::path> captures,
                             const std::filesystem::path& output, net::Framing framing,
                             net::FrameVersion version) {
    UnitedCapture united;
    united.others.only.resize(captures.size());
    std::vector<std::int64_t> ahead = clocks_ahead(captures, framing, version);
    std::vector<std::unique_ptr<Captured>> open;
    for (const std::filesystem::path& file : captures)
        open.push_back(std::make_unique<Captured>(file, framing, version));
    PacketsOut out(output);
    Copies copies(captures.size(), united);
    std::map<std::uint16_t, daemon::SequenceTracker> numbers;
    const auto time_of = [&](std::size_t host) { return open[host]->front().time_ns - ahead[host]; };
    while (true) {
        std::size_t next = open.size();
        for (std::size_t host = 0; host < open.size(); ++host)
            if (!open[host]->ended() && (next == open.size() || time_of(host) < time_of(next))) next = host;
        if (next == open.size()) break;
        const Identity& id = open[next]->id();
        const std::int64_t time_ns = time_of(next);
        const Copies::Arrival taken = copies.take(id, next, time_ns);
        if (taken.is_new) {
            out.add(open[next]->front(), time_ns);
            ++united.datagrams;
            if (id.numbered) numbers[id.source].observe(id.sequence, static_cast<std::uint32_t>(id.content));
        } else if (next != 0) {
            ahead[next] += taken.later_ns / inertia;
        } else {
            ahead[taken.first_by] -= taken.first_by == 0 ? 0 : taken.later_ns / inertia;
        }
        open[next]->advance();
    }
    copies.finish();
    out.close();
    for (auto& [source, tracker] : numbers)
        united.sources[source].lost = tracker.lost();
    for (const auto& capture : open)
        united.ended_early.push_back(capture->why());
    return united;
}

}  // namespace petacq::petlm
