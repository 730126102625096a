// Damaged calibration files: an error or the right tables, never a crash or wrong tables.
#include "config/calibration.hpp"
#include "config/make_calibration.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"

// libhdf5 leaks memory when it reads a damaged file.
extern "C" const char* __lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier): LSan's name
extern "C" const char* __lsan_default_suppressions() {
    return "leak:libhdf5";
}

namespace petacq::test {

namespace {

struct Fixture {
    TemporaryDirectory dir;
    config::Geometry geometry = tiny_scanner().geometry;
    config::Calibration tables;
    std::string bytes;

    Fixture() {
        config::CalibrationModel model;
        model.bins = 2;
        model.time_offset_ticks = 100;
        tables = config::make_calibration(tiny_scanner(), model);
        config::save_calibration(dir / "whole.h5", geometry, tables);
        bytes = read_file(dir / "whole.h5");
    }

    /// Whether the damaged file was refused; if not, checks the tables.
    bool refused(const std::string& damaged) {
        write_file(dir / "damaged.h5", damaged);
        try {
            const auto c = config::load_calibration(dir / "damaged.h5", geometry);
            // Only the table of offsets may be missing.
            REQUIRE(c.position_table == tables.position_table);
            REQUIRE(c.energy_factor == tables.energy_factor);
            REQUIRE((c.time_offset == tables.time_offset || c.time_offset.empty()));
            return false;
        } catch (const config::Error& e) {
            REQUIRE(lacking(e.what(), {"damaged.h5: "}) == "");
            return true;
        }
    }
};

}  // namespace

TEST_CASE("a calibration file cut short is refused at any length") {
    Fixture f;
    REQUIRE_FALSE(f.refused(f.bytes));
    const std::size_t step = std::max<std::size_t>(1, f.bytes.size() / 500);
    for (std::size_t size = 0; size < f.bytes.size(); size += step) {
        INFO("cut to " << size << " of " << f.bytes.size());
        REQUIRE(f.refused(f.bytes.substr(0, size)));
    }
    CHECK(f.refused(f.bytes.substr(0, f.bytes.size() - 1)));
}

TEST_CASE("a calibration file with a flipped byte is refused, or gives the right tables") {
    Fixture f;
    std::size_t refused = 0;
    std::size_t tried = 0;
    const std::size_t step = std::max<std::size_t>(1, f.bytes.size() / 3000);
    for (std::size_t i = 0; i < f.bytes.size(); i += step) {
        INFO("byte " << i << " of " << f.bytes.size());
        std::string damaged = f.bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ static_cast<char>(1 + i * 37 % 255));
        ++tried;
        refused += f.refused(damaged) ? 1 : 0;
    }
    CHECK(refused > tried / 2);
}

TEST_CASE("a calibration file with a stretch of garbage is refused, or gives the right tables") {
    Fixture f;
    for (std::size_t i = 0; i + 64 < f.bytes.size(); i += std::max<std::size_t>(64, f.bytes.size() / 200)) {
        INFO("bytes from " << i);
        std::string damaged = f.bytes;
        for (std::size_t k = 0; k < 64; ++k)
            damaged[i + k] = static_cast<char>((i + k) * 2654435761U >> 8);
        f.refused(damaged);
    }
}

}  // namespace petacq::test
