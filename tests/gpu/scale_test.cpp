// A million singles: the same bytes for every slice length and thread count.
#include <cstring>

#include "tests/gpu/harness.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq::test;
using petacq::gpu::MultiplesPolicy;
using petacq::gpu::WindowMode;

// FNV-1a over 8-byte words.
template <typename Record>
void add_to_hash(std::uint64_t& hash, const petacq::gpu::RecordVector<Record>& records) {
    static_assert(sizeof(Record) % 8 == 0);
    for (const Record& record : records) {
        std::uint64_t words[sizeof(Record) / 8];
        std::memcpy(words, &record, sizeof record);
        for (const std::uint64_t word : words)
            hash = (hash ^ word) * 0x100000001B3U;
    }
}

struct Digest {
    std::uint64_t coincidences = 0xCBF29CE484222325U;
    std::uint64_t singles = 0xCBF29CE484222325U;
    petacq::gpu::SingleCounts counts;
    petacq::gpu::FrameCounts frames;
    bool operator==(const Digest&) const = default;
};

Digest run(petacq::gpu::Pipeline& pipeline, const Plan& plan) {
    Digest digest;
    petacq::gpu::SliceResult result;
    std::size_t submitted = 0;
    for (std::size_t collected = 0; collected < plan.slices.size();) {
        while (submitted < plan.slices.size() && submitted - collected < pipeline.depth()) {
            const PlannedSlice& slice = plan.slices[submitted];
            pipeline.submit({submitted, slice.spans, slice.watermark, slice.close_at});
            ++submitted;
        }
        REQUIRE(pipeline.collect(result, true));
        add_to_hash(digest.coincidences, result.coincidences);
        add_to_hash(digest.singles, result.singles);
        digest.counts += result.counts;
        digest.frames += result.frames;
        ++collected;
    }
    return digest;
}

void check_at_scale(Family family, WindowMode mode, MultiplesPolicy policy) {
    Case c = make_case(family, 3, 1'000'000);
    c.options.rules.mode = mode;
    c.options.rules.policy = policy;
    c.options.rules.max_multiplicity = 64;
    const Expected expected = [&] {
        Rng rng(1);
        PlanOptions options;
        options.slice_frames = c.frames.size();
        return reference_run(c, make_plan(c, options, rng));
    }();
    Digest want;
    add_to_hash(want.coincidences, expected.segments.at(0).coincidences);
    add_to_hash(want.singles, expected.segments.at(0).singles);
    want.counts = expected.segments.at(0).counts;
    for (const auto& frames : expected.frames)
        want.frames += frames;
    CHECK(want.counts.decided > 500'000);
    CHECK(want.counts.prompts > 1000);

    for (const Backend& backend : backends()) {
        for (const std::size_t slice_frames : {1000, 100'000, 1'000'000}) {
            Rng rng(slice_frames);
            PlanOptions options;
            options.slice_frames = slice_frames;
            options.disorder = 2000;
            options.max_span = 500;
            const Plan plan = make_plan(c, options, rng);
            for (const std::uint32_t threads : {1U, 4U}) {
                c.options.threads = threads;
                const auto pipeline = backend.make(bounded(c, plan), c.setup.calibration);
                INFO(backend.name << ", slices of " << slice_frames << ", " << threads << " threads");
                CHECK(run(*pipeline, plan) == want);
            }
        }
    }
}

}  // namespace

TEST_CASE("scale: sparse singles in window mode single") {
    check_at_scale(Family::poisson_0_1, WindowMode::single, MultiplesPolicy::remove_multiples);
}

TEST_CASE("scale: dense singles in window mode every") {
    check_at_scale(Family::poisson_1, WindowMode::every, MultiplesPolicy::take_winner_of_goods);
}
