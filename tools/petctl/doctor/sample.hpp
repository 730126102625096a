// The beginning of a datagram, as `reception.samples` of the status has it.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace petacq::petctl {

struct Sample {
    std::string address;  ///< of its sender, with the port
    std::size_t bytes = 0;
    std::vector<std::byte> head;
    double arrived_s = 0;
    std::vector<std::byte> next;  ///< how the sender's next datagram begins; empty: unknown
    /// With a layout: as a sequenced datagram of petacqd's own format; empty: malformed, or no layout.
    std::vector<std::byte> translated;

    bool operator<(const Sample& other) const {
        return std::tie(address, arrived_s) < std::tie(other.address, other.arrived_s);
    }
};

/// Adds the samples of a status. One that is there already stays once, with what has come since.
void add_samples(const nlohmann::json& status, std::set<Sample>& samples);

}  // namespace petacq::petctl
