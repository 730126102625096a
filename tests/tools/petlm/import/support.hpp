// Shared by the tests of petlm import: random records of every kind, and the program on them.
#pragma once

#include <algorithm>
#include <random>

#include "daemon/listmode/reader.hpp"
#include "daemon/listmode/writer.hpp"
#include "tests/support/files.hpp"
#include "tests/support/read_listmode.hpp"
#include "tests/tools/petlm/support.hpp"
#include "tools/petlm/records/record_source.hpp"

namespace petacq::test {

inline std::filesystem::path scanner_file(const TemporaryDirectory& directory,
                                          const config::Scanner& scanner = export_scanner()) {
    auto file = directory / "scanner.json";
    write_file(file, config::to_json(scanner).dump());
    return file;
}

inline Outcome imported(const std::string& format, const std::filesystem::path& from,
                        const std::filesystem::path& scanner, const std::filesystem::path& to,
                        const std::string& options = "") {
    return run_petlm("import --format " + format + quoted(from) + "--scanner" + quoted(scanner) + "--output" +
                     quoted(to) + options);
}

/// Random values of all sizes, with ties.
class RandomRecords {
  public:
    RandomRecords(std::uint64_t seed, std::uint32_t crystals) : random_(seed), crystals_(crystals) {}

    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
    std::uint32_t crystal() { return static_cast<std::uint32_t>(below(crystals_)); }
    float energy() {
        const std::array<float, 3> scales{1, 511, 1e-30F};
        return static_cast<float>(below(1U << 24U)) * 0.0001F * scales[below(3)];
    }

    gpu::Single single(std::uint64_t time) { return {time, crystal(), energy()}; }
    gpu::Coincidence pair(std::uint64_t time) {
        gpu::Coincidence c{time,
                           static_cast<std::uint32_t>(below(300)),
                           crystal(),
                           crystal(),
                           energy(),
                           energy(),
                           below(3) == 0 ? gpu::Kind::delayed : gpu::Kind::prompt};
        if (c.dt == 0 && c.crystal_a > c.crystal_b) std::swap(c.crystal_a, c.crystal_b);
        return c;
    }
    gpu::Triple triple(std::uint64_t time) {
        return {pair(time), static_cast<std::int32_t>(below(2000)) - 1000, crystal(), energy(),
                below(3) == 0 ? gpu::ThirdPhoton::delayed : gpu::ThirdPhoton::coincident};
    }
    gpu::Tag tag(std::uint64_t time) {
        return {time, static_cast<std::uint32_t>(random_()), static_cast<std::uint16_t>(below(65536)),
                static_cast<std::uint8_t>(below(16)), static_cast<std::uint8_t>(below(8))};
    }
    /// In order, with several of one time.
    template <class Make>
    auto in_order(std::size_t count, Make make, std::uint64_t step = 4) {
        gpu::RecordVector<decltype(make(*this, 0))> out;
        std::uint64_t time = run_start;
        for (std::size_t i = 0; i < count; ++i)
            out.push_back(make(*this, time += below(step)));
        std::sort(out.begin(), out.end(),
                  [](const auto& a, const auto& b) { return !daemon::in_order(b, a); });
        return out;
    }

  private:
    std::mt19937_64 random_;
    std::uint32_t crystals_;
};

template <class Record>
void write_records(const std::filesystem::path& file, daemon::RecordKind kind,
                   const gpu::RecordVector<Record>& records) {
    daemon::ListModeOptions options;
    options.kind = kind;
    options.block_bytes = 4096;
    options.sync_interval_ms = 3'600'000;
    daemon::ListModeWriter writer(file, options, file_description(export_scanner()));
    writer.append(gpu::RecordVector<Record>(records));
    REQUIRE(writer.finish().written == records.size());
}

template <class Record>
gpu::RecordVector<Record> read_records(const std::filesystem::path& target, daemon::RecordKind kind) {
    petlm::RecordSource source(target, kind);
    gpu::RecordVector<Record> out;
    while (source.next())
        for (const Record& record : petlm::records_of<Record>(source.reader()))
            out.push_back(record);
    return out;
}

template <class Record>
bool same_bytes(const gpu::RecordVector<Record>& a, const gpu::RecordVector<Record>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Record)) == 0);
}

inline nlohmann::json coverage_in(const std::filesystem::path& file) {
    return daemon::ListModeReader(file).description().at("coverage");
}

/// Bytes of binary files.
class Packed {
  public:
    template <class... Value>
    Packed& put(const Value&... values) {
        ((bytes_.append(reinterpret_cast<const char*>(&values), sizeof values)), ...);
        return *this;
    }
    [[nodiscard]] const std::string& bytes() const { return bytes_; }

  private:
    std::string bytes_;
};

}  // namespace petacq::test
