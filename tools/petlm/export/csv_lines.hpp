// Records as the lines of CSV that dump and export write.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "daemon/coverage/unknown.hpp"
#include "daemon/listmode/format.hpp"
#include "gpu/base/records.hpp"

namespace petacq::petlm {

/// No line is longer.
inline constexpr std::size_t longest_csv_line = 256;

/// Which fields the records have; a column that they do not tell is left out.
struct CsvTold {
    bool dt = true;
    bool energies = true;  ///< of singles and pairs; that of a gamma is always there

    static CsvTold of(const daemon::Coverage& coverage) {
        return {daemon::tells(coverage, daemon::unknown_dt),
                daemon::tells(coverage, daemon::unknown_energies)};
    }
};

/// The first line.
inline std::string csv_header(daemon::RecordKind kind, CsvTold told) {
    if (kind == daemon::RecordKind::tags) return "time,source,channel,kind,value\n";
    if (kind == daemon::RecordKind::singles)
        return told.energies ? "time,crystal,energy\n" : "time,crystal\n";
    std::string names = told.dt ? "kind,time,dt,crystal_a,crystal_b" : "kind,time,crystal_a,crystal_b";
    if (told.energies) names += ",energy_a,energy_b";
    if (kind == daemon::RecordKind::triples) names += ",gamma,gamma_dt,gamma_crystal,gamma_energy";
    return names + '\n';
}

// A float becomes the shortest text that reads back to the same value.
template <class Number>
char* csv_number(char* at, Number value, char separator) {
    at = std::to_chars(at, at + longest_csv_line, value).ptr;
    *at++ = separator;
    return at;
}

inline char* csv_text(char* at, std::string_view text) {
    std::memcpy(at, text.data(), text.size());
    return at + text.size();
}

/// The fields of a pair, and `separator`.
inline char* csv_pair(char* at, const gpu::Coincidence& c, CsvTold told, char separator) {
    if (c.kind == gpu::Kind::prompt) {
        at = csv_text(at, "prompt,");
    } else if (c.kind == gpu::Kind::delayed) {
        at = csv_text(at, "delayed,");
    } else {
        at = csv_number(at, static_cast<std::uint32_t>(c.kind), ',');
    }
    at = csv_number(at, c.time, ',');
    if (told.dt) at = csv_number(at, c.dt, ',');
    at = csv_number(at, c.crystal_a, ',');
    if (!told.energies) return csv_number(at, c.crystal_b, separator);
    at = csv_number(at, c.crystal_b, ',');
    at = csv_number(at, c.energy_a, ',');
    return csv_number(at, c.energy_b, separator);
}

/// Writes one line at `at`, where longest_csv_line bytes are free. Returns its end.
inline char* csv_line(char* at, const gpu::Coincidence& c, CsvTold told) {
    return csv_pair(at, c, told, '\n');
}

inline char* csv_line(char* at, const gpu::Triple& t, CsvTold told) {
    at = csv_pair(at, t.pair, told, ',');
    at = csv_text(at, t.third == gpu::ThirdPhoton::coincident ? "coincident," : "delayed,");
    at = csv_number(at, t.gamma_dt, ',');
    at = csv_number(at, t.gamma_crystal, ',');
    return csv_number(at, t.gamma_energy, '\n');
}

inline char* csv_line(char* at, const gpu::Single& s, CsvTold told) {
    at = csv_number(at, s.time, ',');
    if (!told.energies) return csv_number(at, s.crystal, '\n');
    at = csv_number(at, s.crystal, ',');
    return csv_number(at, s.energy, '\n');
}

/// The words of gpu::TagKind.
inline constexpr std::array<std::string_view, 5> csv_tag_kinds{"trigger", "gate", "position", "dead_time",
                                                               "clock"};

/// The kind as a word, where it has one; a position with its sign.
inline char* csv_line(char* at, const gpu::Tag& t, CsvTold /*told*/) {
    at = csv_number(at, t.time, ',');
    at = csv_number(at, t.source, ',');
    at = csv_number(at, static_cast<unsigned>(t.channel), ',');
    if (t.kind < csv_tag_kinds.size()) {
        at = csv_text(csv_text(at, csv_tag_kinds[t.kind]), ",");
    } else {
        at = csv_number(at, static_cast<unsigned>(t.kind), ',');
    }
    if (t.kind == static_cast<std::uint8_t>(gpu::TagKind::position))
        return csv_number(at, static_cast<std::int32_t>(t.value), '\n');
    return csv_number(at, t.value, '\n');
}

}  // namespace petacq::petlm
