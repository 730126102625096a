// Shared by the tests of petlm plot: runs with wild records, the tables beside the pictures, checks of PNG
// and HTML.
#pragma once

#include <array>
#include <cstring>
#include <limits>

#include "tests/tools/petlm/support.hpp"

namespace petacq::test {

using Table = std::map<std::string, std::vector<double>>;

inline Table table_of(const std::filesystem::path& file) {
    std::istringstream in(read_file(file));
    std::vector<std::string> names;
    Table table;
    for (std::string line; std::getline(in, line);) {
        std::istringstream fields(line);
        std::size_t i = 0;
        for (std::string field; std::getline(fields, field, ','); ++i) {
            if (i == names.size() && table[field].empty() && !(field[0] >= '0' && field[0] <= '9')) {
                names.push_back(field);
            } else {
                table[names[i]].push_back(std::stod(field));
            }
        }
    }
    return table;
}

inline double sum(const std::vector<double>& values) {
    double total = 0;
    for (const double v : values)
        total += v;
    return total;
}

/// Draws small pictures unless the options name a size: drawing takes most of the time.
inline Outcome plotted(const std::filesystem::path& run, const std::string& options = "") {
    return run_petlm("plot" + quoted(run) + options +
                     (contains(options, "--png-width") ? "" : " --png-width 200"));
}

/// Pairs of any two crystals, of both kinds, with energies and time differences of any size.
inline gpu::RecordVector<gpu::Coincidence> wild_records(std::size_t count) {
    std::mt19937_64 random(11);
    const config::Scanner scanner = export_scanner();
    gpu::RecordVector<gpu::Coincidence> out;
    std::uint64_t time = run_start;
    for (std::size_t i = 0; i < count; ++i) {
        gpu::Coincidence c;
        c.time = time += random() % 50'000'000;
        c.dt = static_cast<std::uint32_t>(random() % 350);
        if (i % 97 == 0) c.dt = UINT32_MAX - static_cast<std::uint32_t>(random() % 5);
        c.crystal_a = static_cast<std::uint32_t>(random() % scanner.geometry.crystal_count());
        c.crystal_b = static_cast<std::uint32_t>(random() % scanner.geometry.crystal_count());
        c.energy_a = static_cast<float>(random() % 11'000) / 10;
        c.energy_b = 511;
        if (i % 101 == 0) c.energy_b = std::numeric_limits<float>::quiet_NaN();
        if (i % 103 == 0) c.energy_b = -1;
        if (i % 107 == 0) c.energy_b = 3e38F;
        c.kind = random() % 3 == 0 ? gpu::Kind::delayed : gpu::Kind::prompt;
        out.push_back(c);
    }
    return out;
}

struct Png {
    std::uint32_t width = 0;
    std::uint32_t height = 0;
};

/// The size of a PNG. Checks that its chunks are complete.
inline Png png_of(const std::filesystem::path& file) {
    const std::string bytes = read_file(file);
    const auto number = [&](std::size_t at) {
        std::uint32_t n = 0;
        for (std::size_t i = 0; i < 4; ++i)
            n = n << 8U | static_cast<unsigned char>(bytes.at(at + i));
        return n;
    };
    REQUIRE(bytes.substr(0, 8) == "\x89PNG\r\n\x1a\n");
    std::size_t at = 8;
    std::string last;
    while (at < bytes.size()) {
        last = bytes.substr(at + 4, 4);
        at += 12 + number(at);
    }
    CHECK(at == bytes.size());
    CHECK(last == "IEND");
    return {number(16), number(20)};
}

inline const std::set<std::string>& pictures_without_ledger() {
    static const std::set<std::string> names = {"energy-pairs", "time-differences", "singles-map", "rates",
                                                "sinogram",     "axial-profile",    "michelogram"};
    return names;
}

/// The files in a directory of pictures.
inline std::set<std::string> files_of(const std::set<std::string>& pictures) {
    std::set<std::string> files = {"report.html"};
    for (const auto& name : pictures) {
        files.insert(name + ".png");
        files.insert(name + ".csv");
    }
    return files;
}

/// Checks that tags are closed and that nothing is loaded.
inline void check_html(const std::string& html) {
    CHECK(html.substr(0, 15) == "<!DOCTYPE html>");
    std::vector<std::string> open;
    const std::set<std::string> empty = {"meta", "img", "source"};
    for (std::size_t at = html.find('<', 1); at != std::string::npos; at = html.find('<', at + 1)) {
        const std::size_t end = html.find('>', at);
        REQUIRE(end != std::string::npos);
        const bool closes = html[at + 1] == '/';
        std::size_t name_end = html.find_first_of(" >", at);
        const std::string name = html.substr(at + 1 + (closes ? 1 : 0), name_end - at - 1 - (closes ? 1 : 0));
        if (closes) {
            REQUIRE(!open.empty());
            REQUIRE(open.back() == name);
            open.pop_back();
        } else if (empty.count(name) == 0) {
            open.push_back(name);
        }
        if (name == "style" && !closes) at = html.find("</style>", at) - 1;
    }
    CHECK(open.empty());
    for (const char* attribute : {"src=\"", "srcset=\"", "href=\""}) {
        for (std::size_t at = html.find(attribute); at != std::string::npos;
             at = html.find(attribute, at + 1))
            CHECK(html.substr(at + std::strlen(attribute), 26) == "data:image/svg+xml;base64,");
    }
    for (const char* loads : {"http:", "https:", "url(", "@import", "<script", "<link", "<iframe"})
        CHECK(html.find(loads) == std::string::npos);
    std::size_t images = 0;
    for (std::size_t at = html.find("<img "); at != std::string::npos;
         at = html.find("<img ", at + 1), ++images)
        CHECK(html.substr(at, html.find(" src=", at) - at).find("alt=\"") != std::string::npos);
    CHECK(images >= 7);
}

}  // namespace petacq::test
