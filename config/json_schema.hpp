// Checks a JSON document against a JSON Schema and fills in the defaults.
//
// The subset: type (one or several), properties, required, additionalProperties false, enum, const, minimum,
// maximum, exclusiveMinimum, minLength, format ipv4, items, minItems, maxItems, uniqueItems, default, and
// $ref to the same document. Everything else in a schema is taken for annotation.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace petacq::config {

/// Missing keys with a default are added, also inside sections that are missing as a whole; whole numbers
/// written as 5.0 become integers where an integer is expected. Throws Error with the path of the key, what
/// was expected and what was found.
void apply_schema(const nlohmann::json& schema, nlohmann::json& document);

/// An IPv4 address in dotted form, in host byte order.
std::optional<std::uint32_t> parse_ipv4(const std::string& text);

}  // namespace petacq::config
