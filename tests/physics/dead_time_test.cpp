// Dead time of detector units, from what their boards and singles tell, against the truth of the simulator.
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "daemon/seconds/sums_reader.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/physics/laboratory.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tools/petlm/reconstruction/corrections/module_losses.hpp"
#include "tools/petsim/simulation/base/truth.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

/// Two rings of eight modules. Those of the one have a unit of 40 crystals and one of 24, those of the other
/// one unit of 16 larger crystals. `mixed`: a board reads a module of each; else one module.
nlohmann::json units_of_three_sizes(bool mixed) {
    auto scanner = nlohmann::json::parse(R"({
        "name": "units", "tick_ps": 10, "position_size": 32,
        "module_types": [
            {"name": "fine",
             "layers": [{"y": {"count": 8, "pitch_mm": 1.6}, "z": {"count": 8, "pitch_mm": 1.6}, "length_mm": 10, "material": "LYSO"}],
             "units": [{"y": [0, 4]}, {"y": [5, 7]}]},
            {"name": "coarse",
             "layers": [{"y": {"count": 4, "pitch_mm": 3.2}, "z": {"count": 4, "pitch_mm": 3.2}, "length_mm": 14, "material": "LYSO"}]}],
        "modules": [
            {"type": "fine", "ring": {"count": 8, "radius_mm": 18}, "along_z": {"middle_mm": -7}},
            {"type": "coarse", "ring": {"count": 8, "radius_mm": 19}, "along_z": {"middle_mm": 7}}],
        "good_pairs": {"min_angle_deg": 60}})");
    for (int i = 0; i < (mixed ? 8 : 16); ++i)
        scanner["sources"].push_back(
            {{"id", i}, {"bdms", mixed ? nlohmann::json{i, 8 + i} : nlohmann::json{i}}});
    return scanner;
}

}  // namespace

TEST_CASE("dead time: boards of several modules around a source off the axis", "[physics]") {
    const TemporaryDirectory directory;
    const std::filesystem::path examples = PETACQ_SOURCE_DIR "/config/examples";
    const std::filesystem::path file = directory / "small.scanner.json";
    std::filesystem::copy_file(examples / "small.scanner.json", file);
    const config::Scanner scanner = config::load_scanner(file);
    auto configuration = nlohmann::json::parse(read_file(examples / "small.json"));
    configuration["pipeline"]["backend"] = "cpu";
    write_file(directory / "daemon.json", configuration.dump());
    std::filesystem::create_directory(directory / "data");
    const auto run = [](const char* program, const std::vector<std::string>& arguments) {
        const Outcome outcome = run_program(program, arguments);
        INFO(outcome.out << outcome.err);
        REQUIRE(outcome.status == 0);
    };
    const auto path = [&](const char* name) { return (directory / name).string(); };
    run(PETCAL_PROGRAM, {"make", "--scanner", file.string(), "--output", path("small.h5")});
    // 0.8 us; the last tag comes 17 ms before the end.
    run(PETSIM_PROGRAM, {"--scanner",
                         file.string(),
                         "--calibration",
                         path("small.h5"),
                         "--seed",
                         "6",
                         "--point",
                         "12,-9,8,60",
                         "--dead-time-ticks",
                         "51200",
                         "--tag-dead-time",
                         "3:0.03",
                         "--silent-unit",
                         "5.1@0-10",
                         "--duration-s",
                         "0.137",
                         "--write",
                         path("run.pcap"),
                         "--summary",
                         path("summary.json")});
    run(PETACQD_PROGRAM, {"--config", path("daemon.json"), "--replay", path("run.pcap"), "--run", "run"});

    const petlm::ExportSource source(directory / "data/run");
    std::string why;
    const auto losses = petlm::PairLosses::of(source, source.coverage(), scanner, why);
    INFO(why);
    REQUIRE(losses);
    REQUIRE_FALSE(losses->dead_time().factor.empty());
    daemon::SecondsReader seconds(directory / "data/run/seconds.plm");
    daemon::SumsReader sums(seconds, scanner.geometry);
    double found = 0;
    double all = 0;
    while (seconds.next()) {
        const gpu::IntervalSums& second = sums.read();
        for (std::uint32_t i = 0; i < scanner.geometry.crystal_count(); ++i) {
            const double singles = 0.0 + second.unpaired[i] + second.grouped[i];
            found += singles;
            all += singles / std::sqrt(losses->seen(i, i));
        }
    }
    const auto total = nlohmann::json::parse(read_file(path("summary.json"))).at("total");
    const double truth = total.at("hits_in_dead_time").get<double>() /
                         (total.at("hits").get<double>() - total.at("hits_silenced").get<double>());
    CAPTURE(truth, 1 - found / all, losses->dead_time().least, losses->dead_time().most);
    CHECK(truth > 0.1);
    CHECK(losses->dead_time().most > 1.2 * losses->dead_time().least);
    CHECK(1 - found / all == Approx(truth).epsilon(0.01));
}

TEST_CASE("dead time: units of several sizes", "[physics]") {
    const bool mixed = GENERATE(true, false);
    CAPTURE(mixed);
    Laboratory laboratory(
        {units_of_three_sizes(mixed),
         {{"receive", {{"sockets", {{{"address", "127.0.0.1"}, {"port", 9601}}}}}},
          {"energy", {{"lower_keV", 350}, {"upper_keV", 650}}},
          {"coincidence", {{"window_ticks", 200}, {"delay_ticks", 4000}, {"min_module_difference", nullptr}}},
          {"control", {{"socket", "petacqd.sock"}}}},
         {"--time-spread-ps", "0", "--gain-spread", "0"},
         // On a board of several types of units, these have their shares of the hits by their singles only if
         // as many of their hits have energies of the window.
         {"--crystals", mixed ? "depth" : "scatter", "--scatter", "0", "--seed", "7", "--tag-dead-time",
          "3:0.005"}});
    laboratory.use_policy("TakeAllGoods");
    const auto take = [&](const std::string& name, const std::string& dead_time_ticks) {
        laboratory.acquire(name, 0.025,
                           {"--cylinder", "4,-3,0,8,20,30", "--dead-time-ticks", dead_time_ticks, "--truth",
                            laboratory.path(name + ".truth")});
        return sim::read_truth(laboratory.path(name + ".truth"));
    };
    // The same photons, with and without dead time of 0.5 us.
    const auto all = take("all", "0");
    const auto left = take("left", "50000");
    const config::Scanner scanner = config::load_scanner(laboratory.scanner_file());
    const std::vector<std::uint32_t> unit_of = petlm::units_of_crystals(scanner.geometry);
    // A photon that scatters in a unit makes one hit after the other, of which the later ones are always
    // lost.
    const auto first = [](const sim::TruthRecord& record) {
        return record.crystal != sim::no_crystal && (record.photon & sim::truth_later) == 0;
    };
    const auto hits = [&](const std::vector<sim::TruthRecord>& truth) {
        std::vector<double> of_unit(scanner.geometry.unit_count());
        for (const sim::TruthRecord& record : truth)
            if (first(record)) ++of_unit[unit_of[record.crystal]];
        return of_unit;
    };
    const std::vector<double> of_all = hits(all);
    const std::vector<double> of_left = hits(left);

    const petlm::ExportSource source(laboratory.path("data/left"));
    std::string why;
    const auto losses = petlm::PairLosses::of(source, source.coverage(), scanner, why);
    INFO(why);
    REQUIRE(losses);
    REQUIRE_FALSE(losses->dead_time().factor.empty());
    double least = 1;
    for (std::uint32_t i = 0; i < unit_of.size(); ++i) {
        if (i > 0 && unit_of[i] == unit_of[i - 1]) continue;
        const double truth = of_left[unit_of[i]] / of_all[unit_of[i]];
        const double found = std::sqrt(losses->seen(i, i));
        CAPTURE(i, unit_of[i], truth, found);
        const double noise = std::sqrt(truth * (1 - truth) / of_all[unit_of[i]]);
        CHECK(found == Approx(truth).margin(0.012 * truth + 3 * noise));
        least = std::min(least, truth);
    }
    CHECK(least < 0.82);

    // True pairs that would have been found.
    const auto trues = [&](const std::string& run, const std::vector<sim::TruthRecord>& truth, auto weight) {
        std::unordered_map<std::uint64_t, std::uint64_t> annihilation;
        const auto key = [](std::uint64_t time, std::uint32_t crystal) { return time * 65536 + crystal; };
        for (const sim::TruthRecord& record : truth)
            if (first(record)) annihilation[key(record.time, record.crystal)] = record.annihilation;
        double sum = 0;
        for (const gpu::Coincidence& pair :
             coincidences_of(laboratory.path("data/" + run) + "/coincidences.plm")) {
            const std::uint64_t a = annihilation[key(pair.time, pair.crystal_a)];
            if (pair.kind == gpu::Kind::prompt && a != 0 &&
                a == annihilation[key(pair.time + pair.dt, pair.crystal_b)])
                sum += weight(pair.crystal_a, pair.crystal_b);
        }
        return sum;
    };
    const auto one = [](std::uint32_t, std::uint32_t) { return 1.0; };
    const double expected = trues("all", all, one);
    const double found =
        trues("left", left, [&](std::uint32_t a, std::uint32_t b) { return 1 / losses->seen(a, b); });
    CAPTURE(trues("left", left, one));
    CHECK(found == Approx(expected).epsilon(0.02));
}
