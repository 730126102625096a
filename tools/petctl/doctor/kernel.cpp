// What the kernel discards.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/system/network_counters.hpp"
#include "tools/petctl/doctor/evidence.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

daemon::NetworkCounters counters_of(const json& status) {
    daemon::NetworkCounters counters;
    const json& network = at(status, {"network"});
    if (!network.is_object()) return counters;
    for (const auto& [name, value] : network.items())
        if (value.is_number_unsigned()) counters[name] = value.get<std::uint64_t>();
    return counters;
}

/// Whether datagrams of the boards are missing, or may be.
bool missing(const Evidence& evidence, const daemon::NetworkFault& fault) {
    const auto& sources = list(evidence.after, {"sources"});
    return evidence.gained("datagrams", "received") <= 0 || evidence.gained("datagrams", "lost") > 0 ||
           evidence.gained("datagrams", "dropped_kernel") > 0 ||
           (evidence.text("framing") == "bare" && !fault.of_neighbours) ||
           std::any_of(sources.begin(), sources.end(),
                       [](const json& source) { return text_of(at(source, {"state"})) == "silent"; });
}

}  // namespace

double discarded_at_socket(const Evidence& evidence) {
    std::uint64_t all = 0;
    for (const daemon::NetworkFault& fault : daemon::network_faults())
        if (fault.at_socket) all += fault.growth(counters_of(evidence.after), counters_of(evidence.before));
    return static_cast<double>(all);
}

void judge_kernel(const Evidence& evidence, Diagnosis& diagnosis) {
    const daemon::NetworkCounters before = counters_of(evidence.before);
    const daemon::NetworkCounters after = counters_of(evidence.after);
    const double seconds = std::max(evidence.seconds(), 1e-3);
    const double arriving = evidence.gained("datagrams", "received") / seconds;
    for (const daemon::NetworkFault& fault : daemon::network_faults()) {
        const double per_s = static_cast<double>(fault.growth(after, before)) / seconds;
        if (!fault.matters(per_s, arriving, missing(evidence, fault))) continue;
        diagnosis.add(daemon::Level::problem, "kernel",
                      fmt::format("{:.4g} {}/s: {}", per_s, fault.counters_text(after, before), fault.what),
                      fault.advice);
    }
    const auto fragments = static_cast<double>(daemon::growth(after, before, "IpReasmReqds") +
                                               daemon::growth(after, before, "Ip6ReasmReqds"));
    if (arriving > 0 && fragments / seconds > much * arriving) {
        diagnosis.add(
            daemon::Level::warning, "kernel",
            fmt::format("{:.0f} fragments came in: datagrams are longer than the MTU", fragments),
            "one lost fragment loses the datagram: send at most the MTU less 28 bytes (48 with IPv6)");
    }
}

}  // namespace petacq::petctl
