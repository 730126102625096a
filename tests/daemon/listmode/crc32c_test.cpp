#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "daemon/listmode/crc32c.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/crc32c_oracle.hpp"

using namespace petacq::daemon;
using petacq::test::crc32c_oracle;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

std::vector<std::byte> noise(std::size_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> data(size);
    for (auto& value : data)
        value = static_cast<std::byte>(random());
    return data;
}

}  // namespace

TEST_CASE("CRC-32C of known texts", "[listmode]") {
    CHECK(crc32c({}) == 0);
    CHECK(crc32c(bytes_of("123456789")) == 0xE3069283);
    CHECK(crc32c(bytes_of(std::string(32, '\0'))) == 0x8A9136AA);
    CHECK(crc32c(bytes_of(std::string(32, '\xFF'))) == 0x62A8AB43);
    CHECK(crc32c_oracle(bytes_of("123456789")) == 0xE3069283);
}

TEST_CASE("CRC-32C is right at any length and address", "[listmode]") {
    const auto data = noise(40'000, 1);
    const auto all = std::span(data);
    for (const std::size_t size : {1, 7, 8, 9, 63, 1000, 4096, 12'287, 12'288, 12'289, 24'577, 39'990}) {
        for (const std::size_t from : {0, 1, 3, 8}) {
            const auto part = all.subspan(from, size);
            CHECK(crc32c(part) == crc32c_oracle(part));
        }
    }
}

TEST_CASE("CRC-32C continues and combines", "[listmode]") {
    const auto data = noise(30'000, 2);
    const auto all = std::span<const std::byte>(data);
    const std::uint32_t whole = crc32c(all);
    for (const std::size_t cut : {0, 1, 100, 12'288, 29'999, 30'000}) {
        const std::uint32_t first = crc32c(all.first(cut));
        CHECK(crc32c(all.subspan(cut), first) == whole);
        CHECK(crc32c_oracle(all.subspan(cut), first) == whole);
        CHECK(crc32c_combine(first, crc32c(all.subspan(cut)), all.size() - cut) == whole);
    }
}
