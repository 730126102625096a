// The parts of the status document that are tables, for `status` and `watch`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "tools/petctl/text/text.hpp"

namespace petacq::petctl {

/// A column over an array of objects.
struct Column {
    const char* heading;
    const char* field;
    std::string (*text)(const nlohmann::json& value);
    bool left = false;
};

std::span<const Column> source_columns();
std::span<const Column> module_columns();
/// Headings, then a row for each object of the array in its order; unhealthy ones are highlighted. `marked`:
/// the column whose heading is highlighted.
Table object_table(const nlohmann::json& array, std::span<const Column> columns,
                   std::size_t marked = static_cast<std::size_t>(-1));

/// "12.3 ms", "1.04 s"
std::string milliseconds(const nlohmann::json& value);

/// One figure of `rates` and `average`.
struct Rate {
    const char* label;
    const char* field;
    std::string (*text)(const nlohmann::json& value);
    std::size_t rank;  ///< order of importance; 1 is left out last if there is not enough room
};
std::span<const Rate> rates();

/// A line about the other host of a pair; none without one.
void add_peer(Lines& lines, const nlohmann::json& peer);
/// Latency, disk, dead time, stages, queues: a line for each that the status contains.
Lines fact_lines(const nlohmann::json& status);
/// The reasons why the daemon is degraded or failed, one per line.
Lines reason_lines(const nlohmann::json& health);
Style health_style(const nlohmann::json& state);

}  // namespace petacq::petctl
