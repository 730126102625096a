#include "daemon/system/network_counters.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

namespace petacq::daemon {

namespace {

const std::set<std::string, std::less<>>& wanted() {
    static const std::set<std::string, std::less<>> names{"IpInReceives",
                                                          "IpInHdrErrors",
                                                          "IpInAddrErrors",
                                                          "IpInDiscards",
                                                          "IpInDelivers",
                                                          "IpReasmTimeout",
                                                          "IpReasmReqds",
                                                          "IpReasmOKs",
                                                          "IpReasmFails",
                                                          "UdpInDatagrams",
                                                          "UdpNoPorts",
                                                          "UdpInErrors",
                                                          "UdpRcvbufErrors",
                                                          "UdpInCsumErrors",
                                                          "UdpIgnoredMulti",
                                                          "UdpMemErrors",
                                                          "Ip6InReceives",
                                                          "Ip6InHdrErrors",
                                                          "Ip6InAddrErrors",
                                                          "Ip6ReasmTimeout",
                                                          "Ip6ReasmReqds",
                                                          "Ip6ReasmOKs",
                                                          "Ip6ReasmFails",
                                                          "Udp6InDatagrams",
                                                          "Udp6NoPorts",
                                                          "Udp6InErrors",
                                                          "Udp6RcvbufErrors",
                                                          "Udp6InCsumErrors",
                                                          "Udp6IgnoredMulti",
                                                          "Udp6MemErrors",
                                                          "TcpExtIPReversePathFilter",
                                                          "IpExtInNoRoutes",
                                                          "IpExtInTruncatedPkts",
                                                          "IpExtInCsumErrors"};
    return names;
}

std::vector<std::string> words_of(const std::string& line) {
    std::istringstream in(line);
    std::vector<std::string> words;
    for (std::string word; in >> word;)
        words.push_back(word);
    return words;
}

void take(NetworkCounters& counters, const std::string& name, const std::string& value) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error == std::errc{} && end == value.data() + value.size() && wanted().contains(name))
        counters[name] = number;
}

/// snmp and netstat: a line "Udp: NAME..." before a line "Udp: VALUE...".
void read_pairs(const std::filesystem::path& file, NetworkCounters& counters) {
    std::ifstream in(file);
    for (std::string names, values; std::getline(in, names) && std::getline(in, values);) {
        const std::vector<std::string> name = words_of(names);
        const std::vector<std::string> value = words_of(values);
        if (name.empty() || value.empty() || name[0] != value[0] || !name[0].ends_with(':')) continue;
        const std::string group = name[0].substr(0, name[0].size() - 1);
        for (std::size_t i = 1; i < std::min(name.size(), value.size()); ++i)
            take(counters, group + name[i], value[i]);
    }
}

/// snmp6: a line for each counter.
void read_lines(const std::filesystem::path& file, NetworkCounters& counters) {
    std::ifstream in(file);
    for (std::string name, value; in >> name >> value;)
        take(counters, name, value);
}

/// A line for each core: processed, dropped, time_squeeze, ...; hexadecimal.
void read_softnet(const std::filesystem::path& file, NetworkCounters& counters) {
    std::ifstream in(file);
    std::uint64_t dropped = 0;
    std::uint64_t squeezed = 0;
    bool any = false;
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::array<std::uint64_t, 3> value{};
        for (std::uint64_t& v : value)
            words >> std::hex >> v;
        if (!words) continue;
        any = true;
        dropped += value[1];
        squeezed += value[2];
    }
    if (!any) return;
    counters["SoftnetDropped"] = dropped;
    counters["SoftnetTimeSqueeze"] = squeezed;
}

constexpr std::array faults{
    NetworkFault{
        "udp_checksum_errors",
        {"UdpInCsumErrors", "Udp6InCsumErrors"},
        {},
        "datagrams with wrong UDP checksums, which the kernel discards",
        "the boards compute them wrongly, or something on the way changes datagrams; boards may send 0, "
        "which means no checksum",
        true,
        false},
    NetworkFault{"udp_length_errors",
                 {"UdpInErrors", "Udp6InErrors"},
                 {"UdpInCsumErrors", "Udp6InCsumErrors", "UdpRcvbufErrors", "Udp6RcvbufErrors",
                  "UdpMemErrors", "Udp6MemErrors"},
                 "datagrams that the kernel discards for their UDP header",
                 "the length in it must be that of the payload plus 8 bytes, and not more than arrives",
                 false,
                 false},
    NetworkFault{"ip_header_errors",
                 {"IpInHdrErrors", "IpExtInTruncatedPkts"},
                 {},
                 "packets with damaged IP headers",
                 "the boards set the checksum or the length in the IP header wrongly",
                 false,
                 false},
    NetworkFault{
        "fragments_lost",
        {"IpReasmFails", "Ip6ReasmFails"},
        {},
        "IP packets whose fragments could not be joined",
        "let datagrams fit into the MTU of boards, switch and network card (jumbo frames); else raise "
        "net.ipv4.ipfrag_high_thresh",
        false,
        false},
    NetworkFault{
        "softnet_drops",
        {"SoftnetDropped", nullptr},
        {},
        "packets dropped before the sockets: the queue of a core was full",
        "raise net.core.netdev_max_backlog, and spread the interrupts of the network card over more cores",
        false,
        false},
    NetworkFault{"udp_memory",
                 {"UdpMemErrors", "Udp6MemErrors"},
                 {},
                 "datagrams dropped because all UDP sockets of the host together have used up their memory",
                 "raise net.ipv4.udp_mem",
                 true,
                 false},
    NetworkFault{
        "udp_no_port",
        {"UdpNoPorts", "Udp6NoPorts"},
        {},
        "datagrams arrive for ports that nobody listens to",
        "set the boards to a port of receive.sockets; sudo tcpdump -ni any 'icmp[0:2] = 0x0303' shows for "
        "which ports they are",
        false,
        true},
    NetworkFault{
        "reverse_path_filter",
        {"TcpExtIPReversePathFilter", nullptr},
        {},
        "packets discarded by the reverse-path filter: the way back to their senders leads through another "
        "interface",
        "give the interface of the boards an address in their network, or a route to them; or set "
        "net.ipv4.conf.IFACE.rp_filter to 2",
        false,
        true},
    NetworkFault{
        "multicast_ignored",
        {"UdpIgnoredMulti", "Udp6IgnoredMulti"},
        {},
        "multicast or broadcast datagrams that no socket takes",
        "set multicast_group to the group and receive.sockets to the port that the boards send to; broadcast "
        "needs the address 0.0.0.0",
        false,
        true},
    NetworkFault{"address_unknown",
                 {"IpInAddrErrors", "IpExtInNoRoutes"},
                 {},
                 "packets for addresses that this host does not have",
                 "set the boards to an address of ip -brief address",
                 false,
                 true},
};

}  // namespace

NetworkCounters read_network_counters(const std::filesystem::path& directory) {
    NetworkCounters counters;
    read_pairs(directory / "snmp", counters);
    read_pairs(directory / "netstat", counters);
    read_lines(directory / "snmp6", counters);
    read_softnet(directory / "softnet_stat", counters);
    return counters;
}

std::uint64_t growth(const NetworkCounters& now, const NetworkCounters& before, std::string_view name) {
    const auto a = now.find(name);
    const auto b = before.find(name);
    if (a == now.end() || b == before.end() || a->second < b->second) return 0;
    return a->second - b->second;
}

std::uint64_t NetworkFault::growth(const NetworkCounters& now, const NetworkCounters& before) const {
    const auto sum = [&](const auto& names) {
        std::uint64_t all = 0;
        for (const char* const name : names)
            if (name != nullptr) all += daemon::growth(now, before, name);
        return all;
    };
    const std::uint64_t all = sum(counters);
    return all - std::min(all, sum(without));
}

std::string NetworkFault::counters_text(const NetworkCounters& now, const NetworkCounters& before) const {
    std::string text;
    for (const char* const name : counters)
        if (name != nullptr && daemon::growth(now, before, name) > 0)
            text += (text.empty() ? "" : ", ") + std::string(name);
    return text;
}

std::span<const NetworkFault> network_faults() {
    return faults;
}

}  // namespace petacq::daemon
