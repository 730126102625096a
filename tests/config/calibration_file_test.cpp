#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "config/calibration.hpp"
#include "config/hdf5/handle.hpp"
#include "config/make_calibration.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

namespace {

config::Calibration tiny_calibration() {
    config::CalibrationModel model;
    model.bins = 3;
    model.nonlinearity = 0.1;
    model.time_offset_ticks = 100;
    return config::make_calibration(tiny_scanner(), model);
}

/// Adds a data set of zeros to an HDF5 file.
void add(const std::filesystem::path& file, const char* name, hid_t type, const std::vector<hsize_t>& shape) {
    const bool there = std::filesystem::exists(file);
    const config::Hdf5File h5(there ? H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT)
                                    : H5Fcreate(file.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT));
    const config::Hdf5Space space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
    const config::Hdf5DataSet data(
        H5Dcreate2(h5.id(), name, type, space.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    REQUIRE(data);
}

std::string load_complaint(const std::filesystem::path& file) {
    return complaint([&] { config::load_calibration(file, tiny_scanner().geometry); });
}

}  // namespace

TEST_CASE("a calibration file gives back what was written") {
    const TemporaryDirectory dir;
    const auto g = tiny_scanner().geometry;
    auto written = tiny_calibration();
    SECTION("with offsets") {
        written.time_offset[0] = std::numeric_limits<std::int32_t>::min();
        written.time_offset[1] = std::numeric_limits<std::int32_t>::max();
    }
    SECTION("without offsets") {
        written.time_offset.clear();
    }
    SECTION("with extreme factors") {
        written.energy_factor[0] = 0;
        written.energy_factor[1] = std::numeric_limits<float>::max();
        written.energy_factor[2] = std::numeric_limits<float>::denorm_min();
    }
    config::save_calibration(dir / "c.h5", g, written);
    const auto read = config::load_calibration(dir / "c.h5", g);
    CHECK(read.position_table == written.position_table);
    CHECK(read.energy_factor == written.energy_factor);
    CHECK(read.bins == 3);
    CHECK(read.time_offset == written.time_offset);
    CHECK(read.sha256 == config::sha256_of_file(dir / "c.h5"));
}

TEST_CASE("a unit with more than 256 crystals has entries of two bytes") {
    const TemporaryDirectory dir;
    config::Scanner scanner = tiny_scanner();
    scanner.frame_version = config::FrameVersion::two;
    config::Geometry& g = scanner.geometry;
    g.crystals = {1, 15, 20};
    g.position_size = 64;
    config::CalibrationModel model;
    model.bins = 1;
    const config::Calibration written = config::make_calibration(scanner, model);
    const auto [least, most] =
        std::minmax_element(written.position_table.begin(), written.position_table.end());
    CHECK(*least == 0);
    CHECK(*most == 65'535);  // outside
    for (std::uint16_t crystal = 0; crystal < 300; ++crystal) {
        INFO(crystal);
        CHECK(std::count(written.position_table.begin(), written.position_table.end(), crystal) >= 12);
    }
    config::save_calibration(dir / "c.h5", g, written);
    CHECK(config::load_calibration(dir / "c.h5", g).position_table == written.position_table);
    // One byte does not do, nor do two for small units.
    add(dir / "narrow.h5", "position_table", H5T_STD_U8LE, {6, 2, 4096});
    CHECK(lacking(complaint([&] { config::load_calibration(dir / "narrow.h5", g); }),
                  {"\"position_table\": expected u16[6][2][4096], found u8"}) == "");
    add(dir / "wide.h5", "position_table", H5T_STD_U16LE, {6, 2, 256});
    CHECK(lacking(load_complaint(dir / "wide.h5"),
                  {"\"position_table\": expected u8[6][2][256], found u16"}) == "");
    config::Calibration small = tiny_calibration();
    small.position_table[5] = 256;
    CHECK(lacking(complaint([&] { config::save_calibration(dir / "s.h5", tiny_scanner().geometry, small); }),
                  {"position_table: expected values of one byte, since a unit has 6 crystals; found 256"}) ==
          "");
}

TEST_CASE("files of other programs are read: uncompressed, big-endian, any order") {
    const TemporaryDirectory dir;
    add(dir / "c.h5", "energy_factor", H5T_IEEE_F32BE, {6, 2, 6, 4});
    add(dir / "c.h5", "something_else", H5T_STD_I64LE, {1});
    add(dir / "c.h5", "position_table", H5T_STD_U8BE, {6, 2, 256});
    const auto c = config::load_calibration(dir / "c.h5", tiny_scanner().geometry);
    CHECK(c.bins == 4);
    CHECK(c.energy_factor.size() == 6 * 2 * 6 * 4);
    CHECK(c.time_offset.empty());
}

TEST_CASE("SHA-256 is the usual one") {
    const TemporaryDirectory dir;
    write_file(dir / "abc", "abc");
    CHECK(config::sha256_of_file(dir / "abc") ==
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    write_file(dir / "empty", "");
    CHECK(config::sha256_of_file(dir / "empty") ==
          "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK_THROWS_AS(config::sha256_of_file(dir / "none"), config::IoError);
}

TEST_CASE("a data set that is missing or wrong is refused with what was expected and found") {
    const TemporaryDirectory dir;
    const auto file = dir / "c.h5";
    SECTION("no position_table") {
        add(file, "energy_factor", H5T_IEEE_F32LE, {6, 2, 6, 1});
        CHECK(load_complaint(file) ==
              file.string() +
                  ": data set \"position_table\": expected u8[6][2][256], found no such data set");
    }
    SECTION("no energy_factor") {
        add(file, "position_table", H5T_STD_U8LE, {6, 2, 256});
        CHECK(load_complaint(file) ==
              file.string() +
                  ": data set \"energy_factor\": expected f32[6][2][6][bins], found no such data set");
    }
    SECTION("wrong rank") {
        add(file, "position_table", H5T_STD_U8LE, {6, 2, 16, 16});
        CHECK(lacking(load_complaint(file), {"expected u8[6][2][256], found u8[6][2][16][16]"}) == "");
    }
    SECTION("wrong shape") {
        add(file, "position_table", H5T_STD_U8LE, {2, 6, 256});
        CHECK(lacking(load_complaint(file), {"expected u8[6][2][256], found u8[2][6][256]"}) == "");
    }
    SECTION("wrong type") {
        add(file, "position_table", H5T_STD_I8LE, {6, 2, 256});
        CHECK(lacking(load_complaint(file), {"expected u8[6][2][256], found i8"}) == "");
    }
    SECTION("doubles") {
        add(file, "position_table", H5T_STD_U8LE, {6, 2, 256});
        add(file, "energy_factor", H5T_IEEE_F64LE, {6, 2, 6, 1});
        CHECK(lacking(load_complaint(file), {"expected f32[6][2][6][bins], found f64"}) == "");
    }
    SECTION("wrong number of crystals") {
        add(file, "position_table", H5T_STD_U8LE, {6, 2, 256});
        add(file, "energy_factor", H5T_IEEE_F32LE, {6, 2, 7, 1});
        CHECK(lacking(load_complaint(file), {"expected f32[6][2][6][bins], found f32[6][2][7][1]"}) == "");
    }
    SECTION("more bins than the ADC has") {
        add(file, "position_table", H5T_STD_U8LE, {6, 2, 256});
        add(file, "energy_factor", H5T_IEEE_F32LE, {6, 2, 6, 6555});
        CHECK(lacking(load_complaint(file), {"found f32[6][2][6][6555] (1 to 6554 bins)"}) == "");
    }
    SECTION("no bins") {
        add(file, "position_table", H5T_STD_U8LE, {6, 2, 256});
        add(file, "energy_factor", H5T_IEEE_F32LE, {6, 2, 6, 0});
        CHECK(lacking(load_complaint(file), {"\"energy_factor\": expected"}) == "");
    }
    SECTION("offsets for another scanner") {
        add(file, "position_table", H5T_STD_U8LE, {6, 2, 256});
        add(file, "energy_factor", H5T_IEEE_F32LE, {6, 2, 6, 1});
        add(file, "time_offset", H5T_STD_I32LE, {73});
        CHECK(lacking(load_complaint(file), {"\"time_offset\": expected i32[72], found i32[73]"}) == "");
    }
    SECTION("a group") {
        const config::Hdf5File h5(H5Fcreate(file.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT));
        H5Gclose(H5Gcreate2(h5.id(), "position_table", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        H5Fflush(h5.id(), H5F_SCOPE_GLOBAL);
        CHECK(lacking(load_complaint(file), {"\"position_table\": expected u8"}) == "");
    }
    SECTION("data of another file") {
        {
            const config::Hdf5File h5(H5Fcreate(file.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT));
            H5Lcreate_external("/etc/passwd", "/x", h5.id(), "position_table", H5P_DEFAULT, H5P_DEFAULT);
        }
        CHECK(lacking(load_complaint(file), {"found a link to something else"}) == "");
    }
    SECTION("data outside the file") {
        {
            const config::Hdf5File h5(H5Fcreate(file.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT));
            const std::vector<hsize_t> shape{6, 2, 256};
            const config::Hdf5Space space(H5Screate_simple(3, shape.data(), nullptr));
            const config::Hdf5List creation(H5Pcreate(H5P_DATASET_CREATE));
            H5Pset_external(creation.id(), "/etc/passwd", 0, H5F_UNLIMITED);
            const config::Hdf5DataSet data(H5Dcreate2(h5.id(), "position_table", H5T_STD_U8LE, space.id(),
                                                      H5P_DEFAULT, creation.id(), H5P_DEFAULT));
            REQUIRE(data);
        }
        CHECK(lacking(load_complaint(file), {"found data outside the file"}) == "");
    }
    SECTION("a chunk larger than its data set, for which HDF5 would take memory") {
        {
            const config::Hdf5File h5(H5Fcreate(file.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT));
            const std::vector<hsize_t> shape{6, 2, 256};
            const std::vector<hsize_t> most(3, H5S_UNLIMITED);
            const std::vector<hsize_t> chunk{1024, 1024, 1024};
            const config::Hdf5Space space(H5Screate_simple(3, shape.data(), most.data()));
            const config::Hdf5List creation(H5Pcreate(H5P_DATASET_CREATE));
            REQUIRE(H5Pset_chunk(creation.id(), 3, chunk.data()) >= 0);
            const config::Hdf5DataSet data(H5Dcreate2(h5.id(), "position_table", H5T_STD_U8LE, space.id(),
                                                      H5P_DEFAULT, creation.id(), H5P_DEFAULT));
            REQUIRE(data);
        }
        CHECK(lacking(load_complaint(file), {"found chunks [1024][1024][1024] larger than it"}) == "");
    }
}

TEST_CASE("a calibration is read without locks, as on a network file system that has none") {
    const TemporaryDirectory dir;
    const std::filesystem::path file = dir / "c.h5";
    config::save_calibration(file, tiny_scanner().geometry, tiny_calibration());
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(::flock(descriptor, LOCK_EX | LOCK_NB) == 0);
    CHECK(load_complaint(file).empty());
    ::close(descriptor);
}

TEST_CASE("factors that are not finite or negative are refused with their place") {
    const TemporaryDirectory dir;
    const auto file = dir / "c.h5";
    const auto bad = GENERATE(as<float>{}, std::nanf(""), -1, std::numeric_limits<float>::infinity());
    auto c = tiny_calibration();
    // bdm 4, du 1, local crystal 5, bin 2 of 3.
    c.energy_factor[((4 * 2 + 1) * 6 + 5) * 3 + 2] = bad;
    const auto g = tiny_scanner().geometry;
    CHECK(lacking(complaint([&] { config::check_calibration(g, c); }),
                  {"energy_factor", "at [4][1][5][2]"}) == "");
    CHECK(lacking(complaint([&] { config::save_calibration(file, g, c); }),
                  {file.string(), "[4][1][5][2]"}) == "");
    CHECK_FALSE(std::filesystem::exists(file));

    add(file, "position_table", H5T_STD_U8LE, {6, 2, 256});
    add(file, "energy_factor", H5T_IEEE_F32LE, {6, 2, 6, 3});
    {
        const config::Hdf5File h5(H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
        const config::Hdf5DataSet data(H5Dopen2(h5.id(), "energy_factor", H5P_DEFAULT));
        H5Dwrite(data.id(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, c.energy_factor.data());
    }
    CHECK(lacking(load_complaint(file), {file.string(), "[4][1][5][2]"}) == "");
}

TEST_CASE("tables of the wrong size are not written") {
    const TemporaryDirectory dir;
    const auto g = tiny_scanner().geometry;
    auto c = tiny_calibration();
    SECTION("positions") {
        c.position_table.pop_back();
        CHECK(lacking(complaint([&] { config::save_calibration(dir / "c.h5", g, c); }),
                      {"position_table: expected [6][2][256] = 3072 values, found 3071"}) == "");
    }
    SECTION("factors") {
        c.bins = 4;
        CHECK(lacking(complaint([&] { config::check_calibration(g, c); }),
                      {"energy_factor: expected [6][2][6][4] = 288 values, found 216"}) == "");
    }
    SECTION("bins") {
        c.bins = 0;
        CHECK(lacking(complaint([&] { config::check_calibration(g, c); }),
                      {"energy_factor: expected 1 to"}) == "");
    }
    SECTION("offsets") {
        c.time_offset.pop_back();
        CHECK(lacking(complaint([&] { config::check_calibration(g, c); }),
                      {"time_offset: expected [72] = 72 values, found 71"}) == "");
    }
}

TEST_CASE("a file that cannot be written is an IoError, and what was there stays") {
    const TemporaryDirectory dir;
    const auto g = tiny_scanner().geometry;
    const auto c = tiny_calibration();
    CHECK_THROWS_AS(config::save_calibration(dir / "none" / "c.h5", g, c), config::IoError);
    std::filesystem::create_directories(dir / "c.h5" / "inside");
    CHECK_THROWS_AS(config::save_calibration(dir / "c.h5", g, c), config::IoError);
    CHECK(std::filesystem::exists(dir / "c.h5" / "inside"));
    // No partial file is left.
    CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
}

TEST_CASE("files that are not calibrations") {
    const TemporaryDirectory dir;
    CHECK_THROWS_AS(config::load_calibration(dir / "none.h5", tiny_scanner().geometry), config::IoError);
    CHECK(lacking(load_complaint(dir / "none.h5"), {"none.h5", "No such file", "petcal make"}) == "");
    CHECK(lacking(load_complaint(dir.path()), {"is a directory"}) == "");
    write_file(dir / "empty.h5", "");
    CHECK(load_complaint(dir / "empty.h5") == (dir / "empty.h5").string() + ": not an HDF5 file");
    write_file(dir / "text.h5", std::string(100'000, 'x'));
    CHECK(load_complaint(dir / "text.h5") == (dir / "text.h5").string() + ": not an HDF5 file");
}

}  // namespace petacq::test
