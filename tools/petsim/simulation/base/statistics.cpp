#include "tools/petsim/simulation/base/statistics.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace petacq::sim {

namespace {

/// A counter with its key in the summary.
template <class Counts>
struct Key {
    const char* name;
    std::uint64_t Counts::*member;
};

constexpr std::array expected_keys{Key<Expected>{"datagrams_received", &Expected::received},
                                   Key<Expected>{"datagrams_malformed", &Expected::malformed},
                                   Key<Expected>{"frames_received", &Expected::frames},
                                   Key<Expected>{"tags_received", &Expected::tags},
                                   Key<Expected>{"frames_bad_marker", &Expected::bad_marker},
                                   Key<Expected>{"frames_bad_address", &Expected::bad_address},
                                   Key<Expected>{"frames_outside_crystal", &Expected::outside_crystal},
                                   Key<Expected>{"frames_bad_time", &Expected::bad_time}};
/// Known with sequenced framing only.
constexpr std::array sequence_keys{Key<Expected>{"datagrams_duplicate", &Expected::duplicate},
                                   Key<Expected>{"datagrams_reordered", &Expected::reordered},
                                   Key<Expected>{"datagrams_lost", &Expected::lost}};

using Sums = SourceStatistics;
constexpr std::array source_keys{Key<Sums>{"hits", &Sums::hits},
                                 Key<Sums>{"hits_in_dead_time", &Sums::dead_time},
                                 Key<Sums>{"hits_piled_up", &Sums::piled_up},
                                 Key<Sums>{"hits_silenced", &Sums::silenced},
                                 Key<Sums>{"frames", &Sums::frames},
                                 Key<Sums>{"frames_sent", &Sums::frames_sent},
                                 Key<Sums>{"frames_lost", &Sums::frames_lost},
                                 Key<Sums>{"tags", &Sums::tags},
                                 Key<Sums>{"tags_sent", &Sums::tags_sent},
                                 Key<Sums>{"tags_lost", &Sums::tags_lost},
                                 Key<Sums>{"tags_silenced", &Sums::tags_silenced},
                                 Key<Sums>{"datagrams", &Sums::datagrams},
                                 Key<Sums>{"datagrams_sent", &Sums::datagrams_sent},
                                 Key<Sums>{"datagrams_lost", &Sums::datagrams_lost},
                                 Key<Sums>{"heartbeats", &Sums::heartbeats},
                                 Key<Sums>{"duplicated", &Sums::duplicated},
                                 Key<Sums>{"held_back", &Sums::held_back},
                                 Key<Sums>{"clock_jumped", &Sums::clock_jumped},
                                 Key<Sums>{"resets", &Sums::resets},
                                 Key<Sums>{"bytes_sent", &Sums::bytes_sent}};

void add(auto& to, const auto& from, const auto& keys) {
    for (const auto& key : keys)
        to.*key.member += from.*key.member;
}

void write(nlohmann::json& to, const auto& from, const auto& keys) {
    for (const auto& key : keys)
        to[key.name] = from.*key.member;
}

nlohmann::json to_json(const SourceStatistics& s, bool sequenced) {
    nlohmann::json j;
    write(j, s, source_keys);
    for (std::size_t i = 0; i < field_count; ++i)
        j["corrupted"][name_of(static_cast<Field>(i))] = s.corrupted[i];
    write(j["expected"], s.expected, expected_keys);
    if (sequenced) write(j["expected"], s.expected, sequence_keys);
    return j;
}

}  // namespace

SourceStatistics Statistics::total() const {
    SourceStatistics sum;
    for (const SourceStatistics& s : sources) {
        add(sum, s, source_keys);
        for (std::size_t i = 0; i < field_count; ++i)
            sum.corrupted[i] += s.corrupted[i];
        add(sum.expected, s.expected, expected_keys);
        add(sum.expected, s.expected, sequence_keys);
    }
    return sum;
}

nlohmann::json to_json(const Statistics& s, bool sequenced) {
    nlohmann::json sources = nlohmann::json::array();
    for (std::size_t i = 0; i < s.sources.size(); ++i) {
        sources.push_back(to_json(s.sources[i], sequenced));
        sources.back()["source"] = i;
    }
    nlohmann::json j{{"seconds", s.seconds},
                     {"decays", s.decays},
                     {"thinning", s.decays > 0 ? s.followed / s.decays : 0.0},
                     {"annihilations_followed", s.events.annihilations},
                     {"annihilations_scattered", s.events.scattered},
                     {"photons_detected", s.events.photons_detected},
                     {"pairs_detected", s.events.pairs_detected},
                     {"intrinsic", s.events.intrinsic},
                     {"darks", s.events.darks},
                     {"hits_unreadable", s.events.unreadable},
                     {"total", to_json(s.total(), sequenced)},
                     {"sources", sources}};
    if (s.events.gammas_detected > 0) j["gammas_detected"] = s.events.gammas_detected;
    return j;
}

std::string to_text(const Statistics& s, bool sequenced) {
    const SourceStatistics t = s.total();
    std::string out;
    out += fmt::format("detector time      {:.6g} s, {:.6g} positrons emitted\n", s.seconds, s.decays);
    out +=
        fmt::format("photons detected   {} ({} pairs)\n", s.events.photons_detected, s.events.pairs_detected);
    out += fmt::format("background         {} intrinsic, {} dark\n", s.events.intrinsic, s.events.darks);
    out += fmt::format("hits               {}, {} in dead time, {} piled up, {} silenced, {} unreadable\n",
                       t.hits, t.dead_time, t.piled_up, t.silenced, s.events.unreadable);
    out += fmt::format("frames             {} = {} sent + {} lost ({:.4g} per second)\n", t.frames,
                       t.frames_sent, t.frames_lost,
                       s.seconds > 0 ? static_cast<double>(t.frames) / s.seconds : 0.0);
    if (t.tags + t.tags_silenced > 0) {
        out += fmt::format("tags               {} = {} sent + {} lost, {} silenced\n", t.tags, t.tags_sent,
                           t.tags_lost, t.tags_silenced);
    }
    out += fmt::format("datagrams          {} = {} sent + {} lost ({} heartbeats)\n", t.datagrams,
                       t.datagrams_sent, t.datagrams_lost, t.heartbeats);
    out += fmt::format("faults             {} duplicated, {} held back, {} with a clock jump, {} resets\n",
                       t.duplicated, t.held_back, t.clock_jumped, t.resets);
    for (std::size_t i = 0; i < field_count; ++i) {
        if (t.corrupted[i] > 0) {
            out += fmt::format("corrupted          {} datagrams in {}\n", t.corrupted[i],
                               name_of(static_cast<Field>(i)));
        }
    }
    const Expected& e = t.expected;
    out += fmt::format("a receiver counts  {} datagrams, {} malformed", e.received, e.malformed);
    if (sequenced) {
        out += fmt::format(", {} lost, {} duplicate, {} reordered", e.lost, e.duplicate, e.reordered);
    }
    out +=
        fmt::format("\n                   {} frames, {} bad marker, {} bad address, {} outside any crystal\n",
                    e.frames, e.bad_marker, e.bad_address, e.outside_crystal);
    return out;
}

}  // namespace petacq::sim
