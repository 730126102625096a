#include "tools/petsim/statistics.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace petacq::sim {

Expected& Expected::operator+=(const Expected& o) {
    received += o.received;
    malformed += o.malformed;
    duplicate += o.duplicate;
    reordered += o.reordered;
    lost += o.lost;
    frames += o.frames;
    bad_marker += o.bad_marker;
    bad_address += o.bad_address;
    outside_crystal += o.outside_crystal;
    bad_time += o.bad_time;
    return *this;
}

SourceStatistics& SourceStatistics::operator+=(const SourceStatistics& o) {
    hits += o.hits;
    dead_time += o.dead_time;
    silenced += o.silenced;
    frames += o.frames;
    frames_sent += o.frames_sent;
    frames_lost += o.frames_lost;
    datagrams += o.datagrams;
    datagrams_sent += o.datagrams_sent;
    datagrams_lost += o.datagrams_lost;
    heartbeats += o.heartbeats;
    duplicated += o.duplicated;
    held_back += o.held_back;
    for (std::size_t i = 0; i < field_count; ++i)
        corrupted[i] += o.corrupted[i];
    clock_jumped += o.clock_jumped;
    resets += o.resets;
    bytes_sent += o.bytes_sent;
    expected += o.expected;
    return *this;
}

SourceStatistics Statistics::total() const {
    SourceStatistics sum;
    for (const auto& s : sources)
        sum += s;
    return sum;
}

namespace {

nlohmann::json to_json(const SourceStatistics& s, bool sequenced) {
    nlohmann::json corrupted;
    for (std::size_t i = 0; i < field_count; ++i)
        corrupted[name_of(static_cast<Field>(i))] = s.corrupted[i];
    const Expected& e = s.expected;
    nlohmann::json expected{
        {"datagrams_received", e.received},    {"datagrams_malformed", e.malformed},
        {"frames_received", e.frames},         {"frames_bad_marker", e.bad_marker},
        {"frames_bad_address", e.bad_address}, {"frames_outside_crystal", e.outside_crystal},
        {"frames_bad_time", e.bad_time}};
    if (sequenced) {
        expected["datagrams_duplicate"] = e.duplicate;
        expected["datagrams_reordered"] = e.reordered;
        expected["datagrams_lost"] = e.lost;
    }
    return {{"hits", s.hits},
            {"hits_in_dead_time", s.dead_time},
            {"hits_silenced", s.silenced},
            {"frames", s.frames},
            {"frames_sent", s.frames_sent},
            {"frames_lost", s.frames_lost},
            {"datagrams", s.datagrams},
            {"datagrams_sent", s.datagrams_sent},
            {"datagrams_lost", s.datagrams_lost},
            {"heartbeats", s.heartbeats},
            {"duplicated", s.duplicated},
            {"held_back", s.held_back},
            {"corrupted", corrupted},
            {"clock_jumped", s.clock_jumped},
            {"resets", s.resets},
            {"bytes_sent", s.bytes_sent},
            {"expected", expected}};
}

void line(std::string& out, const char* format, auto... values) {
    char buffer[256];
    const int n = std::snprintf(buffer, sizeof buffer, format, values...);
    out.append(buffer, static_cast<std::size_t>(n > 0 ? n : 0));
}

}  // namespace

nlohmann::json to_json(const Statistics& s, bool sequenced) {
    nlohmann::json sources = nlohmann::json::array();
    for (std::size_t i = 0; i < s.sources.size(); ++i) {
        sources.push_back(to_json(s.sources[i], sequenced));
        sources.back()["source"] = i;
    }
    return {{"seconds", s.seconds},
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
}

std::string to_text(const Statistics& s, bool sequenced) {
    const SourceStatistics t = s.total();
    const auto n = [](std::uint64_t v) { return static_cast<unsigned long long>(v); };
    std::string out;
    line(out, "detector time      %.6g s, %.6g positrons emitted\n", s.seconds, s.decays);
    line(out, "photons detected   %llu (%llu pairs)\n", n(s.events.photons_detected),
         n(s.events.pairs_detected));
    line(out, "background         %llu intrinsic, %llu dark\n", n(s.events.intrinsic), n(s.events.darks));
    line(out, "hits               %llu, %llu in dead time, %llu silenced, %llu unreadable\n", n(t.hits),
         n(t.dead_time), n(t.silenced), n(s.events.unreadable));
    line(out, "frames             %llu = %llu sent + %llu lost (%.4g per second)\n", n(t.frames),
         n(t.frames_sent), n(t.frames_lost), s.seconds > 0 ? static_cast<double>(t.frames) / s.seconds : 0.0);
    line(out, "datagrams          %llu = %llu sent + %llu lost (%llu heartbeats)\n", n(t.datagrams),
         n(t.datagrams_sent), n(t.datagrams_lost), n(t.heartbeats));
    line(out, "faults             %llu duplicated, %llu held back, %llu with a clock jump, %llu resets\n",
         n(t.duplicated), n(t.held_back), n(t.clock_jumped), n(t.resets));
    for (std::size_t i = 0; i < field_count; ++i) {
        if (t.corrupted[i] > 0) {
            line(out, "corrupted          %llu datagrams in %s\n", n(t.corrupted[i]),
                 name_of(static_cast<Field>(i)));
        }
    }
    const Expected& e = t.expected;
    line(out, "a receiver counts  %llu datagrams, %llu malformed", n(e.received), n(e.malformed));
    if (sequenced) {
        line(out, ", %llu lost, %llu duplicate, %llu reordered", n(e.lost), n(e.duplicate), n(e.reordered));
    }
    line(out,
         "\n                   %llu frames, %llu bad marker, %llu bad address, %llu outside any crystal\n",
         n(e.frames), n(e.bad_marker), n(e.bad_address), n(e.outside_crystal));
    return out;
}

}  // namespace petacq::sim
