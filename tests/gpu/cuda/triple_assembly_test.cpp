// The part of the search for triples that the CUDA back-end does on the host: slices cut anywhere give the
// triples of the whole. Needs no GPU.
#ifdef PETACQ_CUDA

#include <algorithm>
#include <cstring>

#include "gpu/cuda/triples/triple_assembly.hpp"
#include "gpu/rules/record_order.hpp"
#include "gpu/triples/triple_search.hpp"
#include "tests/gpu/base/random.hpp"
#include "tests/gpu/generators.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

constexpr std::uint64_t first_time = 10'000;

template <class Record>
std::vector<Record> of_times(const std::vector<Record>& records, std::uint64_t from, std::uint64_t to) {
    const auto time = [](const Record& r) { return r.time; };
    return {std::ranges::lower_bound(records, from, {}, time),
            std::ranges::lower_bound(records, to, {}, time)};
}

/// Pairs and gammas of one run, in order.
struct PairsAndGammas {
    std::vector<gpu::Coincidence> pairs;
    std::vector<gpu::Single> gammas;
    std::uint64_t end = 0;
};

PairsAndGammas random_records(Rng& rng, std::size_t pair_count, std::size_t gamma_count) {
    PairsAndGammas records;
    const std::uint64_t span = rng.between<std::uint64_t>(1, 20 * (pair_count + gamma_count));
    records.end = first_time + span;
    const auto time = [&] { return first_time + rng.between<std::uint64_t>(0, span - 1); };
    const auto crystal = [&] { return static_cast<std::uint32_t>(rng.index(10)); };
    for (std::size_t i = 0; i < pair_count; ++i)
        records.pairs.push_back({time(), 3, crystal(), crystal(), 511, 500, gpu::Kind::prompt});
    for (std::size_t i = 0; i < gamma_count; ++i)
        records.gammas.push_back({time(), crystal(), 1000.0F + static_cast<float>(rng.index(3))});
    const auto order = [](const auto& a, const auto& b) { return before(a, b); };
    std::ranges::sort(records.pairs, order);
    std::ranges::sort(records.gammas, order);
    return records;
}

gpu::GammaRules random_gamma_rules(Rng& rng) {
    gpu::GammaRules rules;
    rules.before = rng.between<std::uint64_t>(0, 100);
    rules.after = rng.between<std::uint64_t>(0, 100);
    rules.policy = static_cast<gpu::GammaPolicy>(rng.index(3));
    if (rng.chance(0.5)) rules.delay = rules.before + rules.after + rng.between<std::uint64_t>(1, 300);
    return rules;
}

struct FoundTriples {
    std::vector<gpu::Triple> triples;
    gpu::GammaCounts counts;
    std::vector<gpu::Single> gammas;
    gpu::GammaCounts of_interval;
};

/// Those of a segment, at once.
void add_expected(const PairsAndGammas& records, const gpu::GammaRules& rules, std::uint64_t from,
                  std::uint64_t to, FoundTriples& found) {
    const auto gammas = of_times(records.gammas, from, to);
    std::vector<std::uint8_t> used(gammas.size());
    gpu::find_triples(of_times(records.pairs, from, to), gammas, rules, used, found.triples, found.counts);
    found.counts.unused += static_cast<std::uint64_t>(std::ranges::count(used, 0));
    found.gammas.insert(found.gammas.end(), gammas.begin(), gammas.end());
}

/// In slices with random watermarks; a segment ends at `close`.
FoundTriples in_slices(const PairsAndGammas& records, const gpu::GammaRules& rules, std::uint64_t close,
                       Rng& rng) {
    gpu::PipelineOptions options = make_case(all_families().front(), 1, 10).options;
    options.rules.search = true;
    options.rules.gammas = rules;
    options.threads = 3;
    options.emit_singles = true;
    gpu::cuda::Memory plan(gpu::cuda::Memory::Purpose::plan);
    gpu::cuda::DeviceSlice slice(options, plan, plan);
    gpu::cuda::TripleAssembly assembly(options);
    FoundTriples found;
    std::uint64_t watermark = 0;
    std::uint64_t horizon = 0;
    std::size_t arrived = 0;
    for (bool last = false; !last;) {
        const std::uint64_t below = std::exchange(
            watermark, std::max(watermark, first_time) +
                           rng.between<std::uint64_t>(0, rng.chance(0.3) ? 5 : records.end - first_time));
        last = watermark >= records.end + rules.reach();
        slice.input = {};
        slice.input.watermark = watermark;
        if (below <= close && close < watermark) slice.input.close_at = close;
        if (last && !slice.input.close_at) slice.input.close_at = UINT64_MAX;
        last = slice.input.close_at == UINT64_MAX;
        slice.input.ends_interval = last;
        const std::uint64_t decided =
            slice.input.close_at.value_or(watermark > rules.reach() ? watermark - rules.reach() : 0);
        const auto gammas = of_times(records.gammas, below, last ? UINT64_MAX : watermark);
        slice.gammas.count = static_cast<std::uint32_t>(gammas.size());
        slice.gammas.many.resize(gpu::cuda::SliceGammas::lead + gammas.size());
        std::ranges::copy(gammas, slice.gammas.first());
        arrived += gammas.size();
        const std::uint64_t from = std::exchange(horizon, std::max(horizon, decided));
        slice.records.horizon = horizon;
        const auto pairs = of_times(records.pairs, from, horizon);
        slice.result.coincidences.assign(pairs.begin(), pairs.end());
        slice.result.pending = 7;  // singles
        assembly.assemble(slice);
        const auto& given = slice.result.singles;  // there are none of pairs
        found.gammas.insert(found.gammas.end(), given.begin(), given.end());
        REQUIRE((given.empty() || given.back().time < horizon));
        found.triples.insert(found.triples.end(), slice.result.triples.begin(), slice.result.triples.end());
        found.counts += slice.result.gamma_counts;
        REQUIRE(slice.result.pending == 7 + arrived - found.counts.gammas());
    }
    found.of_interval = slice.result.sums.gammas;
    return found;
}

template <class Record>
bool same_bytes(const std::vector<Record>& a, const std::vector<Record>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Record)) == 0;
}

}  // namespace

TEST_CASE("triples on the host: slices cut anywhere give those of the whole") {
    std::size_t triples = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        Rng rng(seed);
        // Many pairs are searched in several pieces.
        const std::size_t most = seed % 50 == 0 ? 60'000 : 300;
        const PairsAndGammas records = random_records(rng, rng.between(most / 2, most), rng.index(most));
        const gpu::GammaRules rules = random_gamma_rules(rng);
        const std::uint64_t close = rng.between(first_time, records.end);
        FoundTriples expected;
        add_expected(records, rules, 0, close, expected);
        add_expected(records, rules, close, UINT64_MAX, expected);
        const FoundTriples found = in_slices(records, rules, close, rng);
        INFO("seed " << seed << ", closed at " << close);
        REQUIRE(same_bytes(found.triples, expected.triples));
        REQUIRE(same_bytes(found.gammas, expected.gammas));
        REQUIRE(found.counts == expected.counts);
        REQUIRE(found.of_interval == expected.counts);
        triples += found.triples.size();
    }
    CHECK(triples > 10'000);
}

#endif
