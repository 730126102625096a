// What happens around the daemon in one simulation: the text that tests/simulation/story.py writes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace petacq::simulation {

/// One line: `at_ms WHAT WORD...`
struct Event {
    std::int64_t at_ns = 0;
    std::string what;
    std::vector<std::string> words;

    /// A whole number. Throws if there is none.
    [[nodiscard]] std::int64_t number(std::size_t word) const;
};

struct Story {
    std::uint64_t seed = 0;
    std::int64_t length_ns = 0;
    std::size_t boards = 0;
    std::int64_t decays_per_s = 0;
    std::int64_t send_ms = 0;    ///< mean time between the datagrams of a board
    std::int64_t status_ms = 0;  ///< between two requests for the status
    // One of so many; 0: none.
    std::uint64_t gamma_one_in = 0;  ///< decays emit a third photon, and of these another; at least 2
    std::uint64_t echo_one_in = 0;   ///< decays are followed by another after the delay of the delayeds
    std::uint64_t tag_one_in = 0;    ///< datagrams have a tag
    std::vector<Event> events;       ///< in the order of their times

    /// Throws std::runtime_error with the line.
    static Story read(const std::string& file);
};

}  // namespace petacq::simulation
