// Volumes in NIfTI files, read back, and files that are refused.
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "config/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tools/nifti/nifti.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

nifti::Volume some_volume() {
    nifti::Volume volume{{3, 4, 5}, {{{2, 0, 0}, {0, 3, 0}, {0, 0, 4}}}, {-5, 6, 7}, {}};
    for (std::size_t i = 0; i < volume.voxels(); ++i)
        volume.values.push_back(static_cast<float>(i) / 8);
    return volume;
}

std::string bytes_of(const nifti::Volume& volume) {
    std::string bytes = nifti::header(volume, "a test");
    bytes.append(reinterpret_cast<const char*>(volume.values.data()), 4 * volume.values.size());
    return bytes;
}

template <class Value>
void put(std::string& bytes, std::size_t at, Value value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

}  // namespace

TEST_CASE("nifti: a volume is read as it was written", "[nifti]") {
    const TemporaryDirectory directory;
    const auto file = directory / "volume.nii";
    const nifti::Volume written = some_volume();
    write_file(file, bytes_of(written));
    const nifti::Volume read = nifti::load(file);
    CHECK(read.n == written.n);
    CHECK(read.step == written.step);
    CHECK(read.first == written.first);
    CHECK(read.values == written.values);
    CHECK(read.voxel_mm3() == Approx(24));
    CHECK(read.at(1, 2, 3) == config::Vector3{-3, 12, 19});
}

TEST_CASE("nifti: whole numbers are scaled, and a qform turns the axes", "[nifti]") {
    const TemporaryDirectory directory;
    nifti::Volume volume = some_volume();
    std::string bytes = nifti::header(volume, "");
    put<std::int16_t>(bytes, 70, 4);
    put<float>(bytes, 112, 0.5F);
    put<float>(bytes, 116, -1);
    put<std::int16_t>(bytes, 254, 0);     // no sform
    put<float>(bytes, 264, 0.70710678F);  // a quarter turn about z
    for (std::int16_t i = 0; i < 60; ++i)
        bytes.append(reinterpret_cast<const char*>(&i), 2);
    write_file(directory / "volume.nii", bytes);
    const auto read = nifti::load(directory / "volume.nii");
    CHECK(read.values[10] == Approx(4));
    const auto at = read.at(1, 0, 0);
    CHECK(at[0] == Approx(-5).margin(1e-5));
    CHECK(at[1] == Approx(8));
    CHECK(read.at(0, 1, 0)[0] == Approx(-8));
    CHECK(read.at(0, 0, 1)[2] == Approx(11));
}

TEST_CASE("nifti: other files are refused by name", "[nifti]") {
    const TemporaryDirectory directory;
    const auto file = directory / "volume.nii";
    const auto refused = [&](const std::string& what, const std::function<void(std::string&)>& change) {
        CAPTURE(what);
        std::string bytes = bytes_of(some_volume());
        change(bytes);
        write_file(file, bytes);
        CHECK_THROWS_WITH(nifti::load(file), contains(file.string()) && contains(what));
        CHECK_THROWS_AS(nifti::load(file), config::Error);
    };
    CHECK_THROWS_AS(nifti::load(directory / "missing.nii"), config::IoError);
    CHECK_THROWS_AS(nifti::load(directory / "."), config::IoError);
    refused("at least 352 bytes, found 0", [](auto& b) { b.clear(); });
    refused("at least 352 bytes", [](auto& b) { b.resize(351); });
    refused("at least 592 bytes, found 591", [](auto& b) { b.resize(591); });
    refused("gunzip", [](auto& b) { b.replace(0, 2, "\x1f\x8b"); });
    refused("big-endian", [](auto& b) { put<std::int32_t>(b, 0, 0x5C010000); });
    refused("such a header", [](auto& b) { b[345] = 'i'; });
    refused("three dimensions", [](auto& b) { put<std::int16_t>(b, 40, 2); });
    refused("three dimensions", [](auto& b) { put<std::int16_t>(b, 44, -4); });
    refused("one volume", [](auto& b) {
        put<std::int16_t>(b, 40, 4);
        put<std::int16_t>(b, 48, 2);
    });
    refused("27000000000000 values of 4 bytes", [](auto& b) {
        for (const std::size_t at : {42U, 44U, 46U})
            put<std::int16_t>(b, at, 30'000);
    });
    refused("data type 128", [](auto& b) { put<std::int16_t>(b, 70, 128); });
    refused("lengths in mm", [](auto& b) { b[123] = 3; });
    refused("sform", [](auto& b) { put<std::int32_t>(b, 252, 0); });
    refused("size above 0", [](auto& b) { put<float>(b, 280, 0); });
    refused("byte 352", [](auto& b) { put<float>(b, 108, -1); });
    refused("byte 352", [](auto& b) { put<float>(b, 108, std::nanf("")); });
    refused("finite values", [](auto& b) { put<float>(b, 400, std::nanf("")); });
    nifti::Volume turned = some_volume();
    turned.step[0] = {0, 2, 0};
    CHECK_THROWS_AS(nifti::header(turned, ""), std::invalid_argument);
}
