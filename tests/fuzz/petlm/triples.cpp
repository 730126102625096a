// Files of triples, as the commands that use them read them. The first byte of the input says whether
// checksums are set right (plm.hpp).
#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "config/base/error.hpp"
#include "tests/fuzz/base/plm.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/record_file.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/source.hpp"
#include "tools/petlm/records/third_photons.hpp"

using namespace petacq;
using fuzz::require;

namespace {

void count(const std::filesystem::path& file, std::vector<gpu::Triple>& all) {
    const petlm::ExportSource source(file, daemon::RecordKind::triples);
    if (source.kind() != daemon::RecordKind::triples) return;
    std::vector<petlm::ThirdPhotons> counts;
    for (const auto policy :
         {config::GammaPolicy::all, config::GammaPolicy::nearest, config::GammaPolicy::only_one})
        counts.emplace_back(policy);
    const std::uint64_t crystals = std::min<std::uint64_t>(source.crystals(), 1 << 20);
    source.for_each_block(crystals, [&](const daemon::ListModeReader& reader) {
        const auto triples = reader.triples();
        for (petlm::ThirdPhotons& each : counts)
            each.add(triples);
        for (const gpu::Triple& t : triples) {
            require(t.pair.crystal_a < crystals && t.pair.crystal_b < crystals && t.gamma_crystal < crystals,
                    "crystals of the scanner");
            require(all.empty() || all.back().pair.time <= t.pair.time, "triples in order of time");
            all.push_back(t);
        }
    });
    std::uint64_t counted = 0;
    for (const gpu::Kind kind : {gpu::Kind::prompt, gpu::Kind::delayed})
        for (const gpu::ThirdPhoton third : {gpu::ThirdPhoton::coincident, gpu::ThirdPhoton::delayed})
            counted += counts.front().triples(kind, third);
    require(counted == all.size() && source.records() == all.size(), "every triple is counted once");
    std::vector<gpu::Coincidence> pairs;
    for (const gpu::Triple& t : all)
        pairs.push_back(t.pair);
    for (petlm::ThirdPhotons& each : counts) {
        require(each.by_chance(gpu::Kind::prompt) == 0 && each.true_share(gpu::Kind::delayed) == 0,
                "no share without pairs");
        each.add(pairs);
        require(std::isfinite(each.hidden_factor()) && each.hidden_factor() >= 1, "gammas hide some others");
        for (const gpu::Kind kind : {gpu::Kind::prompt, gpu::Kind::delayed}) {
            require(each.by_chance(kind) >= 0 && std::isfinite(each.of_randoms(kind, 100, 400)) &&
                        std::isfinite(each.true_share(kind)) && each.error_of_true_share(kind) >= 0,
                    "shares of the pairs");
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::ScratchDirectory scratch;
    std::cerr.setstate(std::ios::badbit);  // warnings about the coverage
    const std::filesystem::path file = scratch.write("triples.plm", fuzz::listmode_input(data, size));
    std::vector<gpu::Triple> triples;
    const fuzz::MemoryBound bound((std::size_t{64} << 20) + 200 * size);
    try {
        count(file, triples);
    } catch (const petlm::BadInput&) {
        return 0;
    } catch (const daemon::NotListMode&) {
        return 0;
    }
    if (!triples.empty()) fuzz::accept();
    // What is written again reads back the same.
    const std::filesystem::path again = scratch.path() / "again.plm";
    std::filesystem::remove(again);
    petlm::RecordFile out(again, daemon::RecordKind::triples, 4096, {{"run_id", "r"}, {"tick_ps", 15.625}});
    out.append(std::span<const gpu::Triple>(triples));
    out.close();
    petlm::RecordSource source(again, daemon::RecordKind::triples);
    std::size_t at = 0;
    while (source.next())
        for (const gpu::Triple& t : source.reader().triples())
            require(std::memcmp(&t, &triples[at++], sizeof t) == 0,
                    "triples that are written read back the same");
    require(at == triples.size(), "all of them");
    return 0;
}
