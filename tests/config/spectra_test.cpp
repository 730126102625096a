#include "config/spectra.hpp"

#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

TEST_CASE("a spectra file gives back what was written") {
    const TemporaryDirectory dir;
    const auto g = tiny_scanner().geometry;
    auto written = config::Spectra::none(g);
    written.floods.front() = 4294967295U;
    written.energies.back() = 7;
    for (const char* calibration : {"", "0123abcd"}) {
        written.calibration_sha256 = calibration;
        config::save_spectra(dir / "s.h5", g, written);
        CHECK(config::load_spectra(dir / "s.h5", g) == written);
    }
}

TEST_CASE("the spectra of another scanner are refused with both shapes") {
    const TemporaryDirectory dir;
    const auto g = tiny_scanner().geometry;
    config::save_spectra(dir / "s.h5", g, config::Spectra::none(g));
    auto other = g;
    other.position_size = 17;
    CHECK(lacking(complaint([&] { config::load_spectra(dir / "s.h5", other); }),
                  {"s.h5", "floods", "289", "256"}) == "");
    CHECK(lacking(complaint([&] { config::save_spectra(dir / "t.h5", other, config::Spectra::none(g)); }),
                  {"floods", "3468", "3072"}) == "");
}

TEST_CASE(
    "bins of the spectra of singles are as narrow as the gammas allow, but not wider than any nuclide "
    "needs") {
    for (const auto& [highest, width] : std::vector<std::pair<double, float>>{
             {0, 4}, {700, 4}, {1020, 4}, {1020.5, 8}, {2040, 8}, {2040.5, 16}, {4080, 16}, {1e6, 16}}) {
        INFO(highest);
        CHECK(config::singles_bin_keV(highest) == width);
    }
}

TEST_CASE("spectra add up") {
    const auto g = tiny_scanner().geometry;
    auto sum = config::Spectra::none(g);
    auto more = sum;
    more.floods[3] = 2;
    more.energies[5] = 3;
    sum += more;
    sum += more;
    CHECK(sum.floods[3] == 4);
    CHECK(sum.energies[5] == 6);
    sum.calibration_sha256 = more.calibration_sha256 = "one";
    sum += more;
    CHECK(sum.calibration_sha256 == "one");
    more.calibration_sha256 = "another";
    sum += more;
    CHECK(sum.calibration_sha256.empty());
}

}  // namespace petacq::test
