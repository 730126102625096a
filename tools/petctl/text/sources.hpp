// What the daemon hears: the sources of its status document as a table, and as the list that a scanner
// description has.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/scanner/frame_version.hpp"
#include "tools/petctl/text/text.hpp"

namespace petacq::petctl {

/// The version of the frames that the daemon expects; version 1 if its status does not tell, which is that of
/// an earlier daemon.
config::FrameVersion frame_version_of(const nlohmann::json& status);
/// "0-5,7" as numbers up to 65535; nothing after the first that is not one.
std::vector<unsigned> numbers_in(std::string_view ranges);
/// `bdms` of a source in the status.
std::set<unsigned> bdms_of(const nlohmann::json& source);
/// Known sources first, then unknown senders.
Lines sources_lines(const nlohmann::json& status);
/// Everybody from whom frames with a module were heard, as `sources` of a scanner description: with the id,
/// or with address and port if there is none.
nlohmann::json sources_heard(const nlohmann::json& status);
/// What the scanner description of the daemon lists and `heard`, a list as above, lacks:
/// "source 3 (BDM 18-23)", "BDM 5 of source 0".
std::vector<std::string> not_heard(const nlohmann::json& status, const nlohmann::json& heard);
/// The list with one line for each.
std::string list_text(const nlohmann::json& sources);

}  // namespace petacq::petctl
