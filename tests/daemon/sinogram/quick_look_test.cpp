// The documents of the quick look follow the run.
#include "daemon/sinogram/quick_look.hpp"

#include <nlohmann/json.hpp>

#include "tests/daemon/sinogram/point.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/eventually.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

TEST_CASE("quick look: the documents are those of the latest run", "[sinogram]") {
    const config::Scanner scanner = small_scanner();
    Tap tap;
    const QuickLook look(tap, scanner, opposite_modules(scanner), std::chrono::milliseconds(1));
    CHECK(look.documents() == nullptr);
    const auto shows = [&](const std::string& run, bool running, std::size_t prompts) {
        return eventually([&] {
            const auto documents = look.documents();
            if (!documents) return false;
            const json s = json::parse(documents->sinogram);
            return s["run"] == run && s["running"] == running && s["prompts"] == prompts;
        });
    };
    const auto offer = [&](const std::vector<gpu::Coincidence>& pairs) {
        gpu::SliceResult slice;
        slice.coincidences.assign(pairs.begin(), pairs.end());
        tap.offer(slice);
    };
    const auto pairs = pairs_of_point(scanner, 10, 0);
    tap.begin_run("first \"run\"");
    CHECK(shows("first \"run\"", true, 0));
    offer(pairs);
    CHECK(shows("first \"run\"", true, pairs.size()));
    offer(pairs);
    offer(pairs_of_point(scanner, -3, 2, 1, gpu::Kind::delayed));
    tap.end_run();
    CHECK(shows("first \"run\"", false, 2 * pairs.size()));
    const auto documents = look.documents();
    const json sinogram = json::parse(documents->sinogram);
    const json image = json::parse(documents->image);
    CHECK(sinogram["delayeds"] == pairs_of_point(scanner, -3, 2, 1).size());
    CHECK(sinogram["dropped"] == 0);
    CHECK(sinogram["counts"].size() ==
          sinogram["angles"].get<std::size_t>() * sinogram["radial"].get<std::size_t>());
    CHECK(sinogram["radius_mm"] == scanner.dimensions.ring_radius_mm);
    CHECK(image["prompts"] == sinogram["prompts"]);
    CHECK(image["values"].size() == image["size"].get<std::size_t>() * image["size"].get<std::size_t>());

    tap.begin_run("second");
    offer(pairs);
    CHECK(shows("second", true, pairs.size()));
    tap.end_run();
    CHECK(shows("second", false, pairs.size()));
    CHECK(tap.statistics().dropped == 0);
    CHECK(tap.statistics().clients == 0);
}
