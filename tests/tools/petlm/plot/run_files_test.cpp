// petlm plot: the files beside the list-mode of a run.
#include <algorithm>
#include <random>

#include "config/spectra.hpp"
#include "daemon/coverage/coverage.hpp"
#include "tests/tools/petlm/plot/support.hpp"

using namespace petacq;
using namespace petacq::test;

TEST_CASE("a run's singles and its ledger over time are in the pictures", "[petlm][plot]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    const config::Scanner scanner = export_scanner();
    write_run(run, wild_records(500));
    // The run was cut off: the last line is incomplete.
    write_file(
        run / "ledger.csv",
        "from_ticks,to_ticks,datagrams.accepted,datagrams.lost,frames.received,frames.accepted,frames.late\n"
        "5000000000,69000000000,90,10,5000,4000,0\n69000000000,133000000000,100,,5000,4000,50\n133000000000,"
        "1330");
    gpu::RecordVector<gpu::Single> singles;
    for (std::uint32_t i = 0; i < 3000; ++i)
        singles.push_back({run_start + 1000 * i, i % 700, static_cast<float>(i % 1200)});
    daemon::ListModeOptions options;
    options.kind = daemon::RecordKind::singles;
    options.block_bytes = 4096;
    options.sync_interval_ms = 3'600'000;
    {
        daemon::ListModeWriter writer(run / "singles.plm", options, file_description(scanner));
        writer.append(std::vector(singles));
        writer.finish();
    }
    REQUIRE(plotted(run).status == 0);
    auto expected = files_of(pictures_without_ledger());
    expected.insert({"energy-singles.png", "energy-singles.csv", "loss.png"});
    CHECK(names_in(run / "plot") == expected);
    std::vector<double> hits(scanner.geometry.crystal_count());
    std::vector<double> energy(256);
    for (const auto& s : singles) {
        ++hits[s.crystal];
        ++energy[std::min<std::size_t>(255, static_cast<std::size_t>(s.energy / 4))];
    }
    CHECK(table_of(run / "plot" / "singles-map.csv").at("counts") == hits);
    CHECK(table_of(run / "plot" / "energy-singles.csv").at("singles") == energy);
    const std::string html = read_file(run / "plot" / "report.html");
    CHECK(html.find("(from singles.plm)") != std::string::npos);
    CHECK(html.find("datagrams lost are unknown") != std::string::npos);  // one row has no number
    CHECK(html.find("50 of 10,000") != std::string::npos);

    // Rows of a run of hours are added together.
    std::string text =
        "from_ticks,to_ticks,datagrams.accepted,datagrams.lost,frames.received,frames.accepted\n";
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        text += std::to_string(run_start + i * 1000) + ',' + std::to_string(run_start + (i + 1) * 1000) +
                (i % 2 == 0 ? ",100,2,7,7\n" : ",100,-1,7,7\n");
    }
    write_file(run / "ledger.csv", text);
    REQUIRE(plotted(run, " --force").status == 0);
    CHECK(read_file(run / "plot" / "report.html").find("10,000 of 2,010,000") != std::string::npos);
    CHECK(read_file(run / "plot" / "report.html").find("It ends ") == std::string::npos);
    std::filesystem::remove(run / "ledger.csv");

    // Histograms of the run also hold the energies outside the window.
    nlohmann::json histograms = {{"crystals", std::vector<int>(hits.size(), 2)},
                                 {"energy_bin_keV", 4},
                                 {"energy", nlohmann::json::array()}};
    for (std::uint32_t bdm = 0; bdm < scanner.geometry.bdm_count; ++bdm)
        histograms["energy"].push_back(std::vector<std::uint32_t>(256, bdm));
    write_file(run / "histograms.json", histograms.dump());
    REQUIRE(plotted(run, " --force").status == 0);
    const double all = scanner.geometry.bdm_count * (scanner.geometry.bdm_count - 1) / 2.0;
    CHECK(table_of(run / "plot" / "energy-singles.csv").at("singles") == std::vector<double>(256, all));
    CHECK(table_of(run / "plot" / "singles-map.csv").at("counts") == std::vector<double>(hits.size(), 2));

    // A run with gammas has wider bins.
    histograms["energy_bin_keV"] = 8;
    write_file(run / "histograms.json", histograms.dump());
    REQUIRE(plotted(run, " --force").status == 0);
    CHECK(contains(read_file(run / "plot" / "energy-singles.csv"), "\n2032,2040,"));
    CHECK(contains(read_file(run / "plot" / "energy-singles.csv"), "\n2040,inf,"));
    CHECK(contains(read_file(run / "plot" / "report.html"), "in bins of 8 keV (from histograms.json)"));
    std::filesystem::remove(run / "histograms.json");
    std::filesystem::remove(run / "singles.plm");
    daemon::Coverage coverage;
    coverage.rules.gammas.emplace().upper_keV = 2050;
    nlohmann::json description = file_description(scanner);
    description["coverage"] = daemon::to_json(coverage);
    {
        daemon::ListModeWriter writer(run / "singles.plm", options, description);
        writer.append(std::move(singles));
        writer.finish();
    }
    REQUIRE(plotted(run, " --force").status == 0);
    CHECK(contains(read_file(run / "plot" / "energy-singles.csv"), "\n4080,inf,0"));
    CHECK(contains(read_file(run / "plot" / "energy-singles.csv"), "\n1184,1200,32"));
}

TEST_CASE("a run's spectra are in the pictures", "[petlm][plot]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    const config::Geometry g = export_scanner().geometry;
    write_run(run, wild_records(100));
    config::Spectra spectra = config::Spectra::none(g);
    std::mt19937_64 random(3);
    for (std::size_t unit = 1; unit < std::size_t{g.bdm_count} * g.du_count; ++unit) {  // the first is silent
        for (int i = 0; i < 50; ++i)
            spectra.floods[unit * g.position_size * g.position_size + random() % g.position_size] += i;
    }
    std::vector<double> of_modules(g.bdm_count * std::size_t{256});
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm) {
        for (std::uint32_t du = 0; du < g.du_count; ++du) {
            for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local) {
                const std::size_t bin = random() % 256;
                const auto count = static_cast<std::uint32_t>(random() % 1000);
                spectra.energies[g.crystal(bdm, du, local) * std::size_t{256} + bin] += count;
                of_modules[bdm * std::size_t{256} + bin] += count;
            }
        }
    }
    config::save_spectra(run / "spectra.h5", g, spectra);
    REQUIRE(plotted(run).status == 0);
    auto expected = files_of(pictures_without_ledger());
    expected.insert({"flood-maps.png", "energy-modules.png", "energy-modules.csv"});
    CHECK(names_in(run / "plot") == expected);
    CHECK(png_of(run / "plot" / "flood-maps.png").width == 200);
    CHECK(table_of(run / "plot" / "energy-modules.csv").at("frames") == of_modules);
    const std::string html = read_file(run / "plot" / "report.html");
    CHECK(contains(html, "Flood maps of the DUs"));
    CHECK(contains(html, "1 DUs have none."));

    // A file of another scanner is refused.
    config::Geometry other = g;
    other.position_size -= 1;
    config::save_spectra(run / "spectra.h5", other, config::Spectra::none(other));
    const Outcome refused = plotted(run, " --force");
    CHECK(refused.status == 1);
    CHECK(contains(refused.out, "floods"));
    std::filesystem::remove(run / "spectra.h5");
    REQUIRE(plotted(run, " --force").status == 0);
    CHECK(names_in(run / "plot") == files_of(pictures_without_ledger()));
}

TEST_CASE("lifetimes and energies of gammas of a run with triples are pictures", "[petlm][plot]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    const config::Scanner scanner = export_scanner();
    const auto pairs = wild_records(400);
    write_run(run, pairs);
    config::Gammas rules{700, 900, 90, 30, config::GammaPolicy::all, 5000};
    gpu::RecordVector<gpu::Triple> triples;
    // What is counted, one by one: bins are 2 keV and 2 ticks wide.
    std::map<gpu::ThirdPhoton, std::vector<double>> times;
    std::map<gpu::ThirdPhoton, std::vector<double>> energies;
    for (const auto third : {gpu::ThirdPhoton::coincident, gpu::ThirdPhoton::delayed}) {
        times[third].resize(60);
        energies[third].resize(100);
    }
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        gpu::Triple t{pairs[i], static_cast<std::int32_t>(i % 121) - 90, 3, 700 + static_cast<float>(i % 201),
                      i % 4 == 0 ? gpu::ThirdPhoton::delayed : gpu::ThirdPhoton::coincident};
        t.pair.dt = 0;
        triples.push_back(t);
        if (t.pair.kind != gpu::Kind::prompt) continue;
        ++times[t.third][std::min<std::size_t>(59, static_cast<std::size_t>(30 - t.gamma_dt) / 2)];
        ++energies[t.third][std::min<std::size_t>(99, (i % 201) / 2)];
    }
    daemon::Coverage coverage;
    coverage.rules.gammas = rules;
    const auto write_triples = [&] {
        nlohmann::json description = file_description(scanner);
        description["coverage"] = daemon::to_json(coverage);
        daemon::ListModeOptions options;
        options.kind = daemon::RecordKind::triples;
        options.block_bytes = 4096;
        options.sync_interval_ms = 3'600'000;
        daemon::ListModeWriter writer(run / "triples.plm", options, description);
        writer.append(gpu::RecordVector<gpu::Triple>(triples));
        writer.finish();
    };
    write_triples();
    const nlohmann::json histograms = {
        {"crystals", std::vector<int>(scanner.geometry.crystal_count(), 2)},
        {"energy_bin_keV", 4},
        {"energy", std::vector<std::vector<int>>(scanner.geometry.bdm_count, std::vector<int>(256, 1))}};
    write_file(run / "histograms.json", histograms.dump());
    const Outcome outcome = plotted(run);
    INFO(outcome.out);
    REQUIRE(outcome.status == 0);
    auto expected = pictures_without_ledger();
    expected.insert({"energy-singles", "lifetimes", "energy-gammas"});
    CHECK(names_in(run / "plot") == files_of(expected));
    const Table lifetimes = table_of(run / "plot" / "lifetimes.csv");
    CHECK(lifetimes.at("from_ticks").front() == -30);
    CHECK(lifetimes.at("to_ticks").back() == 90);
    CHECK(lifetimes.at("triples") == times[gpu::ThirdPhoton::coincident]);
    CHECK(lifetimes.at("delayed_triples") == times[gpu::ThirdPhoton::delayed]);
    const Table gammas = table_of(run / "plot" / "energy-gammas.csv");
    CHECK(gammas.at("from_keV").front() == 700);
    CHECK(gammas.at("to_keV").back() == 900);
    CHECK(gammas.at("triples") == energies[gpu::ThirdPhoton::coincident]);
    CHECK(gammas.at("delayed_triples") == energies[gpu::ThirdPhoton::delayed]);
    CHECK(png_of(run / "plot" / "lifetimes.png").width == 200);
    std::string html = read_file(run / "plot" / "report.html");
    check_html(html);
    CHECK(contains(html, "Further lines: the gamma window, 700 to 900 keV."));
    CHECK(contains(html, "are the level of chance"));

    // Without delayed gammas there is no level of chance, and without triples there are no such pictures.
    coverage.rules.gammas->delay_ticks.reset();
    std::filesystem::remove(run / "triples.plm");
    write_triples();
    REQUIRE(plotted(run, " --force").status == 0);
    CHECK_FALSE(contains(read_file(run / "plot" / "report.html"), "are the level of chance"));
    std::filesystem::remove(run / "triples.plm");
    REQUIRE(plotted(run, " --force").status == 0);
    CHECK_FALSE(std::filesystem::exists(run / "plot" / "lifetimes.png"));
    CHECK_FALSE(std::filesystem::exists(run / "plot" / "energy-gammas.csv"));
    CHECK_FALSE(contains(read_file(run / "plot" / "report.html"), "gamma window"));
}
