// What the daemon hears: the sources of its status document as a table, and as the list that a scanner
// description has.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/petctl/text.hpp"

namespace petacq::petctl {

/// "0-5,7" as numbers up to 255; nothing after the first that is not one.
std::vector<unsigned> numbers_in(std::string_view ranges);
/// Known sources first, then unknown senders.
Lines sources_lines(const nlohmann::json& status);
/// Everybody from whom frames with a module were heard, as `sources` of a scanner description: with the id,
/// or with address and port if there is none. One line for each.
std::string sources_list(const nlohmann::json& status);

}  // namespace petacq::petctl
