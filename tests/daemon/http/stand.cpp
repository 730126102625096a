// An HTTP server for tests in other languages: prints its port, then shows each status document that it reads
// from standard input, one per line, with more singles for each line. An empty line stands for the full
// document of the fixture. Exits at the end of its input.
//
//   http_stand [CHART_LIBRARY]
#include <iostream>

#include "tests/daemon/http/fixture.hpp"

using namespace petacq;

int main(int argc, char** argv) {
    daemon::HttpOptions options;
    if (argc > 1) options.chart_library = daemon::read_chart_library(argv[1]);
    daemon::HttpServer server(options, test::small_ring());
    std::cout << server.port() << std::endl;  // NOLINT(performance-avoid-endl): it is waited for
    const auto began = std::chrono::steady_clock::now();
    std::uint64_t n = 0;
    for (std::string line; std::getline(std::cin, line);) {
        ++n;
        server.publish({line.empty() ? test::full_status(n) : nlohmann::json::parse(line),
                        test::ring_histograms(n * 1000), began + std::chrono::seconds(n)});
        std::cout << n << std::endl;  // NOLINT(performance-avoid-endl)
    }
}
