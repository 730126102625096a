// The documents of the quick look follow the run.
#include "daemon/sinogram/quick_look.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
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
    CHECK(documents->gammas == "null");
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

namespace {

double time_of(const gpu::Triple& t, double tick_ns) {
    return (t.pair.dt / 2. - t.gamma_dt) * tick_ns;
}

/// The counts of a histogram are those of the triples of prompts, each offered twice.
void check_histogram(const json& shown, const std::string& unit, const std::vector<gpu::Triple>& triples,
                     const std::function<double(const gpu::Triple&)>& value, double lowest, double highest) {
    CAPTURE(unit);
    const double from = shown["from_" + unit];
    const double bin = shown["bin_" + unit];
    CHECK(from == Approx(lowest));
    const std::size_t bins = shown["triples"].size();
    CHECK(bins <= 100);
    CHECK(bins >= 50);
    CHECK(from + bin * static_cast<double>(bins) >= highest);
    for (const auto& [name, third] : {std::pair{"triples", gpu::ThirdPhoton::coincident},
                                      {"delayed_triples", gpu::ThirdPhoton::delayed}}) {
        std::vector<int> expected(bins);
        for (const gpu::Triple& t : triples) {
            if (t.pair.kind != gpu::Kind::prompt || t.third != third) continue;
            if (value(t) > highest + 1e-6) continue;
            // A little above, as times lie on the borders between bins.
            const auto place = static_cast<std::size_t>((value(t) - from) / bin + 1e-6);
            expected.at(std::min(place, bins - 1)) += 2;
        }
        CHECK(shown[name].get<std::vector<int>>() == expected);
    }
}

}  // namespace

TEST_CASE("quick look: the histograms of gammas are those of the triples of the latest run", "[sinogram]") {
    const config::Scanner scanner = small_scanner();
    config::Gammas gammas;
    gammas.before_ticks = 1000;
    gammas.after_ticks = 300;
    gammas.lower_keV = 900.5;
    gammas.upper_keV = 1100;
    constexpr std::uint32_t window_ticks = 50;
    Tap tap;
    const QuickLook look(tap, scanner, opposite_modules(scanner), std::chrono::milliseconds(1),
                         sinogram::GammaHistograms(gammas));
    json shown;
    const auto shows = [&](const std::string& run, bool running, std::size_t prompts) {
        return eventually([&] {
            const auto documents = look.documents();
            if (!documents) return false;
            const json sinogram = json::parse(documents->sinogram);
            shown = json::parse(documents->gammas);
            return sinogram["prompts"] == prompts && shown["run"] == run && shown["running"] == running;
        });
    };
    const auto pairs = pairs_of_point(scanner, 10, 0);
    std::mt19937 random(1);
    gpu::SliceResult slice;
    slice.coincidences.assign(pairs.begin(), pairs.end());
    gpu::Triple triple{pairs[0], -1000, 0, 1100, gpu::ThirdPhoton::coincident};
    triple.pair.dt = window_ticks;
    slice.triples.push_back(triple);
    triple = {pairs[0], 300, 0, 900.5, gpu::ThirdPhoton::delayed};
    triple.pair.dt = 0;
    slice.triples.push_back(triple);
    for (int i = 0; i < 500; ++i) {
        triple.gamma_dt = static_cast<std::int32_t>(random() % 1301) - 1000;
        triple.pair.dt = static_cast<std::uint32_t>(random() % (window_ticks + 1));
        triple.gamma_energy = 900.5F + static_cast<float>(random() % 19951) / 100;
        triple.third = random() % 3 == 0 ? gpu::ThirdPhoton::delayed : gpu::ThirdPhoton::coincident;
        triple.pair.kind = random() % 4 == 0 ? gpu::Kind::delayed : gpu::Kind::prompt;
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
    const std::vector<gpu::Triple> triples(slice.triples.begin(), slice.triples.end());
    check_histogram(
        shown["times"], "ns", triples, [&](const gpu::Triple& t) { return time_of(t, tick_ns); },
        -300 * tick_ns, 1000 * tick_ns);
    check_histogram(
        shown["energies"], "keV", triples, [](const gpu::Triple& t) { return t.gamma_energy; }, 900.5, 1100);

    // The next run begins anew, also without a triple.
    tap.begin_run("second");
    slice.triples.clear();
    tap.offer(slice);
    REQUIRE(shows("second", true, pairs.size()));
    for (const char* of : {"times", "energies"})
        CHECK(shown[of]["triples"] == json(std::vector<int>(shown[of]["triples"].size())));
    tap.end_run();
}
