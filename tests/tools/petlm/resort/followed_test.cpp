// Runs that are still written: their blocks, and their seconds.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/tools/petlm/resort/support.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/resort/singles/second_ranges.hpp"
#include "tools/petlm/resort/singles/singles_files.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

Singles some_singles(std::size_t count, std::mt19937_64& random) {
    Singles singles;
    std::uint64_t time = 1000;
    for (std::size_t i = 0; i < count; ++i) {
        time += random() % 50;
        singles.push_back({time, static_cast<std::uint32_t>(i % 24), 511});
    }
    return singles;
}

/// The names and contents of the files of a finished run, in the order of their parts.
std::map<std::string, std::string> files_of_run(const std::filesystem::path& directory,
                                                const Singles& singles,
                                                const daemon::ListModeOptions& options) {
    std::filesystem::create_directories(directory);
    daemon::ListModeWriter writer(directory / "singles.plm", options, {{"run_id", "r"}});
    writer.append(Singles(singles));
    REQUIRE(writer.finish().written == singles.size());
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory))
        files[entry.path().filename()] = read_file(entry.path());
    return files;
}

Singles all_in(const petlm::SinglesFiles& files) {
    Singles all;
    daemon::LoadedBlock memory;
    for (const auto& block : files.blocks()) {
        const auto singles = files.read(block, memory);
        all.insert(all.end(), singles.begin(), singles.end());
    }
    return all;
}

bool begins_with(const Singles& all, const Singles& some) {
    if (some.empty()) return true;
    return some.size() <= all.size() &&
           std::memcmp(all.data(), some.data(), some.size() * sizeof(gpu::Single)) == 0;
}

}  // namespace

TEST_CASE("followed singles: the whole blocks at any moment, and all of them at the end", "[resort]") {
    std::mt19937_64 random(5);
    for (unsigned way = 0; way < 12; ++way) {
        const TemporaryDirectory directory;
        daemon::ListModeOptions options;
        options.kind = daemon::RecordKind::singles;
        options.block_bytes = 1024;
        options.files = 1 + way % 3;
        options.split.bytes = way % 2 == 0 ? 0 : 16384;
        options.compression = way % 4 < 2 ? config::Compression::none : config::Compression::zstd;
        const Singles all = some_singles(4000, random);
        const auto files = files_of_run(directory / "whole", all, options);
        const auto run = directory / "run";
        std::filesystem::create_directories(run);

        // The files of a part grow side by side, in uneven steps; the next part begins when they are closed.
        std::map<std::string, std::vector<std::string>> parts;
        for (const auto& [name, content] : files)
            parts[name.substr(0, name.find('.'))].push_back(name);
        std::optional<petlm::SinglesFiles> followed;
        for (const auto& [part, names] : parts) {
            std::map<std::string, std::size_t> written;
            const auto whole = [&](const std::string& name) {
                return written.contains(name) && written[name] == files.at(name).size();
            };
            const auto grow = [&](const std::string& name, std::size_t bytes) {
                const std::string& content = files.at(name);
                bytes = std::min(bytes, content.size() - written[name]);
                std::ofstream(run / name, std::ios::binary | std::ios::app)
                    .write(content.data() + written[name], static_cast<std::streamsize>(bytes));
                written[name] += bytes;
            };
            if (!followed)
                for (const std::string& name : names)
                    grow(name, 4096);  // the header
            while (!std::all_of(names.begin(), names.end(), whole)) {
                if (!followed) followed.emplace(petlm::SinglesFiles::followed(run));
                CHECK(followed->extend() == written.empty());  // then the part has not begun
                grow(names[random() % names.size()], random() % 3000);
                if (random() % 8 == 0) CHECK(begins_with(all, all_in(*followed)));
            }
            CHECK(followed->extend());
        }
        CHECK(all_in(*followed).size() == all.size());
        CHECK(begins_with(all, all_in(*followed)));
        const petlm::SinglesFiles closed(directory / "whole");
        CHECK(closed.blocks().size() == followed->blocks().size());
    }
}

TEST_CASE("followed singles: not more blocks than asked for, whatever has been written", "[resort]") {
    std::mt19937_64 random(8);
    const TemporaryDirectory directory;
    daemon::ListModeOptions options;
    options.kind = daemon::RecordKind::singles;
    options.block_bytes = 1024;
    options.files = 2;
    options.split.bytes = 16384;
    const Singles all = some_singles(4000, random);
    files_of_run(directory / "run", all, options);
    const std::size_t blocks = petlm::SinglesFiles(directory / "run").blocks().size();
    auto followed = petlm::SinglesFiles::followed(directory / "run");
    for (std::size_t most = 0; most <= blocks; most += 7) {
        const bool complete = followed.extend(most);
        CHECK(followed.blocks().size() == most);
        CHECK(complete == (most == blocks));
        CHECK(begins_with(all, all_in(followed)));
    }
    CHECK(followed.extend());
    CHECK(all_in(followed).size() == all.size());
}

TEST_CASE("followed singles: a damaged block is refused, not taken", "[resort]") {
    std::mt19937_64 random(6);
    const TemporaryDirectory directory;
    daemon::ListModeOptions options;
    options.kind = daemon::RecordKind::singles;
    options.block_bytes = 1024;
    std::string content =
        files_of_run(directory / "whole", some_singles(1000, random), options).at("singles.plm");
    content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 1);
    std::filesystem::create_directories(directory / "run");
    write_file(directory / "run" / "singles.plm", content);
    auto followed = petlm::SinglesFiles::followed(directory / "run");
    if (followed.extend()) {
        CHECK_THROWS_AS(all_in(followed), petlm::BadInput);
    } else {
        CHECK(all_in(followed).size() < 1000);
    }
}

TEST_CASE("the seconds of a stretch lie in those of the whole", "[resort]") {
    std::mt19937_64 random(7);
    constexpr std::uint64_t second = 1000;
    for (unsigned round = 0; round < 50; ++round) {
        const TemporaryDirectory directory;
        const Singles all = some_singles(2000, random);
        write_singles_run(directory / "run", all, {{"window_ticks", 40}}, 0, all.back().time + 1);
        std::vector<petlm::SinglesFiles> runs;
        runs.emplace_back(directory / "run");
        const auto whole = petlm::second_ranges(gpu::TickRange{0, all.back().time + 5000}, runs, second);
        std::uint64_t from = 0;
        while (from < all.back().time) {
            const std::uint64_t to = from + 1 + random() % 4000;
            for (const gpu::TickRange& part : petlm::second_ranges(gpu::TickRange{from, to}, runs, second)) {
                const bool inside = std::any_of(whole.begin(), whole.end(), [&](const gpu::TickRange& w) {
                    return w.start <= part.start && part.end <= w.end;
                });
                const bool empty = std::none_of(all.begin(), all.end(), [&](const gpu::Single& s) {
                    return part.start <= s.time && s.time < part.end;
                });
                CHECK((inside || empty));
            }
            from = to;
        }
    }
}
