// Slices of singles instead of frames: singles of an earlier conversion give the same coincidences.
#include <algorithm>
#include <limits>

#include "tests/gpu/harness.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq;
using namespace petacq::test;

bool equal_records(const gpu::Coincidence& a, const gpu::Coincidence& b) {
    return !coincidence_before(a, b) && !coincidence_before(b, a);
}

bool equal_triples(const gpu::Triple& a, const gpu::Triple& b) {
    return equal_records(a.pair, b.pair) && a.gamma_dt == b.gamma_dt && a.gamma_crystal == b.gamma_crystal &&
           a.gamma_energy == b.gamma_energy && a.third == b.third;
}

struct Outcome {
    gpu::RecordVector<gpu::Coincidence> coincidences;
    gpu::RecordVector<gpu::Single> singles;
    gpu::RecordVector<gpu::Triple> triples;
    gpu::FrameCounts frames;
    gpu::SingleCounts counts;
    gpu::GammaCounts gamma_counts;
};

/// Slices of random length, in any order within each, the watermark at the last single of each.
Outcome feed(gpu::Pipeline& pipeline, const gpu::RecordVector<gpu::Single>& singles, Rng& rng) {
    Outcome all;
    gpu::SliceResult result;
    const auto take = [&] {
        REQUIRE(pipeline.collect(result, true));
        all.coincidences.insert(all.coincidences.end(), result.coincidences.begin(),
                                result.coincidences.end());
        all.singles.insert(all.singles.end(), result.singles.begin(), result.singles.end());
        all.frames += result.frames;
        all.triples.insert(all.triples.end(), result.triples.begin(), result.triples.end());
        all.counts += result.counts;
        all.gamma_counts += result.gamma_counts;
    };
    std::vector<gpu::RecordVector<gpu::Single>> slices;
    std::vector<std::uint64_t> watermarks;
    for (std::size_t at = 0; at < singles.size();) {
        const std::size_t n = std::min<std::size_t>(1 + rng.index(400), singles.size() - at);
        slices.emplace_back(singles.begin() + static_cast<std::ptrdiff_t>(at),
                            singles.begin() + static_cast<std::ptrdiff_t>(at + n));
        watermarks.push_back(slices.back().back().time);
        std::reverse(slices.back().begin(), slices.back().end());
        at += n;
    }
    slices.emplace_back();
    std::vector<std::vector<gpu::FrameSpan>> spans(slices.size());
    std::size_t collected = 0;
    for (std::size_t i = 0; i < slices.size(); ++i) {
        const bool last = i + 1 == slices.size();
        if (!slices[i].empty()) {
            // Two spans, adjacent in memory.
            const auto half = static_cast<std::uint32_t>(slices[i].size() / 2);
            const auto* bytes = reinterpret_cast<const std::byte*>(slices[i].data());
            spans[i] = {{bytes, half, 0, UINT64_MAX},
                        {bytes + half * sizeof(gpu::Single),
                         static_cast<std::uint32_t>(slices[i].size()) - half, 0, UINT64_MAX}};
        }
        while (i - collected >= pipeline.depth()) {
            take();
            ++collected;
        }
        gpu::Slice slice;
        slice.id = i;
        slice.spans = spans[i];
        slice.watermark = last ? UINT64_MAX : watermarks[i];
        if (last) slice.close_at = UINT64_MAX;
        pipeline.submit(slice);
    }
    for (; collected < slices.size(); ++collected)
        take();
    return all;
}

}  // namespace

TEST_CASE("singles: the singles of frames give the same coincidences as the frames") {
    for (const Backend& backend : backends()) {
        for (const Family family : all_families()) {
            for (std::uint64_t seed = 0; seed < 6; ++seed) {
                Case c = make_case(family, seed);
                c.options.rules.mode = seed % 2 == 0 ? gpu::WindowMode::single : gpu::WindowMode::every;
                c.options.rules.policy = static_cast<gpu::MultiplesPolicy>(seed % 6);
                Rng rng(seed);
                if (seed % 3 != 0) add_gammas(c, rng);
                const Plan plan = make_plan(c, {}, rng);
                const Expected expected = reference_run(c, plan);
                REQUIRE(expected.segments.size() == 1);
                const Decided& decided = expected.segments.front();
                INFO(backend.name << ", " << name_of(family) << ", seed " << seed);
                gpu::PipelineOptions options = bounded(c, plan);
                options.input = gpu::Input::singles;
                options.spectra = false;
                options.emit_singles = true;
                options.threads = 1 + static_cast<std::uint32_t>(seed % 3);
                options.max_slice_frames = std::max<std::uint32_t>(options.max_slice_frames, 512);
                const auto pipeline = backend.make(options, c.setup.calibration);
                const Outcome outcome = feed(*pipeline, decided.singles, rng);
                CHECK(outcome.counts == decided.counts);
                CHECK(outcome.gamma_counts == decided.gamma_counts);
                CHECK(outcome.frames.accepted == decided.singles.size());
                CHECK(outcome.singles.size() == decided.singles.size());
                REQUIRE(outcome.coincidences.size() == decided.coincidences.size());
                CHECK(std::equal(outcome.coincidences.begin(), outcome.coincidences.end(),
                                 decided.coincidences.begin(), equal_records));
                REQUIRE(outcome.triples.size() == decided.triples.size());
                CHECK(std::equal(outcome.triples.begin(), outcome.triples.end(), decided.triples.begin(),
                                 equal_triples));
                gpu::SinglesHistograms histograms;
                pipeline->histograms(histograms);
                std::uint64_t counted = 0;
                for (const std::uint64_t n : histograms.per_crystal)
                    counted += n;
                CHECK(counted + decided.gamma_counts.gammas() == decided.singles.size());
            }
        }
    }
}

TEST_CASE("singles: rejected singles are counted by reason") {
    for (const Backend& backend : backends()) {
        INFO(backend.name);
        Case c = make_case(Family::poisson_1, 1);
        c.options.input = gpu::Input::singles;
        c.options.spectra = false;
        c.options.energy = {true, 400, 600};
        c.options.max_slice_frames = 100;
        c.options.max_pending_singles = 1000;
        const std::uint32_t crystals = c.setup.geometry.crystal_count();
        const auto pipeline = backend.make(c.options, c.setup.calibration);
        gpu::SliceResult result;
        pipeline->submit({0, {}, 1000, {}});
        REQUIRE(pipeline->collect(result, true));
        const gpu::RecordVector<gpu::Single> singles{{2000, 0, 500},
                                                     {2000, crystals - 1, 400},
                                                     {2001, 0, 600},
                                                     {2000, crystals, 500},
                                                     {2000, UINT32_MAX, 500},
                                                     {999, 0, 500},
                                                     {2000, 0, 399.9F},
                                                     {2000, 0, 600.1F},
                                                     {2000, 0, std::numeric_limits<float>::quiet_NaN()},
                                                     {2000, 0, -500},
                                                     {5000, 0, 500}};
        const std::vector<gpu::FrameSpan> spans{
            {reinterpret_cast<const std::byte*>(singles.data()), 11, 0, 4000}};
        pipeline->submit({1, spans, UINT64_MAX, UINT64_MAX});
        REQUIRE(pipeline->collect(result, true));
        CHECK(result.frames.received == 11);
        CHECK(result.frames.accepted == 3);
        CHECK(result.frames.bad_address == 2);
        CHECK(result.frames.late == 1);
        CHECK(result.frames.below_window == 3);
        CHECK(result.frames.above_window == 1);
        CHECK(result.frames.time_jump == 1);
    }
}

TEST_CASE("singles: without an energy filter any valid energy is accepted, and zero has no sign") {
    for (const Backend& backend : backends()) {
        INFO(backend.name);
        Case c = make_case(Family::poisson_1, 1);
        c.options.input = gpu::Input::singles;
        c.options.spectra = false;
        c.options.energy = {false, 0, 0};
        c.options.emit_singles = true;
        c.options.max_slice_frames = 100;
        c.options.max_pending_singles = 1000;
        const float infinity = std::numeric_limits<float>::infinity();
        const gpu::RecordVector<gpu::Single> singles{
            {2000, 0, infinity}, {2000, 0, -infinity}, {2000, 0, -1},
            {2000, 0, -0.0F},    {2000, 0, 0},         {2000, 0, std::numeric_limits<float>::quiet_NaN()}};
        const std::vector<gpu::FrameSpan> spans{
            {reinterpret_cast<const std::byte*>(singles.data()), 6, 0, UINT64_MAX}};
        const auto pipeline = backend.make(c.options, c.setup.calibration);
        gpu::SliceResult result;
        pipeline->submit({0, spans, UINT64_MAX, UINT64_MAX});
        REQUIRE(pipeline->collect(result, true));
        CHECK(result.frames.accepted == 3);
        CHECK(result.frames.below_window == 3);
        REQUIRE(result.singles.size() == 3);
        CHECK_FALSE(std::signbit(result.singles[0].energy));
        CHECK(result.singles[0].energy == 0);
        CHECK_FALSE(std::signbit(result.singles[1].energy));
        CHECK(result.singles[1].energy == 0);
        CHECK(result.singles[2].energy == infinity);
    }
}
