// A simulated source that emits gammas with its positrons, recorded with triples.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/files.hpp"

namespace petacq::test {

// Scanners of the examples.
inline const std::string small_scanner = "small.scanner.json";
inline const std::string box_scanner = "scanners/box.scanner.json";

/// A site with the scanner of the examples of this name that records triples of this gamma.
inline Site site_with_triples(const std::string& scanner, double gamma_keV, const std::string& policy = "all",
                              std::int32_t time_offset_ticks = 200) {
    const auto examples = std::filesystem::path(PETACQ_SOURCE_DIR) / "config" / "examples";
    return {{{"pipeline", {{"threads", std::max(2U, std::thread::hardware_concurrency())}}},
             {"energy", {{"lower_keV", 400}, {"upper_keV", 650}}},
             {"coincidence",
              {{"window_ticks", nullptr},
               {"window_ns", 3},
               {"delay_ticks", nullptr},
               {"delay_ns", 200},
               {"min_module_difference", nullptr},
               {"multiples_policy", "TakeAllGoods"}}},
             {"gammas",
              {{"lower_keV", 0.86 * gamma_keV},
               {"upper_keV", 1.15 * gamma_keV},
               {"before_ns", 16},
               {"after_ns", 4},
               {"policy", policy},
               {"delay_ns", 400}}}},
            examples / scanner,
            time_offset_ticks};
}

/// Simulates the source (JSON, of one or an array) and replays it as the run. Returns the run directory.
inline std::string record(const Site& site, const nlohmann::json& source, double seconds,
                          const std::string& crystals, const std::vector<std::string>& more = {},
                          const std::string& run = "a") {
    const std::string file = (site.directory() / "source.json").string();
    write_file(
        file,
        nlohmann::json{{"sources", source.is_array() ? source : nlohmann::json::array({source})}}.dump());
    std::vector<std::string> arguments{
        "--source",   file,     "--duration-s",         std::to_string(seconds),
        "--crystals", crystals, "--efficiency",         "1",
        "--scatter",  "0",      "--time-resolution-ps", "200"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return simulated_run(site, arguments, run);
}

}  // namespace petacq::test
