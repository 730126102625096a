// The schema files: complete, and understood by our validator. tools/reference --check
// tests that the documentation agrees with them.
#include "config/base/schemas.hpp"

#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "config/configuration.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

namespace {

using nlohmann::json;

/// Calls f(name of the key, its schema, whether it is required) for every key.
void for_each_key(const json& root, const json& schema,
                  const std::function<void(const std::string&, const json&, bool)>& f) {
    if (schema.contains("$ref")) {
        return for_each_key(root, root.at(json::json_pointer(schema["$ref"].get<std::string>().substr(1))),
                            f);
    }
    std::set<std::string> required;
    const json keys = schema.value("required", json::array());
    for (const json& key : keys)
        required.insert(key.get<std::string>());
    const json properties = schema.value("properties", json::object());
    for (const auto& [key, property] : properties.items()) {
        f(key, property, required.count(key) != 0);
        for_each_key(root, property, f);
    }
    for (const std::string& key : required) {
        INFO(key);
        CHECK(properties.contains(key));
    }
    if (schema.contains("items")) for_each_key(root, schema["items"], f);
}

void check_words(const json& schema) {
    static const std::set<std::string> known = {"$schema",    "$ref",        "$defs",
                                                "title",      "description", "type",
                                                "properties", "required",    "default",
                                                "enum",       "const",       "additionalProperties",
                                                "minimum",    "maximum",     "exclusiveMinimum",
                                                "minLength",  "format",      "items",
                                                "minItems",   "maxItems",    "uniqueItems",
                                                "multipleOf", "pattern"};
    for (const auto& [word, value] : schema.items()) {
        INFO(word);
        CHECK(known.count(word) == 1);
        if (word == "properties" || word == "$defs") {
            for (const auto& [name, sub] : value.items())
                check_words(sub);
        } else if (word == "items") {
            check_words(value);
        } else if (word == "format") {
            CHECK(value == "ip");
        } else if (word == "pattern") {
            CHECK(value == "^0[xX][0-9A-Fa-f]{1,16}$");
        } else if (word == "additionalProperties") {
            CHECK(value == false);
        }
    }
    if (schema.value("type", json()) == "object") CHECK(schema.contains("additionalProperties"));
}

const json& schema_of(const std::string& name) {
    static const json petacqd = json::parse(config::petacqd_schema_text());
    static const json scanner = json::parse(config::scanner_schema_text());
    static const json layout = json::parse(config::layout_schema_text());
    return name == "petacqd" ? petacqd : name == "scanner" ? scanner : layout;
}

}  // namespace

TEST_CASE("the schemas in the program are the files") {
    CHECK(config::petacqd_schema_text() ==
          read_file(std::filesystem::path(PETACQ_SOURCE_DIR) / "config/petacqd.schema.json"));
    CHECK(config::scanner_schema_text() ==
          read_file(std::filesystem::path(PETACQ_SOURCE_DIR) / "config/scanner.schema.json"));
    CHECK(config::layout_schema_text() ==
          read_file(std::filesystem::path(PETACQ_SOURCE_DIR) / "config/layout/layout.schema.json"));
    CHECK(config::configuration_schema() == schema_of("petacqd"));
}

TEST_CASE("every key has a description, and a default unless it is required") {
    const auto name = GENERATE(as<std::string>{}, "petacqd", "scanner");
    int keys = 0;
    for_each_key(
        schema_of(name), schema_of(name), [&](const std::string& key, const json& schema, bool required) {
            INFO(key);
            ++keys;
            CHECK(schema.value("description", "").size() > 5);
            CHECK(schema.contains("type"));
            if (key == "$schema") return;
            CHECK(schema.contains("default") != required);
            const json types = schema["type"].is_array() ? schema["type"] : json::array({schema["type"]});
            for (const json& type : types) {
                if (type != "integer" && type != "number") continue;
                if (schema.contains("const") || schema.contains("enum")) continue;
                CHECK(schema.contains("maximum"));
                CHECK((schema.contains("minimum") || schema.contains("exclusiveMinimum")));
            }
        });
    CHECK(keys > 20);
}

TEST_CASE("the schemas use only words that the validator knows") {
    check_words(schema_of("petacqd"));
    check_words(schema_of("scanner"));
    check_words(schema_of("layout"));
}

}  // namespace petacq::test
