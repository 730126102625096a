// The documents of the quick look follow the run.
#include "daemon/sinogram/quick_look.hpp"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

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
    CHECK(documents->gamma_times == "null");
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

TEST_CASE("quick look: the times of the gammas are those of the triples of the latest run", "[sinogram]") {
    const config::Scanner scanner = small_scanner();
    config::Gammas gammas;
    gammas.before_ticks = 300;
    gammas.after_ticks = 1000;
    Tap tap;
    const QuickLook look(tap, scanner, opposite_modules(scanner), std::chrono::milliseconds(1), gammas);
    json shown;
    const auto shows = [&](const std::string& run, bool running, std::size_t prompts) {
        return eventually([&] {
            const auto documents = look.documents();
            if (!documents) return false;
            const json sinogram = json::parse(documents->sinogram);
            shown = json::parse(documents->gamma_times);
            return sinogram["prompts"] == prompts && shown["run"] == run && shown["running"] == running;
        });
    };
    const auto pairs = pairs_of_point(scanner, 10, 0);
    std::mt19937 random(1);
    gpu::SliceResult slice;
    slice.coincidences.assign(pairs.begin(), pairs.end());
    slice.triples.push_back({pairs[0], -300, 0, 900, gpu::ThirdPhoton::coincident});
    slice.triples.push_back({pairs[0], 1000, 0, 900, gpu::ThirdPhoton::delayed});
    for (int i = 0; i < 500; ++i) {
        gpu::Triple triple{pairs[0], static_cast<std::int32_t>(random() % 1301) - 300, 1, 900,
                           gpu::ThirdPhoton::coincident};
        if (random() % 3 == 0) triple.third = gpu::ThirdPhoton::delayed;
        if (random() % 4 == 0) triple.pair.kind = gpu::Kind::delayed;
        slice.triples.push_back(triple);
    }
    tap.begin_run("first");
    tap.offer(slice);
    CHECK(shows("first", true, pairs.size()));
    tap.offer(slice);
    tap.end_run();
    REQUIRE(shows("first", false, 2 * pairs.size()));
    CHECK(shown["dropped"] == 0);
    const double tick_ns = scanner.tick_ps * 1e-3;
    const double from = shown["from_ns"];
    const double bin = shown["bin_ns"];
    CHECK(from == Approx(-300 * tick_ns));
    const std::size_t bins = shown["triples"].size();
    CHECK(bins <= 100);
    CHECK(bins >= 50);
    CHECK(from + bin * static_cast<double>(bins) > 1000 * tick_ns);
    CHECK(from + bin * static_cast<double>(bins - 1) <= 1000 * tick_ns);
    for (const auto& [name, third] : {std::pair{"triples", gpu::ThirdPhoton::coincident},
                                      {"delayed_triples", gpu::ThirdPhoton::delayed}}) {
        for (std::size_t i = 0; i < bins; ++i) {
            // Half a tick away from the border between two bins.
            const double start = from + (static_cast<double>(i) * bin) - tick_ns / 2;
            const auto expected =
                2 * std::count_if(slice.triples.begin(), slice.triples.end(), [&](const gpu::Triple& t) {
                    const double time = t.gamma_dt * tick_ns;
                    return t.pair.kind == gpu::Kind::prompt && t.third == third && time > start &&
                           time < start + bin;
                });
            CAPTURE(name, i);
            CHECK(shown[name][i] == expected);
        }
    }

    // The next run begins anew, also without a triple.
    tap.begin_run("second");
    slice.triples.clear();
    tap.offer(slice);
    REQUIRE(shows("second", true, pairs.size()));
    CHECK(shown["triples"] == json(std::vector<int>(bins)));
    tap.end_run();
}
