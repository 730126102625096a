// The part of a description on which records depend: it tells which crystal a number is, and how long a tick
// is.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace petacq::config {

struct Scanner;

/// The part of the description of a scanner that gives the numbers of crystals and the ticks of records their
/// meaning: all but its name, its sources and the version of their frames.
nlohmann::json meaning_of_records(const Scanner& scanner);

}  // namespace petacq::config
