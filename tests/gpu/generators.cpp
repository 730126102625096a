#include "tests/gpu/generators.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "net/wire.hpp"

namespace petacq::test {

namespace {

// Times relative to the start of the case. The window and the delay are known.
using Times = std::vector<std::uint64_t>;

struct TimeMaker {
    std::uint64_t tau;
    std::uint64_t delay;
    Rng& rng;

    Times poisson(double per_window, std::size_t count) const {
        Times times;
        double t = 0;
        for (std::size_t i = 0; i < count; ++i) {
            t += rng.exponential(static_cast<double>(tau + 1) / per_window);
            times.push_back(static_cast<std::uint64_t>(t));
        }
        return times;
    }

    template <typename Gap>
    Times gaps(std::size_t count, Gap gap) const {
        Times times;
        std::uint64_t t = 0;
        for (std::size_t i = 0; i < count; ++i) {
            times.push_back(t);
            t += gap();
        }
        return times;
    }

    Times chains(std::size_t count) const {
        return gaps(count, [this] {
            if (rng.chance(0.01)) return tau + 1 + rng.between<std::uint64_t>(0, tau);
            return rng.chance(0.3) ? tau : rng.between<std::uint64_t>(0, tau);
        });
    }

    Times bursts(std::size_t count) const {
        Times times;
        std::uint64_t t = 0;
        while (times.size() < count) {
            const std::size_t size = rng.between<std::size_t>(1, rng.chance(0.1) ? 90 : 6);
            std::uint64_t last = t;
            for (std::size_t k = 0; k < size; ++k) {
                times.push_back(t + rng.between<std::uint64_t>(0, rng.chance(0.5) ? tau : 2 * tau));
                last = std::max(last, times.back());
            }
            t = last + rng.between<std::uint64_t>(0, 2 * tau + 2);
        }
        return times;
    }

    Times ties(std::size_t count) const {
        return gaps(count, [this] { return rng.chance(0.8) ? 0 : rng.between<std::uint64_t>(1, tau + 1); });
    }

    Times small_groups(std::size_t count) const {
        return gaps(count, [this] {
            return rng.chance(0.7) ? rng.between<std::uint64_t>(0, tau / 3)
                                   : tau + rng.between<std::uint64_t>(0, 1);
        });
    }

    // Each opener, alone or in a group, has partners on, just inside and just outside the edges of its
    // delayed window, and sometimes singles whose windows reach that far.
    Times delay_edges(std::size_t count) const {
        Times times;
        std::uint64_t t = 2 * tau + 2;
        while (times.size() < count) {
            times.push_back(t);
            const Times members{t, t + 1, t + tau / 2, t + tau};
            for (std::size_t k = rng.chance(0.5) ? 0 : rng.between<std::size_t>(1, 3); k > 0; --k)
                times.push_back(rng.pick(members));
            const Times edges{t + delay - 1,       t + delay,       t + delay + 1,      t + delay + tau / 2,
                              t + delay + tau - 1, t + delay + tau, t + delay + tau + 1};
            for (std::size_t k = rng.between<std::size_t>(0, 2); k > 0; --k)
                times.push_back(rng.pick(edges));
            const Times blocking{t + delay - tau - 1, t + delay - tau, t + delay - tau / 2 - 1,
                                 t + delay - 2 * tau - 1};
            for (std::size_t k = rng.chance(0.7) ? 0 : rng.between<std::size_t>(1, 2); k > 0; --k)
                times.push_back(rng.pick(blocking));
            t += rng.chance(0.5) ? rng.between<std::uint64_t>(0, 3 * tau + 2)
                                 : rng.between<std::uint64_t>(0, delay);
        }
        return times;
    }

    Times of(Family family, std::size_t count) const {
        switch (family) {
            case Family::tiny:
                return poisson(1, rng.between<std::size_t>(0, 4));
            case Family::poisson_0_01:
                return poisson(0.01, count);
            case Family::poisson_0_1:
                return poisson(0.1, count);
            case Family::refused_pairs:
            case Family::near_zero:
            case Family::near_max:
            case Family::poisson_1:
                return poisson(1, count);
            case Family::poisson_10:
                return poisson(10, count);
            case Family::equal_times:
                return gaps(std::min<std::size_t>(count, 3000), [] { return 0; });
            case Family::fixed_gaps: {
                const Times choices{tau, tau + 1, tau / 2 + 1, tau / 2};
                const std::uint64_t gap = rng.pick(choices);
                return gaps(gap == 0 ? std::min<std::size_t>(count, 3000) : count, [gap] { return gap; });
            }
            case Family::chains:
                return chains(count);
            case Family::bursts:
                return bursts(count);
            case Family::ties:
                return ties(count);
            case Family::huge_gaps:
                return gaps(count, [this] { return rng.bits() >> rng.between(24U, 63U); });
            case Family::winner_ties:
                return small_groups(count);
            case Family::delay_edges:
                return delay_edges(count);
            case Family::mixed:
                break;
        }
        Times times;
        while (times.size() < count) {
            const auto part = static_cast<Family>(rng.index(static_cast<std::size_t>(Family::mixed)));
            const std::uint64_t start = times.empty() ? 0
                                                      : *std::max_element(times.begin(), times.end()) +
                                                            rng.between<std::uint64_t>(0, tau);
            for (const std::uint64_t t : of(part, 1 + rng.index(1 + count / 4)))
                times.push_back(start + t);
            if (times.empty()) times.push_back(0);
        }
        return times;
    }
};

gpu::CoincidenceRules random_rules(const config::Geometry& geometry, Family family, Rng& rng) {
    gpu::CoincidenceRules rules;
    const std::vector<std::uint32_t> windows{1, 2, 3, 7, 50, 400, 1U << 20, UINT32_MAX};
    rules.window = rng.pick(windows);
    const std::vector<std::uint32_t> limits{2, 3, 4, 64, 500};
    rules.max_multiplicity = rng.chance(0.4) ? 64 : rng.pick(limits);
    const double frequent = family == Family::refused_pairs ? 0.9 : 0.4;
    if (rng.chance(frequent) && geometry.modules_around() > 0)
        rules.min_module_difference = rng.between(0U, geometry.modules_around() / 2 + 1);
    if (rng.chance(frequent))
        rules.max_ring_difference = rng.between(0U, geometry.is_ring() ? geometry.rings() : 6U);
    const std::uint64_t tau = rules.window;
    const std::vector<std::uint64_t> delays{tau / 2 + 1, tau,      tau + 1,    2 * tau,   2 * tau + 1,
                                            5 * tau + 3, 40 * tau, 1ULL << 33, 1ULL << 62};
    const bool near = family == Family::delay_edges || rng.chance(0.8);
    rules.delay = near ? delays[rng.index(7)] : rng.pick(delays);
    const bool shifted = *rules.delay > tau && rng.chance(0.7);
    rules.delayeds = shifted ? gpu::DelayedRule::shifted_group : gpu::DelayedRule::delayed_window;
    return rules;
}

// The crystals of a case: all, or a few, so that neighbours meet often.
std::vector<std::uint32_t> crystal_pool(const config::Geometry& geometry, Family family, Rng& rng) {
    std::vector<std::uint32_t> pool;
    const bool few = family == Family::refused_pairs || family == Family::ties || rng.chance(0.3);
    if (!few) {
        for (std::uint32_t c = 0; c < geometry.crystal_count(); ++c)
            pool.push_back(c);
        return pool;
    }
    const std::size_t size = rng.between<std::size_t>(1, 8);
    while (pool.size() < size) {
        const std::uint32_t c = rng.between(0U, geometry.crystal_count() - 1);
        pool.push_back(c);
        if (c + 1 < geometry.crystal_count()) pool.push_back(c + 1);
    }
    return pool;
}

std::vector<std::uint16_t> adc_pool(Family family, Rng& rng) {
    if (family == Family::winner_ties || family == Family::ties || rng.chance(0.2))
        return {600, 800, 1000, 1200};
    std::vector<std::uint16_t> pool;
    pool.reserve(202);
    const std::uint16_t top = rng.chance(0.3) ? 65535 : 2500;
    for (int i = 0; i < 200; ++i)
        pool.push_back(rng.between<std::uint16_t>(0, top));
    pool.push_back(0);
    pool.push_back(top);
    return pool;
}

std::uint64_t random_base(Family family, std::uint64_t span, Rng& rng) {
    if (family == Family::near_zero) return 0;
    if (family == Family::near_max || (family == Family::delay_edges && rng.chance(0.2)))
        return UINT64_MAX - span;
    const std::vector<std::uint64_t> bases{0, 1000, 1U << 31, (1ULL << 32) - 3, 1ULL << 40, (1ULL << 63) - 7};
    const std::uint64_t base = rng.pick(bases);
    return base > UINT64_MAX - span ? 0 : base;
}

// Energies that occur, in order.
std::vector<float> some_energies(const Case& c, Rng& rng) {
    gpu::PipelineOptions open = c.options;
    open.energy.filter = false;
    std::vector<float> energies;
    for (int tries = 0; tries < 40 && !c.frames.empty(); ++tries) {
        const Converted converted = reference_convert(rng.pick(c.frames).raw, open, c.setup.calibration, {});
        if (converted.in_crystal && std::isfinite(converted.single.energy))
            energies.push_back(converted.single.energy);
    }
    std::sort(energies.begin(), energies.end());
    return energies;
}

// Some energies equal a limit exactly, since both limits are inclusive.
gpu::EnergyWindow random_energy_window(const Case& c, Rng& rng) {
    const std::vector<float> energies = some_energies(c, rng);
    if (energies.empty()) return {true, 350, 650};
    const std::size_t tail = energies.size() / 10;
    return {true, energies[rng.between<std::size_t>(0, tail)],
            energies[energies.size() - 1 - rng.between<std::size_t>(0, tail)]};
}

// Some sources have windows that cut off their first and last frames; the limits are times that occur.
void cut_source_windows(Case& c, Rng& rng) {
    if (c.frames.empty() || rng.chance(0.7)) return;
    for (std::size_t source = 0; source < c.sources.size(); ++source) {
        if (rng.chance(0.1)) {
            c.sources[source] = {1, 0};
        } else if (rng.chance(0.4)) {
            const std::size_t tenth = c.frames.size() / 10;
            const std::uint64_t first =
                net::frame_time(c.frames[rng.between<std::size_t>(0, tenth)].raw.bytes.data());
            const std::uint64_t last = net::frame_time(
                c.frames[c.frames.size() - 1 - rng.between<std::size_t>(0, tenth)].raw.bytes.data());
            c.sources[source] = {std::min(first, last), std::max(first, last)};
        }
    }
}

/// Tags between the hits: none, some, or nearly nothing else. Some share their time with a hit or a tag.
void insert_tags(Case& c) {
    Rng rng(c.seed * 977 + static_cast<std::uint64_t>(c.family));
    c.options.tag_marker = c.setup.tag_marker;
    if (rng.chance(0.4)) return;
    const double share = rng.chance(0.2) ? 0.95 : rng.chance(0.5) ? 0.02 : 0.3;
    const std::size_t most = 1000 + c.frames.size() / 4;  // they make a case slow
    std::size_t tags = 0;
    std::vector<InputFrame> all;
    for (const InputFrame& frame : c.frames) {
        all.push_back(frame);
        for (; tags < most && rng.chance(share); ++tags) {
            const std::uint64_t hit = net::frame_time(frame.raw.bytes.data());
            const std::uint64_t more = rng.chance(0.5) ? 0 : rng.between<std::uint64_t>(0, 3);
            all.push_back({tag_frame(c.setup, hit + std::min(more, UINT64_MAX - hit), rng),
                           static_cast<std::uint8_t>(rng.index(c.sources.size()))});
        }
    }
    c.frames = std::move(all);
}

/// Gives each source some of the modules; a few frames then have a module that is not their source's.
void choose_modules(Case& c, Rng& rng) {
    const double left_out = rng.chance(0.3) ? 0.5 : 0.1;
    for (std::size_t source = 0; source < c.sources.size(); ++source) {
        net::Modules& modules = c.options.sources.emplace_back();
        for (std::uint32_t bdm = 0; bdm < c.setup.geometry.bdm_count; ++bdm)
            if (!rng.chance(left_out)) modules.set(bdm);
    }
}

}  // namespace

const std::vector<Family>& all_families() {
    static const std::vector<Family> families = [] {
        std::vector<Family> all;
        for (std::uint8_t f = 0; f <= static_cast<std::uint8_t>(Family::mixed); ++f)
            all.push_back(static_cast<Family>(f));
        return all;
    }();
    return families;
}

const char* name_of(Family family) {
    switch (family) {
        case Family::tiny:
            return "tiny";
        case Family::poisson_0_01:
            return "poisson_0_01";
        case Family::poisson_0_1:
            return "poisson_0_1";
        case Family::poisson_1:
            return "poisson_1";
        case Family::poisson_10:
            return "poisson_10";
        case Family::equal_times:
            return "equal_times";
        case Family::fixed_gaps:
            return "fixed_gaps";
        case Family::chains:
            return "chains";
        case Family::bursts:
            return "bursts";
        case Family::ties:
            return "ties";
        case Family::near_zero:
            return "near_zero";
        case Family::near_max:
            return "near_max";
        case Family::huge_gaps:
            return "huge_gaps";
        case Family::winner_ties:
            return "winner_ties";
        case Family::refused_pairs:
            return "refused_pairs";
        case Family::delay_edges:
            return "delay_edges";
        case Family::mixed:
            return "mixed";
    }
    return "?";
}

Case make_case(Family family, std::uint64_t seed, std::size_t frames) {
    Rng rng(seed * 1000 + static_cast<std::uint64_t>(family));
    Case c;
    c.family = family;
    c.seed = seed;
    c.setup = seed % 3 == 2 ? random_long_setup(rng) : random_setup(rng);
    c.options.geometry = c.setup.geometry;
    c.options.frame_version = c.setup.frame_version;
    c.options.head_marker = c.setup.head_marker;
    c.options.tail_marker = c.setup.tail_marker;
    c.options.energy.filter = false;
    c.options.rules = random_rules(c.setup.geometry, family, rng);
    c.options.emit_singles = true;
    c.sources.resize(rng.between<std::size_t>(1, 5));

    if (frames == 0) frames = static_cast<std::size_t>(std::exp(3 + 3.5 * rng.unit()));  // 20 to 665
    const std::uint64_t delay = std::min<std::uint64_t>(*c.options.rules.delay, std::uint64_t{1} << 40);
    Times times = TimeMaker{c.options.rules.window, delay, rng}.of(family, frames);
    std::sort(times.begin(), times.end());
    const std::uint64_t base = random_base(family, times.empty() ? 0 : times.back(), rng);

    const std::vector<std::uint32_t> crystals = crystal_pool(c.setup.geometry, family, rng);
    const std::vector<std::uint16_t> adcs = adc_pool(family, rng);
    const double copies = family == Family::ties ? 0.2 : 0.01;
    const double broken = rng.chance(0.5) ? 0.15 : 0;
    auto add = [&](const RawFrame& raw) {
        c.frames.push_back({raw, static_cast<std::uint8_t>(rng.index(c.sources.size()))});
    };
    for (const std::uint64_t t : times) {
        for (int tries = 0; tries < 5; ++tries) {  // near the ends of time only some offsets are possible
            const auto raw = frame_for(c.setup, {base + t, rng.pick(crystals), rng.pick(adcs)}, rng);
            if (!raw) continue;
            add(*raw);
            if (rng.chance(copies)) add(*raw);
            break;
        }
        if (rng.chance(broken)) add(broken_frame(c.setup, base + t, rng));
    }
    if (rng.chance(0.5)) c.options.energy = random_energy_window(c, rng);
    cut_source_windows(c, rng);
    if (rng.chance(0.3)) choose_modules(c, rng);
    insert_tags(c);
    const std::size_t positions =
        std::size_t{c.setup.geometry.position_size} * c.setup.geometry.position_size;
    c.options.spectra = rng.chance(0.5) && c.setup.places.size() <= 1000 &&
                        positions * c.setup.geometry.bdm_count * c.setup.geometry.du_count <= 300'000;
    return c;
}

void add_gammas(Case& c, Rng& rng) {
    std::vector<float> energies = some_energies(c, rng);
    if (energies.empty()) energies = {400};
    // Two windows from the lowest energy to the highest, with energies between them or none.
    const float limit = rng.pick(energies);
    const float next = std::nextafter(limit, std::numeric_limits<float>::infinity());
    const float beyond = rng.chance(0.5) ? next : std::max(rng.pick(energies), next);
    const float top = rng.chance(0.1) ? std::numeric_limits<float>::infinity() : energies.back();
    const gpu::EnergyWindow low{true, rng.chance(0.5) ? 0 : energies.front(), limit};
    const gpu::EnergyWindow high{true, beyond, std::max(beyond, top)};
    const bool above = rng.chance(0.6);
    c.options.energy = above ? low : high;

    gpu::GammaRules& gammas = c.options.rules.gammas.emplace();
    gammas.lower = above ? high.lower : low.lower;
    gammas.upper = above ? high.upper : low.upper;
    gammas.policy = static_cast<gpu::GammaPolicy>(rng.index(3));
    const std::uint64_t tau = c.options.rules.window;
    constexpr std::uint64_t longest = INT32_MAX;
    const std::vector<std::uint64_t> lengths{0, 1, tau / 2, tau, tau + 1, 3 * tau, 40 * tau, longest};
    gammas.before = std::min(rng.pick(lengths), longest);
    gammas.after = std::min(rng.pick(lengths), longest);
    const std::uint64_t window = gammas.before + gammas.after;
    const std::vector<std::uint64_t> delays{window + 1,
                                            window + 2,
                                            window + tau + 1,
                                            2 * window + 5 * tau + 3,
                                            std::uint64_t{1} << 33,
                                            std::uint64_t{1} << 61};
    if (rng.chance(0.6)) gammas.delay = rng.pick(delays);
}

}  // namespace petacq::test
