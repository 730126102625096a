// Checks a JSON document against a JSON Schema and fills in the defaults.
//
// It knows a subset of JSON Schema: type (one or several), properties, required, additionalProperties false,
// enum, const, minimum, maximum, exclusiveMinimum, multipleOf, minLength, format ip, items, minItems,
// maxItems, uniqueItems, default, and $ref within the document, beside which a key may have a default of its
// own. A string with a pattern beside an integer is hexadecimal text, such as "0x1F". It ignores every other
// keyword.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace petacq::config {

/// Adds missing keys with their defaults, in missing sections, too. Where the schema expects an integer, 5.0
/// becomes 5, and hexadecimal text its number. Throws Error with the path of the key, what the schema expects
/// there, and what was found.
void apply_schema(const nlohmann::json& schema, nlohmann::json& document);

/// An IPv4 address in dotted form, in host byte order.
std::optional<std::uint32_t> parse_ipv4(const std::string& text);
bool is_ipv6(const std::string& text);

}  // namespace petacq::config
