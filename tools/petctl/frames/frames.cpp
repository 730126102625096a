#include "tools/petctl/frames/frames.hpp"

#include <fmt/core.h>

#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include "config/base/answer.hpp"
#include "config/base/error.hpp"
#include "config/base/exit_status.hpp"
#include "net/pcap/pcap_reader.hpp"
#include "net/pcap/replayer.hpp"
#include "tools/petctl/doctor/sample.hpp"
#include "tools/petctl/text/text.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

namespace {

/// Faster than samples are taken.
constexpr std::chrono::milliseconds look_interval{250};

int nothing(const std::string& why) {
    config::print_warning("petctl", printable(why));
    return exit_status::has_problems;
}

std::string of(const std::string& source) {
    return source.empty() ? "" : " of source " + source;
}

SeenDatagram seen(const Sample& sample) {
    return {endpoint_in(sample.address), 0, sample.bytes, sample.head, sample.translated, false};
}

void print_datagram(Dump& dump, const SeenDatagram& datagram) {
    if (const std::string text = dump.add(datagram); !text.empty()) print(text);
}

/// The datagrams that a packet holds: captures of other programs may join several.
void add_packet(Dump& dump, const net::PcapReader& reader, const BoardFormat& format,
                const net::CapturedDatagram& packet) {
    const bool own = reader.is_one_datagram_each();
    const bool may_be_joined = format.framing == config::Framing::sequenced && format.layout.empty() && !own;
    const std::size_t length =
        may_be_joined ? net::joined_length(packet.payload, format.check.version) : packet.payload.size();
    std::span<const std::byte> rest = packet.payload;
    do {
        const auto one = rest.first(std::min(length, rest.size()));
        print_datagram(dump, {packet.from, packet.time_ns, one.size(), one, {}, own});
        rest = rest.subspan(one.size());
    } while (!rest.empty() && !dump.full());
}

}  // namespace

DumpOptions dump_options(const FramesAsked& asked, const BoardFormat& format) {
    const std::string& source = asked.source;
    DumpOptions options;
    options.count = asked.count;
    options.as_json = asked.as_json;
    if (source.empty()) return options;
    unsigned id = 0;
    const char* const end = source.data() + source.size();
    if (std::from_chars(source.data(), end, id).ptr == end) {
        if (id > UINT16_MAX) throw config::Error("--source: expected an id from 0 to 65535, found " + source);
        if (format.framing == config::Framing::bare)
            throw config::Error(
                "--source: expected the address of a board, since bare framing has no ids; found " + source);
        options.id = id;
        return options;
    }
    sockaddr_storage address{};
    try {
        const net::Endpoint sender =
            net::is_address(source, address) ? net::endpoint_of(address) : endpoint_in(source);
        options.address = sender.address;
        options.port = sender.port;
    } catch (const std::runtime_error&) {
        throw config::Error("--source: expected an id, ADDRESS or ADDRESS:PORT, found " + source);
    }
    return options;
}

int show_live_frames(daemon::ControlClient& client, const FramesAsked& asked, double seconds) {
    using Clock = std::chrono::steady_clock;
    const auto end =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    const nlohmann::json first = client.call("status");
    const BoardFormat format = format_of_status(first);
    Dump dump(format, dump_options(asked, format));
    // Samples stay in the status when nothing follows: those that are there already tell of no arrival.
    std::set<Sample> known;
    add_samples(first, known);
    bool heard = false;
    while (!dump.full() && Clock::now() < end) {
        std::this_thread::sleep_for(look_interval);
        std::set<Sample> now;
        add_samples(client.call("status"), now);
        for (const Sample& sample : now) {
            if (!known.insert(sample).second) continue;
            heard = true;
            print_datagram(dump, seen(sample));
        }
    }
    if (dump.datagrams() > 0) return 0;
    return nothing(heard
                       ? fmt::format("in {:g} s datagrams arrived, but none{}", seconds, of(asked.source))
                       : fmt::format("nothing arrived in {:g} s: petctl doctor says where to look", seconds));
}

int show_captured_frames(const std::string& capture, const BoardFormat& format, const FramesAsked& asked) {
    Dump dump(format, dump_options(asked, format), true);
    try {
        net::PcapReader reader(capture, format.ports);
        net::CapturedDatagram packet;
        while (!dump.full() && reader.next(packet))
            add_packet(dump, reader, format, packet);
        if (dump.datagrams() > 0) return 0;
        const net::PcapCounts& counts = reader.counts();
        if (counts.datagrams > 0)
            return nothing(
                fmt::format("{}: {} datagrams, but none{}", capture, counts.datagrams, of(asked.source)));
        const std::string unused = net::unused_text(counts);
        return nothing(fmt::format("{}: no datagram{}{}", capture,
                                   format.ports.empty() ? "" : " for a port of receive.sockets",
                                   unused.empty() ? "" : ": " + unused));
    } catch (const net::PcapError& error) {
        throw OutputError(error.what());
    } catch (const std::system_error& error) {
        throw OutputError(error.what());
    }
}

}  // namespace petacq::petctl
