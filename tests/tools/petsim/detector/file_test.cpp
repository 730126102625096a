// Detector files: round trip, and damaged or wrong ones refused.
#include <hdf5.h>

#include <cmath>

#include "config/hdf5/table.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tools/petsim/detector/make_detector.hpp"

// libhdf5 leaks memory when it reads a damaged file.
extern "C" const char* __lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier): LSan's name
extern "C" const char* __lsan_default_suppressions() {
    return "leak:libhdf5";
}

namespace petacq::test {

namespace {

bool same(const sim::Detector& a, const sim::Detector& b) {
    const auto all = [](const sim::TrueCrystal& c) {
        return std::tuple(c.spot_x, c.spot_y, c.spot_sigma_x, c.spot_sigma_y, c.gain, c.nonlinearity,
                          c.energy_resolution, c.efficiency, c.time_offset_ps, c.state);
    };
    return a.crosstalk == b.crosstalk && a.noise_hz == b.noise_hz &&
           std::equal(a.crystals.begin(), a.crystals.end(), b.crystals.begin(), b.crystals.end(),
                      [&](const auto& x, const auto& y) { return all(x) == all(y); });
}

struct Fixture {
    TemporaryDirectory dir;
    config::Geometry geometry = tiny_scanner().geometry;
    sim::Detector detector;
    std::string bytes;

    Fixture() {
        sim::DetectorModel model;
        model.crosstalk = 0.1;
        model.noisy = 0.1;
        model.dead = 0.1;
        model.efficiency_spread = 0.1;
        model.nonlinearity = 0.1;
        detector = sim::make_detector(tiny_scanner(), model);
        sim::save_detector(dir / "whole.h5", geometry, detector);
        bytes = read_file(dir / "whole.h5");
    }
    [[nodiscard]] std::string refusal(const std::string& name) const {
        return complaint([&] { sim::load_detector(dir / name, geometry); });
    }
    /// A copy of the file, changed by `change`.
    template <class F>
    [[nodiscard]] std::string changed(const F& change) const {
        write_file(dir / "changed.h5", bytes);
        {
            const config::Hdf5File h5(H5Fopen((dir / "changed.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
            REQUIRE(h5);
            change(h5.id());
        }
        return refusal("changed.h5");
    }
    /// Whether damage was refused; if not, the content must be right.
    [[nodiscard]] bool refused(const std::string& damaged) const {
        write_file(dir / "damaged.h5", damaged);
        sim::Detector found;
        try {
            found = sim::load_detector(dir / "damaged.h5", geometry);
        } catch (const config::Error& e) {
            REQUIRE(lacking(e.what(), {"damaged.h5: "}) == "");
            return true;
        }
        REQUIRE(same(found, detector));
        return false;
    }
};

}  // namespace

TEST_CASE("a detector file has what was saved", "[petsim][detector]") {
    const Fixture f;
    const auto found = sim::load_detector(f.dir / "whole.h5", f.geometry);
    CHECK(same(found, f.detector));
    CHECK(found.sha256 == config::sha256_of_file(f.dir / "whole.h5"));
    sim::Detector wrong = f.detector;
    wrong.crystals[3].gain = -1;
    CHECK(lacking(complaint([&] { sim::save_detector(f.dir / "whole.h5", f.geometry, wrong); }),
                  {"whole.h5: ", "gain", "[3]"}) == "");
    CHECK(read_file(f.dir / "whole.h5") == f.bytes);
}

TEST_CASE("a detector file that does not fit is refused, with what was expected", "[petsim][detector]") {
    const Fixture f;
    CHECK(lacking(f.refusal("none.h5"), {"none.h5"}) == "");
    write_file(f.dir / "text.h5", "no HDF5");
    CHECK(lacking(f.refusal("text.h5"), {"text.h5: not an HDF5 file"}) == "");
    config::Geometry other = f.geometry;
    other.channels = 4;
    other.bdm_count = 8;
    CHECK(lacking(complaint([&] { sim::load_detector(f.dir / "whole.h5", other); }),
                  {"spot_x", "expected f32[96]", "found f32[72]"}) == "");

    CHECK(lacking(f.changed([](hid_t h5) { H5Ldelete(h5, "efficiency", H5P_DEFAULT); }),
                  {"changed.h5: ", "\"efficiency\"", "no such data set"}) == "");
    CHECK(lacking(f.changed([](hid_t h5) { H5Adelete(h5, "crosstalk"); }),
                  {"\"crosstalk\"", "no such attribute"}) == "");
    CHECK(lacking(f.changed([](hid_t h5) {
              H5Adelete(h5, "noise_hz");
              config::write_text(h5, "noise_hz", "many");
          }),
                  {"\"noise_hz\"", "expected a number", "string"}) == "");
    CHECK(lacking(f.changed([&](hid_t h5) {
              H5Ldelete(h5, "gain", H5P_DEFAULT);
              const std::vector<double> values(72, 4.0);
              config::write_table(h5, {"gain", "f64", H5T_NATIVE_DOUBLE, {72}}, H5T_IEEE_F64LE, values.data(),
                                  "wrong");
          }),
                  {"\"gain\"", "expected f32[72]", "found f64"}) == "");
    CHECK(lacking(f.changed([](hid_t h5) {
              H5Ldelete(h5, "gain", H5P_DEFAULT);
              H5Lcreate_external("elsewhere.h5", "gain", h5, "gain", H5P_DEFAULT, H5P_DEFAULT);
          }),
                  {"\"gain\"", "a link to something else"}) == "");
}

TEST_CASE("values of a detector file that cannot be are refused, with their place", "[petsim][detector]") {
    const Fixture f;
    const auto with = [&](const char* name, float value) {
        return f.changed([&](hid_t h5) {
            const config::Hdf5DataSet data(H5Dopen2(h5, name, H5P_DEFAULT));
            std::vector<float> values(72);
            REQUIRE(H5Dread(data.id(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
            values[5] = value;
            REQUIRE(H5Dwrite(data.id(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
        });
    };
    CHECK(lacking(with("gain", NAN), {"gain: expected", "nan at [5]"}) == "");
    CHECK(lacking(with("gain", 0), {"gain: expected", "at [5]"}) == "");
    CHECK(lacking(with("spot_x", 15.5F), {"spot_x: expected 0.000000 to 15.000000", "at [5]"}) == "");
    CHECK(lacking(with("spot_sigma_y", -1), {"spot_sigma_y: expected"}) == "");
    CHECK(lacking(with("efficiency", INFINITY), {"efficiency: expected"}) == "");
    CHECK(lacking(with("time_offset_ps", 2e9F), {"time_offset_ps: expected"}) == "");
    CHECK(lacking(with("state", 3), {"state: expected 0 (good), 1 (dead) or 2 (noisy)", "at [5]"}) == "");
    CHECK(with("state", 2).empty());
}

TEST_CASE("a damaged detector file is refused, or gives the right values", "[petsim][detector]") {
    const Fixture f;
    REQUIRE_FALSE(f.refused(f.bytes));
    const std::size_t step = std::max<std::size_t>(1, f.bytes.size() / 200);
    for (std::size_t size = 0; size < f.bytes.size(); size += step) {
        INFO("cut to " << size << " of " << f.bytes.size());
        REQUIRE(f.refused(f.bytes.substr(0, size)));
    }
    std::size_t refused = 0;
    std::size_t tried = 0;
    for (std::size_t i = 0; i < f.bytes.size(); i += std::max<std::size_t>(1, f.bytes.size() / 1000)) {
        INFO("byte " << i << " of " << f.bytes.size());
        std::string damaged = f.bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ static_cast<char>(1 + i * 37 % 255));
        ++tried;
        refused += f.refused(damaged) ? 1 : 0;
    }
    CHECK(refused > tried / 3);
}

}  // namespace petacq::test
