// The generated cases: their frames convert as intended, and together they reach every counter.
#include <array>
#include <set>
#include <vector>

#include "tests/gpu/generators.hpp"
#include "tests/gpu/plan.hpp"
#include "tests/gpu/reference.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq::test;
using petacq::gpu::MultiplesPolicy;
using petacq::gpu::Single;
using petacq::gpu::WindowMode;

}  // namespace

TEST_CASE("reference: the counts add up for every family of cases") {
    for (const Family family : all_families()) {
        for (std::uint64_t seed = 1; seed <= 12; ++seed) {
            Case c = make_case(family, seed);
            petacq::gpu::RecordVector<Single> singles;
            for (const InputFrame& frame : c.frames) {
                const Converted converted = reference_convert(frame.raw, c.options, c.setup.calibration, {});
                if (converted.fate == Fate::accepted) singles.push_back(converted.single);
            }
            c.options.rules.mode = seed % 2 == 0 ? WindowMode::single : WindowMode::every;
            c.options.rules.policy = static_cast<MultiplesPolicy>(seed % 6);
            const Decided d = reference_coincidences(singles, c.setup.geometry, c.options.rules);
            const auto& n = d.counts;
            INFO("family " << name_of(family) << ", seed " << seed);
            CHECK(n.decided == singles.size());
            CHECK(n.decided == 2 * n.prompts + n.unpaired + n.same_crystal + n.geometry +
                                   n.in_dropped_multiples + n.in_oversize_multiples + n.unused_in_multiples -
                                   n.reused);
            CHECK(d.coincidences.size() == n.prompts + n.delayeds);
        }
    }
}

TEST_CASE("generators: the cases reach every fate, every count and both kinds") {
    std::set<Fate> fates;
    petacq::gpu::SingleCounts n;
    for (const Family family : all_families()) {
        for (std::uint64_t seed = 1; seed <= 24; ++seed) {
            Case c = make_case(family, seed);
            petacq::gpu::RecordVector<Single> singles;
            for (const InputFrame& frame : c.frames) {
                const SourceWindow& w = c.sources[frame.source];
                const Converted converted =
                    reference_convert(frame.raw, c.options, c.setup.calibration, {w.low, w.high, 0});
                fates.insert(converted.fate);
                if (converted.fate == Fate::accepted) singles.push_back(converted.single);
            }
            c.options.rules.policy = static_cast<MultiplesPolicy>(seed % 6);
            const auto more = reference_coincidences(singles, c.setup.geometry, c.options.rules).counts;
            n.prompts += more.prompts;
            n.delayeds += more.delayeds;
            n.same_crystal += more.same_crystal;
            n.geometry += more.geometry;
            n.in_dropped_multiples += more.in_dropped_multiples;
            n.in_oversize_multiples += more.in_oversize_multiples;
            n.unused_in_multiples += more.unused_in_multiples;
            n.reused += more.reused;
            n.delayed_dropped += more.delayed_dropped;
            n.delayed_oversize += more.delayed_oversize;
            n.groups += more.groups;
            n.groups_blocked += more.groups_blocked;
        }
    }
    CHECK(fates.size() == fate_count - 1);  // all but late, which needs a plan
    CHECK(n.prompts > 1000);
    CHECK(n.delayeds > 1000);
    CHECK(n.same_crystal > 100);
    CHECK(n.geometry > 100);
    CHECK(n.in_dropped_multiples > 100);
    CHECK(n.in_oversize_multiples > 100);
    CHECK(n.unused_in_multiples > 100);
    CHECK(n.reused > 100);
    CHECK(n.delayed_dropped > 100);
    CHECK(n.delayed_oversize > 100);
    CHECK(n.groups > 1000);
    CHECK(n.groups_blocked > 100);
}

TEST_CASE("generators: cases with gammas reach every count of gammas, under every policy") {
    std::array<petacq::gpu::GammaCounts, 3> of_policy;
    std::set<float> bin_widths;  // of the spectra of singles
    for (const Family family : all_families()) {
        for (std::uint64_t seed = 1; seed <= 12; ++seed) {
            Rng rng(seed * 100 + static_cast<std::uint64_t>(family));
            Case c = make_case(family, seed, 200);
            add_gammas(c, rng);
            const Expected expected = reference_run(c, make_plan(c, {}, rng));
            of_policy.at(static_cast<std::size_t>(c.options.rules.gammas->policy)) +=
                expected.segments.front().gamma_counts;
            bin_widths.insert(expected.histograms.energy_bin_keV);
        }
    }
    CHECK(bin_widths == std::set<float>{4, 8, 16});
    for (const petacq::gpu::GammaCounts& n : of_policy) {
        CHECK(n.used + n.reused == n.triples);
        CHECK(n.used > 30);
        CHECK(n.unused > 100);
        CHECK(n.reused > 3);
        CHECK(n.delayed > 10);
    }
}

TEST_CASE("generators: a frame converts to the single that it was made for") {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        Rng rng(seed);
        const Setup setup = random_setup(rng);
        petacq::gpu::PipelineOptions options;
        options.geometry = setup.geometry;
        options.frame_version = setup.frame_version;
        options.head_marker = setup.head_marker;
        options.tail_marker = setup.tail_marker;
        options.energy.filter = false;
        std::size_t made = 0;
        for (int i = 0; i < 50; ++i) {
            const Wanted wanted{rng.bits() >> rng.between(0U, 60U),
                                rng.between(0U, setup.geometry.crystal_count() - 1), 1234};
            const auto raw = frame_for(setup, wanted, rng);
            if (!raw) continue;
            ++made;
            const Converted converted = reference_convert(*raw, options, setup.calibration, {});
            INFO("seed " << seed);
            REQUIRE(converted.fate == Fate::accepted);
            REQUIRE(converted.single.time == wanted.time);
            REQUIRE(converted.single.crystal == wanted.crystal);
        }
        CHECK(made > 0);
    }
}
