// The parts of the status document that are tables, for `status` and `watch`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "tools/petctl/text.hpp"

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
/// Headings, then the objects of the array in its order; not healthy ones stand out. `marked`: the column
/// whose heading stands out.
Table object_table(const nlohmann::json& array, std::span<const Column> columns,
                   std::size_t marked = static_cast<std::size_t>(-1));

/// One figure of `rates` and `average`.
struct Rate {
    const char* label;
    const char* field;
    std::string (*text)(const nlohmann::json& value);
    std::size_t rank;  ///< 1: the last one to be left out where there is no room
};
std::span<const Rate> rates();

/// Latency, disk, dead time, stages, queues: a line each, as far as they are known.
Lines fact_lines(const nlohmann::json& status);
/// The reasons why the daemon is not well, a line each.
Lines reason_lines(const nlohmann::json& health);
Style health_style(const nlohmann::json& state);

}  // namespace petacq::petctl
