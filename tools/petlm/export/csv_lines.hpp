// Records as the lines of CSV that dump and export write.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "daemon/listmode/format.hpp"
#include "gpu/base/records.hpp"

namespace petacq::petlm {

/// No line is longer.
inline constexpr std::size_t longest_csv_line = 256;

/// The first line.
inline std::string_view csv_header(daemon::RecordKind kind) {
    switch (kind) {
        case daemon::RecordKind::singles:
            return "time,crystal,energy\n";
        case daemon::RecordKind::tags:
            return "time,source,channel,kind,value\n";
        case daemon::RecordKind::triples:
            return "kind,time,dt,crystal_a,crystal_b,energy_a,energy_b,gamma,gamma_dt,gamma_crystal,gamma_"
                   "energy\n";
        default:
            return "kind,time,dt,crystal_a,crystal_b,energy_a,energy_b\n";
    }
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
inline char* csv_pair(char* at, const gpu::Coincidence& c, char separator) {
    if (c.kind == gpu::Kind::prompt) {
        at = csv_text(at, "prompt,");
    } else if (c.kind == gpu::Kind::delayed) {
        at = csv_text(at, "delayed,");
    } else {
        at = csv_number(at, static_cast<std::uint32_t>(c.kind), ',');
    }
    at = csv_number(at, c.time, ',');
    at = csv_number(at, c.dt, ',');
    at = csv_number(at, c.crystal_a, ',');
    at = csv_number(at, c.crystal_b, ',');
    at = csv_number(at, c.energy_a, ',');
    return csv_number(at, c.energy_b, separator);
}

/// Writes one line at `at`, where longest_csv_line bytes are free. Returns its end.
inline char* csv_line(char* at, const gpu::Coincidence& c) {
    return csv_pair(at, c, '\n');
}

inline char* csv_line(char* at, const gpu::Triple& t) {
    at = csv_pair(at, t.pair, ',');
    at = csv_text(at, t.third == gpu::ThirdPhoton::coincident ? "coincident," : "delayed,");
    at = csv_number(at, t.gamma_dt, ',');
    at = csv_number(at, t.gamma_crystal, ',');
    return csv_number(at, t.gamma_energy, '\n');
}

inline char* csv_line(char* at, const gpu::Single& s) {
    at = csv_number(at, s.time, ',');
    at = csv_number(at, s.crystal, ',');
    return csv_number(at, s.energy, '\n');
}

/// The words of gpu::TagKind.
inline constexpr std::array<std::string_view, 5> csv_tag_kinds{"trigger", "gate", "position", "dead_time",
                                                               "clock"};

/// The kind as a word, where it has one; a position with its sign.
inline char* csv_line(char* at, const gpu::Tag& t) {
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
