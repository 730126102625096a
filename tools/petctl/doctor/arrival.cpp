// What arrives, and from whom.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/petctl/doctor/evidence.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using daemon::Level;
using nlohmann::json;

namespace {

constexpr const char* how_to_look =
    "Are the boards on, and their links up (ip -brief link)? sudo tcpdump -ni any -c 5 udp port {} shows "
    "whether datagrams reach this host. If it shows some: is their destination one of ip -brief address, and "
    "does the firewall let them pass (sudo nft list ruleset)? If not: the destination that the boards are "
    "set to, cables, switch";

/// "123 at eth0, 0 at eth1": packets that came in at the interfaces besides that of the host itself.
std::string interfaces_text(const Evidence& evidence) {
    std::vector<std::string> names;
    for (const auto& [name, packets] : evidence.packets)
        if (name != "lo" && packets > 0) names.push_back(fmt::format("{:.0f} at {}", packets, name));
    return joined(names);
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
        const std::string arrived = evidence.packets.empty() ? ""
                                    : packets.empty()
                                        ? "; no packet came in at any interface of this host"
                                        : "; packets that came in meanwhile, for any program: " + packets;
        diagnosis.add(Level::problem, "arriving",
                      fmt::format("nothing in {:.1f} s at {}{}", seconds, joined(where), arrived),
                      fmt::format(fmt::runtime(how_to_look), port));
        return false;
    }
    diagnosis.add(Level::good, "arriving",
                  fmt::format("{:.4g} datagrams/s, {}, datagrams of {} B", datagrams / seconds,
                              scaled(evidence.seen.mean_bytes * datagrams / seconds, "B/s"),
                              sizes_text(evidence.seen.sizes)));
    const double dropped = evidence.gained("datagrams", "dropped_kernel") - discarded_at_socket(evidence);
    if (dropped > 0) {
        diagnosis.add(Level::warning, "arriving", fmt::format("the kernel dropped {:.0f} datagrams", dropped),
                      "petacqd --check tells whether the socket buffers are as large as configured");
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
    for (const json& unknown_sender : list(evidence.after, {"unknown_sources"})) {
        if (number(at(unknown_sender, {"last_seen_s"})) > evidence.seconds()) continue;
        const json& id = at(unknown_sender, {"id"});
        if (id.is_number_unsigned()) {
            const auto sent = id.get<unsigned>();
            const unsigned swapped = (sent & 0xFF) << 8 | sent >> 8;
            const SenderName meant{"", swapped};
            if (sent <= 0xFFFF && swapped != sent && listed(evidence, meant) != nullptr) {
                diagnosis.add(Level::problem, "from",
                              fmt::format("source id {} is {} with its bytes swapped: {} sends its source id "
                                          "little-endian",
                                          sent, swapped, text_of(at(unknown_sender, {"address"}))),
                              "send bytes 6 and 7 of the header with the most significant byte first");
                continue;
            }
        }
        unknown.push_back(full_name(unknown_sender));
    }
    if (unknown.empty()) return false;
    diagnosis.add(Level::problem, "from", "may not send, and is not used: " + joined(unknown),
                  "if it is a board, list it in the scanner description as below; otherwise stop it");
    return true;
}

}  // namespace petacq::petctl
