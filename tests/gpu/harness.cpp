#include "tests/gpu/harness.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace petacq::test {

namespace {

// Records are compared as bytes, as in files. No record has padding.
template <typename Record>
std::string compare_records(const char* what, const gpu::RecordVector<Record>& got,
                            const gpu::RecordVector<Record>& want) {
    const std::size_t common = std::min(got.size(), want.size());
    for (std::size_t i = 0; i < common; ++i) {
        // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): floats differ if their bits do
        if (std::memcmp(&got[i], &want[i], sizeof(Record)) != 0) {
            return std::string(what) + " " + std::to_string(i) + ": got " + to_string(got[i]) +
                   ", expected " + to_string(want[i]);
        }
    }
    if (got.size() > common) {
        return std::string(what) + ": " + std::to_string(got.size()) + " instead of " +
               std::to_string(common) + ", the first too many is " + to_string(got[common]);
    }
    if (want.size() > common) {
        return std::string(what) + ": " + std::to_string(common) + " instead of " +
               std::to_string(want.size()) + ", the first missing is " + to_string(want[common]);
    }
    return {};
}

template <typename T>
std::string compare_histogram(const char* what, const std::vector<T>& before, const std::vector<T>& after,
                              const std::vector<T>& want) {
    if (after.size() != want.size()) {
        return std::string(what) + ": " + std::to_string(after.size()) + " entries instead of " +
               std::to_string(want.size());
    }
    for (std::size_t i = 0; i < want.size(); ++i) {
        const T got = after[i] - (before.empty() ? T{0} : before[i]);
        if (got != want[i]) {
            return std::string(what) + "[" + std::to_string(i) + "]: got " + std::to_string(got) +
                   ", expected " + std::to_string(want[i]);
        }
    }
    return {};
}

std::string first_difference(const gpu::IntervalSums& got, const gpu::IntervalSums& want) {
    std::string text;
    const auto compare = [&](const char* what, const auto& a, const auto& b) {
        for (std::size_t i = 0; text.empty() && i < b.size(); ++i) {
            if (i < a.size() && a[i] == b[i]) continue;
            text = std::string(what) + "[" + std::to_string(i) + "]";
            if constexpr (std::is_integral_v<std::decay_t<decltype(b[i])>>)
                text += ": got " + (i < a.size() ? std::to_string(a[i]) : "none") + ", expected " +
                        std::to_string(b[i]);
        }
    };
    compare("unpaired", got.unpaired, want.unpaired);
    compare("grouped", got.grouped, want.grouped);
    compare("prompts", got.prompts, want.prompts);
    compare("delayeds", got.delayeds, want.delayeds);
    compare("modules", got.modules, want.modules);
    if (!text.empty()) return text;
    if (!(got.gammas == want.gammas))
        return "gammas: got " + to_string(got.gammas) + ", expected " + to_string(want.gammas);
    return "counts: got " + to_string(got.counts) + ", expected " + to_string(want.counts);
}

struct Feeding {
    gpu::Pipeline& pipeline;
    const Case& c;
    Plan& plan;
    const Expected& expected;
    std::size_t collected = 0;
    std::size_t segment = 0;
    Decided got = {};                              // of the open segment
    gpu::RecordVector<gpu::Tag> got_tags = {};     // of the open segment
    std::vector<std::uint64_t> waiting_tags = {};  // their times
    std::uint64_t accepted = 0;
    std::uint64_t decided = 0;
    std::vector<Expected::AcceptedTime> open = {};  // accepted singles of the open segment
    std::uint64_t decided_below = 0;                // openers of the open segment
    gpu::IntervalSums sums = gpu::IntervalSums::none(c.options.geometry);  // expected of the open interval

    std::string take(const gpu::SliceResult& result);
    std::string take_tags(const gpu::SliceResult& result);
    [[nodiscard]] std::string check_pending(const gpu::SliceResult& result, std::uint64_t watermark) const;
    [[nodiscard]] std::string check_segment() const;
    std::string check_sums(const gpu::SliceResult& result);
};

// How far past a single its windows and the gammas of its pairs reach.
__int128 reach_of(const gpu::CoincidenceRules& rules) {
    if (!rules.search) return 0;
    const __int128 windows = static_cast<__int128>(rules.window) + rules.delay.value_or(0);
    if (!rules.gammas) return windows;
    return std::max(windows, static_cast<__int128>(rules.gammas->after) + rules.gammas->delay.value_or(0));
}

// The pipeline holds a single back only while its windows are open, and a gamma while a pair may use it.
std::string Feeding::check_pending(const gpu::SliceResult& result, std::uint64_t watermark) const {
    if (result.pending != accepted - decided) {
        return "pending is " + std::to_string(result.pending) + ", accepted less decided and counted " +
               std::to_string(accepted - decided);
    }
    std::uint64_t newest = 0;
    for (const Expected::AcceptedTime& a : open)
        newest = std::max(newest, a.time);
    if (result.pending == 0) newest = 0;
    for (const std::uint64_t t : waiting_tags)
        newest = std::max(newest, t);
    if (result.latest_pending_time != newest) {
        return "latest_pending_time is " + std::to_string(result.latest_pending_time) + " with " +
               std::to_string(result.pending) + " pending, newest at " + std::to_string(newest);
    }
    const gpu::CoincidenceRules& rules = c.options.rules;
    const __int128 before = rules.search && rules.gammas ? rules.gammas->before : 0;
    const auto waiting = std::count_if(open.begin(), open.end(), [&](const Expected::AcceptedTime& a) {
        return a.time + reach_of(rules) + (a.is_gamma ? before : 0) >= static_cast<__int128>(watermark);
    });
    if (!plan.slices[collected].close_at && result.pending > static_cast<std::uint64_t>(waiting)) {
        return "pending is " + std::to_string(result.pending) + ", but only " + std::to_string(waiting) +
               " have windows that are still open at " + std::to_string(watermark);
    }
    return {};
}

std::string Feeding::check_segment() const {
    const Decided& want = expected.segments[segment];
    const std::string at = "segment " + std::to_string(segment) + ": ";
    std::string difference = compare_records("coincidence", got.coincidences, want.coincidences);
    if (!difference.empty()) return at + difference;
    difference = compare_records("triple", got.triples, want.triples);
    if (!difference.empty()) return at + difference;
    if (c.options.emit_singles) difference = compare_records("single", got.singles, want.singles);
    if (!difference.empty()) return at + difference;
    difference = compare_records("tag", got_tags, expected.tags[segment]);
    if (!difference.empty()) return at + difference;
    if (!(got.counts == want.counts)) {
        return at + "counts: got " + to_string(got.counts) + ", expected " + to_string(want.counts);
    }
    if (!(got.gamma_counts == want.gamma_counts)) {
        return at + "gammas: got " + to_string(got.gamma_counts) + ", expected " +
               to_string(want.gamma_counts);
    }
    return {};
}

// Follows the openers that a slice decides, and compares the sums at the end of an interval.
std::string Feeding::check_sums(const gpu::SliceResult& result) {
    const PlannedSlice& slice = plan.slices[collected];
    const __int128 horizon = std::max<__int128>(slice.watermark - reach_of(c.options.rules), decided_below);
    // At the end of a segment all others are decided.
    const bool last = slice.ends_segment();
    const auto limit = slice.decide_before ? std::max(*slice.decide_before, decided_below)
                                           : static_cast<std::uint64_t>(horizon);
    const Decided& want = expected.segments[segment];
    add_reference_sums(sums, want, c.options.geometry, decided_below,
                       last ? std::nullopt : std::optional(limit));
    decided_below = last ? 0 : limit;
    sums.counts += result.counts;
    sums.gammas += result.gamma_counts;
    if (!slice.ends_interval) return {};
    const bool same = result.sums == sums;
    std::string difference = same ? "" : "sums of the interval: " + first_difference(result.sums, sums);
    sums.clear();
    return difference;
}

// All tags below the watermark have been returned, or, at the end of a segment, those of the segment.
std::string Feeding::take_tags(const gpu::SliceResult& result) {
    const PlannedSlice& slice = plan.slices[collected];
    if (!(result.tag_counts == expected.tag_counts[collected])) {
        return "tags: got " + to_string(result.tag_counts) + ", expected " +
               to_string(expected.tag_counts[collected]);
    }
    got_tags.insert(got_tags.end(), result.tags.begin(), result.tags.end());
    const std::vector<std::uint64_t>& times = expected.tag_times[collected];
    waiting_tags.insert(waiting_tags.end(), times.begin(), times.end());
    const std::uint64_t limit = slice.close_at.value_or(slice.watermark);
    const bool everything = slice.close_at == UINT64_MAX;
    waiting_tags.erase(std::remove_if(waiting_tags.begin(), waiting_tags.end(),
                                      [&](std::uint64_t t) { return everything || t < limit; }),
                       waiting_tags.end());
    if (result.pending_tags == waiting_tags.size()) return {};
    return "pending_tags is " + std::to_string(result.pending_tags) + ", " +
           std::to_string(waiting_tags.size()) + " are not below " + std::to_string(limit);
}

// Whether the triples of a slice belong to its coincidences and have their order.
bool follow_pairs(const gpu::SliceResult& result) {
    auto pair = result.coincidences.begin();
    return std::all_of(result.triples.begin(), result.triples.end(), [&](const gpu::Triple& triple) {
        pair = std::find_if(pair, result.coincidences.end(), [&](const gpu::Coincidence& c) {
            // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the same bytes are asked for
            return std::memcmp(&c, &triple.pair, sizeof c) == 0;
        });
        return pair != result.coincidences.end();
    });
}

std::string Feeding::take(const gpu::SliceResult& result) {
    const std::size_t k = collected;
    if (result.id != 1000 + k)
        return "id is " + std::to_string(result.id) + ", expected " + std::to_string(1000 + k);
    if (!(result.frames == expected.frames[k])) {
        return "frames: got " + to_string(result.frames) + ", expected " + to_string(expected.frames[k]);
    }
    if (!c.options.emit_singles && !result.singles.empty()) return "singles given out that nobody asked for";
    if (std::string difference = take_tags(result); !difference.empty()) return difference;
    got.coincidences.insert(got.coincidences.end(), result.coincidences.begin(), result.coincidences.end());
    got.singles.insert(got.singles.end(), result.singles.begin(), result.singles.end());
    if (!follow_pairs(result)) return "triples that are not of these coincidences, or not in their order";
    got.triples.insert(got.triples.end(), result.triples.begin(), result.triples.end());
    got.counts += result.counts;
    got.gamma_counts += result.gamma_counts;
    accepted += result.frames.accepted;
    decided += result.counts.decided + result.gamma_counts.used + result.gamma_counts.unused;
    open.insert(open.end(), expected.accepted[k].begin(), expected.accepted[k].end());
    const PlannedSlice& slice = plan.slices[k];
    std::string wrong_sums = check_sums(result);
    if (!wrong_sums.empty()) return wrong_sums;
    if (slice.ends_segment()) {
        std::string difference = check_segment();
        if (!difference.empty()) return difference;
        segment += 1;
        got = {};
        got_tags.clear();
        const bool everything = k + 1 == plan.slices.size();
        open.erase(std::remove_if(open.begin(), open.end(),
                                  [&](const auto& a) { return everything || a.time < *slice.close_at; }),
                   open.end());
    }
    // Quadratic: skipped for many small slices.
    if (plan.slices.size() * open.size() < 300'000 || slice.close_at) {
        return check_pending(result, slice.watermark);
    }
    return {};
}

}  // namespace

namespace {

// Compares the counts of one detector unit, then those of all. The pipeline then starts again from zero.
std::string check_spectra(gpu::Pipeline& pipeline, const config::Geometry& g, const config::Spectra& want,
                          Rng& rng) {
    gpu::UnitSpectra unit;
    const std::uint32_t number = rng.between(0U, g.bdm_count * g.du_count - 1);
    pipeline.unit_spectra(number, unit);
    const std::size_t positions = std::size_t{g.position_size} * g.position_size;
    const auto flood = want.floods.begin() + static_cast<std::ptrdiff_t>(number * positions);
    std::string difference = compare_histogram("flood of the unit", {}, unit.flood,
                                               {flood, flood + static_cast<std::ptrdiff_t>(positions)});
    std::vector<std::uint32_t> energies;
    for (std::uint32_t local = 0; local < reference_crystals_of_unit(g, number); ++local) {
        const std::uint32_t origin =
            g.channel_map ? local
                          : local % g.crystals.z + (g.crystals.y - 1 - local / g.crystals.z) * g.crystals.z;
        const auto from =
            want.energies.begin() +
            256 * std::ptrdiff_t{
                      reference_crystal(g, number / g.du_count, number % g.du_count, origin).crystal};
        energies.insert(energies.end(), from, from + 256);
    }
    energies.resize(std::size_t{256} * reference_crystals_per_du(g));  // a unit may have fewer than others
    if (difference.empty())
        difference = compare_histogram("energies of the unit", {}, unit.energies, energies);
    config::Spectra got;
    pipeline.take_spectra(got);
    if (difference.empty()) difference = compare_histogram("flood", {}, got.floods, want.floods);
    if (difference.empty()) difference = compare_histogram("energies", {}, got.energies, want.energies);
    return difference;
}

}  // namespace

std::string run_and_compare(gpu::Pipeline& pipeline, const Case& c, Plan& plan, const Expected& expected,
                            Rng& rng) {
    Feeding feeding{pipeline, c, plan, expected};
    gpu::SinglesHistograms before;
    pipeline.histograms(before);
    gpu::SliceResult result;
    if (pipeline.depth() < 1) return "depth is 0";
    if (pipeline.collect(result, true)) return "collected a slice that was never submitted";
    std::size_t submitted = 0;
    while (feeding.collected < plan.slices.size()) {
        const std::size_t waiting = submitted - feeding.collected;
        const bool may_submit = submitted < plan.slices.size() && waiting < pipeline.depth();
        if (may_submit && (waiting == 0 || rng.chance(0.7))) {
            const PlannedSlice& planned = plan.slices[submitted];
            gpu::Slice slice;
            slice.id = 1000 + submitted;
            slice.spans = planned.spans;
            slice.watermark = planned.watermark;
            slice.close_at = planned.close_at;
            slice.decide_before = planned.decide_before;
            slice.ends_interval = planned.ends_interval;
            slice.spectra = planned.spectra;
            pipeline.submit(slice);
            ++submitted;
            continue;
        }
        const bool wait = rng.chance(0.8);
        if (!pipeline.collect(result, wait)) {
            if (wait)
                return "slice " + std::to_string(feeding.collected) + ": nothing collected though submitted";
            continue;
        }
        const std::string difference = feeding.take(result);
        if (!difference.empty()) return "slice " + std::to_string(feeding.collected) + ": " + difference;
        for (RawFrame& frame : plan.slices[feeding.collected].frames)
            frame.bytes.fill(std::byte{0xFF});
        ++feeding.collected;
    }
    gpu::SinglesHistograms after;
    pipeline.histograms(after);
    const gpu::SinglesHistograms& want = expected.histograms;
    std::string difference =
        compare_histogram("per_crystal", before.per_crystal, after.per_crystal, want.per_crystal);
    if (difference.empty())
        difference = compare_histogram("energy", before.energy, after.energy, want.energy);
    if (difference.empty() && after.energy_bin_keV != want.energy_bin_keV) {
        difference = "bins of " + std::to_string(after.energy_bin_keV) + " keV, expected " +
                     std::to_string(want.energy_bin_keV);
    }
    if (difference.empty()) {
        difference = compare_histogram("temperature_count", before.temperature_count, after.temperature_count,
                                       want.temperature_count);
    }
    if (difference.empty()) {
        difference = compare_histogram("temperature_sum_16ths", before.temperature_sum_16ths,
                                       after.temperature_sum_16ths, want.temperature_sum_16ths);
    }
    if (difference.empty() && c.options.spectra)
        difference = check_spectra(pipeline, c.options.geometry, expected.spectra, rng);
    return difference;
}

gpu::PipelineOptions bounded(const Case& c, const Plan& plan) {
    gpu::PipelineOptions options = c.options;
    options.max_slice_frames = static_cast<std::uint32_t>(std::max<std::size_t>(1, plan.largest_slice()));
    options.max_pending_singles = std::max<std::size_t>(1, plan.frames());
    return options;
}

std::string try_case(const Backend& backend, const Case& c, const PlanOptions& options,
                     std::uint64_t plan_seed) {
    Rng rng(plan_seed);
    Plan plan = make_plan(c, options, rng);
    const Expected expected = reference_run(c, plan);
    const auto pipeline = backend.make(bounded(c, plan), c.setup.calibration);
    return run_and_compare(*pipeline, c, plan, expected, rng);
}

}  // namespace petacq::test
