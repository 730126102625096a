// The comparison of list-mode and truth, on hand-made cases and against the scan of the specification.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/petsim/compare.hpp"

using namespace petacq;

namespace {

// Crystals of modules 0 and 6 of the ring, opposite each other.
constexpr std::uint32_t here = 0;
constexpr std::uint32_t there = 60;

sim::TruthRecord single(std::uint64_t annihilation, std::uint64_t time, std::uint32_t crystal,
                        std::uint16_t flags = sim::truth_photon) {
    sim::TruthRecord t;
    t.annihilation = annihilation;
    t.time = time;
    t.crystal = crystal;
    t.energy = 511;
    t.flags = annihilation == 0 ? static_cast<std::uint16_t>(sim::truth_intrinsic) : flags;
    return t;
}

gpu::Coincidence prompt(const sim::TruthRecord& a, const sim::TruthRecord& b) {
    return {a.time,           static_cast<std::uint32_t>(b.time - a.time),
            a.crystal,        b.crystal,
            a.energy,         b.energy,
            gpu::Kind::prompt};
}

sim::PairingRules rules() {
    sim::PairingRules r;
    r.window_ticks = 100;
    r.lower = 350;
    r.upper = 650;
    r.min_module_difference = 2;
    return r;
}

sim::Comparison compare(std::vector<sim::TruthRecord> truth, std::vector<gpu::Coincidence> list) {
    return sim::compare(test::small_scanner().geometry, rules(), std::move(truth), std::move(list));
}

}  // namespace

TEST_CASE("pairs that are found, and why others are not", "[petsim][compare]") {
    std::vector<sim::TruthRecord> truth{
        single(1, 1000, here),  single(1, 1100, there),  // found
        single(2, 2000, here),  single(2, 2010, there),
        single(0, 2090, 7),  // a group of three
        single(0, 2950, here),  single(3, 3000, here + 1),
        single(3, 3051, there),                             // split by the window
        single(4, 4000, here),  single(4, 4101, there),     // too far apart
        single(5, 5000, here),  single(5, 5001, here + 3),  // one module
        single(6, 6000, here),  single(7, 6050, there),     // random
        single(8, 7000, here),  single(8, 7050, there, sim::truth_photon | sim::truth_scattered),
    };
    std::vector<gpu::Coincidence> list{prompt(truth[0], truth[1]), prompt(truth[12], truth[13]),
                                       prompt(truth[14], truth[15])};
    gpu::Coincidence delayed = list[0];
    delayed.kind = gpu::Kind::delayed;
    list.push_back(delayed);
    const auto c = compare(truth, list);
    CHECK(c.singles == 16);
    CHECK(c.pairs_sent == 6);
    CHECK(c.detectable == 4);
    CHECK(c.found == 2);
    CHECK(c.in_multiples == 1);
    CHECK(c.consumed == 1);
    CHECK(c.unexplained == 0);
    CHECK(c.prompts == 3);
    CHECK(c.trues == 1);
    CHECK(c.scattered == 1);
    CHECK(c.randoms == 1);
    CHECK(c.delayeds == 1);
    CHECK(c.prompts_expected == 3);
    CHECK(c.agrees());

    SECTION("a missing pair is unexplained") {
        list.erase(list.begin());
        const auto d = compare(truth, list);
        CHECK(d.unexplained == 1);
        CHECK(d.prompts_missing == 1);
        CHECK_FALSE(d.agrees());
    }
    SECTION("a wrong energy is foreign, surplus and missing") {
        list[1].energy_a = 510;
        const auto d = compare(truth, list);
        CHECK(d.foreign == 1);
        CHECK(d.prompts_surplus == 1);
        CHECK(d.prompts_missing == 1);
        CHECK_FALSE(d.agrees());
    }
    SECTION("lost, unreadable and wild frames are not expected") {
        const auto flag = GENERATE(0, 1, 2);
        const auto corrupted = [](sim::Field field) {
            return static_cast<std::uint16_t>(sim::truth_corrupted | (static_cast<unsigned>(field) + 1)
                                                                         << sim::truth_field_shift);
        };
        truth[0].flags |= flag == 0   ? static_cast<std::uint16_t>(sim::truth_lost)
                          : flag == 1 ? corrupted(sim::Field::version)
                                      : corrupted(sim::Field::time);
        list.erase(list.begin());
        const auto d = compare(truth, list);
        CHECK(d.detectable == 3);
        CHECK(d.agrees());
    }
    SECTION("energy limits are inclusive") {
        truth[0].energy = 350;
        truth[1].energy = 650;
        list[0].energy_a = 350;
        list[0].energy_b = 650;
        CHECK(compare(truth, list).agrees());
        truth[1].energy = std::nextafter(650.0F, 1000.0F);
        list.erase(list.begin());
        CHECK(compare(truth, list).agrees());
    }
}

TEST_CASE("the comparison agrees with the scan of the contract over a simulated stream",
          "[petsim][compare]") {
    auto options = test::point_options(20, 0.02);
    options.physics.dark_hz = 1000;
    options.faults.loss = 0.02;
    options.faults.corrupt.fill(0.02);
    auto limits = rules();
    const bool followed = GENERATE(false, true);
    if (followed) {
        options.crystals = {sim::CrystalModel::scatter, 3, 0.32, true};
        options.physics.intrinsic_hz = 500;
        options.object = {{{0, 0, 0}, 20, 40}, sim::water_per_cm};
        limits.lower = 100;
    }
    const auto run = test::record(options);
    const auto scanner = test::small_scanner();
    // The scan of the specification, written out: frames as they arrive, in order, in windows.
    std::vector<sim::TruthRecord> s;
    for (const auto& t : run.truth) {
        const int field = (t.flags & sim::truth_field_mask) >> sim::truth_field_shift;
        if ((t.flags & sim::truth_lost) != 0 || t.crystal == sim::no_crystal || field == 5 || field > 6)
            continue;
        if (t.energy < limits.lower || t.energy > limits.upper) continue;
        s.push_back(t);
    }
    std::sort(s.begin(), s.end(), [](const auto& a, const auto& b) {
        return std::tuple(a.time, a.crystal, a.energy) < std::tuple(b.time, b.crystal, b.energy);
    });
    std::vector<gpu::Coincidence> list;
    for (std::size_t i = 0; i < s.size();) {
        std::size_t j = i + 1;
        while (j < s.size() && s[j].time - s[i].time <= 100)
            ++j;
        const int m =
            static_cast<int>(s[i].crystal % 120 / 10) - static_cast<int>(s[j - 1].crystal % 120 / 10);
        const int apart = std::min(std::abs(m), 12 - std::abs(m));
        if (j - i == 2 && s[i].crystal != s[i + 1].crystal && apart >= 2)
            list.push_back(prompt(s[i], s[i + 1]));
        i = j;
    }
    const auto c = sim::compare(scanner.geometry, limits, run.truth, list);
    CHECK((c.one_photon > 10) == followed);
    CHECK((c.intrinsic > 10) == followed);
    CHECK(c.found > 1000);
    CHECK(c.in_multiples > 10);
    CHECK(c.consumed > 0);
    CHECK(c.randoms > 10);
    CHECK(c.prompts_expected == list.size());
    CHECK(c.agrees());
}

TEST_CASE("how wrong the calibration is, from records with the true hit", "[petsim][compare]") {
    const auto hit = [](std::uint64_t time, std::uint32_t crystal, float energy) {
        sim::TruthRecord t = single(0, time, crystal);
        t.energy = energy;
        t.hits = 1;
        t.true_time = 1000;
        t.true_crystal = here;
        t.true_energy = 500;
        return t;
    };
    CHECK_FALSE(compare({single(1, 1000, here)}, {}).calibration);
    std::vector<sim::TruthRecord> truth{hit(1000, here, 500), hit(1004, here, 550), hit(998, here, 600),
                                        hit(1990, there, 100), hit(1990, sim::no_crystal, 500)};
    truth.push_back(hit(1002, here, 5000));
    truth.back().true_energy = 300;  // outside the limits
    for (int i = 0; i < 3; ++i)
        truth.push_back(hit(77, there, 7));
    truth[6].hits = 2;
    truth[7].flags |= sim::truth_corrupted;
    truth[8].flags |= sim::truth_clock_jump;
    const auto c = compare(truth, {});
    REQUIRE(c.calibration);
    CHECK(c.calibration->frames == 6);
    CHECK(c.calibration->right == 4);
    CHECK(c.calibration->outside == 1);
    CHECK(c.calibration->energy_mean == Approx(0.1));
    CHECK(c.calibration->energy_rms == Approx(0.1 * std::sqrt(2.0 / 3)));
    CHECK(c.calibration->time_mean == Approx(1));
    CHECK(c.calibration->time_rms == Approx(std::sqrt((1.0 + 9 + 9 + 1) / 4)));
    CHECK(sim::to_json(c, 0)["calibration"]["right"] == 4);
}

TEST_CASE("several singles of one photon, and of one decay of Lu-176, are no pairs of photons",
          "[petsim][compare]") {
    const auto of = [](std::uint8_t photon, sim::TruthRecord t) {
        t.photon = photon;
        return t;
    };
    constexpr std::uint8_t first = sim::truth_first_photon;
    constexpr std::uint8_t second = sim::truth_second_photon;
    constexpr std::uint8_t later = sim::truth_later;
    const std::uint64_t decay = (std::uint64_t{1} << 63) + 1;
    const std::vector<sim::TruthRecord> truth{
        of(first, single(1, 1000, here)),
        of(first | later, single(1, 1001, there)),  // one photon alone
        of(second, single(2, 2000, here)),
        of(first, single(2, 2001, there)),
        of(second | later, single(2, 2002, 30)),  // one pair, and a scatter
        of(first, single(3, 3000, here)),
        of(second | later, single(3, 3001, there)),  // a pair
        single(decay, 4000, here, sim::truth_intrinsic),
        of(later, single(decay, 4001, there, sim::truth_intrinsic)),
    };
    const auto c =
        compare(truth, {prompt(truth[0], truth[1]), prompt(truth[5], truth[6]), prompt(truth[7], truth[8])});
    CHECK(c.pairs_sent == 2);
    CHECK(c.detectable == 2);
    CHECK(c.found == 1);
    CHECK(c.in_multiples == 1);
    CHECK(c.trues == 1);
    CHECK(c.one_photon == 1);
    CHECK(c.intrinsic == 1);
    CHECK(c.randoms == 0);
    CHECK(c.agrees());
}

TEST_CASE("triples are those that the pairs and the gammas of the truth give", "[petsim][compare]") {
    const auto gamma = [](std::uint64_t annihilation, std::uint64_t time,
                          std::uint8_t photon = sim::truth_gamma) {
        sim::TruthRecord t = single(annihilation, time, 30);
        t.energy = 1100;
        t.photon = photon;
        return t;
    };
    const auto photon = [](std::uint8_t which, sim::TruthRecord t) {
        t.photon = which;
        return t;
    };
    constexpr std::uint8_t first = sim::truth_first_photon;
    constexpr std::uint8_t second = sim::truth_second_photon;
    std::vector<sim::TruthRecord> truth{
        photon(first, single(1, 10'000, here)),
        photon(second, single(1, 10'010, there)),
        gamma(1, 9'700),   // as early as it may be, and true
        gamma(8, 10'200),  // as late as it may be, and random
        gamma(9, 9'699),
        gamma(9, 10'201),
        gamma(9, 11'050),  // delayed, 50 after
        photon(first, single(2, 20'000, here)),
        photon(second, single(2, 20'010, there)),
        gamma(2, 20'001, first),  // no gamma of the nuclide
        photon(first, single(3, 30'000, here)),
        photon(second, single(4, 30'010, there)),
        gamma(3, 30'001),  // of one photon of a random pair
    };
    sim::PairingRules limits = rules();
    limits.gammas = config::Gammas{1000, 1200, 300, 200, config::GammaPolicy::all, 1000};
    const std::vector<gpu::Coincidence> pairs{prompt(truth[0], truth[1]), prompt(truth[7], truth[8]),
                                              prompt(truth[10], truth[11])};
    const auto triple = [&](std::size_t pair, std::int32_t dt,
                            gpu::ThirdPhoton third = gpu::ThirdPhoton::coincident) {
        return gpu::Triple{pairs[pair], dt, 30, 1100, third};
    };
    std::vector<gpu::Triple> triples{triple(0, -300), triple(0, 200),
                                     triple(0, 50, gpu::ThirdPhoton::delayed), triple(1, 1), triple(2, 1)};
    const auto compared = [&] {
        return sim::compare(test::small_scanner().geometry, limits, truth, pairs, triples);
    };
    const auto c = compared();
    REQUIRE(c.triples);
    CHECK(c.singles == 6);
    CHECK(c.triples->gammas == 7);
    CHECK(c.triples->triples == 5);
    CHECK(c.triples->expected == 5);
    CHECK(c.triples->trues == 1);
    CHECK(c.triples->spurious == 1);
    CHECK(c.triples->randoms == 2);
    CHECK(c.triples->delayeds == 1);
    CHECK(c.triples->foreign == 0);
    CHECK(c.triples->missing == 0);
    CHECK(c.agrees());

    SECTION("a triple that is not there is missing") {
        triples.erase(triples.begin());
        CHECK(compared().triples->missing == 1);
        CHECK_FALSE(compared().agrees());
        CHECK(sim::to_json(compared(), 0)["triples"]["missing"] == 1);
    }
    SECTION("a triple of a gamma outside the window is foreign, and so is one given twice") {
        triples.push_back(triple(0, 201));
        triples.push_back(triples.front());
        CHECK(compared().triples->foreign == 2);
        CHECK(compared().triples->missing == 0);
        CHECK_FALSE(compared().agrees());
    }
    SECTION("a gamma whose frame was lost makes no triple") {
        truth[2].flags |= sim::truth_lost;
        CHECK(compared().triples->foreign == 1);
    }
    SECTION("of several gammas only_one keeps none") {
        limits.gammas->policy = config::GammaPolicy::only_one;
        CHECK(compared().triples->expected == 3);
        triples.erase(triples.begin(), triples.begin() + 2);
        CHECK(compared().agrees());
    }
    SECTION("of several gammas nearest keeps the nearest") {
        limits.gammas->policy = config::GammaPolicy::nearest;
        CHECK(compared().triples->foreign == 1);
        triples.erase(triples.begin());
        CHECK(compared().agrees());
    }
    SECTION("the text names them") {
        CHECK_THAT(sim::to_text(c, 0),
                   test::contains("triples            5: 1 true, 1 spurious, 2 random, 1 delayed") &&
                       test::contains("5 expected of 7 gammas, 0 missing"));
        limits.gammas.reset();
        CHECK(sim::to_text(compared(), 0).find("triples") == std::string::npos);
        CHECK_FALSE(sim::to_json(compared(), 0).contains("triples"));
    }
}
