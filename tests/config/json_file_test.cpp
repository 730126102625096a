#include "config/base/json_file.hpp"

#include <sys/stat.h>

#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

namespace {

std::string complaint_about(const std::string& content) {
    const TemporaryDirectory dir;
    write_file(dir / "x.json", content);
    const std::string text = complaint([&] { config::read_json_file(dir / "x.json"); });
    CHECK(lacking(text, {(dir / "x.json").string() + ": "}) == "");
    return text;
}

}  // namespace

TEST_CASE("a JSON file is read") {
    const TemporaryDirectory dir;
    write_file(dir / "x.json",
               "\xEF\xBB\xBF{\"a\": [1, {\"a\": \"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\"}]}\n");
    const auto j = config::read_json_file(dir / "x.json");
    CHECK(j["a"][1]["a"] == "\u00e4\u20ac\U0001F600");
}

TEST_CASE("comments are as good as blanks") {
    const TemporaryDirectory dir;
    write_file(dir / "x.json",
               "// a \"scanner\" {[\n{ /* [ \" */ \"a\": \"// no /* comment */\", // the last\r\n\"b\": [1, "
               "/**/ 2]}\n//");
    const auto j = config::read_json_file(dir / "x.json");
    CHECK(j["a"] == "// no /* comment */");
    CHECK(j["b"][1] == 2);
    CHECK(lacking(complaint_about("{\n\"a\": 1 /* without end }"), {"not JSON", "line 2", "comment"}) == "");
    CHECK(lacking(complaint_about("{\"a\": /* 1 */ 1, \"a\": 2}"), {"duplicate key \"a\""}) == "");
    CHECK(lacking(complaint_about("{\"a\": 1 / 2}"), {"not JSON"}) == "");
}

TEST_CASE("comments hide no nesting") {
    const std::string deep(40, '[');
    for (const char* before : {"/* \" */", "// \"\n", "// \"\r", "/*/ \" */", "/***/ ", "\"/*\", "})
        CHECK(lacking(complaint_about("[" + std::string(before) + deep), {"nested deeper than 32"}) == "");
    CHECK_FALSE(config::json_nested_deeper("[ // " + deep));
    CHECK_FALSE(config::json_nested_deeper("[ /* " + deep));
}

TEST_CASE("files that cannot be read are IoError with the reason") {
    const TemporaryDirectory dir;
    CHECK_THROWS_AS(config::read_json_file(dir / "none.json"), config::IoError);
    CHECK(lacking(complaint([&] { config::read_json_file(dir / "none.json"); }),
                  {"none.json", "No such file"}) == "");
    CHECK_THROWS_AS(config::read_json_file(dir.path()), config::IoError);
    CHECK(lacking(complaint([&] { config::read_json_file(dir.path()); }),
                  {"is a directory; expected a file"}) == "");
    write_file(dir / "file", "{}");
    CHECK(lacking(complaint([&] { config::read_json_file(dir / "file" / "x"); }), {"Not a directory"}) == "");
}

TEST_CASE("content that is not JSON is refused with its place") {
    CHECK(lacking(complaint_about(""), {"is empty; expected a JSON document"}) == "");
    CHECK(lacking(complaint_about(" \n\n"), {"not JSON", "line 3", "unexpected end of input"}) == "");
    CHECK(lacking(complaint_about("{\n  \"a\": 1,\n  \"b\": [1, 2"),
                  {"not JSON", "line 3, column 13", "unexpected end of input"}) == "");
    CHECK(lacking(complaint_about("{\"a\": 1} x"), {"not JSON", "column 10"}) == "");
    CHECK(lacking(complaint_about("{'a': 1}"), {"not JSON", "column 2"}) == "");
    CHECK(lacking(complaint_about("{\"a\": 1e999}"), {"not JSON", "1e999"}) == "");
    CHECK(lacking(complaint_about("\x89HDF\r\n\x1a\n"), {"not JSON", "line 1, column 1"}) == "");
}

TEST_CASE("text that is not UTF-8 is refused with its place") {
    const auto bad = GENERATE(as<std::string>{}, "\xFF", "\xC0\xAF", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80",
                              "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\x80");
    CHECK(lacking(complaint_about("{\n\"a\": \"" + bad + "\"}"),
                  {"not JSON", "line 2", "ill-formed UTF-8"}) == "");
}

TEST_CASE("duplicate keys are refused with their object") {
    CHECK(lacking(complaint_about(R"({"a": 1, "b": {"a": 1}, "a": 2})"),
                  {"the document: duplicate key \"a\""}) == "");
    CHECK(lacking(complaint_about(R"({"a": {"b": [{"c": 1}, {"c": 1, "c": 1}]}})"),
                  {"/a/b: duplicate key \"c\""}) == "");
}

TEST_CASE("garbage costs bounded memory and gets a short message") {
    SECTION("deep nesting") {
        CHECK(lacking(complaint_about(std::string(3'000'000, '[')), {"nested deeper than 32"}) == "");
    }
    SECTION("a long token") {
        const std::string text = complaint_about(std::string(3'000'000, 'x'));
        CHECK(lacking(text, {"not JSON"}) == "");
        CHECK(text.size() < 1000);
    }
    SECTION("100 MB") {
        const TemporaryDirectory dir;
        write_file(dir / "big.json", "[");
        std::filesystem::resize_file(dir / "big.json", 100'000'000);
        CHECK(lacking(complaint([&] { config::read_json_file(dir / "big.json"); }), {"larger than"}) == "");
    }
    SECTION("a file without end") {
        CHECK(lacking(complaint([] { config::read_json_file("/dev/zero"); }),
                      {"/dev/zero: is not a regular file"}) == "");
    }
}

}  // namespace petacq::test
