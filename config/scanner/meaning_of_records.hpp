// What the numbers in records mean: which crystal, how long a tick.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace petacq::config {

struct Scanner;

/// The part of the description of a scanner that gives the numbers of crystals and the ticks of records their
/// meaning: all but its name, its sources and the version of their frames.
nlohmann::json meaning_of_records(const Scanner& scanner);

}  // namespace petacq::config
