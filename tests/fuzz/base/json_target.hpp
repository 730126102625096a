// What targets that take a JSON document share: the document, or the document, a NUL, and bytes that are used
// with it. json_mutator.cpp changes the document as JSON.
#pragma once

#include "tests/fuzz/base/fuzz.hpp"

namespace petacq::fuzz {

/// The schema whose keys and words the mutator uses; empty: none. Each target defines it.
std::string_view schema_of_target();

}  // namespace petacq::fuzz
