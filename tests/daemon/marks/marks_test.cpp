// The marks of a run in its directory.
#include "daemon/marks/marks.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq::daemon;
using namespace petacq::test;

namespace {

Mark mark_at(std::int64_t seconds, const std::string& text, std::optional<std::uint64_t> ticks = {}) {
    return {std::chrono::system_clock::time_point(std::chrono::seconds(seconds)), ticks, text};
}

}  // namespace

TEST_CASE("marks: written and read again, in their order", "[marks]") {
    const TemporaryDirectory run;
    CHECK(read_marks(run.path()).empty());
    MarksFile file(run / marks_file);
    CHECK_FALSE(file.identity());
    CHECK_FALSE(std::filesystem::exists(run / marks_file));
    const std::string odd = R"("quoted" \ )" + std::string(200, '\xC3');  // not UTF-8
    file.append(mark_at(1'700'000'000, "FDG injected", ~std::uint64_t{0}));
    file.append(mark_at(1'700'000'001, odd));
    const auto marks = read_marks(run.path());
    REQUIRE(marks.size() == 2);
    CHECK(to_json(marks[0]) == nlohmann::json{{"utc", "2023-11-14T22:13:20.000Z"},
                                              {"ticks", ~std::uint64_t{0}},
                                              {"text", "FDG injected"}});
    CHECK_FALSE(marks[1].ticks);
    CHECK(marks[1].text.starts_with(R"("quoted" \ )"));
    REQUIRE(file.identity());
    CHECK_NOTHROW(file.identity()->check());
    std::filesystem::remove(run / marks_file);
    CHECK_THROWS_AS(file.identity()->check(), std::system_error);
}

TEST_CASE("marks: lines that are none are left out", "[marks]") {
    const TemporaryDirectory run;
    MarksFile(run / marks_file).append(mark_at(1'700'000'000, "whole", 7));
    const std::string whole = read_file(run / marks_file);
    for (std::size_t cut = 0; cut < whole.size() - 1; ++cut) {
        write_file(run / marks_file, whole + whole.substr(0, cut));
        CHECK(read_marks(run.path()).size() == 1);
    }
    write_file(run / marks_file, "[]\n{\"text\":1,\"utc\":2}\n{\"text\":\"x\",\"utc\":\"noon\"}\n\n" + whole);
    CHECK(read_marks(run.path()).size() == 1);
    // Whatever else lies there takes little memory.
    write_file(run / marks_file, std::string(5 << 20, '\n') + whole);
    CHECK(read_marks(run.path()).empty());
    std::string many;
    for (std::size_t i = 0; i <= max_marks; ++i)
        many += whole;
    write_file(run / marks_file, many);
    CHECK(read_marks(run.path()).size() == max_marks);
}

TEST_CASE("marks: a text is on one line and not too long", "[marks]") {
    CHECK_NOTHROW(check_mark_text("x"));
    CHECK_NOTHROW(check_mark_text(std::string(max_mark_bytes, 'x')));
    for (const std::string& text : {std::string(), std::string(max_mark_bytes + 1, 'x'), std::string("a\nb"),
                                    std::string("a\tb"), std::string("\x1b[31m"), std::string("\x7f")})
        CHECK_THROWS_AS(check_mark_text(text), std::invalid_argument);
}
