// petlm plot: the numbers behind the pictures against a slow count, and runs of all kinds.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <numbers>

#include "tests/tools/petlm_export_common.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

using Table = std::map<std::string, std::vector<double>>;

Table table_of(const std::filesystem::path& file) {
    std::istringstream in(contents_of(file));
    std::vector<std::string> names;
    Table table;
    for (std::string line; std::getline(in, line);) {
        std::istringstream fields(line);
        std::size_t i = 0;
        for (std::string field; std::getline(fields, field, ','); ++i) {
            if (i == names.size() && table[field].empty() && !(field[0] >= '0' && field[0] <= '9')) {
                names.push_back(field);
            } else {
                table[names[i]].push_back(std::stod(field));
            }
        }
    }
    return table;
}

double sum(const std::vector<double>& values) {
    double total = 0;
    for (const double v : values)
        total += v;
    return total;
}

Outcome plotted(const std::filesystem::path& run, const std::string& options = "") {
    return petlm("plot" + quoted(run) + options);
}

/// Pairs of any two crystals, of both kinds, with energies and time differences of any size.
std::vector<gpu::Coincidence> wild_records(std::size_t count) {
    std::mt19937_64 random(11);
    const config::Scanner scanner = export_scanner();
    std::vector<gpu::Coincidence> out;
    std::uint64_t time = run_start;
    for (std::size_t i = 0; i < count; ++i) {
        gpu::Coincidence c;
        c.time = time += random() % 50'000'000;
        c.dt = static_cast<std::uint32_t>(random() % 350);
        if (i % 97 == 0) c.dt = UINT32_MAX - static_cast<std::uint32_t>(random() % 5);
        c.crystal_a = static_cast<std::uint32_t>(random() % scanner.geometry.crystal_count());
        c.crystal_b = static_cast<std::uint32_t>(random() % scanner.geometry.crystal_count());
        c.energy_a = static_cast<float>(random() % 11'000) / 10;
        c.energy_b = 511;
        if (i % 101 == 0) c.energy_b = std::numeric_limits<float>::quiet_NaN();
        if (i % 103 == 0) c.energy_b = -1;
        if (i % 107 == 0) c.energy_b = 3e38F;
        c.kind = random() % 3 == 0 ? gpu::Kind::delayed : gpu::Kind::prompt;
        out.push_back(c);
    }
    return out;
}

struct Png {
    std::uint32_t width = 0;
    std::uint32_t height = 0;
};

/// Of a PNG whose chunks are whole, to its end.
Png png_of(const std::filesystem::path& file) {
    const std::string bytes = contents_of(file);
    const auto number = [&](std::size_t at) {
        std::uint32_t n = 0;
        for (std::size_t i = 0; i < 4; ++i)
            n = n << 8U | static_cast<unsigned char>(bytes.at(at + i));
        return n;
    };
    REQUIRE(bytes.substr(0, 8) == "\x89PNG\r\n\x1a\n");
    std::size_t at = 8;
    std::string last;
    while (at < bytes.size()) {
        last = bytes.substr(at + 4, 4);
        at += 12 + number(at);
    }
    CHECK(at == bytes.size());
    CHECK(last == "IEND");
    return {number(16), number(20)};
}

const std::set<std::string>& pictures_without_ledger() {
    static const std::set<std::string> names = {"energy-pairs", "time-differences", "singles-map", "rates",
                                                "sinogram",     "axial-profile",    "michelogram"};
    return names;
}

/// What is in a directory of pictures.
std::set<std::string> files_of(const std::set<std::string>& pictures) {
    std::set<std::string> files = {"report.html"};
    for (const auto& name : pictures) {
        files.insert(name + ".png");
        files.insert(name + ".csv");
    }
    return files;
}

/// Tags are closed, and nothing is loaded from anywhere.
void check_html(const std::string& html) {
    CHECK(html.substr(0, 15) == "<!DOCTYPE html>");
    std::vector<std::string> open;
    const std::set<std::string> empty = {"meta", "img", "source"};
    for (std::size_t at = html.find('<', 1); at != std::string::npos; at = html.find('<', at + 1)) {
        const std::size_t end = html.find('>', at);
        REQUIRE(end != std::string::npos);
        const bool closes = html[at + 1] == '/';
        std::size_t name_end = html.find_first_of(" >", at);
        const std::string name = html.substr(at + 1 + (closes ? 1 : 0), name_end - at - 1 - (closes ? 1 : 0));
        if (closes) {
            REQUIRE(!open.empty());
            REQUIRE(open.back() == name);
            open.pop_back();
        } else if (empty.count(name) == 0) {
            open.push_back(name);
        }
        if (name == "style" && !closes) at = html.find("</style>", at) - 1;
    }
    CHECK(open.empty());
    for (const char* attribute : {"src=\"", "srcset=\"", "href=\""}) {
        for (std::size_t at = html.find(attribute); at != std::string::npos;
             at = html.find(attribute, at + 1))
            CHECK(html.substr(at + std::strlen(attribute), 26) == "data:image/svg+xml;base64,");
    }
    for (const char* loads : {"http:", "https:", "url(", "@import", "<script", "<link", "<iframe"})
        CHECK(html.find(loads) == std::string::npos);
    std::size_t images = 0;
    for (std::size_t at = html.find("<img "); at != std::string::npos;
         at = html.find("<img ", at + 1), ++images)
        CHECK(html.substr(at, html.find(" src=", at) - at).find("alt=\"") != std::string::npos);
    CHECK(images >= 7);
}

}  // namespace

TEST_CASE("the numbers behind the pictures are those of a slow count", "[petlm][plot]") {
    const TemporaryDirectory directory;
    const config::Scanner scanner = export_scanner();
    const auto records = wild_records(6000);
    write_run(directory / "one", records, scanner);
    write_run(directory / "parts", records, scanner, 5);
    const Outcome outcome = plotted(directory / "one", " --depth-mm 3");
    INFO(outcome.out);
    REQUIRE(outcome.status == 0);
    REQUIRE(plotted(directory / "parts", " --depth-mm 3").status == 0);
    const auto plot = directory / "one" / "plot";
    CHECK(names_in(plot) == files_of(pictures_without_ledger()));
    for (const auto& name : names_in(plot)) {
        CAPTURE(name);
        if (name != "report.html")
            CHECK(contents_of(directory / "parts" / "plot" / name) == contents_of(plot / name));
    }

    const std::uint32_t in_ring = scanner.geometry.crystals_in_ring();
    const std::uint32_t rings = scanner.geometry.rings();
    for (const gpu::Kind kind : {gpu::Kind::prompt, gpu::Kind::delayed}) {
        const std::string column = kind == gpu::Kind::prompt ? "prompts" : "delayeds";
        CAPTURE(column);
        const auto pairs = of_kind(records, kind);
        std::vector<double> energy(256);
        std::map<std::pair<std::uint32_t, std::uint32_t>, double> ring_pairs;
        std::vector<double> planes(2 * rings - 1);
        for (const auto& c : pairs) {
            for (const float e : {c.energy_a, c.energy_b})
                ++energy[e >= 0 && e < 1020 ? static_cast<std::size_t>(std::floor(e / 4)) : 255];
            auto a = c.crystal_a;
            auto b = c.crystal_b;
            if (b % in_ring < a % in_ring) std::swap(a, b);
            ++ring_pairs[{a / in_ring, b / in_ring}];
            ++planes[a / in_ring + b / in_ring];
        }
        CHECK(table_of(plot / "energy-pairs.csv").at(column) == energy);
        CHECK(table_of(plot / "axial-profile.csv").at(column) == planes);

        const Table michelogram = table_of(plot / "michelogram.csv");
        REQUIRE(michelogram.at(column).size() == std::size_t{rings} * rings);
        for (std::size_t i = 0; i < michelogram.at(column).size(); ++i) {
            const auto first = static_cast<std::uint32_t>(michelogram.at("first_ring")[i]);
            const auto second = static_cast<std::uint32_t>(michelogram.at("second_ring")[i]);
            if (michelogram.at(column)[i] != ring_pairs[{first, second}])
                FAIL("rings " << first << ", " << second);
        }

        const Table differences = table_of(plot / "time-differences.csv");
        CHECK(differences.at("from_ticks").front() <= -300);
        CHECK(differences.at("to_ticks").back() >= 300);
        std::size_t inside = 0;
        for (std::size_t i = 0; i < differences.at(column).size(); ++i) {
            double expected = 0;
            for (const auto& c : pairs) {
                if (c.dt > 300) continue;  // beyond the window
                const double dt = c.crystal_b > c.crystal_a ? c.dt : -static_cast<double>(c.dt);
                if (dt >= differences.at("from_ticks")[i] && dt <= differences.at("to_ticks")[i]) ++expected;
            }
            if (i != 0) CHECK(differences.at("from_ticks")[i] == differences.at("to_ticks")[i - 1] + 1);
            if (differences.at(column)[i] != expected) FAIL("difference " << differences.at("from_ticks")[i]);
            inside += static_cast<std::size_t>(expected);
        }
        CHECK(inside < pairs.size());

        const Table rates = table_of(plot / "rates.csv");
        CHECK(rates.at(column).size() > 50);
        for (std::size_t i = 0; i < rates.at(column).size(); ++i) {
            double expected = 0;
            const bool last = i + 1 == rates.at(column).size();
            for (const auto& c : pairs) {
                const auto time = static_cast<double>(c.time);
                if (time >= rates.at("from_ticks")[i] && (last || time < rates.at("to_ticks")[i])) ++expected;
            }
            if (rates.at(column)[i] != expected) FAIL("time bin " << i);
        }
        // Lines by another formula: the distance of the line from the axis, the direction at right angles to
        // it.
        const Table sinogram = table_of(plot / "sinogram.csv");
        std::map<std::pair<long, long>, double> lines;
        const double angles = in_ring / 2.0;
        const double radius = scanner.dimensions.ring_radius_mm;
        const double columns = std::round(2 * radius / (scanner.dimensions.crystal_pitch_y_mm / 2));
        double beyond = 0;
        double doubtful = 0;
        for (const auto& c : pairs) {
            const auto p = config::point_at_depth(config::crystal_place(scanner, c.crystal_a), 3);
            const auto q = config::point_at_depth(config::crystal_place(scanner, c.crystal_b), 3);
            double nx = q[1] - p[1];
            double ny = p[0] - q[0];
            const double length = std::hypot(nx, ny);
            if (c.crystal_a % in_ring == c.crystal_b % in_ring) {
                ++beyond;
                continue;
            }
            if (ny < 0) nx = -nx, ny = -ny;
            const double s = (p[0] * nx + p[1] * ny) / length;
            const double row = std::acos(nx / length) / std::numbers::pi * angles;
            const double place = (s + radius) / (2 * radius) * columns;
            const auto near_edge = [](double x) { return std::abs(x - std::round(x)) < 1e-6; };
            if (near_edge(row) || near_edge(place)) {
                ++doubtful;  // a matter of rounding
            } else if (place < 0 || place >= columns) {
                ++beyond;
            } else {
                ++lines[{std::lround(std::floor(row)), std::lround(std::floor(place))}];
            }
        }
        double different = 0;
        for (std::size_t i = 0; i < sinogram.at(column).size(); ++i) {
            const double row = sinogram.at("phi_deg")[i] / 180 * angles;
            const double place = (sinogram.at("s_mm")[i] + radius) / (2 * radius) * columns;
            different += std::abs(sinogram.at(column)[i] -
                                  lines[{std::lround(std::floor(row)), std::lround(std::floor(place))}]);
        }
        CHECK(different <= doubtful);
        CHECK(doubtful < 0.2 * static_cast<double>(pairs.size()));
        CHECK(std::abs(sum(sinogram.at(column)) + beyond - static_cast<double>(pairs.size())) <= doubtful);
    }
    std::vector<double> hits(scanner.geometry.crystal_count());
    for (const auto& c : records) {
        ++hits[c.crystal_a];
        ++hits[c.crystal_b];
    }
    CHECK(table_of(plot / "singles-map.csv").at("counts") == hits);
    const std::string html = contents_of(plot / "report.html");
    check_html(html);
    CHECK(html.find("pairs are further apart and not shown") != std::string::npos);
}

TEST_CASE("a point source is a sinusoid in the sinogram", "[petlm][plot]") {
    const TemporaryDirectory directory;
    const config::Vector3 where = {9, -6, 4};
    const auto records = point_source(export_scanner(), where, 20'000);
    write_run(directory / "run", of_kind(records, gpu::Kind::prompt));
    REQUIRE(plotted(directory / "run", " --depth-mm 0").status == 0);
    const Table t = table_of(directory / "run" / "plot" / "sinogram.csv");
    std::map<double, std::array<double, 3>> rows;  // counts, those near, their sum of s
    for (std::size_t i = 0; i < t.at("prompts").size(); ++i) {
        const double phi = t.at("phi_deg")[i] * std::numbers::pi / 180;
        const double expected = where[0] * std::cos(phi) + where[1] * std::sin(phi);
        auto& row = rows[t.at("phi_deg")[i]];
        row[0] += t.at("prompts")[i];
        if (std::abs(t.at("s_mm")[i] - expected) > 2.5) continue;
        row[1] += t.at("prompts")[i];
        row[2] += t.at("prompts")[i] * (t.at("s_mm")[i] - expected);
    }
    CHECK(rows.size() == export_scanner().geometry.crystals_in_ring() / 2);
    double all = 0;
    double near = 0;
    std::size_t full = 0;
    for (const auto& [phi, row] : rows) {
        all += row[0];
        near += row[1];
        if (row[1] < 100) continue;  // crystal pairs are uneven over the angles
        ++full;
        CAPTURE(phi);
        CHECK(std::abs(row[2] / row[1]) < 0.85);  // half a crystal
    }
    CHECK(near > 0.98 * all);
    CHECK(full > rows.size() / 2);
}

TEST_CASE("pictures are as large as asked for", "[petlm][plot]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", wild_records(300));
    REQUIRE(plotted(directory / "run", " --png-width 700 -o" + quoted(directory / "pictures")).status == 0);
    CHECK(!std::filesystem::exists(directory / "run" / "plot"));
    for (const auto& name : pictures_without_ledger()) {
        CAPTURE(name);
        const Png png = png_of(directory / "pictures" / (name + ".png"));
        CHECK(png.width == 700);
        CHECK(png.height > 200);
        CHECK(png.height < 1000);
    }
    const Outcome again = plotted(directory / "run", " -o" + quoted(directory / "pictures"));
    CHECK(again.status == 64);
    CHECK_THAT(again.out, contains("--force"));
    CHECK(png_of(directory / "pictures" / "rates.png").width == 700);
    CHECK(plotted(directory / "run", " --force -o" + quoted(directory / "pictures")).status == 0);
    CHECK(png_of(directory / "pictures" / "rates.png").width == 1120);
    CHECK(plotted(directory / "run", " --png-width 20").status == 64);
    CHECK(plotted(directory / "run", " --depth-mm 99").status == 64);
}

TEST_CASE("runs without coincidences, without delayeds, of one pair, and of all of time are plotted",
          "[petlm][plot]") {
    const TemporaryDirectory directory;
    write_run(directory / "empty", {});
    write_run(directory / "one", wild_records(1));
    auto eternal = wild_records(3);
    eternal.back().time = UINT64_MAX - 2000;
    write_run(directory / "eternal", eternal);
    for (const char* run : {"empty", "one", "eternal"}) {
        const Outcome outcome = plotted(directory / run);
        CAPTURE(run, outcome.out);
        CHECK(outcome.status == 0);
        check_html(contents_of(directory / run / "plot" / "report.html"));
        const Table rates = table_of(directory / run / "plot" / "rates.csv");
        const double expected = run == std::string("empty") ? 0 : run == std::string("one") ? 1 : 3;
        CHECK(sum(rates.at("prompts")) + sum(rates.at("delayeds")) == expected);
        CHECK(rates.at("prompts").size() <= 201);
    }
    // A run that looked for none has none, rather than none found.
    const auto none = directory / "none";
    std::filesystem::create_directories(none);
    auto description = file_description(export_scanner());
    description["delay_ticks"] = nullptr;
    std::filesystem::copy(directory / "one" / "run.json", none / "run.json");
    write_plm(none / "coincidences.plm", of_kind(wild_records(50), gpu::Kind::prompt), description);
    REQUIRE(plotted(none).status == 0);
    const std::string html = contents_of(none / "plot" / "report.html");
    CHECK(html.find("delayeds (randoms") == std::string::npos);
    CHECK(contents_of(directory / "one" / "plot" / "report.html").find("delayeds (randoms") !=
          std::string::npos);
}

TEST_CASE("what is in run.json is text, whatever it holds", "[petlm][plot]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", wild_records(20));
    auto run = nlohmann::json::parse(contents_of(directory / "run" / "run.json"));
    run["note"] = "<script>alert(\"1\")</script> & <img src=x onerror='1'> \u0001\n";
    run["state"] = "failed";
    run["stop_reason"] = "</td></table><b>";
    run["ledger"] = {{"closed", false},
                     {"frames",
                      {{"<i>", 3},
                       {"late", nullptr},
                       {"x", {1, 2}},
                       {"a~b", "tilde"},
                       {"a/b", "slash"},
                       {"~", nullptr},
                       {"", true},
                       {"taken_back", -44}}},
                     {"pairs", 7}};
    put(directory / "run" / "run.json", run.dump());
    REQUIRE(plotted(directory / "run").status == 0);
    const std::string html = contents_of(directory / "run" / "plot" / "report.html");
    check_html(html);
    CHECK(html.find("&lt;script&gt;alert(&quot;1&quot;)") != std::string::npos);
    CHECK(html.find("The state of this run is failed") != std::string::npos);
    CHECK(html.find("The ledger is not closed") != std::string::npos);
    for (const char* text : {"a~b", ">tilde<", "a/b", ">slash<", ">true<", ">-44<"})
        CHECK_THAT(html, contains(text));
}

TEST_CASE("what cannot be plotted is refused, and nothing is left", "[petlm][plot]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    write_run(run, wild_records(2000));
    const auto file = run / "coincidences.plm";
    const std::string good = contents_of(file);
    const auto refused = [&](int status, const std::string& why, const std::string& options = "") {
        const Outcome outcome = plotted(run, options);
        CAPTURE(outcome.out);
        CHECK(outcome.status == status);
        CHECK_THAT(outcome.out, contains(why));
        CHECK(!std::filesystem::exists(run / "plot"));
    };
    std::filesystem::resize_file(file, good.size() / 2);
    refused(1, "petlm recover");
    std::string bad = good;
    bad[good.size() / 2] = static_cast<char>(bad[good.size() / 2] ^ 4);
    put(file, bad);
    refused(1, "coincidences.plm");
    put(file, "no list-mode at all");
    refused(65, "not a list-mode file");
    put(file, good);
    auto beyond = wild_records(10);
    beyond[5].crystal_b = export_scanner().geometry.crystal_count();
    std::filesystem::remove(file);
    write_plm(file, beyond, file_description(export_scanner()));
    refused(1, "record 5");
    put(file, good);

    put(run / "histograms.json", "{\"crystals\": [1, 2], \"energy\": []}");
    refused(1, "histograms.json: crystals: expected");
    put(run / "histograms.json", "[");
    refused(1, "histograms.json");
    std::filesystem::remove(run / "histograms.json");

    const Outcome alone = plotted(file);
    CHECK(alone.status == 64);
    CHECK_THAT(alone.out, contains("--output"));
    CHECK(plotted(file, " -o" + quoted(directory / "of-file")).status == 0);
    std::filesystem::remove(run / "run.json");
    refused(64, "--scanner");
    CHECK(plotted(directory / "nowhere").status == 74);
}

TEST_CASE("what is left of ledger.csv after a power cut is shown, and where it ends is said",
          "[petlm][plot]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    write_run(run, wild_records(500));
    const std::string head = "from_ticks,to_ticks,datagrams.accepted,datagrams.lost,frames.late\n";
    const std::string rows = "5000000000,6000000000,90,10,0\n6000000000,7000000000,100,0,50\n";
    const auto check = [&](const std::string& text, const std::string& said, bool shown) {
        put(run / "ledger.csv", text);
        const Outcome outcome = plotted(run, " --force");
        CAPTURE(text.substr(0, 300), outcome.out);
        REQUIRE(outcome.status == 0);
        const std::string html = contents_of(run / "plot" / "report.html");
        check_html(html);
        CHECK_THAT(outcome.out, contains("ledger.csv"));
        CHECK_THAT(outcome.out, contains(said));
        CHECK_THAT(html, contains(said));
        CHECK(std::filesystem::exists(run / "plot" / "loss.png") == shown);
        CHECK((html.find("10 of 200") != std::string::npos) == shown);
        CHECK((html.find(" before the end of the data") != std::string::npos) == shown);
    };
    // With rows before those without, as pictures of the earlier ones go.
    check(head + rows + std::string(4096, '\0'), "line 4", true);
    check(head + rows + std::string(1 << 20, '\0') + "\n", "line 4", true);
    check(head + rows + "7000000000,8000000000,1", "after line 3", true);
    check(head + rows + "7000000000,8000000000,1,2,x\n8000000000,9000000000,1,2,3\n", "line 4", true);
    check(head + rows + "7100000000,8000000000,1,2,3\n", "line 4", true);
    check(head + rows + "7000000000,8000000000,9223372036854775807,2,3\n", "line 4", true);
    check(head + "0,100,3\n", "line 2", false);
    check("", "no whole line", false);
    check(std::string(4096, '\0'), "no whole line", false);
    check("something else\n", "first line", false);
    // A counter that is empty in a damaged line is known all the same.
    put(run / "ledger.csv", head + rows + "7000000000,8000000000,1,,x\n");
    REQUIRE(plotted(run, " --force").status == 0);
    CHECK(contents_of(run / "plot" / "report.html").find("cannot be known") == std::string::npos);
    // One that is there and cannot be read is not the same as none.
    std::filesystem::remove(run / "ledger.csv");
    std::filesystem::create_symlink("ledger.csv", run / "ledger.csv");
    const Outcome loop = plotted(run, " --force");
    CHECK(loop.status == 0);
    CHECK_THAT(loop.out, contains("ledger.csv cannot be read: Too many levels"));
    std::filesystem::remove(run / "ledger.csv");
    std::filesystem::create_directory(run / "ledger.csv");
    CHECK_THAT(plotted(run, " --force").out, contains("ledger.csv cannot be read"));
    std::filesystem::remove(run / "ledger.csv");
    // Very many rows of no length.
    std::string none = head;
    for (int i = 0; i < 30'000; ++i)
        none += "5000000000,5000000000,1,0,0\n";
    put(run / "ledger.csv", none);
    CHECK(plotted(run, " --force").status == 0);
    CHECK_THAT(contents_of(run / "plot" / "report.html"), contains("0 of 30,000"));
    // None: nothing is said.
    std::filesystem::remove(run / "ledger.csv");
    CHECK(plotted(run, " --force").out.find("ledger.csv") == std::string::npos);
}

TEST_CASE(
    "outputs that are there are found before the records are read, and --force leaves none of an earlier "
    "report",
    "[petlm][plot]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    write_run(run, wild_records(500));
    const std::string ledger = "from_ticks,to_ticks,frames.late\n5000000000,6000000000,0\n";
    put(run / "ledger.csv", ledger);
    nlohmann::json histograms = {{"crystals", std::vector<int>(export_scanner().geometry.crystal_count(), 2)},
                                 {"energy_bin_keV", 4},
                                 {"energy", std::vector<std::vector<int>>(export_scanner().geometry.bdm_count,
                                                                          std::vector<int>(256, 1))}};
    put(run / "histograms.json", histograms.dump());
    REQUIRE(plotted(run).status == 0);
    auto all = files_of(pictures_without_ledger());
    all.insert({"energy-singles.png", "energy-singles.csv", "loss.png"});
    CHECK(names_in(run / "plot") == all);
    std::filesystem::remove(run / "ledger.csv");
    std::filesystem::remove(run / "histograms.json");
    put(run / "plot" / "mine.txt", "mine");
    REQUIRE(plotted(run, " --force").status == 0);
    auto fewer = files_of(pictures_without_ledger());
    fewer.insert("mine.txt");
    CHECK(names_in(run / "plot") == fewer);

    // Damage that only reading finds is not what is said.
    std::string bad = contents_of(run / "coincidences.plm");
    bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 4);
    put(run / "coincidences.plm", bad);
    const Outcome again = plotted(run);
    CHECK(again.status == 64);
    CHECK_THAT(again.out, contains("report.html exists"));
    CHECK(plotted(run, " --force").status == 1);
    CHECK(names_in(run / "plot") == fewer);
    // A picture that this run would not get is in the way as well.
    std::filesystem::create_directory(directory / "other");
    put(directory / "other" / "loss.png", "of another run");
    CHECK_THAT(plotted(run, " -o" + quoted(directory / "other")).out, contains("loss.png exists"));
    put(directory / "file", "");
    CHECK(plotted(run, " -o" + quoted(directory / "file")).status == 64);
    if (::geteuid() == 0) return;  // who may write everywhere
    std::filesystem::permissions(run / "plot",
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    CHECK_THAT(plotted(run, " --force").out, contains("cannot be written to"));
    std::filesystem::permissions(run / "plot", std::filesystem::perms::owner_all);
}

TEST_CASE("a run's singles and its ledger over time are in the pictures", "[petlm][plot]") {
    const TemporaryDirectory directory;
    const auto run = directory / "run";
    const config::Scanner scanner = export_scanner();
    write_run(run, wild_records(500));
    // A run that was cut off: the last line is a piece of one.
    put(run / "ledger.csv",
        "from_ticks,to_ticks,datagrams.accepted,datagrams.lost,frames.received,frames.accepted,frames.late\n"
        "5000000000,69000000000,90,10,5000,4000,0\n69000000000,133000000000,100,,5000,4000,50\n133000000000,"
        "1330");
    std::vector<gpu::Single> singles;
    for (std::uint32_t i = 0; i < 3000; ++i)
        singles.push_back({run_start + 1000 * i, i % 700, static_cast<float>(i % 1200)});
    daemon::ListModeOptions options;
    options.kind = daemon::RecordKind::singles;
    options.block_bytes = 4096;
    options.sync_interval_ms = 3'600'000;
    options.description = file_description(scanner);
    {
        daemon::ListModeWriter writer(run / "singles.plm", options);
        writer.append(singles);
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
    const std::string html = contents_of(run / "plot" / "report.html");
    CHECK(html.find("(from singles.plm)") != std::string::npos);
    CHECK(html.find("cannot be known") != std::string::npos);  // a row without a number
    CHECK(html.find("50 of 10,000") != std::string::npos);

    // Of a run of hours, rows are added together.
    std::string text =
        "from_ticks,to_ticks,datagrams.accepted,datagrams.lost,frames.received,frames.accepted\n";
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        text += std::to_string(run_start + i * 1000) + ',' + std::to_string(run_start + (i + 1) * 1000) +
                (i % 2 == 0 ? ",100,2,7,7\n" : ",100,-1,7,7\n");
    }
    put(run / "ledger.csv", text);
    REQUIRE(plotted(run, " --force").status == 0);
    CHECK(contents_of(run / "plot" / "report.html").find("10,000 of 2,010,000") != std::string::npos);
    CHECK(contents_of(run / "plot" / "report.html").find("It ends ") == std::string::npos);
    std::filesystem::remove(run / "ledger.csv");

    // Histograms, where the run has them, know the energies outside of the window as well.
    nlohmann::json histograms = {{"crystals", std::vector<int>(hits.size(), 2)},
                                 {"energy_bin_keV", 4},
                                 {"energy", nlohmann::json::array()}};
    for (std::uint32_t bdm = 0; bdm < scanner.geometry.bdm_count; ++bdm)
        histograms["energy"].push_back(std::vector<std::uint32_t>(256, bdm));
    put(run / "histograms.json", histograms.dump());
    REQUIRE(plotted(run, " --force").status == 0);
    const double all = scanner.geometry.bdm_count * (scanner.geometry.bdm_count - 1) / 2.0;
    CHECK(table_of(run / "plot" / "energy-singles.csv").at("singles") == std::vector<double>(256, all));
    CHECK(table_of(run / "plot" / "singles-map.csv").at("counts") == std::vector<double>(hits.size(), 2));
}
