// What arrives, and from whom.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/petctl/doctor/evidence.hpp"
#include "tools/petctl/values.hpp"

namespace petacq::petctl {

using daemon::Level;
using nlohmann::json;

namespace {

constexpr const char* how_to_look =
    "Are the boards on, and their links up (ip -brief link)? sudo tcpdump -ni any -c 5 udp port {} shows "
    "whether datagrams reach this host. If it shows some: is their destination one of ip -brief address, and "
    "does the firewall let them pass (sudo nft list ruleset)? If not: the destination that the boards are "
    "set to, cables, switch";

/// A counter of the kernel that grows when datagrams are lost on their way to the socket.
struct OnTheWay {
    const char* counter;
    const char* what;
    const char* fix;
};
constexpr std::array on_the_way{
    OnTheWay{
        "UdpNoPorts", "datagrams came for a UDP port of this host on which nobody listens",
        "if they are the boards': they send to the wrong port; expected {}. sudo tcpdump -ni any -c 5 udp "
        "shows theirs"},
    OnTheWay{
        "UdpInCsumErrors", "datagrams have a wrong UDP checksum",
        "the board computes it wrongly: correct it, or send 0 (no checksum); the pseudo header counts, too"},
    OnTheWay{"IpInHdrErrors", "packets have a wrong IP header (checksum, length or version)",
             "the IP header that the board sends"},
    OnTheWay{
        "TcpExtIPReversePathFilter", "packets were dropped by the reverse-path filter",
        "give the interface an address in the boards' network, or set net.ipv4.conf.*.rp_filter to 2 or 0"},
    OnTheWay{"IpInAddrErrors", "packets are addressed to another host",
             "set the destination address of the boards to one of ip -brief address"},
    OnTheWay{"UdpIgnoredMulti", "multicast datagrams came for which no socket has joined the group",
             "receive.sockets[].multicast_group: the group to which the boards send"},
    OnTheWay{"IpReasmFails", "datagrams in fragments could not be put together",
             "the boards send datagrams longer than the MTU, and fragments are lost: send at most 1472 bytes "
             "with an MTU of 1500"},
    OnTheWay{"UdpMemErrors", "datagrams were dropped for want of memory", "raise net.ipv4.udp_mem"},
};

/// "eth0 123, eth1 0": packets that came in at the interfaces besides that of the host itself.
std::string interfaces_text(const Evidence& evidence) {
    std::vector<std::string> names;
    for (const auto& [name, packets] : evidence.host)
        if (std::islower(static_cast<unsigned char>(name.front())) != 0 && name != "lo")
            names.push_back(fmt::format("{:.0f} at {}", packets, name));
    return joined(names);
}

/// Where datagrams that do not arrive may be. `at_least`: fewer are not worth a word, since other programs
/// use the host, too.
void judge_way(const Evidence& evidence, const std::string& port, double at_least, Level level,
               Diagnosis& diagnosis) {
    for (const OnTheWay& one : on_the_way) {
        const double count = evidence.host_growth(one.counter);
        if (count < at_least) continue;
        diagnosis.add(level, "network", fmt::format("{:.0f} {} ({})", count, one.what, one.counter),
                      fmt::format(fmt::runtime(one.fix), port));
    }
}

std::string sizes_text(const std::set<std::size_t>& sizes) {
    std::vector<std::string> names;
    names.reserve(sizes.size());
    for (const std::size_t size : sizes)
        names.push_back(std::to_string(size));
    return joined(names);
}

/// "source 3 (10.0.0.3:4000)"
std::string full_name(const json& source) {
    const json& id = at(source, {"id"});
    const std::string address = text_of(at(source, {"address"}));
    return id.is_null() ? address : fmt::format("source {} ({})", id.dump(), address);
}

}  // namespace

bool judge_arrival(const Evidence& evidence, Diagnosis& diagnosis) {
    std::vector<std::string> where;
    std::string port;
    for (const json& socket : list(evidence.after, {"sockets"})) {
        where.push_back(fmt::format("{}:{}", text_of(at(socket, {"address"})), at(socket, {"port"}).dump()));
        if (port.empty()) port = at(socket, {"port"}).dump();
    }
    const double seconds = evidence.seconds();
    const double datagrams = evidence.gained("datagrams", "received");
    if (datagrams <= 0) {
        const std::string packets = interfaces_text(evidence);
        const std::string arrived = evidence.host.empty() ? ""
                                    : packets.empty()
                                        ? "; no packet came in at any interface of this host"
                                        : "; packets that came in meanwhile, for any program: " + packets;
        diagnosis.add(Level::problem, "arriving",
                      fmt::format("nothing in {:.1f} s at {}{}", seconds, joined(where), arrived),
                      fmt::format(fmt::runtime(how_to_look), port));
        judge_way(evidence, port, 1, Level::warning, diagnosis);
        return false;
    }
    diagnosis.add(Level::good, "arriving",
                  fmt::format("{:.4g} datagrams/s, {}, datagrams of {} B", datagrams / seconds,
                              scaled(evidence.seen.mean_bytes * datagrams / seconds, "B/s"),
                              sizes_text(evidence.seen.sizes)));
    const double dropped = evidence.gained("datagrams", "dropped_kernel");
    if (dropped > 0) {
        diagnosis.add(Level::warning, "arriving", fmt::format("the kernel dropped {:.0f} datagrams", dropped),
                      "petacqd --check tells whether the socket buffers are as large as configured");
    }
    judge_way(evidence, port, std::max(1.0, much * datagrams), Level::problem, diagnosis);
    if (const double pieces = evidence.host_growth("IpReasmReqds"); pieces > much * datagrams) {
        diagnosis.add(Level::warning, "network",
                      fmt::format("{:.0f} fragments came in: datagrams are longer than the MTU", pieces),
                      "one lost fragment loses the datagram: send at most the MTU less 28 bytes");
    }
    return true;
}

bool judge_senders(const Evidence& evidence, Diagnosis& diagnosis) {
    std::vector<std::string> known;
    std::vector<std::string> silent;
    std::vector<std::string> gone;
    for (const json& source : list(evidence.after, {"sources"})) {
        const json& id = at(source, {"id"});
        const json& last = at(source, {"last_seen_s"});
        if (last.is_number() && last < evidence.seconds()) {
            known.push_back(full_name(source));
            continue;
        }
        const SenderName name{text_of(at(source, {"address"})),
                              id.is_null() ? std::nullopt : std::optional(id.get<unsigned>())};
        const bool in_samples =
            std::any_of(evidence.seen.senders.begin(), evidence.seen.senders.end(), [&](const auto& sender) {
                return name.second ? sender.first.second == name.second : sender.first.first == name.first;
            });
        if (in_samples) continue;  // its datagrams are not used: the rest says why
        (listed(evidence, name) != nullptr ? silent : gone).push_back(sender_name(name));
    }
    if (!known.empty()) diagnosis.add(Level::good, "from", joined(known));
    if (!silent.empty()) {
        diagnosis.add(Level::warning, "from",
                      "nothing from " + joined(silent) + ", which the scanner description lists",
                      "their power, cable and destination; or remove them from sources");
    }
    if (!gone.empty()) {
        diagnosis.add(Level::warning, "from", "nothing from " + joined(gone) + ", heard earlier",
                      "their power, cable and destination, if they are boards in use");
    }
    std::vector<std::string> unknown;
    for (const json& stranger : list(evidence.after, {"unknown_sources"})) {
        if (number(at(stranger, {"last_seen_s"})) > evidence.seconds()) continue;
        const json& id = at(stranger, {"id"});
        if (id.is_number_unsigned()) {
            const auto sent = id.get<unsigned>();
            const unsigned swapped = (sent & 0xFF) << 8 | sent >> 8;
            const SenderName meant{"", swapped};
            if (sent <= 0xFFFF && swapped != sent && listed(evidence, meant) != nullptr) {
                diagnosis.add(Level::problem, "from",
                              fmt::format("source id {} is {} with its bytes swapped: {} sends its source id "
                                          "little-endian",
                                          sent, swapped, text_of(at(stranger, {"address"}))),
                              "send bytes 6 and 7 of the header with the most significant byte first");
                continue;
            }
        }
        unknown.push_back(full_name(stranger));
    }
    if (unknown.empty()) return false;
    diagnosis.add(Level::problem, "from", "may not send, and is not used: " + joined(unknown),
                  "if it is a board, list it in the scanner description as below; otherwise stop it");
    return true;
}

}  // namespace petacq::petctl
