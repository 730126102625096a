// The page that describes scanners of any arrangement: its commands, as they stand there, and what they find.
#include <array>
#include <filesystem>
#include <regex>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/image_file.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/tutorial.hpp"

using namespace petacq::test;

namespace {

/// Runs the commands of the page from the heading "Run one" up to the text `end`. The simulated scan lasts
/// `scan_s` seconds.
void check_commands(const std::string& end, const char* scan_s, const std::filesystem::path& directory) {
    const std::string page =
        read_file(std::filesystem::path(PETACQ_SOURCE_DIR) / "docs" / "how-to" / "describe-scanner.md");
    const std::size_t from = page.find("## Run one");
    const std::size_t to = page.find(end, from);
    REQUIRE(to != std::string::npos);
    std::string commands = page.substr(from, to - from);
    REQUIRE(contains(commands, "mkdir data\n"));
    REQUIRE(contains(commands, "--duration-s 5 "));
    // The ports of the example may be in use.
    commands = std::regex_replace(commands, std::regex("mkdir data\n"),
                                  R"(mkdir data
sed -i 's/"port": [0-9]*/"port": 0/; s/"control": {/"http": {"listen": "127.0.0.1:0"}, &/' phoswich.json
)");
    commands = std::regex_replace(commands, std::regex("--duration-s 5 "),
                                  std::string("--duration-s ") + scan_s + " ");
    const Outcome followed = follow_tutorial(commands, directory);
    INFO(followed.out);
    REQUIRE(followed.status == 0);
    CHECK_THAT(followed.out,
               contains("phoswich.json: configuration, scanner phoswich (3164 crystals) and calibration"));
    CHECK_THAT(followed.out, contains("list-mode and truth agree"));
}

}  // namespace

TEST_CASE("describe any scanner: the commands of the page", "[e2e][arrangements]") {
    const TemporaryDirectory directory;
    check_commands("petlm image", "1", directory.path());
}

TEST_CASE("describe any scanner: the image of the page", "[.long][arrangements]") {
    const TemporaryDirectory directory;
    check_commands("A live run", "5", directory.path());
    std::array<double, 3> at{};
    float most = 0;
    ImageFile(directory / "point" / "image.nii").each([&](float value, double x, double y, double z) {
        if (value > most) {
            most = value;
            at = {x, y, z};
        }
    });
    CHECK(at[0] == Approx(5).margin(1.6));  // a voxel
    CHECK(at[1] == Approx(3).margin(1.6));
    CHECK(at[2] == Approx(0).margin(1.6));
}
