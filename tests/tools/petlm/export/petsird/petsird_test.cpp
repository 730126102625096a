// A slow reader decodes the PETSIRD files of petlm by the schema in them, and compares every event, the
// places of the crystals and the header. No other program runs.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <numbers>
#include <optional>
#include <set>
#include <tuple>

#include "daemon/coverage/coverage.hpp"
#include "daemon/listmode/writer.hpp"
#include "daemon/system/utc.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/odd_scanner.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/petlm/export/petsird/yardl_file.hpp"
#include "tools/petlm/export/export.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;
using petsird::Version;

namespace {

constexpr double tick_ps = 10;
constexpr std::uint64_t ms = 100'000'000;  ///< ticks
constexpr std::uint64_t start = 5 * ms + 7;
constexpr std::uint64_t window_ticks = 300;
constexpr double half_light_mm_per_ps = 0.299792458 / 2;

/// Six modules around, two along the axis, uneven in every direction.
config::Scanner ring_scanner() {
    config::Scanner s;
    s.name = "small ring";
    s.geometry = {6, {1, 1, 2}, {1, 1, 1}, {1, 3, 2}, 12, 1, 16};
    s.tick_ps = tick_ps;
    s.dimensions = {32, 1.6, 1.7, 12, 0.4, 0.5, 1};
    return s;
}

daemon::Coverage coverage_of(const config::Scanner& scanner) {
    daemon::Coverage coverage;
    coverage.tick_ps = tick_ps;
    // The first one ends within its fourth millisecond.
    coverage.intervals =
        daemon::Intervals({{start, start + 3 * ms + ms / 2}, {start + 10 * ms, start + 12 * ms}});
    coverage.anchor = daemon::TimeAnchor{start, *daemon::utc_time("2026-11-20T18:45:00.123Z")};
    json rules = {{"window_ticks", window_ticks}, {"delay_ticks", 10000}};
    if (scanner.is_ring()) rules["min_module_difference"] = 2;
    coverage.rules.coincidence = config::coincidence_from_json(rules);
    coverage.rules.energy =
        config::energy_from_json({{"filter", true}, {"lower_keV", 350}, {"upper_keV", 650}});
    coverage.rules.gammas = config::gammas_from_json({{"lower_keV", 800},
                                                      {"upper_keV", 1400},
                                                      {"before_ticks", 1000},
                                                      {"after_ticks", 2000},
                                                      {"delay_ticks", 100000}});
    coverage.activity =
        daemon::StatedActivity{"Sc-44", 14292, 0.9427, 12.5, daemon::utc_time("2026-11-20T18:00:00Z")};
    return coverage;
}

template <class Record>
void write_file_of(const std::filesystem::path& file, daemon::RecordKind kind,
                   const gpu::RecordVector<Record>& records, const config::Scanner& scanner) {
    daemon::ListModeOptions options;
    options.kind = kind;
    options.block_bytes = 4096;
    options.sync_interval_ms = 3'600'000;
    const json description = {{"run_id", "small"},
                              {"tick_ps", tick_ps},
                              {"crystals", scanner.geometry.crystal_count()},
                              {"coverage", daemon::to_json(coverage_of(scanner))}};
    daemon::ListModeWriter writer(file, options, description);
    writer.append(gpu::RecordVector<Record>(records));
    REQUIRE(writer.finish().written == records.size());
}

/// Repeatable values without a library's distributions.
class Numbers {
  public:
    std::uint64_t below(std::uint64_t limit) {
        state_ = state_ * 6364136223846793005U + 1442695040888963407U;
        return (state_ >> 33U) % limit;
    }

  private:
    std::uint64_t state_ = 1;
};

struct Records {
    gpu::RecordVector<gpu::Coincidence> pairs;
    gpu::RecordVector<gpu::Triple> triples;
};

Records records_for(const config::Scanner& scanner, std::size_t count) {
    Numbers numbers;
    const std::uint32_t crystals = scanner.geometry.crystal_count();
    const auto crystal = [&] { return static_cast<std::uint32_t>(numbers.below(crystals)); };
    std::set<std::uint64_t> times;
    while (times.size() < count) {
        const std::uint64_t time = start + numbers.below(12 * ms);
        if (time < start + 3 * ms + ms / 2 || time >= start + 10 * ms) times.insert(time);
    }
    Records out;
    for (const std::uint64_t time : times) {
        gpu::Coincidence c{time,
                           static_cast<std::uint32_t>(numbers.below(window_ticks + 1)),
                           crystal(),
                           0,
                           static_cast<float>(350 + numbers.below(301)),
                           static_cast<float>(350 + numbers.below(301)),
                           numbers.below(4) == 0 ? gpu::Kind::delayed : gpu::Kind::prompt};
        do
            c.crystal_b = crystal();
        while (c.crystal_b == c.crystal_a);
        out.pairs.push_back(c);
        if (numbers.below(2) == 0) continue;
        out.triples.push_back(
            {c, static_cast<std::int32_t>(numbers.below(3001)) - 1000, crystal(),
             static_cast<float>(800 + numbers.below(601)),
             numbers.below(4) == 0 ? gpu::ThirdPhoton::delayed : gpu::ThirdPhoton::coincident});
    }
    return out;
}

struct Run {
    Run(const config::Scanner& of, bool with_triples) : scanner(of), records(records_for(of, 400)) {
        using Kind = daemon::RecordKind;
        const auto folder = directory / "run";
        std::filesystem::create_directories(folder);
        write_file_of(folder / "coincidences.plm", Kind::coincidences, records.pairs, scanner);
        if (with_triples) write_file_of(folder / "triples.plm", Kind::triples, records.triples, scanner);
        const gpu::RecordVector<gpu::Tag> tags = {{start + 2 * ms, 77, 1, 3, 0},
                                                  {start + 11 * ms, 78, 1, 3, 0}};
        write_file_of(folder / "tags.plm", Kind::tags, tags, scanner);
        const json run = {{"run_id", "small"},
                          {"state", "complete"},
                          {"scanner", config::to_json(scanner)},
                          {"note", "a note"},
                          {"operator", {{"subject", "mouse 7"}, {"bed_mm", 12.5}}},
                          {"coverage", daemon::to_json(coverage_of(scanner))}};
        write_file(folder / "run.json", run.dump());
    }
    YardlFile exported(const petsird::PetsirdOptions& how) const {
        petlm::ExportOptions options;
        options.format = "petsird";
        options.target = directory / "run";
        options.output = directory / "run.petsird";
        options.force = true;
        options.tof_resolution_ps = 283;
        options.petsird = how;
        petlm::export_quietly(options);
        return YardlFile(read_file(options.output));
    }
    TemporaryDirectory directory;
    config::Scanner scanner;
    Records records;
};

using Point = std::array<double, 3>;

Point moved(const json& matrix, const Point& point) {
    Point out{};
    for (std::size_t row = 0; row < 3; ++row) {
        out[row] = matrix[4 * row + 3].get<double>();
        for (std::size_t column = 0; column < 3; ++column)
            out[row] += matrix[4 * row + column].get<double>() * point[column];
    }
    return out;
}

Point corner(const json& box, std::size_t number) {
    const json& c = box.at("corners").at(number).at("c");
    return {c[0], c[1], c[2]};
}

double apart(const Point& a, const Point& b) {
    return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

/// Which crystal of the scanner each element of a type of modules is, by its place; in the order of the bins.
std::vector<std::vector<std::uint32_t>> crystals_in(const json& header, const config::Scanner& scanner) {
    std::vector<std::vector<std::uint32_t>> out;
    std::set<std::uint32_t> found;
    for (const json& type : header.at("scanner").at("scannerGeometry").at("replicatedModules")) {
        const json& elements = type["object"]["detectingElements"];
        const json& box = elements["object"]["shape"];
        const Point low = corner(box, 0);
        Point high = low;
        for (std::size_t k = 0; k < 8; ++k)
            for (std::size_t axis = 0; axis < 3; ++axis)
                high[axis] = std::max(high[axis], corner(box, k)[axis]);
        // Modules face along x.
        const Point front = {low[0], (low[1] + high[1]) / 2, (low[2] + high[2]) / 2};
        const Point back = {high[0], front[1], front[2]};
        out.emplace_back();
        for (const json& module : type["transforms"]) {
            for (const json& element : elements["transforms"]) {
                const auto place = [&](const Point& p) {
                    return moved(module["matrix"], moved(element["matrix"], p));
                };
                const Point at = place(front);
                std::optional<std::uint32_t> crystal;
                for (std::uint32_t k = 0; k < scanner.geometry.crystal_count(); ++k)
                    if (apart(config::crystal_place(scanner, k).front_centre_mm, at) < 1e-3) crystal = k;
                REQUIRE(crystal);
                REQUIRE(found.insert(*crystal).second);
                const auto of = config::crystal_place(scanner, *crystal);
                for (std::size_t axis = 0; axis < 3; ++axis)
                    CHECK(place(back)[axis] - at[axis] ==
                          Approx(of.outward[axis] * (high[0] - low[0])).margin(1e-3));
                out.back().push_back(*crystal);
            }
        }
    }
    CHECK(found.size() == scanner.geometry.crystal_count());
    return out;
}

/// Where the bins of a file are, and the numbers of an event.
struct Layout {
    Layout(const json& header, const config::Scanner& scanner)
        : crystals(crystals_in(header, scanner)), information(header.at("scanner")) {
        for (std::size_t type = 0; type < crystals.size(); ++type)
            for (std::size_t number = 0; number < crystals[type].size(); ++number)
                place[crystals[type][number]] = {type, number};
    }
    /// The energy bin that holds an energy, the upper end of the last one included.
    [[nodiscard]] std::size_t energy_bin(std::size_t type, double energy) const {
        const json& edges = information.at("eventEnergyBinEdges").at(type).at("edges");
        for (std::size_t k = 0; k + 1 < edges.size(); ++k)
            if (energy >= edges[k].get<double>() &&
                (energy < edges[k + 1].get<double>() || energy == 650 || energy == 1400) &&
                energy <= edges[k + 1].get<double>())
                return k;
        FAIL("no bin for " << energy << " keV");
        return 0;
    }
    /// The TOF bin of the arrival of the first photon less that of the second.
    [[nodiscard]] std::size_t tof_bin(std::size_t type_a, std::size_t type_b, std::int64_t ticks) const {
        const json& edges = information.at("tofBinEdges").at(type_a).at(type_b).at("edges");
        const double mm = static_cast<double>(ticks) * tick_ps * half_light_mm_per_ps;
        for (std::size_t k = 0; k + 1 < edges.size(); ++k)
            if (mm > edges[k].get<double>() && mm < edges[k + 1].get<double>()) return k;
        FAIL("no TOF bin for " << mm << " mm");
        return 0;
    }

    std::vector<std::vector<std::uint32_t>> crystals;                    ///< [type][element]
    std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> place;  ///< of a crystal
    json information;
};

struct Photon {
    std::uint32_t crystal;
    double energy;
    std::int64_t arrival;  ///< ticks after the pair
};

/// The photons of an event as the file has to number them: types, detection bins, and TOF bins of the first
/// with each of the others.
struct Event {
    std::vector<std::size_t> types;
    json value;
};

Event event_of(const Layout& layout, std::vector<Photon> photons) {
    struct Numbered {
        std::size_t type;
        std::size_t bin;
        std::int64_t arrival;
    };
    std::vector<Numbered> all;
    for (const Photon& photon : photons) {
        const auto& [type, element] = layout.place.at(photon.crystal);
        const std::size_t bins = layout.information["eventEnergyBinEdges"][type]["edges"].size() - 1;
        all.push_back({type, element * bins + layout.energy_bin(type, photon.energy), photon.arrival});
    }
    // The highest type and bin first.
    std::stable_sort(all.begin(), all.end(), [](const Numbered& a, const Numbered& b) {
        return std::tie(a.type, a.bin) > std::tie(b.type, b.bin);
    });
    Event out;
    json bins = json::array();
    json tof = json::array();
    for (const Numbered& photon : all) {
        out.types.push_back(photon.type);
        bins.push_back(photon.bin);
        if (bins.size() > 1)
            tof.push_back(layout.tof_bin(all[0].type, photon.type, all[0].arrival - photon.arrival));
    }
    if (photons.size() == 2) {
        out.value = {{"detectionBins", bins}, {"tofIdx", tof[0]}};
    } else {
        out.value = {{"detectionBins", bins}, {"tofIndices", tof}};
    }
    return out;
}

/// Empty lists for all types: of 0.12 those that are not the higher ones.
json lists(std::size_t types, std::size_t photons, bool triangular) {
    json out = json::array();
    for (std::size_t type = 0; type < types; ++type)
        out.push_back(photons == 1 ? json::array()
                                   : lists(triangular ? type + 1 : types, photons - 1, triangular));
    return out;
}

void add(json& table, const Event& event) {
    json* at = &table;
    for (const std::size_t type : event.types)
        at = &at->at(type);
    at->push_back(event.value);
}

/// The time blocks of events, made of the records one by one.
json expected_blocks(const Run& run, const Layout& layout, bool triples, Version version) {
    const bool triangular = version == Version::v0_12_0;
    const std::size_t types = layout.crystals.size();
    json blocks = json::array();
    for (const std::uint64_t begin : {0, 1, 2, 3, 10, 11, 12}) {
        const bool last = begin == 12;
        const auto is_in = [&](std::uint64_t time) { return (time - start) / ms == begin; };
        json block = {{"timeInterval", {{"start", begin}, {"stop", last ? begin : begin + 1}}},
                      {"singleEvents", json::array()},
                      {"promptEvents", lists(types, 2, triangular)},
                      {"delayedEvents", lists(types, 2, triangular)},
                      {"tripleEvents", triples ? lists(types, 3, triangular) : json::array()},
                      {"quadrupleEvents", json::array()}};
        for (const gpu::Coincidence& c : run.records.pairs) {
            if (!is_in(c.time)) continue;
            const Event event =
                event_of(layout, {{c.crystal_a, c.energy_a, 0}, {c.crystal_b, c.energy_b, c.dt}});
            add(block[c.kind == gpu::Kind::prompt ? "promptEvents" : "delayedEvents"], event);
        }
        for (const gpu::Triple& t : run.records.triples) {
            const bool held = t.pair.kind == gpu::Kind::prompt && t.third == gpu::ThirdPhoton::coincident;
            if (!triples || !held || !is_in(t.pair.time)) continue;
            add(block["tripleEvents"], event_of(layout, {{t.pair.crystal_a, t.pair.energy_a, 0},
                                                         {t.pair.crystal_b, t.pair.energy_b, t.pair.dt},
                                                         {t.gamma_crystal, t.gamma_energy, t.gamma_dt}}));
        }
        blocks.push_back(std::move(block));
    }
    return blocks;
}

json blocks_of(const YardlFile& file, const std::string& tag) {
    json out = json::array();
    for (const json& block : file.step("timeBlocks"))
        if (block["tag"] == tag) out.push_back(block["value"]);
    return out;
}

std::vector<double> numbers_in(const json& list) {
    return list.get<std::vector<double>>();
}

std::int64_t unix_ns(const char* utc) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(daemon::utc_time(utc)->time_since_epoch())
        .count();
}

void check_events(const Run& run, const petsird::PetsirdOptions& how, bool triples) {
    CAPTURE(petsird::name_of(how.version), run.scanner.name, triples);
    const YardlFile file = run.exported(how);
    const Layout layout(file.step("header"), run.scanner);
    const json found = blocks_of(file, "EventTimeBlock");
    const json expected = expected_blocks(run, layout, triples, how.version);
    REQUIRE(found.size() == expected.size());
    for (std::size_t k = 0; k < found.size(); ++k) {
        for (const auto& [field, value] : expected[k].items()) {
            CAPTURE(k, field);
            const bool same = found[k][field] == value;  // not both texts, which are long
            CHECK(same);
        }
    }
}

constexpr std::array both_versions = {Version::v0_9_1, Version::v0_12_0};

}  // namespace

TEST_CASE("petsird: pairs, delayeds and triples are where the records say", "[petlm][petsird]") {
    for (const config::Scanner& scanner : {ring_scanner(), odd_scanner()}) {
        const Run pairs(scanner, false);
        const Run with_triples(scanner, true);
        for (const Version version : both_versions) {
            petsird::PetsirdOptions how;
            how.version = version;
            check_events(pairs, how, false);
            check_events(with_triples, how, true);
            how.energy_bins = 3;
            how.tof_bin_ticks = 1;
            check_events(pairs, how, false);
        }
    }
}

TEST_CASE("petsird: the header has the bins, the policies and the scanner", "[petlm][petsird]") {
    const Run ring(ring_scanner(), false);
    const Run odd(odd_scanner(), true);
    for (const Version version : both_versions) {
        const bool old = version == Version::v0_9_1;
        petsird::PetsirdOptions how;
        how.version = version;
        CAPTURE(petsird::name_of(version));
        const YardlFile of_ring = ring.exported(how);
        const json information = of_ring.step("header")["scanner"];
        CHECK(information["modelName"] == "small ring");
        CHECK(information["bulkMaterials"].size() == 1);
        const json& modules = information["scannerGeometry"]["replicatedModules"];
        REQUIRE(modules.size() == 1);
        CHECK(modules[0]["transforms"].size() == 12);
        CHECK(modules[0]["object"]["detectingElements"]["transforms"].size() == 6);
        const std::vector<double> tof = numbers_in(information["tofBinEdges"][0][0]["edges"]);
        REQUIRE(tof.size() == 2 * window_ticks + 2);
        for (std::size_t k = 0; k < tof.size(); ++k)
            CHECK(tof[k] ==
                  Approx((static_cast<double>(k) - 300.5) * tick_ps * half_light_mm_per_ps).epsilon(1e-6));
        CHECK(information["tofResolution"][0][0].get<double>() == Approx(283 * half_light_mm_per_ps));
        CHECK(numbers_in(information["eventEnergyBinEdges"][0]["edges"]) == std::vector<double>{350, 650});
        CHECK(information["energyResolutionAt511"] == json{0.0});
        CHECK(information["singlesHistogramLevel"] == "none");
        CHECK(information["singleEventPolicy"] == (old ? "all" : "none"));
        CHECK(information["promptEventPolicy"] == "rejectHigherMultiples");
        CHECK(information["delayedEventPolicy"] == "rejectHigherMultiples");
        if (old) {
            CHECK(information["promptEventsAreStored"] == true);
            CHECK(information["delayedEventsAreStored"] == true);
            CHECK(information["singleEventsAreStored"] == false);
            CHECK(information["tripleEventsAreStored"] == false);
            CHECK(information["quadrupleEventsAreStored"] == false);
        }

        const YardlFile of_odd = odd.exported(how);
        const json uneven = of_odd.step("header")["scanner"];
        CHECK(uneven["tripleEventPolicy"] == "other");
        if (old) CHECK(uneven["tripleEventsAreStored"] == true);
        for (const json& edges : uneven["eventEnergyBinEdges"])
            CHECK(numbers_in(edges["edges"]) == std::vector<double>{350, 650, 800, 1400});
        const Layout layout(of_odd.step("header"), odd.scanner);
        const json& types = uneven["scannerGeometry"]["replicatedModules"];
        std::set<std::string> materials;
        for (std::size_t type = 0; type < types.size(); ++type) {
            CAPTURE(type);
            const auto number = types[type]["object"]["detectingElements"]["object"]["materialId"];
            const std::string material = uneven["bulkMaterials"].at(number.get<std::size_t>())["name"];
            materials.insert(material);
            // The caps are crystals of LSO 10 mm long, the inner layers of the others are 5, the outer 7 mm.
            const double length = corner(types[type]["object"]["detectingElements"]["object"]["shape"], 4)[0];
            CHECK(length == (material == "LSO" ? 10 : material == "GSO" ? 7 : 5));
            CHECK(uneven["energyResolutionAt511"][type].get<double>() == Approx(material == "LSO" ? 0 : 0.1));
            CHECK(uneven["tofBinEdges"][type].size() == (old ? types.size() : type + 1));
        }
        CHECK(materials == std::set<std::string>{"GSO", "LSO", "LYSO"});
    }
}

TEST_CASE("petsird: the header has the examination", "[petlm][petsird]") {
    const Run run(ring_scanner(), false);
    petsird::PetsirdOptions how;
    const YardlFile file = run.exported(how);
    const json exam = file.step("header")["exam"];
    CHECK(exam["modality"] == "PT");
    CHECK(exam["startOfAcquisition"] == unix_ns("2026-11-20T18:45:00.123Z"));
    CHECK(exam["startOfStudy"] == unix_ns("2026-11-20T18:45:00.123Z"));
    CHECK(exam["patient"]["patientID"] == "mouse 7");
    REQUIRE(exam["radiopharmaceuticals"].size() == 1);
    const json& dose = exam["radiopharmaceuticals"][0];
    CHECK(dose["radionuclideTotalDose"] == 12.5);
    CHECK(dose["radiopharmaceuticalStartDateTime"] == unix_ns("2026-11-20T18:00:00Z"));
    CHECK(dose["radiopharmaceuticalStopDateTime"] == unix_ns("2026-11-20T18:00:00Z"));
    CHECK(dose["radionuclideCodeSequence"]["codeMeaning"] == "Sc-44");
    CHECK(dose["radiopharmaceuticalCodeSequence"]["codeMeaning"] == "");
    how.version = Version::v0_9_1;
    const YardlFile old_file = run.exported(how);
    const json old = old_file.step("header")["exam"];
    CHECK(old["subject"] == json{{"name", nullptr}, {"id", "mouse 7"}});
    CHECK(old["protocol"] == "a note");
    CHECK(old["startOfAcquisition"] == unix_ns("2026-11-20T18:45:00.123Z"));
}

TEST_CASE("petsird: modules that do not pair, efficiencies, the bed and signals", "[petlm][petsird]") {
    const Run run(ring_scanner(), false);
    for (const Version version : both_versions) {
        petsird::PetsirdOptions how;
        how.version = version;
        how.signals = {"3=RESP_TRIGGER"};
        CAPTURE(petsird::name_of(version));
        const YardlFile file = run.exported(how);
        const Layout layout(file.step("header"), run.scanner);
        const json& efficiencies = layout.information["detectionEfficiencies"];
        CHECK(efficiencies["calibrationFactor"] == 1);
        CHECK(efficiencies["methodDescription"] == "none: all equal");
        const json& groups = efficiencies["modulePairSGIDLUT"].at(0).at(0);
        REQUIRE(groups.size() == 12);
        const auto around = [&](std::size_t module) {
            const auto front = config::crystal_place(run.scanner, layout.crystals[0][6 * module]).outward;
            return std::lround(std::atan2(front[1], front[0]) / (std::numbers::pi / 3) + 6) % 6;
        };
        for (std::size_t a = 0; a < groups.size(); ++a) {
            REQUIRE(groups[a].size() == (version == Version::v0_9_1 ? 12 : a + 1));
            for (std::size_t b = 0; b < groups[a].size(); ++b) {
                const long up = (around(a) - around(b) + 6) % 6;
                CHECK(groups[a][b] == (std::min(up, 6 - up) >= 2 ? 0 : -1));
            }
        }
        const json& tables = efficiencies["modulePairEfficienciesVectors"].at(0).at(0);
        REQUIRE(tables.size() == 1);
        CHECK(tables[0]["sgid"] == 0);
        CHECK(tables[0]["values"] == json(std::vector<std::vector<double>>(6, std::vector<double>(6, 1.0))));

        const json bed = blocks_of(file, "BedMovementTimeBlock");
        REQUIRE(bed.size() == 1);
        CHECK(bed[0]["timeInterval"] == json{{"start", 0}, {"stop", 12}});
        CHECK(bed[0]["transform"]["matrix"] ==
              json{1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 12.5});
        const json signals =
            layout.information.is_null() ? json() : file.step("header")["exam"]["externalSignals"];
        REQUIRE(signals.size() == 1);
        CHECK(signals[0]["type"] == "respTrigger");
        CHECK(signals[0]["description"].get<std::string>().starts_with("channel 3: trigger"));
        const json triggers = blocks_of(file, "ExternalSignalTimeBlock");
        REQUIRE(triggers.size() == 2);
        for (std::size_t k = 0; k < 2; ++k) {
            const int at = k == 0 ? 2 : 11;
            CHECK(triggers[k]["timeInterval"] == json{{"start", at}, {"stop", at}});
            CHECK(triggers[k]["signalID"] == signals[0]["id"]);
            CHECK(numbers_in(triggers[k]["signalValues"]) ==
                  std::vector<double>{77.0 + static_cast<double>(k)});
        }
    }
}
