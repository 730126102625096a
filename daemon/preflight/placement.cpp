#include "daemon/preflight/placement.hpp"

#include <fmt/core.h>

#include <optional>
#include <string>
#include <system_error>

#include "daemon/placement/wish.hpp"

namespace petacq::daemon {

Findings check_placement(const config::Configuration& configuration,
                         const std::vector<net::ReceiverOptions>& receivers) {
    constexpr const char* subject = "placement";
    Findings findings;
    if (configuration.placement == config::PlacementRule::off) return findings;
    std::optional<Machine> machine;
    try {
        machine.emplace();
    } catch (const std::system_error& e) {
        findings.push_back({Level::warning, subject, std::string(e.what()) + ": threads run on any cores",
                            R"(ask the administrator what hides the machine, or set "placement": "off")"});
        return findings;
    }
    if (!machine->divided()) return findings;
    const Placement placement = machine->place(placement_wish(configuration, receivers, ""));
    for (std::size_t i = 0; i < receivers.size(); ++i) {
        if (!receivers[i].cores.empty()) continue;
        const std::string name = fmt::format("{}:{}", receivers[i].address, receivers[i].port);
        const net::Cores& cores = placement.receivers[i];
        if (!cores.empty()) {
            findings.push_back(
                {Level::good, subject, name + " is received on cores " + net::to_text(cores), ""});
        } else {
            findings.push_back(
                {Level::note, subject,
                 name + " is received on cores of any NUMA node: its network card is not known, or there are "
                        "fewer cores near it than receivers",
                 "give the address of the interface instead of one that stands for all, or cpus"});
        }
    }
    return findings;
}

}  // namespace petacq::daemon
