// petlm info, dump, verify and recover, run as users run them.
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "daemon/listmode/reader.hpp"
#include "daemon/listmode/writer.hpp"
#include "daemon/run/directory.hpp"
#include "tests/support/read_listmode.hpp"
#include "tests/tools/petlm/support.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

void write_pairs(const std::filesystem::path& file, const gpu::RecordVector<gpu::Coincidence>& records,
                 const nlohmann::json& description = {{"tick_ps", 20}, {"crystals", 5000}}) {
    write_plm(file, records, description);
}

}  // namespace

TEST_CASE("petlm dump prints every field, and floats that read back", "[listmode][petlm]") {
    const TemporaryDirectory directory;
    const auto file = directory / "a.plm";
    auto records = pairs(300);
    records[0].energy_a = 0.1F;
    records[1].energy_a = 16777216.0F;
    records[2].energy_b = 1e-30F;
    records[3].energy_b = 510.99896F;
    write_pairs(file, records);

    const Outcome outcome = run_petlm("dump" + quoted(file));
    REQUIRE(outcome.status == 0);
    std::istringstream lines(outcome.out);
    std::string line;
    std::getline(lines, line);
    CHECK(line == "kind,time,dt,crystal_a,crystal_b,energy_a,energy_b");
    for (const auto& record : records) {
        REQUIRE(std::getline(lines, line));
        std::array<char, 16> kind{};
        gpu::Coincidence back;
        REQUIRE(std::sscanf(line.c_str(), "%15[a-z],%lu,%u,%u,%u,%f,%f", kind.data(), &back.time, &back.dt,
                            &back.crystal_a, &back.crystal_b, &back.energy_a, &back.energy_b) == 7);
        REQUIRE((std::strcmp(kind.data(), "prompt") == 0 || std::strcmp(kind.data(), "delayed") == 0));
        back.kind = kind[0] == 'p' ? gpu::Kind::prompt : gpu::Kind::delayed;
        CHECK(same(back, record));
    }
    CHECK_FALSE(std::getline(lines, line));
    CHECK_THAT(run_petlm("dump --limit 1" + quoted(file)).out, contains(",0.1,400.5\n"));
    CHECK(shell(PETLM_PROGRAM " dump --kind delayed" + quoted(file) + "| grep -c delayed").out == "60\n");
    CHECK(shell(PETLM_PROGRAM " dump --kind prompt --limit 7" + quoted(file) + "| grep -c prompt").out ==
          "7\n");
}

TEST_CASE("petlm dump ends quietly when its reader goes away", "[listmode][petlm]") {
    const TemporaryDirectory directory;
    const auto file = directory / "a.plm";
    write_pairs(file, pairs(50'000));
    const auto status = directory / "status";
    const Outcome outcome =
        shell("( " PETLM_PROGRAM " dump" + quoted(file) + "; echo $? >" + quoted(status) + ") | head -n 1");
    CHECK(outcome.out == "kind,time,dt,crystal_a,crystal_b,energy_a,energy_b\n");
    CHECK(eventually([&] { return read_file(status) == "0\n"; }));
    CHECK(run_petlm("dump" + quoted(file) + "> /dev/full").status == 74);
}

TEST_CASE("petlm dump of singles", "[listmode][petlm]") {
    const TemporaryDirectory directory;
    const auto file = directory / "s.plm";
    ListModeOptions options;
    options.kind = RecordKind::singles;
    const gpu::RecordVector<gpu::Single> singles = {{5, 7, 511.5F}, {UINT64_MAX, 0, 1e10F}};
    {
        ListModeWriter writer(file, options);
        writer.append(std::vector(singles));
    }
    CHECK(run_petlm("dump" + quoted(file)).out ==
          "time,crystal,energy\n5,7,511.5\n18446744073709551615,0,1e+10\n");
    CHECK(run_petlm("dump --kind prompt" + quoted(file)).status == 64);
    CHECK(run_petlm("verify" + quoted(file)).status == 0);
}

TEST_CASE("petlm info describes a file with and without an index", "[listmode][petlm]") {
    const TemporaryDirectory directory;
    const auto file = directory / "a.plm";
    write_pairs(file, pairs(1000));
    const Outcome whole = run_petlm("info --json" + quoted(file));
    REQUIRE(whole.status == 0);
    const auto json = nlohmann::json::parse(whole.out);
    CHECK(json["records"] == 1000);
    CHECK(json["blocks"] == 8);
    CHECK(json["state"] == "complete");
    CHECK(json["first_time"] == 1000);
    CHECK(json["last_time"] == 10990);
    CHECK(json["description"]["tick_ps"] == 20);
    CHECK_THAT(run_petlm("info" + quoted(file)).out, contains("1000 to 10990 ticks, 1.998e-07 s"));

    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
    const Outcome cut = run_petlm("info --json" + quoted(file));
    CHECK(cut.status == 1);
    const auto cut_json = nlohmann::json::parse(cut.out);
    CHECK(cut_json["state"] == "truncated");
    CHECK(cut_json["records"] == 1000);
    CHECK(cut_json["payload_crc32c"] == json["payload_crc32c"]);
}

TEST_CASE("petlm info shows no key that the scanner or the rule has no value for", "[listmode][petlm]") {
    const TemporaryDirectory directory;
    const auto file = directory / "box.plm";
    ListModeWriter(file, {}, {{"tick_ps", 20}, {"crystals", 5000}, {"crystals_in_ring", nullptr}}).finish();
    const std::string shown = run_petlm("info" + quoted(file)).out;
    CHECK_THAT(shown, contains("crystals     5000\n"));
    CHECK_THAT(shown, !contains("null"));
    // The JSON has the description as it is.
    const auto json = nlohmann::json::parse(run_petlm("info --json" + quoted(file)).out);
    CHECK(json["description"].at("crystals_in_ring").is_null());
}

TEST_CASE("petlm verify takes the triples of each of two equal pairs, and only in order",
          "[listmode][petlm]") {
    const TemporaryDirectory directory;
    const auto file = directory / "triples.plm";
    const auto verified = [&](const gpu::RecordVector<gpu::Triple>& triples) {
        std::filesystem::remove(file);
        ListModeOptions options;
        options.kind = RecordKind::triples;
        ListModeWriter writer(file, options, {{"tick_ps", 20}, {"crystals", 5000}});
        writer.append(gpu::RecordVector<gpu::Triple>(triples));
        REQUIRE(writer.finish().written == triples.size());
        return run_petlm("verify" + quoted(file));
    };
    gpu::RecordVector<gpu::Triple> triples{{pair_number(0), 5, 7, 1157, gpu::ThirdPhoton::coincident}};
    for (int pair = 0; pair < 2; ++pair) {
        for (const std::int32_t dt : {-4, 3, 8})
            triples.push_back({pair_number(1), dt, 9, 1150, gpu::ThirdPhoton::coincident});
        triples.push_back({pair_number(1), -2, 9, 1150, gpu::ThirdPhoton::delayed});
    }
    const Outcome good = verified(triples);
    INFO(good.out);
    CHECK(good.status == 0);
    std::swap(triples[6], triples[7]);
    const Outcome swapped = verified(triples);
    CHECK(swapped.status == 1);
    CHECK_THAT(swapped.out, contains("record 7 (block 0) is not in order"));
    CHECK_THAT(swapped.out, !contains("record 5 "));
}

TEST_CASE("petlm verify --json tells each target and file", "[listmode][petlm]") {
    const TemporaryDirectory directory;
    const auto good = directory / "good.plm";
    write_pairs(good, pairs(1000));
    const auto bad = directory / "bad.plm";
    write_file(bad, "not list-mode");
    const Outcome outcome = run_petlm("verify --json" + quoted(good) + quoted(bad));
    CHECK(outcome.status == 65);
    const auto targets = nlohmann::json::parse(outcome.out)["targets"];
    REQUIRE(targets.size() == 2);
    CHECK(targets[0]["good"] == true);
    CHECK(targets[0]["files"][0]["file"] == good.string());
    CHECK(targets[0]["files"][0]["kind"] == "coincidences");
    CHECK(targets[0]["files"][0]["complete"] == true);
    CHECK(targets[0]["files"][0]["records"].get<std::uint64_t>() ==
          targets[0]["files"][0]["prompts"].get<std::uint64_t>() +
              targets[0]["files"][0]["delayeds"].get<std::uint64_t>());
    CHECK(targets[0]["files"][0]["payload_sha256"].get<std::string>().size() == 64);
    CHECK(targets[1]["target"] == bad.string());
    CHECK(targets[1]["good"] == false);
    CHECK_FALSE(targets[1]["messages"].empty());
}

TEST_CASE("petlm verify finds defects", "[listmode][petlm]") {
    const TemporaryDirectory directory;
    const auto file = directory / "a.plm";
    auto records = pairs(1000);

    SECTION("none, and the digest is that of the records") {
        write_pairs(file, records);
        write_file(directory / "payload",
                   std::string(reinterpret_cast<const char*>(records.data()), records.size() * 32));
        const Outcome outcome = run_petlm("verify" + quoted(file));
        CHECK(outcome.status == 0);
        const Outcome digest = shell("sha256sum" + quoted(directory / "payload"));
        REQUIRE(digest.status == 0);
        CHECK_THAT(outcome.out, contains("sha256 " + digest.out.substr(0, 64)));
        CHECK_THAT(outcome.out, contains("800 prompt, 200 delayed"));
    }
    SECTION("records out of order, also across the end of a block") {
        std::swap(records[125], records[126]);
        std::swap(records[500], records[501]);
        write_pairs(file, records);
        const Outcome outcome = run_petlm("verify" + quoted(file));
        CHECK(outcome.status == 1);
        CHECK_THAT(outcome.out, contains("record 126 (block 1) is not in order"));
        CHECK_THAT(outcome.out, contains("record 501 (block 3) is not in order"));
    }
    SECTION("equal times, ordered by the wrong field") {
        records[1].time = records[0].time;  // record 0 is delayed, record 1 prompt
        write_pairs(file, records);
        CHECK_THAT(run_petlm("verify" + quoted(file)).out, contains("record 1 (block 0) is not in order"));
    }
    SECTION("a crystal that the scanner does not have") {
        records[10].crystal_b = 5000;
        write_pairs(file, records);
        CHECK_THAT(run_petlm("verify" + quoted(file)).out,
                   contains("record 10 (block 0) has a crystal beyond"));
    }
    SECTION("a flipped bit") {
        write_pairs(file, records);
        std::string bytes = read_file(file);
        bytes[4096 + 4096 + 1000] ^= 4;
        write_file(file, bytes);
        const Outcome outcome = run_petlm("verify" + quoted(file));
        CHECK(outcome.status == 1);
        CHECK_THAT(outcome.out, contains("offset 8192: block 1 with a wrong CRC"));
    }
    SECTION("a file that is not list-mode, after which the others are still checked") {
        write_pairs(file, records);
        write_file(directory / "foreign", "hello");
        const Outcome outcome = run_petlm("verify" + quoted(directory / "foreign") + quoted(file));
        CHECK(outcome.status == 65);
        CHECK_THAT(outcome.out, contains("does not begin with") && contains("a.plm: complete"));
        CHECK(run_petlm("verify" + quoted(directory / "absent")).status == 74);
    }
}

TEST_CASE("petlm verify compares a run with its run.json", "[listmode][petlm]") {
    const TemporaryDirectory directory;
    write_pairs(directory / "coincidences.plm", pairs(100));
    const auto verify_with = [&](const nlohmann::json& run) {
        write_json_atomically(directory / run_file, run);
        return run_petlm("verify" + quoted(directory.path()));
    };
    CHECK(run_petlm("verify" + quoted(directory.path())).status == 1);  // no run.json
    const auto ledger = [](int written, int prompts = 80) -> nlohmann::json {
        return {{"pairs",
                 {{"prompts_found", prompts},
                  {"delayeds_found", 20},
                  {"written", written},
                  {"write_failed", 0}}}};
    };
    CHECK(verify_with({{"state", "complete"}, {"ledger", ledger(100)}}).status == 0);
    const Outcome other = verify_with({{"state", "complete"}, {"ledger", ledger(99)}});
    CHECK(other.status == 1);
    CHECK_THAT(other.out, contains("the ledger's /pairs/written is 99, the files hold 100"));
    CHECK_THAT(verify_with({{"state", "complete"}, {"ledger", ledger(100, 81)}}).out,
               contains("/pairs/prompts_found is 81, the files hold 80"));
    const Outcome running = verify_with({{"state", "running"}, {"ledger", ledger(100)}});
    CHECK(running.status == 1);
    CHECK_THAT(running.out, contains("the run's state is \"interrupted\", expected \"complete\""));
    CHECK_THAT(verify_with({{"state", "complete"}, {"ledger", nlohmann::json::object()}}).out,
               contains("the ledger has no /pairs/written"));
    CHECK(verify_with({{"state", "complete"}, {"ledger", 5}}).status == 1);
    CHECK(verify_with({{"state", "complete"}}).status == 0);

    // A recovered file beside its original is not part of the run, good or bad; it is checked when named.
    REQUIRE(run_petlm("recover" + quoted(directory / "coincidences.plm")).status == 0);
    const auto recovered = directory / "coincidences.recovered.plm";
    REQUIRE(std::filesystem::exists(recovered));
    const Outcome beside = verify_with({{"state", "complete"}, {"ledger", ledger(100)}});
    CHECK(beside.status == 0);
    CHECK(beside.out.find("recovered") == std::string::npos);
    write_file(recovered, "hello");
    CHECK(run_petlm("verify" + quoted(directory.path())).status == 0);
    CHECK(run_petlm("verify" + quoted(recovered)).status == 65);

    // Nor is what somebody has made from the run, whatever its name.
    for (const char* name : {"cut.plm", "coincidences-narrow.plm", "coincidences_2.plm", "seconds.cut.plm"}) {
        write_pairs(directory / name, pairs(30));
        CHECK(verify_with({{"state", "complete"}, {"ledger", ledger(100)}}).status == 0);
    }
    const Outcome named = run_petlm("verify" + quoted(directory.path()));
    CHECK_THAT(named.out, contains("coincidences.plm: complete") && !contains("cut.plm"));
    CHECK_THAT(run_petlm("info" + quoted(directory.path())).out, !contains("cut.plm"));
    const auto copy = directory / "copy";
    REQUIRE(run_petlm("recover" + quoted(directory.path()) + "--output" + quoted(copy)).status == 0);
    CHECK(std::filesystem::exists(copy / "coincidences.plm"));
    CHECK_FALSE(std::filesystem::exists(copy / "cut.plm"));

    write_file(directory / run_file, "{ not json");
    CHECK(run_petlm("verify" + quoted(directory.path())).status == 1);
    CHECK_THAT(run_petlm("info" + quoted(directory.path())).out, contains("records      100"));
}

TEST_CASE("petlm recover copies every whole block and never replaces a file", "[listmode][petlm]") {
    const TemporaryDirectory directory;
    const auto file = directory / "a.plm";
    const auto recovered = directory / "a.recovered.plm";
    write_pairs(file, pairs(126 * 10));
    const std::string whole = read_file(file);

    SECTION("cut off") {
        for (const std::size_t blocks : {0U, 1U, 5U, 10U}) {
            for (const std::size_t more : {0U, 1U, 100U, 4095U}) {
                if (blocks == 10 && more > 320) continue;
                write_file(file, whole.substr(0, 4096 + blocks * 4096 + more));
                const Outcome outcome = run_petlm("recover" + quoted(file));
                CHECK(outcome.status == 0);
                if (more != 0)
                    CHECK_THAT(outcome.out,
                               contains(std::to_string(more) + " bytes after the last whole block"));
                CHECK(same(read_coincidences(recovered), pairs(126 * blocks)));
                CHECK(run_petlm("verify" + quoted(recovered)).status == 0);
                std::filesystem::remove(recovered);
            }
        }
    }
    SECTION("damaged in the middle") {
        std::string bytes = whole;
        bytes[4096 + 3 * 4096 + 500] ^= 1;
        write_file(file, bytes);
        const auto output = directory / "out.plm";
        const Outcome outcome = run_petlm("recover" + quoted(file) + "--output" + quoted(output));
        CHECK(outcome.status == 1);
        CHECK_THAT(outcome.out, contains("offset 16384, 4096 bytes") && contains("126 records missing"));
        auto expected = pairs(126 * 3);
        const auto rest = pairs(126 * 6, 126 * 4);
        expected.insert(expected.end(), rest.begin(), rest.end());
        CHECK(same(read_coincidences(output), expected));
        CHECK(ListModeReader(output).description()["recovered"]["missing_records"] == 126);
        CHECK(read_file(file) == bytes);
    }
    SECTION("the output exists") {
        write_file(recovered, "kept");
        CHECK(run_petlm("recover" + quoted(file)).status == 64);
        CHECK(run_petlm("recover" + quoted(file) + "-o" + quoted(file)).status == 64);
        CHECK(read_file(recovered) == "kept");
        CHECK(read_file(file) == whole);
    }
    SECTION("nothing to recover from") {
        write_file(file, "PETACQLM and no more");
        CHECK(run_petlm("recover" + quoted(file)).status == 65);
        CHECK_FALSE(std::filesystem::exists(recovered));
    }
}

TEST_CASE("petlm refuses unknown commands and missing files", "[listmode][petlm]") {
    const TemporaryDirectory directory;
    CHECK(run_petlm("").status == 64);
    CHECK(run_petlm("fly").status == 64);
    CHECK(run_petlm("dump --kind random x").status == 64);
    CHECK(run_petlm("dump --limit -1 x").status == 64);
    CHECK(run_petlm("--help").status == 0);
    CHECK(run_petlm("dump" + quoted(directory / "absent.plm")).status == 74);
    CHECK(run_petlm("info" + quoted(directory.path())).status == 65);
}

TEST_CASE("petlm tracers refuses two tracers with gammas, and the run of both as that of one",
          "[petlm][tracers]") {
    const TemporaryDirectory directory;
    std::filesystem::create_directories(directory / "both");
    std::filesystem::create_directory_symlink(directory / "both", directory / "link");
    const auto refused = [&](const std::string& nuclide, const std::filesystem::path& gamma_run) {
        const Outcome outcome =
            run_petlm("tracers" + quoted(directory / "both") + "--output" + quoted(directory / "out") +
                      "--gamma-nuclide Sc-44 --nuclide " + nuclide + " --gamma-run" + quoted(gamma_run));
        CHECK(outcome.status != 0);
        CHECK_FALSE(std::filesystem::exists(directory / "out"));
        return outcome.out;
    };
    CHECK_THAT(refused("Na-22", directory / "alone"),
               contains("--nuclide: expected a tracer without prompt gammas; Na-22 emits"));
    // Few of the decays of Ga-68 have one.
    for (const char* nuclide : {"F-18", "Ga-68"}) {
        CHECK_THAT(refused(nuclide, directory / "alone"),
                   !contains("--nuclide: expected") && !contains("--gamma-run: expected"));
        for (const char* same : {"both", "link"})
            CHECK_THAT(refused(nuclide, directory / same),
                       contains("--gamma-run: expected a run of Sc-44 alone"));
    }
}

TEST_CASE("The Python reader in the documentation reads the same records as petlm", "[listmode][docs]") {
    if (shell("python3 -c pass").status != 0) {
        WARN("skipped: no python3 here");
        return;
    }
    const TemporaryDirectory directory;
    const std::string page = read_file(PETACQ_SOURCE_DIR "/docs/reference/list-mode-format.md");
    const auto begin = page.find("```python\n");
    REQUIRE(begin != std::string::npos);
    const auto end = page.find("```", begin + 10);
    REQUIRE(end != std::string::npos);
    write_file(directory / "reader.py", page.substr(begin + 10, end - begin - 10));
    const auto python = [&](const std::filesystem::path& file) {
        return shell("python3" + quoted(directory / "reader.py") + quoted(file));
    };
    const auto lines_of = [](const gpu::RecordVector<gpu::Coincidence>& records) {
        std::ostringstream lines;
        for (const auto& r : records) {
            lines << r.time << ',' << r.dt << ',' << r.crystal_a << ',' << r.crystal_b << ',' << r.energy_a
                  << ',' << r.energy_b << ',' << static_cast<std::uint32_t>(r.kind) << '\n';
        }
        return lines.str();
    };
    const auto file = directory / "a.plm";
    write_pairs(file, pairs(300));
    CHECK(python(file).out == lines_of(pairs(300)));
    std::filesystem::resize_file(file, 4096 + 4096 + 4095);
    CHECK(python(file).out.find(lines_of(pairs(126))) != std::string::npos);
    CHECK_THAT(python(file).out, contains("not closed properly"));
    write_file(file, std::string(100, 'x'));
    CHECK(python(file).status == 1);
}
