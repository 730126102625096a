// The options that each stage gets from the configuration.
#include "daemon/settings.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/catch.hpp"

namespace {

using namespace petacq;

std::uint32_t threads(std::size_t producers, const nlohmann::json& pipeline = nlohmann::json::object(),
                      bool write_singles = false) {
    const nlohmann::json document = {{"scanner", "small.scanner.json"},
                                     {"calibration", "calibration.h5"},
                                     {"data_dir", "/tmp"},
                                     {"coincidence", {{"window_ticks", 400}}},
                                     {"energy", {{"lower_keV", 350}, {"upper_keV", 650}}},
                                     {"receive", {{"sockets", {{{"port", 4000}}}}}},
                                     {"sources", {{"accept_any", true}}},
                                     {"listmode", {{"write_singles", write_singles}}},
                                     {"pipeline", pipeline}};
    const config::Configuration configuration = config::configuration_from_json(document, "/");
    const config::Scanner scanner =
        config::load_scanner(PETACQ_SOURCE_DIR "/config/examples/small.scanner.json");
    return daemon::pipeline_options(configuration, scanner, producers).threads;
}

}  // namespace

TEST_CASE("settings: by default the pipeline leaves a core to each of the other threads of the data") {
    const std::uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
    CHECK(threads(1) == (cores > 3 ? cores - 3 : 1));
    CHECK(threads(1, {{"threads", 0}}, true) == (cores > 4 ? cores - 4 : 1));
    CHECK(threads(cores) == 1);
    CHECK(threads(cores, {{"threads", 7}}) == 7);
}
