// An HTTP server for tests in other languages: prints its port, then shows each status document that it reads
// from standard input, one per line, with more singles for each line. An empty line stands for the full
// document of the fixture. Exits at the end of its input.
//
// The token for start, stop and mark is "a token for the test"; they do nothing, and refuse a run "taken".
// DATA_DIR holds the runs, and the history of the rates.
//
// With SCANNER, the description of one, singles are counted in all crystals, as many as their number.
//
//   http_stand [CHART_LIBRARY [DATA_DIR [SCANNER]]]
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "config/energy_bins.hpp"
#include "daemon/run/list.hpp"
#include "daemon/system/logging.hpp"
#include "tests/daemon/http/fixture.hpp"

using namespace petacq;

int main(int argc, char** argv) {
    daemon::HttpOptions options;
    if (argc > 1 && *argv[1] != 0) options.chart_library = daemon::read_chart_library(argv[1]);
    options.control_token = "a token for the test";
    const std::filesystem::path data = argc > 2 ? argv[2] : "";
    options.data_dir = data;
    options.history_file = data.empty() ? data : data / "history.json";
    const daemon::Logging logging(daemon::LogLevel::info);
    daemon::log_info("the stand <b>serves</b> the page");
    daemon::HttpControl control;
    control.start = [](const daemon::StartRequest& request, const daemon::Reply& reply) {
        if (request.run == "taken") return reply.error(daemon::rpc_refused, "run taken is in progress");
        reply.result({{"run", request.run.value_or("")}});
    };
    control.stop = [](const daemon::StopRequest&, const daemon::Reply& reply) {
        reply.result({{"ledger_closed", true}});
    };
    control.mark = [](const std::string& text, const daemon::Reply& reply) {
        reply.result({{"run", "mouse-7"}, {"text", text}});
    };
    control.runs = [&](const daemon::RunsRequest& request, const daemon::Reply& reply) {
        if (!data.empty())
            return reply.result(daemon::RunList(data).page(request.limit, std::nullopt, "mouse-7"));
        reply.result({{"data_dir", "/data"}, {"earlier", 0}, {"runs", nlohmann::json::array()}});
    };
    const config::Scanner scanner = argc > 3 ? config::load_scanner(argv[3]) : test::small_ring();
    const auto histograms = [&](std::uint64_t n) {
        if (scanner.is_ring()) return test::ring_histograms(n);
        auto counted = std::make_shared<gpu::SinglesHistograms>();
        for (std::uint64_t crystal = 0; crystal < scanner.geometry.crystal_count(); ++crystal)
            counted->per_crystal.push_back(n * crystal);
        counted->energy.assign(scanner.geometry.bdm_count * std::size_t{config::energy_bins}, n);
        counted->temperature_sum_16ths.resize(scanner.geometry.unit_count());
        counted->temperature_count.resize(scanner.geometry.unit_count());
        return std::shared_ptr<const gpu::SinglesHistograms>(std::move(counted));
    };
    daemon::HttpServer server(options, scanner, control);
    std::cout << server.port() << std::endl;  // NOLINT(performance-avoid-endl): it is waited for
    const auto began = std::chrono::steady_clock::now();
    std::uint64_t n = 0;
    for (std::string line; std::getline(std::cin, line);) {
        ++n;
        server.publish({line.empty() ? test::full_status(n) : nlohmann::json::parse(line),
                        histograms(n * 1000), began + std::chrono::seconds(n)});
        std::cout << n << std::endl;  // NOLINT(performance-avoid-endl)
    }
}
