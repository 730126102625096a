// The options that each stage gets from the configuration.
#include "daemon/service/settings.hpp"
#include "daemon/backend/pipeline_options.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/catch.hpp"

namespace {

using namespace petacq;

config::Scanner small_example() {
    return config::load_scanner(PETACQ_SOURCE_DIR "/config/examples/small.scanner.json");
}

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
    return daemon::pipeline_options(configuration, small_example(), producers).threads;
}

}  // namespace

TEST_CASE("settings: by default the pipeline leaves a core to each of the other threads of the data") {
    const std::uint32_t cores = std::max(1U, std::thread::hardware_concurrency());
    CHECK(threads(1) == (cores > 3 ? cores - 3 : 1));
    CHECK(threads(1, {{"threads", 0}}, true) == (cores > 4 ? cores - 4 : 1));
    CHECK(threads(cores) == 1);
    CHECK(threads(cores, {{"threads", 7}}) == 7);
}

TEST_CASE("settings: the modules of a source are known by its id or, with bare framing, its place") {
    config::Scanner scanner = small_example();
    REQUIRE(scanner.sources.size() == 4);
    const bool bare = GENERATE(false, true);
    for (std::uint16_t i = 0; i < 4; ++i) {
        if (!bare) scanner.sources[i].id = static_cast<std::uint16_t>(300 - i);
        if (bare) scanner.sources[i] = {{}, "127.0.0.1", i, scanner.sources[i].bdms};
    }
    const nlohmann::json document = {
        {"scanner", "small.scanner.json"},
        {"calibration", "calibration.h5"},
        {"data_dir", "/tmp"},
        {"coincidence", {{"window_ticks", 400}}},
        {"receive", {{"sockets", {{{"port", 4000}}}}, {"framing", bare ? "bare" : "sequenced"}}}};
    const config::Configuration configuration = config::configuration_from_json(document, "/");
    const daemon::AcquisitionOptions options = daemon::acquisition_options(
        configuration, scanner, daemon::tracker_options(configuration, scanner, {}));
    REQUIRE(options.sources.size() == 4);
    for (std::uint16_t i = 0; i < 4; ++i) {
        CHECK(options.sources[i].source == (bare ? i : 300 - i));
        CHECK(options.sources[i].bdms == scanner.sources[i].bdms);
    }
}

TEST_CASE("settings: without more frames, pairs, delayeds and the gammas of both are decided") {
    const config::Scanner scanner = small_example();
    const auto flush_reach = [&](const nlohmann::json& more) {
        nlohmann::json document = {{"scanner", "small.scanner.json"},
                                   {"calibration", "calibration.h5"},
                                   {"data_dir", "/tmp"},
                                   {"energy", {{"lower_keV", 400}, {"upper_keV", 650}}},
                                   {"coincidence", {{"window_ticks", 400}, {"delay_ticks", 5000}}},
                                   {"receive", {{"sockets", {{{"port", 4000}}}}}}};
        document.merge_patch(more);
        return daemon::tracker_options(config::configuration_from_json(document, "/"), scanner, {})
            .flush_reach;
    };
    CHECK(flush_reach(nlohmann::json::object()) == 5400);
    const auto gammas = [&](std::uint64_t after, std::uint64_t delay) {
        return flush_reach({{"gammas",
                             {{"lower_keV", 900},
                              {"upper_keV", 1300},
                              {"before_ticks", 1000},
                              {"after_ticks", after},
                              {"delay_ticks", delay}}}});
    };
    // A gamma waits for the pairs that may come after it.
    CHECK(gammas(300, 2000) == 5400 + 1000);
    CHECK(gammas(300, 9000) == 9300 + 1000);
}
