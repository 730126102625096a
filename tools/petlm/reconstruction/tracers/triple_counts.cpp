#include "tools/petlm/reconstruction/tracers/triple_counts.hpp"

#include <vector>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/record_source.hpp"

namespace petacq::tracers {
namespace {

constexpr std::uint64_t enough_delayeds = 1000;
constexpr std::uint64_t images = 3;

config::Gammas rules_of(const image::Setup& setup) {
    const petlm::RecordSource triples(setup.options.target, daemon::RecordKind::triples);
    const auto& rules = triples.coverage().rules.gammas;
    if (!rules)
        throw petlm::BadInput(setup.options.target.string() + ": its triples do not tell their gamma window");
    if (!rules->delay_ticks) {
        throw petlm::BadInput(setup.options.target.string() +
                              ": recorded without delayed triples (gammas.delay_ns), which tell how many "
                              "gammas are beside a pair by chance");
    }
    return *rules;
}

image::ImageCounts counts_for(image::Setup& setup) {
    return {setup.scanner.geometry,
            setup.angles,
            setup.rule,
            image::pair_capacity(setup.how.max_memory) / images,
            setup.pool,
            setup.tof.bins};
}

}  // namespace

TripleCounts::TripleCounts(image::Setup& setup)
    : rules(rules_of(setup)),
      thirds(rules.policy),
      pairs(counts_for(setup)),
      coincident(counts_for(setup)),
      delayed(counts_for(setup)) {
    setup.source.for_each_block(
        setup.scanner.geometry.crystal_count(),
        [&](const daemon::ListModeReader& reader) {
            pairs.add(reader.coincidences());
            thirds.add(reader.coincidences());
        },
        "reading");
    std::vector<gpu::Coincidence> with_gamma;
    std::vector<gpu::Coincidence> by_chance;
    petlm::RecordSource triples(setup.options.target, daemon::RecordKind::triples);
    while (triples.next()) {
        with_gamma.clear();
        by_chance.clear();
        for (const gpu::Triple& triple : triples.reader().triples()) {
            if (triple.pair.kind != gpu::Kind::prompt) continue;
            (triple.third == gpu::ThirdPhoton::coincident ? with_gamma : by_chance).push_back(triple.pair);
        }
        thirds.add(triples.reader().triples());
        coincident.add(with_gamma);
        delayed.add(by_chance);
    }
    for (image::ImageCounts* counts : {&pairs, &coincident, &delayed})
        counts->finish();
    photopeak = coincident.photopeak;
    // All expect the randoms and the energies of the run.
    for (image::ImageCounts* counts : {&coincident, &delayed}) {
        counts->delayeds = pairs.delayeds;
        counts->photopeak = pairs.photopeak;
    }
    const auto& coincidence = setup.source.coverage().rules.coincidence;
    share_randoms(coincidence ? coincidence->window_ticks : 0);
}

/// Where there are no delayeds, the singles are as often of this tracer as the pairs are.
void TripleCounts::share_randoms(std::uint32_t window_ticks) {
    const bool enough = thirds.pairs(gpu::Kind::delayed) >= enough_delayeds;
    const gpu::Kind kind = enough ? gpu::Kind::delayed : gpu::Kind::prompt;
    delayed.share_of_randoms = thirds.by_chance(kind);
    coincident.share_of_randoms = thirds.of_randoms(kind, rules.after_ticks, window_ticks);
}

}  // namespace petacq::tracers
