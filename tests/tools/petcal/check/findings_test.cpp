#include "tools/petcal/check/findings.hpp"

#include <array>

#include "tests/support/catch.hpp"

using namespace petacq;
using petcal::Change;
using petcal::CheckFinding;

namespace {

/// Four modules of two units of nine crystals.
const config::Geometry four_modules = {4, {1, 1, 1}, {1, 1, 2}, {1, 3, 3},
                                       4, 2,         64};  // NOLINT(cert-err58-cpp)

petcal::DetectorChanges unchanged() {
    const std::size_t crystals = four_modules.crystal_count();
    petcal::DetectorChanges c;
    c.photopeaks.assign(crystals, {0, 0.002});
    c.resolutions.assign(8, {0, 0.02});
    c.efficiencies.assign(4, {0, 0.01});
    c.lost_peaks.assign(crystals, false);
    c.singles.assign(crystals, {0, 0.03});
    c.silent.assign(8, false);
    c.spots.assign(8, {0.01, 0.005});
    c.times.assign(4, {0, 0.01});
    c.prompts.assign(4, {0, 0.02});
    return c;
}

std::vector<std::string> texts_of(const petcal::DetectorChanges& changes) {
    std::vector<std::string> texts;
    for (const CheckFinding& f : find_in_changes(four_modules, changes, {}))
        texts.push_back(f.text);
    return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a change is named for the largest part that has it", "[check]") {
    auto changes = unchanged();
    CHECK(texts_of(changes).empty());
    const std::size_t n = four_modules.crystals_per_du();
    SECTION("all") {
        for (Change& c : changes.photopeaks)
            c.size = 0.02;
        CHECK(texts_of(changes) == Texts{"all BDMs: their photopeaks differ by +2.00 % from the reference"});
    }
    SECTION("a module, of which one crystal has changed besides") {
        for (std::size_t i = 2 * n; i < 4 * n; ++i)
            changes.photopeaks[i].size = -0.03;
        changes.photopeaks[2 * n + 4].size = -0.2;
        const auto crystal = std::to_string(four_modules.crystal(1, 0, 4));
        CHECK(texts_of(changes) == Texts{"BDM 1: its photopeak differs by -3.00 % from the reference",
                                         "BDM 1, DU 0, crystal " + crystal +
                                             ": its photopeak differs by -20 % from the reference"});
        CHECK(verdict_of(find_in_changes(four_modules, changes, {})) == petcal::Verdict::fail);
    }
    SECTION("a unit") {
        changes.resolutions[3].size = 0.2;
        CHECK(texts_of(changes) ==
              Texts{"BDM 1, DU 1: its energy resolution differs by +20 % from the reference"});
    }
    SECTION("crystals") {
        changes.singles[n].size = -1;
        changes.singles[n + 1].size = 4;
        changes.lost_peaks[n] = true;
        const auto found = find_in_changes(four_modules, changes, {});
        REQUIRE(found.size() == 2);
        CHECK(verdict_of(found) == petcal::Verdict::look);
        CHECK(found[0].text == "BDM 0, DU 1, crystal " + std::to_string(four_modules.crystal(0, 1, 0)) +
                                   ": it has no clear photopeak any more");
        CHECK(found[1].crystals == std::vector{four_modules.crystal(0, 1, 1), four_modules.crystal(0, 1, 0)});
    }
    SECTION("a silent unit, of which nothing else is said") {
        changes.silent[5] = true;
        for (std::size_t i = 5 * n; i < 6 * n; ++i) {
            changes.singles[i].size = -1;
            changes.photopeaks[i] = {};
        }
        CHECK(texts_of(changes) == Texts{"BDM 2: DU 1 does not count"});
    }
    SECTION("units with moved spots") {
        changes.spots[6].size = 0.2;
        CHECK(texts_of(changes) ==
              Texts{"BDM 3, DU 0: its spots moved by 20 % of their distance since the reference"});
        changes.spots[7].size = 0.3;
        CHECK(texts_of(changes) == Texts{"BDM 3: in 2 DUs the spots moved by up to 30 % of their "
                                         "distance since the reference"});
    }
    SECTION("a module that is less efficient, unless its singles were named") {
        changes.efficiencies[2].size = -0.1;
        CHECK(texts_of(changes) ==
              Texts{"BDM 2: its efficiency differs by -10 % from the reference, with an error of 1.0 %"});
        for (std::size_t i = 4 * n; i < 6 * n; ++i)
            changes.singles[i].size = -0.4;
        CHECK(texts_of(changes) ==
              Texts{"BDM 2: its share of the singles differs by -40 % from the reference"});
    }
    SECTION("modules") {
        changes.times[1].size = -1.02;
        changes.prompts[2].size = -0.9;
        changes.prompts[3].size = 0.9;  // more are no fault
        CHECK(texts_of(changes) == Texts{"BDM 1: its times differ by -1.02 ns from the reference",
                                         "BDM 2: its prompts per single differ by -90 % from the reference"});
    }
}

TEST_CASE("a change that may be chance is not named, and one that is unknown neither", "[check]") {
    auto changes = unchanged();
    changes.times[1] = {0.3, 0.05};
    changes.times[2] = {5, Change().error};
    changes.singles[0] = {0.9, 0.15};
    CHECK(texts_of(changes).empty());
}

TEST_CASE("data that cannot show changes by the limits are insufficient", "[check]") {
    auto changes = unchanged();
    CHECK(insufficient_data(four_modules, changes, {}).empty());
    for (Change& c : changes.times)
        c.error = 0.05;
    for (Change& c : changes.spots)
        c = {};
    const auto why = insufficient_data(four_modules, changes, {});
    REQUIRE(why.size() == 2);
    CHECK(why[0] ==
          "too few counts for the times of BDMs: expected that a change by 0.1 ns can be told from "
          "chance (6.5 sigma) in at least half of them, found only one of 0.325 ns");
    CHECK_THAT(why[1], petacq::test::contains("flood maps") && petacq::test::contains("found none"));
}

TEST_CASE("the median of changes needs half of them", "[check]") {
    const Change unknown;
    CHECK(!petcal::median_of({}).known());
    CHECK(!petcal::median_of(std::vector{unknown, unknown, Change{1, 1}}).known());
    const Change one = petcal::median_of(std::vector{unknown, Change{1, 2}});
    CHECK(one.size == 1);
    CHECK(one.error == 2);
    const Change three = petcal::median_of(std::vector{Change{1, 1}, Change{9, 1}, Change{2, 1}});
    CHECK(three.size == 2);
    CHECK(three.error == Approx(0.72).margin(0.01));
}

TEST_CASE("a finding about counts says what did not arrive of its module", "[check]") {
    auto changes = unchanged();
    changes.prompts[2].size = -0.6;
    auto findings = find_in_changes(four_modules, changes, {});
    REQUIRE(findings.size() == 1);
    const auto text = findings[0].text;
    const auto none = [](std::size_t) { return false; };
    daemon::LiveSums all;
    all.add(1, std::array{1.0, 1.0, 1.0, 1.0}, none);
    name_loss(findings, all, all);
    CHECK(findings[0].text == text);
    daemon::LiveSums lossy;
    lossy.add(1, std::array{1.0, 1.0, 0.7, 1.0}, none);
    name_loss(findings, all, lossy);
    CHECK(findings[0].text == text + "; 30 % of its data did not arrive in the run");
}
