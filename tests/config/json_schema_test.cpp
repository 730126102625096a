#include "config/base/json_schema.hpp"

#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

namespace {

using nlohmann::json;

/// A schema with one key "v" of the given kind, and its verdict on a value.
std::string verdict(const char* kind, const char* value) {
    json schema = json::parse(R"({"type": "object", "additionalProperties": false})");
    schema["properties"]["v"] = json::parse(kind);
    json document;
    document["v"] = json::parse(value);
    return complaint([&] { config::apply_schema(schema, document); });
}

constexpr const char* marker = R"({"type": "integer", "minimum": 0, "maximum": 15})";

}  // namespace

TEST_CASE("values in range pass") {
    CHECK(verdict(marker, "0").empty());
    CHECK(verdict(marker, "15").empty());
    CHECK(verdict(R"({"type": "number", "exclusiveMinimum": 0})", "1e-300").empty());
    CHECK(verdict(R"({"type": ["integer", "null"], "minimum": 1})", "null").empty());
    CHECK(verdict(R"({"type": "integer", "multipleOf": 64})", "-128").empty());
    CHECK(verdict(R"({"type": "integer", "multipleOf": 64})", "18446744073709551552").empty());
    CHECK(verdict(R"({"enum": ["a", 3, null]})", "3").empty());
    CHECK(verdict(R"({"type": "array", "uniqueItems": true})", "[1, 2, \"1\"]").empty());
    CHECK(verdict(R"({"type": "string", "format": "ip"})", "\"10.0.0.255\"").empty());
    CHECK(verdict(R"({"type": "integer", "maximum": 18446744073709551615})", "18446744073709551615").empty());
}

TEST_CASE("values out of range say what was expected and what was found") {
    CHECK(verdict(marker, "16") == "/v: expected an integer from 0 to 15, found 16");
    CHECK(verdict(marker, "-1") == "/v: expected an integer from 0 to 15, found -1");
    CHECK(verdict(marker, "\"3\"") == "/v: expected an integer from 0 to 15, found the string \"3\"");
    CHECK(verdict(marker, "1.5") == "/v: expected an integer from 0 to 15, found 1.5");
    CHECK(verdict(marker, "true") == "/v: expected an integer from 0 to 15, found true");
    CHECK(verdict(marker, "18446744073709551615") ==
          "/v: expected an integer from 0 to 15, found 18446744073709551615");
    CHECK(verdict(R"({"type": ["integer", "null"], "minimum": 1})", "0") ==
          "/v: expected an integer of at least 1 or null, found 0");
    CHECK(verdict(R"({"type": "number", "exclusiveMinimum": 0, "maximum": 9})", "0") ==
          "/v: expected a number above 0 and at most 9, found 0");
    CHECK(verdict(R"({"type": "integer", "minimum": 64, "maximum": 256, "multipleOf": 64})", "129") ==
          "/v: expected an integer from 64 to 256 that is a multiple of 64, found 129");
    CHECK(verdict(R"({"type": "integer", "multipleOf": 64})", "18446744073709551615") ==
          "/v: expected an integer that is a multiple of 64, found 18446744073709551615");
    CHECK(verdict(R"({"type": "boolean"})", "1") == "/v: expected true or false, found 1");
    CHECK(verdict(R"({"type": "string", "enum": ["a", "b", "c"]})", "\"d\"") ==
          R"(/v: expected "a", "b" or "c", found the string "d")");
    CHECK(verdict(R"({"type": "integer", "const": 1})", "2") == "/v: expected 1, found 2");
    CHECK(verdict(R"({"type": "string", "minLength": 1})", "\"\"") ==
          "/v: expected a string that is not empty, found the string \"\"");
    CHECK(verdict(R"({"type": "array", "minItems": 1, "maxItems": 2})", "[]") ==
          "/v: expected an array of at least 1 and at most 2, found an array of 0");
    CHECK(verdict(R"({"type": "array", "maxItems": 2})", "[1, 2, 3]") ==
          "/v: expected an array of at most 2, found an array of 3");
    CHECK(verdict(R"({"type": "array", "uniqueItems": true})", "[7, 8, 7]") ==
          "/v/2: expected each item once, found 7 again");
    CHECK(verdict(R"({"type": "array", "items": {"type": "string"}})", "[\"a\", {}]") ==
          "/v/1: expected a string, found an object");
    CHECK(lacking(verdict(R"({"type": "string"})", "\"a\\u0000b\""), {"/v: expected text without NUL"}) ==
          "");
}

TEST_CASE("addresses are numeric") {
    const auto bad = GENERATE(as<std::string>{}, "", "localhost", "1.2.3", "1.2.3.256", "1.2.3.4 ", ":::1",
                              "1.2.3.4.5", "0x7f.0.0.1");
    CHECK(lacking(verdict(R"({"type": "string", "format": "ip"})", json(bad).dump().c_str()),
                  {"/v: expected an IPv4 or IPv6 address"}) == "");
    CHECK(config::parse_ipv4("127.0.0.1") == 0x7F000001U);
    CHECK_FALSE(config::parse_ipv4(bad));
}

TEST_CASE("whole numbers with a point are integers") {
    json schema = json::parse(R"({"type": "array", "items": {"type": "integer"}})");
    json document = json::parse("[5.0, 3e2]");
    config::apply_schema(schema, document);
    CHECK(document.dump() == "[5,300]");
    document = json::parse("[1e300]");
    CHECK(lacking(complaint([&] { config::apply_schema(schema, document); }), {"/0: expected an integer"}) ==
          "");
}

TEST_CASE("defaults are filled in, sections and array items included") {
    const json schema = json::parse(R"({
        "type": "object", "additionalProperties": false,
        "properties": {
            "section": {"type": "object", "default": {}, "additionalProperties": false,
                        "properties": {"n": {"type": "integer", "default": 7}}},
            "items": {"type": "array", "default": [], "items": {"$ref": "#/$defs/item"}},
            "nothing": {"type": "string"}
        },
        "$defs": {"item": {"type": "object", "additionalProperties": false,
                           "properties": {"on": {"type": "boolean", "default": true}}}}
    })");
    json document = json::object();
    config::apply_schema(schema, document);
    CHECK(document == json::parse(R"({"section": {"n": 7}, "items": []})"));
    document = json::parse(R"({"items": [{}, {"on": false}], "section": {"n": 8}})");
    config::apply_schema(schema, document);
    CHECK(document == json::parse(R"({"section": {"n": 8}, "items": [{"on": true}, {"on": false}]})"));
}

TEST_CASE("a key may have a default beside its reference") {
    const json schema = json::parse(R"({
        "type": "object", "additionalProperties": false,
        "properties": {"own": {"$ref": "#/$defs/count", "default": 3}, "shared": {"$ref": "#/$defs/count"},
                       "none": {"$ref": "#/$defs/text"}},
        "$defs": {"count": {"type": "integer", "maximum": 9, "default": 5}, "text": {"type": "string"}}
    })");
    json document = json::object();
    config::apply_schema(schema, document);
    CHECK(document == json::parse(R"({"own": 3, "shared": 5})"));
    document = json::parse(R"({"own": 10})");
    CHECK(complaint([&] { config::apply_schema(schema, document); }) ==
          "/own: expected an integer of at most 9, found 10");
}

TEST_CASE("unknown and missing keys") {
    const json schema = json::parse(R"({
        "type": "object", "additionalProperties": false, "required": ["lower_keV"],
        "properties": {"lower_keV": {"type": "number", "minimum": 0}, "filter": {"type": "boolean"}}
    })");
    const auto say = [&](const char* text) {
        json document = json::parse(text);
        return complaint([&] { config::apply_schema(schema, document); });
    };
    CHECK(say("{}") == "/lower_keV: missing; expected a number of at least 0");
    CHECK(say(R"({"lower_kev": 1})") == "/lower_kev: unknown key; did you mean \"lower_keV\"?");
    CHECK(say(R"({"fliter": 1})") == "/fliter: unknown key; did you mean \"filter\"?");
    CHECK(say(R"({"zzzzzz": 1})") == "/zzzzzz: unknown key; known here: filter, lower_keV");
    CHECK(lacking(say(R"({"a/b~\n": 1})"), {R"(/a~1b~0\n: unknown key)"}) == "");
    CHECK(say("[1]") == "the document: expected an object, found an array of 1");
    CHECK(say(("{\"" + std::string(1'000'000, 'k') + "\": 1}").c_str()).size() < 200);
}

}  // namespace petacq::test
