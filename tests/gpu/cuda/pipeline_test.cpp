// Cases that only the CUDA back-end can get wrong: many tiles without a gap, gaps between spans, bounds.
// The CPU back-end gives the expected output; the property suite compares it with the reference.
#ifdef PETACQ_CUDA

#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>

#include "gpu/cuda/base/pinned_memory.hpp"
#include "gpu/cuda/cuda_pipeline.hpp"
#include "tests/gpu/cuda/cases.hpp"
#include "tests/gpu/cuda_usable.hpp"
#include "tests/gpu/harness.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq::test;
using petacq::config::FrameVersion;
using petacq::gpu::DelayedRule;
using petacq::gpu::make_cuda_pipeline;
using petacq::gpu::MultiplesPolicy;
using petacq::gpu::PipelineOptions;
using petacq::gpu::SliceResult;
using petacq::gpu::WindowMode;

// The default makes several super tiles. PETACQ_CUDA_SINGLES sets a smaller number for slow tools.
std::size_t singles_wanted() {
    const char* text = std::getenv("PETACQ_CUDA_SINGLES");
    return text == nullptr ? 500'000 : std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("cuda: long stretches without a gap") {
    if (!cuda_usable()) return;
    const std::size_t count = singles_wanted();
    Rng rng(11);
    std::uint64_t walk = 0;
    struct Family {
        const char* name;
        std::function<std::uint64_t(std::size_t)> time_of;
    };
    const std::vector<std::optional<DelayedRule>> delayeds{std::nullopt, DelayedRule::shifted_group,
                                                           DelayedRule::delayed_window};
    const std::vector<Family> families{
        {"gap tau/2 + 1", [](std::size_t i) { return i * (tau / 2 + 1); }},
        {"gap tau/2", [](std::size_t i) { return i * (tau / 2); }},
        {"gap tau", [](std::size_t i) { return i * tau; }},
        {"gap tau + 1", [](std::size_t i) { return i * (tau + 1); }},
        {"gap 1: windows of 401", [](std::size_t i) { return i; }},
        {"20 of each time: windows longer than a tile", [](std::size_t i) { return i / 20; }},
        {"all equal", [](std::size_t) { return 0; }},
        {"half equal, then sparse", [=](std::size_t i) { return i < count / 2 ? 0 : (i - count / 2) * 100; }},
        {"gaps up to tau at random",
         [&](std::size_t i) { return i == 0 ? walk = 0 : walk += rng.between<std::uint64_t>(0, tau); }},
        {"gaps about tau/2 with a rare break", [&](std::size_t i) {
             const bool breaks = rng.chance(0.00002);
             return i == 0 ? walk = 0
                           : walk += breaks ? 2 * tau : rng.between<std::uint64_t>(tau / 2, tau / 2 + 2);
         }}};
    for (const Family& family : families) {
        Case c = open_case(rng);
        const Frames frames = frames_at(c, count, family.time_of, rng);
        for (const WindowMode mode : {WindowMode::single, WindowMode::every, WindowMode::single_opener}) {
            for (const std::optional<DelayedRule> rule : delayeds) {
                const bool delayed = rule.has_value();
                c.options.rules.mode = mode;
                c.options.rules.delay.reset();
                if (delayed) c.options.rules.delay = 3 * tau + 1;
                if (delayed) c.options.rules.delayeds = *rule;
                const std::size_t slice_frames = delayed ? count / 3 + 1 : count;
                c.options.max_slice_frames = static_cast<std::uint32_t>(slice_frames);
                c.options.max_pending_singles = count;
                INFO(family.name << ", mode " << name_of(mode) << ", "
                                 << (delayed ? name_of(*rule) : "no delayeds"));
                CHECK(check_against_cpu(c, frames, slice_frames).counts.decided == count);
            }
        }
    }
}

namespace {

// Each position of each detector unit is a crystal; `side` squared of them.
Setup plain_setup(std::uint32_t channels, std::uint32_t modules_z, std::uint32_t side = 16,
                  FrameVersion version = FrameVersion::one) {
    Setup setup;
    setup.frame_version = version;
    petacq::config::Geometry& g = setup.geometry;
    g.channels = channels;
    g.modules = {1, 1, modules_z};
    g.blocks = {1, 4, 4};
    g.crystals = {1, side, side};
    g.bdm_count = channels * modules_z;
    g.du_count = 16;
    g.position_size = side;
    setup.calibration.bins = 1;
    setup.calibration.energy_factor.assign(g.crystal_count(), 0.5F);
    setup.places.resize(g.crystal_count());
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm) {
        for (std::uint32_t du = 0; du < g.du_count; ++du) {
            for (std::uint32_t p = 0; p < side * side; ++p) {
                setup.calibration.position_table.push_back(static_cast<std::uint16_t>(p));
                setup.places[reference_crystal(g, bdm, du, p).crystal].push_back(
                    {static_cast<std::uint16_t>(bdm), static_cast<std::uint8_t>(du),
                     static_cast<std::uint8_t>(p % side), static_cast<std::uint8_t>(p / side)});
            }
        }
    }
    return setup;
}

}  // namespace

// With few units all histograms are in shared memory, with more the temperatures alone, with many none.
TEST_CASE("cuda: many modules and large units, by frames of version 2") {
    if (!cuda_usable()) return;
    Rng rng(31);
    struct Size {
        std::uint32_t channels, modules_z, side;
    };
    for (const Size& size : {Size{3, 1, 17}, Size{60, 5, 3}, Size{256, 4, 3}}) {
        Case c;
        c.setup = plain_setup(size.channels, size.modules_z, size.side, FrameVersion::two);
        c.options.geometry = c.setup.geometry;
        c.options.frame_version = FrameVersion::two;
        c.options.rules.window = tau;
        c.options.rules.policy = MultiplesPolicy::take_all_goods;
        c.options.rules.min_module_difference = 1;
        c.options.emit_singles = true;
        c.options.energy = {true, 460, 540};
        c.options.sources.resize(2);
        for (std::uint32_t bdm = 0; bdm < c.setup.geometry.bdm_count; ++bdm) {
            if (bdm % 7 != 2) c.options.sources[0].set(bdm);
            c.options.sources[1].set(bdm);
        }
        const std::size_t count = singles_wanted() / 4;
        const Frames frames = frames_at(
            c, count, [](std::size_t i) { return i * 150; }, rng);
        c.options.max_slice_frames = static_cast<std::uint32_t>(count);
        c.options.max_pending_singles = count;
        std::vector<petacq::gpu::FrameSpan> spans;
        for (std::size_t i = 0; i < count; i += 500) {
            spans.push_back(span_of(frames.raw, i, std::min<std::size_t>(500, count - i)));
            spans.back().source = rng.between(0U, 2U);
        }
        INFO(c.setup.geometry.bdm_count << " modules");
        const Output output = check_against_cpu(c, {last_slice_of(spans)});
        CHECK(output.frames.accepted > count / 2);
        CHECK(output.frames.bad_address > 0);
        CHECK(output.coincidences.size() > count / 4);
        petacq::gpu::SinglesHistograms histograms[2];
        for (const bool cuda : {false, true}) {
            const auto pipeline = cuda ? make_cuda_pipeline(c.options, c.setup.calibration)
                                       : petacq::gpu::make_cpu_pipeline(c.options, c.setup.calibration);
            feed(*pipeline, {last_slice_of(spans)});
            pipeline->histograms(histograms[cuda ? 1 : 0]);
        }
        CHECK(histograms[0].per_crystal == histograms[1].per_crystal);
        CHECK(histograms[0].energy == histograms[1].energy);
        CHECK(histograms[0].temperature_count == histograms[1].temperature_count);
        CHECK(histograms[0].temperature_sum_16ths == histograms[1].temperature_sum_16ths);
    }
}

// The number of the time fits into a sort key beside crystal and energy only if the energies differ little.
TEST_CASE("cuda: many singles of one time among very many times") {
    if (!cuda_usable()) return;
    Rng rng(23);
    Case c;
    c.setup = plain_setup(16, 1);  // 65,536 crystals
    c.options.geometry = c.setup.geometry;
    c.options.rules.window = tau;
    c.options.rules.policy = MultiplesPolicy::take_winner_of_goods;
    c.options.rules.max_multiplicity = 100;
    c.options.emit_singles = true;
    const std::size_t count = singles_wanted();
    for (const std::size_t run : {40, 3000}) {
        for (const bool alike : {true, false}) {
            const Frames frames = frames_at(
                c, count, [=](std::size_t i) { return i < run ? 50 : i * (tau / 2); }, rng, alike ? 900 : 0,
                alike ? 1100 : 65535);
            c.options.energy = {alike, 470, 530};
            c.options.max_slice_frames = static_cast<std::uint32_t>(count);
            c.options.max_pending_singles = count;
            INFO("run of " << run << (alike ? ", energies alike" : ", energies of all sizes"));
            CHECK(check_against_cpu(c, frames, count).counts.decided > count / 2);
        }
    }
}

TEST_CASE("cuda: more records than there is room for") {
    if (!cuda_usable()) return;
    Rng rng(5);
    Case c = open_case(rng);
    const Frames frames = frames_at(
        c, 40'000, [](std::size_t i) { return i * 10; }, rng);
    c.options.rules.policy = MultiplesPolicy::take_all_goods;
    c.options.max_slice_frames = 20'000;
    c.options.max_pending_singles = 40'000;
    for (const std::uint64_t delay : {0, 5000, 5001}) {
        if (delay > 0) c.options.rules.delay = delay;
        c.options.rules.delayeds = delay == 5000 ? DelayedRule::shifted_group : DelayedRule::delayed_window;
        CHECK(check_against_cpu(c, frames, 20'000).coincidences.size() > 100'000);
    }
}

TEST_CASE("cuda: spans as they lie in batches, in pinned memory") {
    if (!cuda_usable()) return;
    Rng rng(6);
    Case c = open_case(rng);
    const std::size_t count = 30'000;
    const Frames frames = frames_at(
        c, count, [](std::size_t i) { return i * 150; }, rng);
    c.options.max_slice_frames = count;
    c.options.max_pending_singles = count;
    const auto memory = petacq::gpu::make_pinned_memory();
    std::byte* const data = memory->allocate(count * 160);
    CHECK(std::string(memory->description()).find("pinned") != std::string::npos);
    std::memset(data, 0xA5, count * 160);
    std::vector<petacq::gpu::FrameSpan> spans;
    std::byte* to = data;
    for (std::size_t i = 0; i < count;) {
        // Between spans: mostly a header, sometimes nothing, or far more than is copied along with the
        // frames.
        const std::vector<std::size_t> gaps{16, 16, 16, 0, 64, 80, 4096};
        to += rng.pick(gaps);
        const std::size_t n = std::min(count - i, rng.between<std::size_t>(1, rng.chance(0.2) ? 3000 : 90));
        std::memcpy(to, frames.raw.data() + i, n * 16);
        spans.push_back({to, static_cast<std::uint32_t>(n), 0, UINT64_MAX});
        to += n * 16;
        i += n;
    }
    for (const bool shuffled : {false, true}) {
        for (std::size_t i = spans.size(); shuffled && i > 1; --i)
            std::swap(spans[i - 1], spans[rng.index(i)]);
        CHECK(check_against_cpu(c, {last_slice_of(spans)}).counts.decided == count);
    }
}

// As live: datagrams of a read follow each other, reads alternate between the batches of several receivers.
TEST_CASE("cuda: reads of several receivers, with windows and sources") {
    if (!cuda_usable()) return;
    Rng rng(8);
    Case c = open_case(rng);
    constexpr std::size_t batches = 6;
    constexpr std::size_t count = 120'000;
    const Frames frames = frames_at(
        c, count, [](std::size_t i) { return i * 150; }, rng);
    c.options.max_pending_singles = count;
    // The first two sources have every second module, the third has all.
    c.options.sources.resize(3);
    for (std::uint32_t bdm = 0; bdm < c.setup.geometry.bdm_count; ++bdm) {
        c.options.sources[bdm % 2].set(bdm);
        c.options.sources[2].set(bdm);
    }
    const auto memory = petacq::gpu::make_pinned_memory();
    constexpr std::size_t batch_bytes = 4 * count * 16;
    std::byte* const data = memory->allocate(batches * batch_bytes);
    // Datagrams of few frames make more rows than the table has room for.
    for (const std::uint32_t per_datagram : {91, 7, 1}) {
        std::vector<petacq::gpu::FrameSpan> spans;
        std::vector<std::size_t> used(batches, 0);
        std::uint32_t source = 0;
        std::uint64_t low = 0;
        for (std::size_t i = 0, left = 0, b = 0; i < count;) {
            if (left-- == 0) {
                b = rng.index(batches);
                left = rng.between<std::size_t>(0, 60);
                source = rng.between(0U, 3U);
            }
            if (rng.chance(per_datagram == 91 ? 0.1 : 0.5)) low = rng.between<std::uint64_t>(0, 1000);
            const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(count - i, per_datagram));
            std::byte* const to = data + b * batch_bytes + (used[b] += 16);
            std::memcpy(to, frames.raw.data() + i, n * 16);
            spans.push_back({to, n, rng.chance(0.02) ? UINT64_MAX : low, UINT64_MAX - low, source});
            used[b] += n * 16;
            i += n;
        }
        INFO(per_datagram << " frames in a datagram");
        const std::size_t half = spans.size() / 2;
        c.options.max_slice_frames = count;
        const Output output = check_against_cpu(
            c,
            {slice_of({spans.data(), half}, 1), last_slice_of({spans.data() + half, spans.size() - half})});
        CHECK(output.frames.accepted > count / 4);
        CHECK(output.frames.time_jump > 0);
        CHECK(output.frames.bad_address > 0);
    }
}

TEST_CASE("cuda: the bounds of the options are enforced with a message") {
    if (!cuda_usable()) return;
    Rng rng(7);
    Case c = open_case(rng);
    const Frames frames = frames_at(
        c, 1000, [](std::size_t i) { return i * 150; }, rng);
    c.options.max_slice_frames = 500;
    c.options.max_pending_singles = 700;
    const petacq::gpu::FrameSpan all{reinterpret_cast<const std::byte*>(frames.raw.data()), 1000, 0,
                                     UINT64_MAX};
    const petacq::gpu::FrameSpan half{all.frames, 500, 0, UINT64_MAX};
    SliceResult result;
    {
        const auto pipeline = make_cuda_pipeline(c.options, c.setup.calibration);
        pipeline->submit({2, {&half, 1}, 0, {}});
        REQUIRE(pipeline->collect(result, true));
        CHECK(result.pending == 500);
        pipeline->submit({3, {&half, 1}, 0, {}});
        try {
            pipeline->collect(result, true);
            FAIL("1000 pending singles were accepted");
        } catch (const std::runtime_error& e) {
            CHECK(std::string(e.what()).find("max_pending_singles") != std::string::npos);
        }
        CHECK_THROWS_AS(pipeline->submit({4, {}, 0, {}}), std::runtime_error);
    }
    {
        const auto pipeline = make_cuda_pipeline(c.options, c.setup.calibration);
        pipeline->submit({1, {&all, 1}, 0, {}});
        try {
            pipeline->collect(result, true);
            FAIL("a slice of 1000 frames was accepted");
        } catch (const std::runtime_error& e) {
            CHECK(std::string(e.what()).find("max_slice_frames") != std::string::npos);
        }
    }
    {
        PipelineOptions huge = c.options;
        huge.max_pending_singles = (std::uint64_t{1} << 31) - (1U << 27);
        try {
            make_cuda_pipeline(huge, c.setup.calibration);
            WARN("a GPU with more than 200 GiB: the refusal was not tested");
        } catch (const std::runtime_error& e) {
            CHECK(std::string(e.what()).find("MiB are free") != std::string::npos);
        }
        huge.max_pending_singles *= 4;
        CHECK_THROWS_AS(make_cuda_pipeline(huge, c.setup.calibration), std::invalid_argument);
    }
}

#endif
