#include "config/base/json_schema.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <vector>

#include "config/base/error.hpp"
#include "config/spelling/nearest_word.hpp"

namespace petacq::config {

namespace {

using nlohmann::json;

/// A type that holds every 64-bit integer, signed or not, and every double exactly.
long double number(const json& v) {
    if (v.is_number_unsigned()) return static_cast<long double>(v.get<std::uint64_t>());
    if (v.is_number_integer()) return static_cast<long double>(v.get<std::int64_t>());
    return static_cast<long double>(v.get<double>());
}

std::string text_of(const json& v) {
    return v.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// A value for a message: short, on one line.
std::string shown(const json& v) {
    if (v.is_object()) return "an object";
    if (v.is_array()) return "an array of " + std::to_string(v.size());
    std::string text = text_of(v);
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    if (v.is_string()) return "the string " + text;
    return text;
}

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
        out += words[i];
    }
    return out;
}

std::vector<std::string> types_of(const json& schema) {
    const auto type = schema.find("type");
    if (type == schema.end()) return {};
    if (type->is_array()) return type->get<std::vector<std::string>>();
    return {type->get<std::string>()};
}

bool has_type(const json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "null") return value.is_null();
    if (type == "integer") return value.is_number_integer();
    return type == "number" && value.is_number();
}

/// The number that text such as "0x1F" stands for.
std::optional<std::uint64_t> hexadecimal(const std::string& text) {
    if (text.size() < 3 || text[0] != '0' || (text[1] != 'x' && text[1] != 'X')) return std::nullopt;
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + 2, end, value, 16);
    if (error != std::errc() || rest != end) return std::nullopt;
    return value;
}

std::string range_text(const json& schema) {
    const auto bound = [&](const char* key) { return text_of(schema.at(key)); };
    if (schema.contains("minimum") && schema.contains("maximum"))
        return " from " + bound("minimum") + " to " + bound("maximum");
    std::string out;
    if (schema.contains("minimum")) out += " of at least " + bound("minimum");
    if (schema.contains("exclusiveMinimum")) out += " above " + bound("exclusiveMinimum");
    if (schema.contains("maximum"))
        out += (out.empty() ? " of at most " : " and at most ") + bound("maximum");
    return out;
}

/// "an integer from 0 to 15 or null".
std::string expectation(const json& schema) {
    if (schema.contains("const")) return text_of(schema.at("const"));
    std::vector<std::string> words;
    if (schema.contains("enum")) {
        for (const json& v : schema.at("enum"))
            words.push_back(text_of(v));
        return joined(words);
    }
    for (const std::string& type : types_of(schema)) {
        if (type == "integer") {
            std::string text = "an integer" + range_text(schema);
            if (schema.contains("multipleOf"))
                text += " that is a multiple of " + text_of(schema.at("multipleOf"));
            words.push_back(text);
        } else if (type == "number") {
            words.push_back("a number" + range_text(schema));
        } else if (type == "boolean") {
            words.emplace_back("true or false");
        } else if (type == "string") {
            if (schema.contains("pattern")) continue;  // another way to write the integer
            if (schema.contains("format")) {
                words.emplace_back("an IPv4 or IPv6 address in quotes");
            } else {
                words.emplace_back(schema.contains("minLength") ? "a string that is not empty" : "a string");
            }
        } else if (type == "array") {
            std::string text = "an array";
            if (schema.contains("minItems")) text += " of at least " + text_of(schema.at("minItems"));
            if (schema.contains("maxItems")) {
                text += (schema.contains("minItems") ? " and" : " of") + std::string(" at most ") +
                        text_of(schema.at("maxItems"));
            }
            words.push_back(text);
        } else if (type == "object") {
            words.emplace_back("an object");
        } else {
            words.push_back(type);
        }
    }
    return joined(words);
}

/// "; did you mean ...?", or the list of known keys if none is similar.
std::string suggestion(const std::string& key, const json& properties) {
    std::vector<std::string> known;
    std::string listed;
    for (const auto& [name, unused] : properties.items()) {
        known.push_back(name);
        if (name != "$schema") listed += (listed.empty() ? "" : ", ") + name;
    }
    if (const std::string nearest = nearest_word(key, known); !nearest.empty())
        return "; did you mean \"" + nearest + "\"?";
    return "; known here: " + listed;
}

/// A key as a step of a JSON pointer, on one line of a message.
std::string pointer_step(const std::string& key) {
    json::json_pointer pointer;
    pointer.push_back(key);
    const std::string quoted = text_of(json(pointer.to_string()));
    std::string out = quoted.substr(1, quoted.size() - 2);
    if (out.size() > 65) out = out.substr(0, 62) + "...";
    return out;
}

[[noreturn]] void fail(const std::string& path, const std::string& message) {
    throw Error((path.empty() ? "the document" : path) + ": " + message);
}

class Application {
  public:
    explicit Application(const json& root) : root_(root) {}

    void apply(const json& given, json& value, const std::string& path) const {
        const json& schema = resolved(given);
        check_type(schema, value, path);
        if (!constraints_hold(schema, value)) refuse(schema, value, path);
        if (value.is_object()) apply_object(schema, value, path);
        if (value.is_array()) apply_array(schema, value, path);
    }

  private:
    [[nodiscard]] const json& resolved(const json& schema) const {
        const auto ref = schema.find("$ref");
        if (ref == schema.end()) return schema;
        return root_.at(json::json_pointer(ref->get_ref<const std::string&>().substr(1)));
    }

    [[noreturn]] static void refuse(const json& schema, const json& value, const std::string& path) {
        fail(path, "expected " + expectation(schema) + ", found " + shown(value));
    }

    static void check_type(const json& schema, json& value, const std::string& path) {
        const auto types = types_of(schema);
        if (types.empty()) return;
        const bool whole = std::find(types.begin(), types.end(), "integer") != types.end();
        constexpr double exact = 9007199254740992.0;  // 2^53: above it, a double stands for several integers
        if (whole && value.is_number_float()) {
            const double d = value.get<double>();
            if (std::abs(d) <= exact && std::trunc(d) == d) value = static_cast<std::int64_t>(d);
        }
        if (whole && value.is_string() && schema.contains("pattern")) {
            const auto number = hexadecimal(value.get_ref<const std::string&>());
            if (!number) refuse(schema, value, path);
            value = *number;
        }
        if (std::none_of(types.begin(), types.end(),
                         [&](const std::string& t) { return has_type(value, t); }))
            refuse(schema, value, path);
        // A NUL would silently cut a path short.
        if (value.is_string() && value.get_ref<const std::string&>().find('\0') != std::string::npos)
            fail(path, "expected text without NUL characters, found " + shown(value));
    }

    static bool constraints_hold(const json& schema, const json& value) {
        const auto bound = [&](const char* key) { return number(schema.at(key)); };
        if (schema.contains("const") && value != schema.at("const")) return false;
        if (const auto words = schema.find("enum"); words != schema.end()) {
            if (std::find(words->begin(), words->end(), value) == words->end()) return false;
        }
        if (value.is_number()) {
            const long double v = number(value);
            if (schema.contains("minimum") && v < bound("minimum")) return false;
            if (schema.contains("maximum") && v > bound("maximum")) return false;
            if (schema.contains("exclusiveMinimum") && v <= bound("exclusiveMinimum")) return false;
            if (schema.contains("multipleOf") && std::fmod(v, bound("multipleOf")) != 0) return false;
        }
        if (value.is_string()) {
            const auto& text = value.get_ref<const std::string&>();
            if (schema.contains("minLength") && text.size() < schema.at("minLength").get<std::size_t>())
                return false;
            if (schema.contains("format") && !parse_ipv4(text) && !is_ipv6(text)) return false;
        }
        if (value.is_array()) {
            if (schema.contains("minItems") && value.size() < schema.at("minItems").get<std::size_t>())
                return false;
            if (schema.contains("maxItems") && value.size() > schema.at("maxItems").get<std::size_t>())
                return false;
        }
        return true;
    }

    void apply_object(const json& schema, json& value, const std::string& path) const {
        const json& properties = schema.at("properties");
        for (const auto& [key, unused] : value.items()) {
            if (!properties.contains(key))
                fail(path + pointer_step(key), "unknown key" + suggestion(key, properties));
        }
        if (const auto required = schema.find("required"); required != schema.end()) {
            for (const json& key : *required) {
                const auto& name = key.get_ref<const std::string&>();
                if (!value.contains(name))
                    fail(path + pointer_step(name),
                         "missing; expected " + expectation(resolved(properties.at(name))));
            }
        }
        for (const auto& [key, property] : properties.items()) {
            if (!value.contains(key)) {
                const json& holder = property.contains("default") ? property : resolved(property);
                if (!holder.contains("default")) continue;
                value[key] = holder.at("default");
            }
            apply(property, value[key], path + pointer_step(key));
        }
    }

    void apply_array(const json& schema, json& value, const std::string& path) const {
        if (const auto items = schema.find("items"); items != schema.end()) {
            for (std::size_t i = 0; i < value.size(); ++i)
                apply(*items, value[i], path + '/' + std::to_string(i));
        }
        if (schema.value("uniqueItems", false)) {
            std::set<json> seen;
            for (std::size_t i = 0; i < value.size(); ++i) {
                if (!seen.insert(value[i]).second) {
                    fail(path + '/' + std::to_string(i),
                         "expected each item once, found " + shown(value[i]) + " again");
                }
            }
        }
    }

    const json& root_;
};

}  // namespace

void apply_schema(const json& schema, json& document) {
    Application(schema).apply(schema, document, "");
}

std::optional<std::uint32_t> parse_ipv4(const std::string& text) {
    in_addr address{};
    if (inet_pton(AF_INET, text.c_str(), &address) != 1) return std::nullopt;
    return ntohl(address.s_addr);
}

bool is_ipv6(const std::string& text) {
    in6_addr address{};
    return inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

}  // namespace petacq::config
