#include "tests/gpu/plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace petacq::test {

namespace {

struct Arriving {
    InputFrame frame;
    bool timed;          ///< tested for being late
    std::uint64_t time;  ///< corrected, when timed
};

std::uint64_t less_slack(std::uint64_t time, std::uint64_t slack) {
    return time > slack ? time - slack : 0;
}

std::vector<Arriving> arrivals(const Case& c, std::size_t disorder, Rng& rng) {
    std::vector<std::size_t> skew(c.sources.size());
    for (std::size_t& s : skew)
        s = rng.between<std::size_t>(0, disorder);
    std::vector<std::pair<std::size_t, std::size_t>> order;  // (when, which)
    for (std::size_t i = 0; i < c.frames.size(); ++i) {
        order.emplace_back(i + skew[c.frames[i].source] + rng.between<std::size_t>(0, disorder), i);
    }
    std::sort(order.begin(), order.end());
    std::vector<Arriving> result;
    for (const auto& [when, which] : order) {
        const InputFrame& frame = c.frames[which];
        const SourceWindow& window = c.sources[frame.source];
        const Converted converted =
            reference_convert(frame.raw, c.options, c.setup.calibration,
                              {window.low, window.high, 0, std::uint32_t{frame.source} + 1});
        if (converted.is_tag) {
            result.push_back({frame, converted.fate == Fate::accepted, converted.tag.time});
            continue;
        }
        const bool timed = converted.fate == Fate::below_window || converted.fate == Fate::above_window ||
                           converted.fate == Fate::accepted;
        result.push_back({frame, timed, converted.single.time});
    }
    return result;
}

// The number of frames in each slice.
std::vector<std::size_t> slice_lengths(std::size_t frames, const PlanOptions& options, Rng& rng) {
    std::vector<std::size_t> lengths;
    const std::size_t longest = options.slice_frames > 0 ? options.slice_frames : 1 + frames / 3;
    while (frames > 0) {
        if (options.slack && rng.chance(0.05)) lengths.push_back(0);
        std::size_t length = longest;
        if (options.slice_frames == 0) length = rng.between<std::size_t>(1, rng.chance(0.5) ? longest : 8);
        length = std::min(length, frames);
        lengths.push_back(length);
        frames -= length;
    }
    return lengths;
}

// Cuts the frames of a slice into spans of one source each, and mixes the spans.
void make_spans(PlannedSlice& slice, std::vector<InputFrame> arrived, const Case& c, std::size_t max_span,
                Rng& rng) {
    std::stable_sort(arrived.begin(), arrived.end(),
                     [](const InputFrame& a, const InputFrame& b) { return a.source < b.source; });
    struct Cut {
        std::size_t begin;
        std::size_t end;
    };
    std::vector<Cut> cuts;
    for (std::size_t begin = 0; begin < arrived.size();) {
        std::size_t end = begin + rng.between<std::size_t>(1, max_span);
        end = std::min(end, arrived.size());
        while (arrived[end - 1].source != arrived[begin].source)
            --end;
        cuts.push_back({begin, end});
        begin = end;
    }
    if (rng.chance(0.1)) cuts.push_back({0, 0});  // a heartbeat
    for (std::size_t i = cuts.size(); i > 1; --i)
        std::swap(cuts[i - 1], cuts[rng.index(i)]);
    constexpr std::size_t max_between = 3;  // frames between datagrams, which belong to nobody
    slice.frames.reserve(arrived.size() * (1 + max_between) + 1);
    for (Cut cut : cuts) {
        const SourceWindow window =
            cut.begin < cut.end ? c.sources[arrived[cut.begin].source] : SourceWindow{};
        gpu::FrameSpan span;
        span.frames = reinterpret_cast<const std::byte*>(slice.frames.data() + slice.frames.size());
        span.count = static_cast<std::uint32_t>(cut.end - cut.begin);
        span.time_low = window.low;
        span.time_high = window.high;
        if (cut.begin < cut.end) {
            span.source = std::uint32_t{arrived[cut.begin].source} + 1;
            span.tag_source = static_cast<std::uint16_t>(40'000 - arrived[cut.begin].source / 2);
        }
        if (span.count > 1 && rng.chance(0.3)) {
            // Several datagrams, and a span of the frames that do not fill one.
            span.count = rng.between<std::uint32_t>(1, std::min(span.count / 2, 40U));
            span.datagrams = static_cast<std::uint16_t>(
                std::min<std::size_t>((cut.end - cut.begin) / span.count, UINT16_MAX));
            const std::size_t between = rng.between<std::size_t>(0, max_between);
            span.stride = static_cast<std::uint32_t>((span.count + between) * sizeof(RawFrame));
            for (std::uint32_t datagram = 0; datagram < span.datagrams; ++datagram) {
                for (std::uint32_t i = 0; i < span.count; ++i)
                    slice.frames.push_back(arrived[cut.begin++].raw);
                for (std::size_t i = 0; datagram + 1U < span.datagrams && i < between; ++i)
                    slice.frames.push_back(arrived[cut.begin].raw);
            }
            slice.spans.push_back(span);
            span.frames = reinterpret_cast<const std::byte*>(slice.frames.data() + slice.frames.size());
            span.count = static_cast<std::uint32_t>(cut.end - cut.begin);
            span.datagrams = 1;
            span.stride = 0;
        }
        for (std::size_t i = cut.begin; i < cut.end; ++i)
            slice.frames.push_back(arrived[i].raw);
        slice.spans.push_back(span);
    }
}

void choose_watermarks(std::vector<PlannedSlice>& slices, const std::vector<std::uint64_t>& first_to_come,
                       const Case& c, bool slack, Rng& rng) {
    std::uint64_t previous = 0;
    for (std::size_t k = 0; k < slices.size(); ++k) {
        std::uint64_t w = first_to_come[k];
        if (slack && rng.chance(0.3)) {
            w = less_slack(w, rng.between<std::uint64_t>(0, 3 * std::uint64_t{c.options.rules.window}));
        }
        if (slack && rng.chance(0.1)) w = previous;
        previous = std::max(previous, w);
        slices[k].watermark = previous;
    }
}

void choose_closes(std::vector<PlannedSlice>& slices, const std::vector<Arriving>& arrived,
                   std::size_t segments, Rng& rng) {
    for (std::size_t s = 1; s < segments && !slices.empty(); ++s) {
        const std::size_t k = rng.index(slices.size());
        const std::uint64_t low = k > 0 ? slices[k - 1].watermark : 0;
        const std::uint64_t high = slices[k].watermark;
        std::uint64_t close = rng.between(low, high);
        const std::size_t way = rng.index(4);
        if (way == 0) close = low;
        if (way == 1) close = high;
        if (way == 2) {  // the time of a single, or one past it
            for (int tries = 0; tries < 30; ++tries) {
                const Arriving& a = rng.pick(arrived);
                const std::uint64_t t = a.time + rng.between<std::uint64_t>(0, 1);
                if (a.timed && t >= low && t <= high) close = t;
            }
        }
        if (close < UINT64_MAX) slices[k].close_at = close;
    }
}

}  // namespace

std::size_t Plan::largest_slice() const {
    std::size_t most = 0;
    for (const PlannedSlice& s : slices)
        most = std::max(most, std::accumulate(s.spans.begin(), s.spans.end(), std::size_t{0},
                                              [](std::size_t sum, const gpu::FrameSpan& span) {
                                                  return sum + span.total();
                                              }));
    return most;
}

std::size_t Plan::frames() const {
    return std::accumulate(slices.begin(), slices.end(), std::size_t{0},
                           [](std::size_t n, const PlannedSlice& s) { return n + s.frames.size(); });
}

/// The raw times that count in the spectra: mostly all, sometimes between those of two frames.
std::optional<gpu::TickRange> random_range(const Case& c, Rng& rng) {
    if (!c.options.spectra || rng.chance(0.1)) return std::nullopt;
    if (c.frames.empty() || rng.chance(0.5)) return gpu::TickRange{0, UINT64_MAX};
    return gpu::TickRange{raw_time_of(rng.pick(c.frames).raw), raw_time_of(rng.pick(c.frames).raw)};
}

/// Before some of the slices that end a segment, slices that decide a part of it.
std::vector<PlannedSlice> decided_in_parts(std::vector<PlannedSlice> slices, const Case& c, Rng& rng) {
    std::vector<PlannedSlice> all;
    for (PlannedSlice& slice : slices) {
        if (slice.close_at && rng.chance(0.5)) {
            std::vector<std::uint64_t> limits;
            for (std::size_t i = 0, n = rng.between<std::size_t>(1, 3); i < n; ++i) {
                const bool any = c.frames.empty() || rng.chance(0.2);
                const std::uint64_t limit = any ? rng.between<std::uint64_t>(0, *slice.close_at)
                                                : raw_time_of(rng.pick(c.frames).raw) + rng.between(0U, 1U);
                limits.push_back(std::min(limit, *slice.close_at));
            }
            std::sort(limits.begin(), limits.end());
            for (const std::uint64_t limit : limits) {
                PlannedSlice part;
                part.frames = std::exchange(slice.frames, {});
                part.spans = std::exchange(slice.spans, {});
                part.watermark = slice.watermark;
                part.close_at = slice.close_at;
                part.decide_before = limit;
                all.push_back(std::move(part));
            }
        }
        all.push_back(std::move(slice));
    }
    return all;
}

Plan make_plan(const Case& c, const PlanOptions& options, Rng& rng) {
    const std::vector<Arriving> arrived = arrivals(c, options.disorder, rng);
    const std::vector<std::size_t> lengths = slice_lengths(arrived.size(), options, rng);
    Plan plan;
    plan.slices.resize(lengths.size());

    std::vector<std::uint64_t> first_to_come(lengths.size(), UINT64_MAX);
    std::size_t end = arrived.size();
    for (std::size_t k = lengths.size(); k-- > 1;) {
        std::uint64_t first = first_to_come[k];
        for (std::size_t i = end - lengths[k]; i < end; ++i) {
            if (arrived[i].timed) first = std::min(first, arrived[i].time);
        }
        end -= lengths[k];
        first_to_come[k - 1] = first;
    }
    choose_watermarks(plan.slices, first_to_come, c, options.slack, rng);
    if (!arrived.empty()) choose_closes(plan.slices, arrived, options.segments, rng);

    std::size_t begin = 0;
    for (std::size_t k = 0; k < lengths.size(); ++k) {
        std::vector<InputFrame> frames;
        for (std::size_t i = begin; i < begin + lengths[k]; ++i)
            frames.push_back(arrived[i].frame);
        begin += lengths[k];
        for (double late = options.late; k > 0 && late > 0; late -= 1) {
            if (!rng.chance(late)) break;
            for (int tries = 0; tries < 5; ++tries) {
                const Arriving& a = rng.pick(arrived);
                if (!a.timed || a.time >= plan.slices[k - 1].watermark) continue;
                frames.insert(frames.begin() + static_cast<std::ptrdiff_t>(rng.index(frames.size() + 1)),
                              a.frame);
                break;
            }
        }
        make_spans(plan.slices[k], std::move(frames), c, options.max_span, rng);
    }

    if (plan.slices.empty() || plan.slices.back().close_at || rng.chance(0.5)) plan.slices.emplace_back();
    plan.slices.back().watermark = UINT64_MAX;
    plan.slices.back().close_at = UINT64_MAX;
    plan.slices = decided_in_parts(std::move(plan.slices), c, rng);
    for (PlannedSlice& slice : plan.slices) {
        slice.ends_interval = rng.chance(0.3);
        slice.spectra = random_range(c, rng);
    }
    return plan;
}

Expected reference_run(const Case& c, const Plan& plan) {
    Expected expected;
    expected.histograms = empty_histograms(c.options);
    if (c.options.spectra) expected.spectra = config::Spectra::none(c.setup.geometry);
    std::vector<std::uint64_t> closes;
    for (const PlannedSlice& slice : plan.slices) {
        if (slice.ends_segment()) closes.push_back(*slice.close_at);
    }
    closes.pop_back();  // the last close covers everything
    std::vector<gpu::RecordVector<gpu::Single>> segments(closes.size() + 1);
    std::vector<gpu::RecordVector<gpu::Single>> gammas(closes.size() + 1);
    expected.tags.resize(closes.size() + 1);
    const auto segment_of = [&](std::uint64_t time) {
        return static_cast<std::size_t>(std::upper_bound(closes.begin(), closes.end(), time) -
                                        closes.begin());
    };
    std::uint64_t watermark = 0;
    for (const PlannedSlice& slice : plan.slices) {
        gpu::FrameCounts& counts = expected.frames.emplace_back();
        auto& accepted = expected.accepted.emplace_back();
        gpu::TagCounts& tag_counts = expected.tag_counts.emplace_back();
        std::vector<std::uint64_t>& tag_times = expected.tag_times.emplace_back();
        for (const gpu::FrameSpan& span : slice.spans) {
            for (std::uint64_t i = 0; i < span.total(); ++i) {
                const RawFrame frame = frame_of(span, i);
                const Converted converted = reference_convert(
                    frame, c.options, c.setup.calibration,
                    {span.time_low, span.time_high, watermark, span.source, span.tag_source});
                if (converted.is_tag) {
                    count_tag(tag_counts, converted.fate);
                    if (converted.fate != Fate::accepted) continue;
                    expected.tags[segment_of(converted.tag.time)].push_back(converted.tag);
                    tag_times.push_back(converted.tag.time);
                    continue;
                }
                count_fate(counts, converted.fate);
                if (slice.spectra)
                    add_to_spectra(expected.spectra, c.setup.geometry, frame, converted, span,
                                   *slice.spectra);
                add_to_histograms(expected.histograms, c.setup.geometry, converted);
                if (converted.fate != Fate::accepted) continue;
                const std::uint64_t time = converted.single.time;
                const std::size_t segment = segment_of(time);
                (converted.is_gamma ? gammas : segments)[segment].push_back(converted.single);
                accepted.push_back({time, segment, converted.is_gamma});
            }
        }
        watermark = slice.watermark;
    }
    for (gpu::RecordVector<gpu::Tag>& tags : expected.tags)
        std::sort(tags.begin(), tags.end(), tag_before);
    for (std::size_t i = 0; i < segments.size(); ++i) {
        expected.segments.push_back(
            reference_coincidences(std::move(segments[i]), c.setup.geometry, c.options.rules));
        if (c.options.rules.gammas)
            add_reference_triples(expected.segments.back(), std::move(gammas[i]), *c.options.rules.gammas);
    }
    return expected;
}

}  // namespace petacq::test
