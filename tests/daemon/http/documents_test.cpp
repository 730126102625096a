// The documents: health, history, singles.
#include <algorithm>
#include <limits>
#include <thread>

#include "daemon/http/rate_history.hpp"
#include "daemon/http/singles.hpp"
#include "daemon/run/histograms.hpp"
#include "tests/daemon/control/fixture.hpp"
#include "tests/daemon/http/fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using namespace petacq::daemon;
using nlohmann::json;

namespace {

json document(const HttpServer& server, const std::string& path) {
    return json::parse(http_get(server.port(), path).body);
}

}  // namespace

TEST_CASE("without a status all documents are empty and health is failed", "[http]") {
    const HttpServer server({}, small_ring());
    const HttpAnswer health = http_get(server.port(), "/healthz");
    CHECK(health.status == 503);
    CHECK(json::parse(health.body) == json{{"health", "failed"}, {"reasons", {"no status yet"}}});
    CHECK(http_get(server.port(), "/status").body == "null");
    CHECK(document(server, "/history")["time"].empty());
    CHECK(document(server, "/singles")["since_start"].is_null());
    CHECK(http_get(server.port(), "/metrics").status == 200);
}

TEST_CASE("health is 200 unless it has failed", "[http]") {
    HttpServer server({}, small_ring());
    const std::vector<std::pair<std::string, int>> states{{"ok", 200}, {"degraded", 200}, {"failed", 503}};
    double uptime = 1;
    for (const auto& [state, code] : states) {
        json status = full_status();
        status["health"]["state"] = state;
        status["uptime_s"] = ++uptime;
        server.publish({status, nullptr, {}});
        REQUIRE(shows_uptime(server.port(), uptime));
        const HttpAnswer answer = http_get(server.port(), "/healthz");
        CHECK(answer.status == code);
        CHECK(json::parse(answer.body) == json{{"health", state}, {"reasons", status["health"]["reasons"]}});
        CHECK(answer.body.back() == '\n');
    }
}

TEST_CASE("documents stay valid if the status contains text that is not UTF-8", "[http]") {
    HttpServer server({}, small_ring());
    json status = full_status();
    status["run"]["note"] = "caf\xe9";
    server.publish({status, nullptr, {}});
    CHECK(shows_uptime(server.port(), 101));
    CHECK(http_get(server.port(), "/metrics").status == 200);
}

TEST_CASE("singles since the start", "[http]") {
    HttpServer server({}, small_ring());
    const auto began = std::chrono::steady_clock::now();
    server.publish({full_status(1), ring_histograms(1), began});
    REQUIRE(shows_uptime(server.port(), 101));
    json singles = document(server, "/singles");
    CHECK(singles["rings"] == 2);
    CHECK(singles["crystals_in_ring"] == 6);
    CHECK(singles["crystals_per_module"] == json{{"around", 3}, {"along", 2}});
    CHECK(singles["energy_bin_keV"] == 4);
    CHECK(singles["energy_bins"] == 256);
    CHECK(singles["interval"].is_null());
    CHECK(singles["interval_s"].is_null());
    CHECK(singles["since_start"]["per_crystal"] == json::array({1, 2, 3, 4, 5, 0, 7, 8, 9, 10, 11, 12}));
}

TEST_CASE("the spectra of singles say how wide their bins are", "[http]") {
    petacq::gpu::SinglesHistograms histograms = *ring_histograms(1);
    const petacq::config::Geometry g = small_ring().geometry;
    CHECK(json::parse(singles_document(g, nullptr, nullptr, 0))["energy_bin_keV"].is_null());
    for (const int width : {4, 8, 16}) {
        histograms.energy_bin_keV = static_cast<float>(width);
        CHECK(json::parse(singles_document(g, &histograms, nullptr, 0))["energy_bin_keV"] == width);
        CHECK(to_json(histograms, g)["energy_bin_keV"] == width);
    }
}

TEST_CASE("a status without new histograms keeps the interval of the singles", "[http]") {
    HttpServer server({}, small_ring());
    const auto began = std::chrono::steady_clock::now();
    const auto later = ring_histograms(3);
    server.publish({full_status(1), ring_histograms(1), began});
    server.publish({full_status(2), later, began + std::chrono::milliseconds(1500)});
    server.publish({full_status(3), later, began + std::chrono::milliseconds(1500)});
    REQUIRE(shows_uptime(server.port(), 103));
    const json singles = document(server, "/singles");
    CHECK(singles["interval_s"] == 1.5);
    CHECK(singles["interval"]["per_crystal"] == json::array({2, 4, 6, 8, 10, 0, 14, 16, 18, 20, 22, 24}));
    CHECK(singles["since_start"]["per_crystal"][11] == 36);
    REQUIRE(singles["interval"]["energy"].size() == 256);
    CHECK(singles["interval"]["energy"][127] == 20);
    CHECK(singles["interval"]["energy"][128] == 40);
    REQUIRE(singles["interval"]["energy_per_module"].size() == 2);
    CHECK(singles["interval"]["energy_per_module"][0][127] == 20);
    CHECK(singles["interval"]["energy_per_module"][0][128] == 0);
    CHECK(singles["since_start"]["energy_per_module"][1][128] == 60);
}

TEST_CASE("expected randoms by crystal and by pair of modules", "[http]") {
    HttpServer server({}, small_ring());
    CHECK(document(server, "/randoms").is_null());
    // Half a second.
    auto second = std::make_shared<petacq::daemon::Second>();
    second->range = {3000, 3500};
    second->length_s = 0.5;
    second->randoms.per_crystal.assign(12, 0.25);
    second->randoms.per_crystal[7] = 0.0625;
    second->randoms.per_crystal[8] = std::numeric_limits<double>::quiet_NaN();
    second->randoms.modules = 2;
    second->randoms.module_pairs = {0, 1.40625, 1.40625, 0};
    second->randoms.total = 1.40625;
    server.publish({full_status(), nullptr, {}, second});
    REQUIRE(shows_uptime(server.port(), 101));
    const json shown = document(server, "/randoms");
    CHECK(shown["start_ticks"] == 3000);
    CHECK(shown["length_s"] == 0.5);
    CHECK(shown["total_per_s"] == 2.8125);
    CHECK(shown["modules"] == 2);
    REQUIRE(shown["per_crystal_per_s"].size() == 12);
    CHECK(shown["per_crystal_per_s"][6] == 0.5);
    CHECK(shown["per_crystal_per_s"][7] == 0.125);
    CHECK(shown["per_crystal_per_s"][8].is_null());
    CHECK(shown["per_module_pair_per_s"] == json::array({0.0, 2.8125, 2.8125, 0.0}));
    // In the next second it is unknown.
    server.publish({full_status(2), nullptr, {}});
    REQUIRE(shows_uptime(server.port(), 102));
    CHECK(document(server, "/randoms").is_null());
}

TEST_CASE("the history contains the rates of earlier statuses", "[http]") {
    HttpServer server({}, small_ring());
    for (std::uint64_t n = 1; n <= 3; ++n)
        server.publish({full_status(n), nullptr, {}});
    json quiet = full_status(4);
    quiet["rates"]["net_trues_per_s"] = nullptr;
    quiet["rates"].erase("lost_fraction");
    server.publish({quiet, nullptr, {}});
    REQUIRE(shows_uptime(server.port(), 104));
    const json history = document(server, "/history");
    CHECK(history["uptime_s"] == json::array({101.0, 102.0, 103.0, 104.0}));
    CHECK(history["prompts_per_s"] == json::array({1234.5, 2469.0, 3703.5, 4938.0}));
    CHECK(history["net_trues_per_s"] == json::array({1000.25, 2000.5, 3000.75, nullptr}));
    CHECK(history["lost_fraction"] == json::array({0.00125, 0.00125, 0.00125, nullptr}));
    const double now =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    CHECK(history["time"][3].get<double>() == Approx(now).margin(120));
}

TEST_CASE("a full history drops its oldest row", "[http]") {
    RateHistory history(3);
    const std::chrono::system_clock::time_point start{std::chrono::milliseconds(1'700'000'000'125)};
    for (int i = 0; i < 8; ++i) {
        json status = {{"uptime_s", i}, {"rates", {{"singles_per_s", i * 10}}}};
        history.add(status, start + std::chrono::seconds(i));
    }
    history.add({{"uptime_s", 8}}, start + std::chrono::seconds(8));
    const json text = json::parse(history.text());
    CHECK(text["uptime_s"] == json::array({6.0, 7.0, 8.0}));
    CHECK(text["singles_per_s"] == json::array({60.0, 70.0, nullptr}));
    CHECK(text["time"][0] == 1'700'000'006.125);
    CHECK(text.size() == 2 + RateHistory::columns.size());
}

TEST_CASE("the spectra of a detector unit", "[http]") {
    const petacq::config::Geometry g = small_ring().geometry;
    std::vector<std::uint32_t> asked;
    auto counts = std::make_shared<petacq::gpu::UnitSpectra>();
    counts->flood = {1, 0, 7};
    counts->energies.resize(g.crystals_per_du() * std::size_t{256});
    counts->energies[256 + 3] = 5;
    const std::uint32_t last = g.bdm_count * g.du_count - 1;
    HttpServer server({}, small_ring(), {}, [&](std::uint32_t unit) {
        asked.push_back(unit);
        return unit == last ? counts : nullptr;
    });
    CHECK(document(server, "/spectra/0/0").is_null());
    const std::string path =
        "/spectra/" + std::to_string(g.bdm_count - 1) + "/" + std::to_string(g.du_count - 1);
    const json unit = document(server, path);
    CHECK(unit["bdm"] == g.bdm_count - 1);
    CHECK(unit["du"] == g.du_count - 1);
    CHECK(unit["modules"] == g.bdm_count);
    CHECK(unit["units"] == g.du_count);
    CHECK(unit["flood"] == json{1, 0, 7});
    CHECK(unit["energy_bin_keV"] == 4);
    REQUIRE(unit["energy_per_crystal"].size() == g.crystals_per_du());
    CHECK(unit["energy_per_crystal"][1].size() == 256);
    CHECK(unit["energy_per_crystal"][1][3] == 5);
    document(server, path);  // once for each status
    server.close();
    CHECK(asked == std::vector<std::uint32_t>{0, last});
    HttpServer without({}, small_ring());
    CHECK(document(without, "/spectra/0/0").is_null());
    for (const char* wrong : {"/spectra", "/spectra/", "/spectra/0", "/spectra/0/", "/spectra/0/99",
                              "/spectra/99/0", "/spectra/-1/0", "/spectra/0/0/", "/spectra/0x0/0",
                              "/spectra/99999999999/0", "/spectra/00/0", "/spectra/0/00", "/spectra/01/0"}) {
        INFO(wrong);
        CHECK(http_get(without.port(), wrong).status == 404);
    }
}

namespace {

petacq::config::Scanner example_scanner(const std::string& name) {
    return petacq::config::load_scanner(PETACQ_SOURCE_DIR "/config/examples/scanners/" + name +
                                        ".scanner.json");
}

/// The unit of each crystal, from its runs.
std::vector<std::uint32_t> units_in(const json& scanner) {
    std::vector<std::uint32_t> units;
    const json& runs = scanner["unit_of_crystals"];
    for (std::size_t i = 0; i < runs.size(); i += 2)
        units.insert(units.end(), runs[i + 1].get<std::size_t>(), runs[i].get<std::uint32_t>());
    return units;
}

}  // namespace

TEST_CASE("the scanner: modules, layers and units of each crystal", "[http]") {
    std::vector<petacq::config::Scanner> scanners{small_ring()};
    for (const char* const name : {"box", "insert", "phoswich", "unequal-blocks"})
        scanners.push_back(example_scanner(name));
    for (const petacq::config::Scanner& s : scanners) {
        INFO(s.name);
        const petacq::config::Geometry& g = s.geometry;
        const HttpServer server({}, s);
        const json scanner = document(server, "/scanner");
        CHECK(scanner["name"] == s.name);
        CHECK(scanner["crystals"] == g.crystal_count());
        CHECK(scanner["units_per_module"] == g.du_count);
        CHECK(scanner["ring"].is_null() != g.is_ring());
        const auto units = units_in(scanner);
        REQUIRE(units.size() == g.crystal_count());
        for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
            for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local)
                REQUIRE(units[g.crystal(unit / g.du_count, unit % g.du_count, local)] == unit);
        }
        // Each crystal once, by the numbers of its module, layer, column and row, at its place.
        std::vector<bool> seen(g.crystal_count());
        for (const json& module : scanner["modules"]) {
            for (const json& layer : scanner["types"][module["type"].get<std::size_t>()]["layers"]) {
                for (std::size_t column = 0; column < layer["y_mm"].size(); ++column) {
                    for (std::size_t row = 0; row < layer["z_mm"].size(); ++row) {
                        const auto crystal = module["first"].get<std::size_t>() +
                                             layer["first"].get<std::size_t>() +
                                             column * layer["column_step"].get<std::size_t>() +
                                             row * layer["row_step"].get<std::size_t>();
                        REQUIRE(crystal < seen.size());
                        REQUIRE_FALSE(seen[crystal]);
                        seen[crystal] = true;
                    }
                }
            }
        }
        CHECK(std::count(seen.begin(), seen.end(), false) == 0);
        CHECK(scanner["map"]["width_mm"] > 0);
    }
}

TEST_CASE("singles and spectra of a scanner in the long form", "[http]") {
    const petacq::config::Scanner s = petacq::config::scanner_from_json(json::parse(R"({
        "name": "gaps", "tick_ps": 10, "position_size": 8,
        "module_types": [{"name": "block", "layers": [{"y": {"count": 3, "pitch_mm": 4}, "z": {"count": 2, "pitch_mm": 4}, "length_mm": 10}],
                          "units": [{"y": [0, 0]}, {"y": [1, 2]}]}],
        "modules": [{"type": "block", "ring": {"count": 4, "radius_mm": 20}}],
        "channel_map": {"units": [{"bdm": 0, "du": 0, "module": 0, "unit": 0}, {"bdm": 0, "du": 2, "module": 0, "unit": 1},
                                  {"bdm": 2, "du": 0, "module": 1, "unit": 0}, {"bdm": 2, "du": 1, "module": 1, "unit": 1},
                                  {"bdm": 3, "du": 0, "module": 2, "unit": 0}, {"bdm": 3, "du": 1, "module": 2, "unit": 1},
                                  {"bdm": 4, "du": 0, "module": 3, "unit": 0}, {"bdm": 4, "du": 1, "module": 3, "unit": 1}]}})"));
    auto counts = std::make_shared<petacq::gpu::UnitSpectra>();
    counts->flood = {1, 0, 7};
    counts->energies.resize(s.geometry.crystals_per_du() * std::size_t{256});
    const HttpServer server({}, s, {}, [&](std::uint32_t) { return counts; });
    const json singles = document(server, "/singles");
    CHECK(singles["rings"].is_null());
    CHECK(singles["crystals_in_ring"].is_null());
    const json small = document(server, "/spectra/0/0");
    CHECK(small["energy_per_crystal"].size() == 2);
    CHECK(small["crystals"] == json{0, 1});
    CHECK(document(server, "/spectra/0/2")["crystals"] == json{2, 3, 4, 5});
    for (const char* const absent : {"/spectra/0/1", "/spectra/1/0", "/spectra/2/2", "/spectra/5/0"}) {
        INFO(absent);
        CHECK(http_get(server.port(), absent).status == 404);
    }
}
