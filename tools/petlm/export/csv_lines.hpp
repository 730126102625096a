// Records as the lines of CSV that dump and export write.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "daemon/listmode/format.hpp"
#include "gpu/types.hpp"

namespace petacq::petlm {

/// No line is longer.
inline constexpr std::size_t longest_csv_line = 256;

/// The first line.
inline std::string_view csv_header(daemon::RecordKind kind) {
    return kind == daemon::RecordKind::coincidences ? "kind,time,dt,crystal_a,crystal_b,energy_a,energy_b\n"
                                                    : "time,crystal,energy\n";
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

/// Writes one line at `at`, where longest_csv_line bytes are free. Returns its end.
inline char* csv_line(char* at, const gpu::Coincidence& c) {
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
    return csv_number(at, c.energy_b, '\n');
}

inline char* csv_line(char* at, const gpu::Single& s) {
    at = csv_number(at, s.time, ',');
    at = csv_number(at, s.crystal, ',');
    return csv_number(at, s.energy, '\n');
}

}  // namespace petacq::petlm
