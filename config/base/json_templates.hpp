// The templates of nlohmann/json that most sources use, compiled once, in json_templates.cpp. Only the
// precompiled headers include this file.
#pragma once

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace petacq::config {
using JsonStringInput = decltype(nlohmann::detail::input_adapter(std::declval<std::string&>()));
}  // namespace petacq::config

// NOLINTBEGIN(bugprone-macro-parentheses): keywords
/// KEYWORDS: `extern template` declares them, `template` defines them.
#define PETACQ_JSON_TEMPLATES(KEYWORDS)                                                        \
    KEYWORDS class nlohmann::basic_json<>;                                                     \
    KEYWORDS class std::vector<nlohmann::json>;                                                \
    KEYWORDS class std::map<std::string, nlohmann::json, nlohmann::json::object_comparator_t>; \
    KEYWORDS class nlohmann::detail::serializer<nlohmann::json>;                               \
    KEYWORDS class nlohmann::detail::iter_impl<const nlohmann::json>;                          \
    KEYWORDS class nlohmann::detail::json_sax_dom_parser<nlohmann::json>;                      \
    KEYWORDS class nlohmann::detail::json_sax_dom_callback_parser<nlohmann::json>;             \
    KEYWORDS class nlohmann::detail::lexer<nlohmann::json, petacq::config::JsonStringInput>;   \
    KEYWORDS class nlohmann::detail::parser<nlohmann::json, petacq::config::JsonStringInput>
// NOLINTEND(bugprone-macro-parentheses)

PETACQ_JSON_TEMPLATES(extern template);
