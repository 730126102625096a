// What the operator says at the start of a run: what is taken, what follows from it, what is refused and why.
#include "daemon/run/operator_data.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "config/nuclides/nuclides.hpp"
#include "daemon/system/utc.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using nlohmann::json;

namespace {

const auto start = utc_time("2026-11-20T18:45:00Z").value();

json taken(const json& said) {
    return to_json(operator_data(said, start), start);
}

std::string refusal(const json& said) {
    try {
        operator_data(said, start);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    FAIL("was not refused: " << said.dump());
    return "";
}

}  // namespace

TEST_CASE("what the operator says is kept, with what follows from it", "[operator]") {
    const double half_life = config::find_nuclide("F-18")->half_life_s;
    CHECK(half_life == Approx(6584.04));
    const json all = taken({{"nuclide", "F-18"},
                            {"activity_MBq", 80},
                            {"assay_utc", "2026-11-20T16:55:15.960+00:00"},  // one half-life earlier
                            {"bed_mm", -12.5},
                            {"subject", "mouse 7"},
                            {"keys", {{"tracer", "FDG"}, {"scan_2", "caf\u00e9"}}},
                            {"run", "not its subject"}});
    CHECK(all["activity_at_start_MBq"].get<double>() == Approx(40).epsilon(1e-6));
    CHECK(all["half_life_s"] == half_life);
    CHECK(all["branching_ratio"] == 0.9686);
    CHECK(all["activity_MBq"] == 80.0);
    CHECK(all["assay_utc"] == "2026-11-20T16:55:15.960Z");
    CHECK(all["bed_mm"] == -12.5);
    CHECK(all["subject"] == "mouse 7");
    CHECK(all["keys"] == json{{"tracer", "FDG"}, {"scan_2", "caf\u00e9"}});
    CHECK(all.size() == 9);
    CHECK(taken(all) == all);  // it can be read back

    CHECK(taken(nullptr).is_null());
    CHECK(taken({{"run", "r1"}, {"keys", json::object()}}).is_null());
    CHECK(taken({{"bed_mm", 0}}) == json{{"bed_mm", 0.0}});
    CHECK(taken({{"nuclide", "Ge-68"}}).size() == 3);

    // Before the assay there was more of it; long after it there is none.
    CHECK(taken({{"nuclide", "F-18"},
                 {"activity_MBq", 80},
                 {"assay_utc", "2026-11-20T20:34:44.040Z"}})["activity_at_start_MBq"]
              .get<double>() == Approx(160).epsilon(1e-6));
    CHECK(taken({{"nuclide", "O-15"},
                 {"activity_MBq", 80},
                 {"assay_utc", "2020-01-01T00:00Z"}})["activity_at_start_MBq"] == 0.0);
}

TEST_CASE("what cannot be is refused with its reason", "[operator]") {
    const std::string unknown = refusal({{"nuclide", "F18"}});
    CHECK(unknown.starts_with("nuclide: expected one of C-11, N-13, O-14, O-15, F-18, Na-22, "));
    CHECK(unknown.ends_with("or any other with its half-life and branching ratio, found 'F18'"));
    CHECK(refusal({{"nuclide", 18}}).ends_with(", found 18"));

    const json source = {{"nuclide", "F-18"}, {"activity_MBq", 80}, {"assay_utc", "2026-11-20T18:00:00Z"}};
    const auto with = [&](const char* key, const json& value) {
        json said = source;
        said[key] = value;
        return refusal(said);
    };
    CHECK(with("nuclide", nullptr) ==
          "activity_MBq: needs the nuclide, because it decays until the run starts");
    CHECK(with("assay_utc", nullptr) == "activity_MBq: needs assay_utc, the time at which it was measured");
    CHECK(with("activity_MBq", nullptr) == "assay_utc: needs activity_MBq, which was measured at that time");
    CHECK(with("activity_MBq", 0) == "activity_MBq: expected a number from 1e-9 to 1e+06 MBq, found 0");
    CHECK(with("activity_MBq", 2e6).ends_with(", found 2000000.0"));
    CHECK(with("activity_MBq", std::numeric_limits<double>::infinity()).ends_with(", found null"));
    CHECK(with("activity_MBq", "80").ends_with(", found \"80\""));
    CHECK(with("assay_utc", "yesterday") ==
          "assay_utc: expected a time of ISO 8601 with Z or its distance from UTC, such as "
          "2026-11-20T18:45:00Z or 2026-11-20T19:45:00+01:00, found \"yesterday\"");
    CHECK(with("assay_utc", "2026-11-22T18:45:00Z") ==
          "assay_utc: makes 6.36e+09 MBq at the start of the run, expected at most 1e+06 MBq");

    CHECK(refusal({{"bed_mm", 10001}}) == "bed_mm: expected a number from -10000 to 10000 mm, found 10001");
    CHECK(refusal({{"subject", ""}}) == "subject: expected text of 1 to 256 bytes on one line, found \"\"");
    CHECK(refusal({{"subject", std::string(257, 'x')}}) ==
          "subject: expected text of 1 to 256 bytes on one line, found 259 bytes");
    CHECK(refusal({{"subject", "two\nlines"}}).ends_with("found \"two\\nlines\""));

    CHECK(refusal({{"keys", "a=b"}}) == "keys: expected an object of names and texts, found \"a=b\"");
    for (const char* name : {"Tracer", "", "2nd", "a b", "a-b", "caf\u00e9"}) {
        CHECK(
            refusal({{"keys", {{name, "x"}}}})
                .starts_with("keys: expected names of 1 to 32 lower-case letters, digits and underscores, a "
                             "letter first, found "));
    }
    CHECK(refusal({{"keys", {{std::string(33, 'a'), "x"}}}}).starts_with("keys: expected names of 1 to 32"));
    CHECK(refusal({{"keys", {{"tracer", 1}}}}) ==
          "keys.tracer: expected text of 1 to 256 bytes on one line, found 1");
    json many = json::object();
    for (int i = 0; i < 33; ++i)
        many["k" + std::to_string(i)] = "x";
    CHECK(refusal({{"keys", many}}) == "keys: expected at most 32, found 33");
}

TEST_CASE("a nuclide that is missing in the table is declared with its values", "[operator]") {
    const json fe52 = {{"nuclide", "Fe-52"}, {"half_life_s", 29790}, {"branching_ratio", 0.5549}};
    CHECK(taken(fe52) == fe52);
    json all = fe52;
    all["nuclide_source"] = "ENSDF, A = 52";
    all["activity_MBq"] = 80;
    all["assay_utc"] = "2026-11-20T10:28:30.000Z";  // one half-life earlier
    CHECK(taken(all)["activity_at_start_MBq"].get<double>() == Approx(40).epsilon(1e-6));
    CHECK(taken(all)["nuclide_source"] == "ENSDF, A = 52");
    CHECK(taken(taken(all)) == taken(all));

    const auto with = [&](const char* key, const json& value) {
        json said = fe52;
        said[key] = value;
        return refusal(said);
    };
    for (const char* missing : {"half_life_s", "branching_ratio"})
        CHECK(with(missing, nullptr).ends_with("with its half-life and branching ratio, found 'Fe-52'"));
    CHECK(with("nuclide", nullptr) == "half_life_s, branching_ratio: need the nuclide that has them");
    for (const char* name : {"Fe52", "fe-52", "Fe-", "Fe-5222", "Fe-52x", "Iron-52", "-52", "Fe-52m12"}) {
        CHECK(
            with("nuclide", name) ==
            fmt::format("nuclide: expected an element and a mass number, such as Fe-52 or Tc-94m, found '{}'",
                        name));
    }
    for (const char* name : {"K-39", "Fe-52m", "Fe-52m2", "Og-294"})
        CHECK(operator_data({{"nuclide", name}, {"half_life_s", 1}, {"branching_ratio", 1}}, start)
                  .nuclide->name == name);
    for (const json& bad : {json(0), json(-1), json(1e13)})
        CHECK(with("half_life_s", bad)
                  .starts_with("half_life_s: expected seconds above 0, at most 1e+12, found "));
    CHECK(with("half_life_s", "long") == "half_life_s: expected a number, found \"long\"");
    for (const json& bad : {json(0), json(2.1)})
        CHECK(with("branching_ratio", bad)
                  .starts_with("branching_ratio: expected positrons per decay: a number "));
    CHECK(refusal({{"nuclide_source", "a book"}}) == "nuclide_source: needs the nuclide that it is about");

    // What the table has stays as it is.
    CHECK(taken({{"nuclide", "F-18"}, {"half_life_s", 6584.04}})["half_life_s"].get<double>() ==
          Approx(6584.04));
    CHECK(refusal({{"nuclide", "F-18"}, {"half_life_s", 110}}) ==
          "half_life_s: expected that of F-18 in the table, 6584.04, found 110");
    CHECK(refusal({{"nuclide", "F-18"}, {"branching_ratio", 1}})
              .starts_with("branching_ratio: expected that of F-18 in the table, 0.9686"));
}

TEST_CASE("nuclides with prompt gammas say so", "[operator]") {
    CHECK(config::prompt_gamma_note("Y-86") ==
          "Y-86 emits prompt gammas (mainly 1077 keV in 82 % of its decays): coincidences with them are "
          "among the prompts.");
    for (const char* name : {"I-124", "Sc-44", "Mn-52", "Br-76", "Tb-152", "Cu-61", "Na-22", "Rb-82"})
        CHECK_FALSE(config::prompt_gamma_note(name).empty());
    for (const char* name : {"F-18", "C-11", "Ga-68", "Zr-89", "Cu-62", "Ti-45", "Fe-52", ""})
        CHECK(config::prompt_gamma_note(name).empty());
}

TEST_CASE("gammas of positrons", "[operator]") {
    const auto chance = [](const char* name, double energy, bool positron) {
        const config::Nuclide& nuclide = *config::find_nuclide(name);
        for (const config::Gamma& gamma : nuclide.gammas)
            if (std::abs(gamma.energy_keV - energy) < 1) return nuclide.chance(gamma, positron);
        return 0.0;
    };
    CHECK(chance("Sc-44", 1157, true) == 1);
    CHECK(chance("Na-22", 1274.5, false) == Approx(0.9994).epsilon(0.001));
    // 11.7 + 0.3 of the 22.7 positrons lead to the level of 603 keV or beyond it.
    CHECK(chance("I-124", 602.7, true) == Approx(12.0 / 22.7).epsilon(0.01));
    CHECK(chance("I-124", 602.7, false) == Approx((0.629 - 0.120) / 0.773).epsilon(0.01));
    CHECK(chance("Ga-68", 1077.3, true) == Approx((0.8888 - 0.8768) / 0.8888).epsilon(0.01));
    CHECK(config::find_nuclide("Zr-89")->gammas.at(0).delay_half_life_s == Approx(15.66));
}

TEST_CASE("the table of nuclides", "[operator]") {
    for (const config::Nuclide& nuclide : config::nuclides()) {
        INFO(nuclide.name);
        CHECK(config::find_nuclide(nuclide.name) == &nuclide);
        CHECK(nuclide.half_life_s > 60);
        CHECK(nuclide.half_life_s < 3 * 365.2422 * 86400);
        CHECK(nuclide.branching_ratio > 0);
        CHECK(nuclide.branching_ratio <= 1);
        for (const config::Gamma& gamma : nuclide.gammas) {
            CHECK(gamma.energy_keV > 200);
            CHECK(gamma.per_decay > 0);
            CHECK(gamma.per_decay <= 1);
            CHECK(gamma.delay_half_life_s >= 0);
            // Decays with a positron and those without make up the intensity.
            const double with = nuclide.chance(gamma, true);
            const double without = nuclide.chance(gamma, false);
            const double positrons = nuclide.branching_ratio;
            CHECK(positrons * with + (1 - positrons) * without == Approx(gamma.per_decay).epsilon(0.01));
        }
        CHECK(config::declared_nuclide(nuclide.name) == nuclide);
    }
    CHECK(config::find_nuclide("F-19") == nullptr);
    for (const char* name : {"Sc-44", "Cu-61", "Cu-62", "Br-76", "Y-86", "Tb-152", "Mn-52", "Ti-45"})
        CHECK(config::find_nuclide(name) != nullptr);
    CHECK(config::find_nuclide("O-15")->half_life_s == Approx(122.46));
    CHECK(config::find_nuclide("Ga-68")->half_life_s == Approx(4069.8));
    CHECK(config::find_nuclide("Ge-68")->half_life_s == Approx(2.341008e7));
}
