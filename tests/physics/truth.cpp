#include "tests/physics/truth.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "config/make_calibration.hpp"
#include "gpu/rules/record_order.hpp"
#include "tools/petsim/simulation/simulation.hpp"

namespace petacq::test {

namespace {

constexpr float upper_keV = 650;

std::uint64_t second_of(const config::Scanner& scanner) {
    return static_cast<std::uint64_t>(1e12 / scanner.tick_ps);
}

}  // namespace

double TrueSingles::per_second() const {
    return static_cast<double>(singles.size()) / (static_cast<double>(end - begin) * scanner.tick_ps * 1e-12);
}

TrueSingles simulate_singles(const config::Scanner& scanner, const sim::Options& options, float lower_keV) {
    TrueSingles out;
    out.scanner = scanner;
    out.calibration = config::make_calibration(scanner, {});
    sim::Options all = options;
    all.start_s = 1;
    std::vector<sim::TruthRecord> records;
    sim::Simulation simulation(scanner, out.calibration, all);
    simulation.run([](const sim::Datagram&) {},
                   [&](std::span<const sim::TruthRecord> more) {
                       for (const sim::TruthRecord& r : more) {
                           if (r.crystal == sim::no_crystal || r.energy < lower_keV || r.energy > upper_keV)
                               continue;
                           records.push_back(r);
                       }
                   });
    std::sort(records.begin(), records.end(), [](const sim::TruthRecord& a, const sim::TruthRecord& b) {
        return gpu::before(gpu::Single{a.time, a.crystal, a.energy},
                           gpu::Single{b.time, b.crystal, b.energy});
    });
    out.begin = second_of(scanner);
    out.end = out.begin + static_cast<std::uint64_t>(options.duration_s * static_cast<double>(out.begin));
    for (const sim::TruthRecord& r : records) {
        out.singles.push_back({r.time, r.crystal, r.energy});
        out.annihilations.push_back(r.annihilation);
    }
    return out;
}

Found find_pairs(const TrueSingles& truth, const gpu::CoincidenceRules& rules) {
    constexpr std::size_t slice_singles = 1U << 18;
    gpu::PipelineOptions options;
    options.input = gpu::Input::singles;
    options.geometry = truth.scanner.geometry;
    options.rules = rules;
    options.energy.filter = false;
    options.threads = 2;
    options.max_slice_frames = slice_singles;
    const auto pipeline = gpu::make_cpu_pipeline(options, truth.calibration);
    gpu::SecondCuts cuts(second_of(truth.scanner), rules.reach());
    Found found;
    gpu::SliceResult result;
    std::vector<gpu::FrameSpan> spans(1);
    const auto run = [&](std::size_t from, std::size_t to, std::uint64_t watermark,
                         std::optional<std::uint64_t> close_at, std::optional<gpu::TickRange> second,
                         std::optional<std::uint64_t> decide_before = {}) {
        spans[0] = {reinterpret_cast<const std::byte*>(truth.singles.data() + from),
                    static_cast<std::uint32_t>(to - from)};
        gpu::Slice slice;
        slice.spans = spans;
        slice.watermark = watermark;
        slice.close_at = close_at;
        slice.decide_before = decide_before;
        slice.ends_interval = second.has_value();
        pipeline->submit(slice);
        pipeline->collect(result, true);
        found.pairs.insert(found.pairs.end(), result.coincidences.begin(), result.coincidences.end());
        if (second) found.seconds.push_back({*second, result.sums});
    };
    std::uint64_t watermark = 0;
    const std::size_t n = truth.singles.size();
    for (std::size_t from = 0; from < n;) {
        const std::size_t to = std::min(n, from + slice_singles);
        const std::uint64_t next = to < n ? truth.singles[to].time : truth.end;
        cuts.advance(watermark, next, truth.begin, [&](std::uint64_t cut, gpu::TickRange second) {
            run(from, to, cut, {}, second);
            from = to;
        });
        run(from, to, next, {}, {});
        watermark = next;
        from = to;
    }
    // Singles at the very end, blurred in time, belong to the last second.
    const gpu::TickRange last = cuts.close(truth.end, truth.begin, [&](gpu::TickRange second) {
        run(0, 0, UINT64_MAX, UINT64_MAX, second, second.end);
    });
    run(0, 0, UINT64_MAX, UINT64_MAX, last);
    return found;
}

std::vector<bool> is_random(const TrueSingles& truth, const std::vector<gpu::Coincidence>& pairs) {
    const auto annihilation_of = [&](const gpu::Single& s) {
        const auto at = std::lower_bound(truth.singles.begin(), truth.singles.end(), s,
                                         [](const auto& a, const auto& b) { return gpu::before(a, b); });
        if (at == truth.singles.end() || gpu::before(s, *at))
            throw std::logic_error("a pair of unknown singles");
        return truth.annihilations[static_cast<std::size_t>(at - truth.singles.begin())];
    };
    std::vector<bool> random;
    for (const gpu::Coincidence& c : pairs) {
        if (c.kind != gpu::Kind::prompt) {
            random.push_back(false);
            continue;
        }
        const std::uint64_t a = annihilation_of({c.time, c.crystal_a, c.energy_a});
        const std::uint64_t b = annihilation_of({c.time + c.dt, c.crystal_b, c.energy_b});
        random.push_back(a == 0 || a != b);
    }
    return random;
}

}  // namespace petacq::test
