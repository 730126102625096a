#include "tools/petlm/union/origins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace petacq::petlm {
namespace {

using nlohmann::json;

/// Datagrams that a run lacks; absent: unknown.
std::optional<std::uint64_t> lost_of(const HeardRun& run) {
    const json::json_pointer at("/ledger/datagrams/lost");
    const json& document = run.document();
    if (!document.contains(at) || !document[at].is_number_unsigned()) return std::nullopt;
    return document[at].get<std::uint64_t>();
}

}  // namespace

Origins origins_of(const HeardStream& stream, const UnitedSingles& singles,
                   std::optional<UnitedCapture> capture, const ResortedRun& made,
                   const config::Scanner& scanner) {
    Origins origins;
    const daemon::Coverage all = stream.coverage();
    const std::size_t runs = stream.runs().size();
    for (const HeardRun* run : stream.runs()) {
        const std::string state = run->document().value("state", "unknown");
        origins.runs.push_back({std::filesystem::absolute(run->directory()).lexically_normal(),
                                state == "running" ? "interrupted" : state, run->damage()});
        const auto lost = lost_of(*run);
        const bool everything = run->coverage().intervals == all.intervals && run->damage().empty();
        if (!lost || !everything) continue;
        origins.datagrams_at_most = std::min(origins.datagrams_at_most.value_or(UINT64_MAX), *lost);
    }
    origins.modules = singles.origins(stream.runs());
    origins.all.only.resize(runs);
    for (const HitOrigins& module : origins.modules) {
        origins.all.several += module.several;
        for (std::size_t i = 0; i < runs; ++i)
            origins.all.only[i] += module.only[i];
    }
    const auto seconds = [&](std::uint64_t ticks) {
        return static_cast<double>(ticks) * scanner.tick_ps * 1e-12;
    };
    origins.datagrams_lost = std::llround(made.lost_by_all.datagrams);
    origins.unknown_s = seconds(made.lost_by_all.unknown_ticks);
    for (const std::uint64_t ticks : made.lost_by_all.estimated)
        origins.estimated_s.push_back(seconds(ticks));
    if (made.lost_by_all.unknown_ticks == 0)
        origins.datagrams_at_most =
            static_cast<std::uint64_t>(std::max(std::int64_t{0}, origins.datagrams_lost));
    if (capture) {
        std::optional<std::uint64_t> lost = 0;
        for (const auto& [source, datagrams] : capture->sources)
            lost = lost && datagrams.lost ? std::optional(*lost + *datagrams.lost) : std::nullopt;
        const auto& others = capture->others;
        const bool all_numbered = others.several == 0 && std::all_of(others.only.begin(), others.only.end(),
                                                                     [](auto count) { return count == 0; });
        // Captures know each datagram, and so what is in none of them.
        if (lost && all_numbered && !capture->sources.empty()) origins.captures_lack = lost;
    }
    origins.capture = std::move(capture);
    return origins;
}

/// `datagrams` of the union.
json of_capture(const UnitedCapture& capture) {
    const auto datagrams = [](const DatagramOrigins& of) {
        return json{{"several", of.several}, {"only", of.only}};
    };
    json sources = json::array();
    for (const auto& [source, of] : capture.sources) {
        json one = datagrams(of);
        one["source"] = source;
        one["lost_by_all"] = of.lost ? json(*of.lost) : json();
        sources.push_back(std::move(one));
    }
    return {{"sources", sources}, {"others", datagrams(capture.others)}};
}

json to_json(const Origins& origins) {
    const auto hits = [](const HitOrigins& of) { return json{{"several", of.several}, {"only", of.only}}; };
    json runs = json::array();
    for (const Origins::OfRun& run : origins.runs) {
        runs.push_back({{"directory", run.directory.string()},
                        {"state", run.state},
                        {"damage", run.damage.empty() ? json() : json(run.damage)}});
    }
    json modules = json::array();
    for (std::size_t m = 0; m < origins.modules.size(); ++m) {
        json module = hits(origins.modules[m]);
        module["bdm"] = m;
        module["estimated_s"] = origins.estimated_s[m];
        modules.push_back(std::move(module));
    }
    const json lost = origins.unknown_s > 0 ? json() : json(origins.datagrams_lost);
    const auto& most = origins.datagrams_at_most;
    return {{"runs", runs},
            {"datagrams", origins.capture ? of_capture(*origins.capture) : json()},
            {"hits", hits(origins.all)},
            {"modules", modules},
            {"lost_by_all",
             {{"datagrams", lost},
              {"captures_lack", origins.captures_lack ? json(*origins.captures_lack) : json()},
              {"datagrams_at_most", most ? json(*most) : json()},
              {"unknown_s", origins.unknown_s}}}};
}

}  // namespace petacq::petlm
