// SAFIR list-mode, which STIR reads. docs/reference/formats/stir.md has the layout.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>

#include "config/base/ticks.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/geometry/crystal_kinds.hpp"
#include "tools/petlm/export/geometry/stir_detectors.hpp"
#include "tools/petlm/export/safir_layout.hpp"
#include "tools/petlm/import/byte_reader.hpp"
#include "tools/petlm/import/foreign_file.hpp"
#include "tools/petlm/import/line_reader.hpp"

namespace petacq::petlm {
namespace {

/// The lines of a crystal map: ring, detector, layer (if there are any), x, y, z.
CrystalNumbers numbers_of_map(const std::filesystem::path& map, const config::Scanner& scanner) {
    LineReader lines(map);
    CrystalsByPlace places(scanner, map);
    CrystalNumbers numbers(scanner.geometry.crystal_count(), map);
    while (lines.next()) {
        std::string text = lines.line().substr(0, lines.line().find('#'));
        for (char& c : text)
            if (c == ',' || c == '\t') c = ' ';
        std::vector<std::string_view> fields;
        for (std::string_view left = text; !left.empty();) {
            const std::size_t end = std::min(left.find(' '), left.size());
            if (end != 0) fields.push_back(left.substr(0, end));
            left.remove_prefix(std::min(end + 1, left.size()));
        }
        if (fields.empty()) continue;
        const auto refuse = [&] {
            lines.refuse(
                "expected ring (0 to 255), detector (0 to 65535), layer (0 to 15; if there are any), x, y, "
                "z");
        };
        if (fields.size() != 5 && fields.size() != 6) refuse();
        SafirCrystal at;
        const auto number = [&](std::size_t i, std::uint32_t most) {
            const auto value = number_from<std::uint32_t>(fields[i]);
            if (!value || *value > most) refuse();
            return *value;
        };
        at.ring = number(0, SafirCrystal::rings - 1);
        at.detector = number(1, SafirCrystal::detectors - 1);
        if (fields.size() == 6) at.layer = number(2, SafirCrystal::layers - 1);
        geometry::Vector3 point{};
        for (std::size_t i = 0; i < 3; ++i) {
            const auto value = number_from<double>(fields[fields.size() - 3 + i]);
            if (!value) refuse();
            point[i] = *value;
        }
        numbers.add(at.number(), places.crystal_at(point, fmt::format("ring {} detector {} layer {}", at.ring,
                                                                      at.detector, at.layer)));
    }
    return numbers;
}

CrystalNumbers safir_numbers(const ForeignInput& input) {
    const config::Scanner& scanner = input.scanner;
    if (const auto& map = input.options.crystals) return numbers_of_map(*map, scanner);
    // As petlm export numbers them.
    const StirDetectors detectors(scanner, CrystalKinds(scanner));
    CrystalNumbers numbers(scanner.geometry.crystal_count(), input.file);
    for (const std::uint32_t crystal : detectors.crystals())
        numbers.add(detectors.code(crystal), crystal);
    return numbers;
}

/// By the signature of the file; nullopt for one of another format. STIR reads the same three.
std::optional<unsigned> layer_bits_of(std::string_view signature) {
    signature = signature.substr(0, signature.find('\0'));
    if (signature == "SAFIR CListModeData" || signature == "MUPET CListModeData") return safir_layer_bits;
    if (signature == "NeuroLF CListModeData") return neurolf_layer_bits;
    return std::nullopt;
}

class SafirRecords {
  public:
    explicit SafirRecords(const ForeignInput& input)
        : bytes_(input.file),
          milliseconds_(config::TimeUnit::ms, input.scanner.tick_ps),
          numbers_(safir_numbers(input)) {
        std::array<char, safir_signature.size()> signature{};
        if (bytes_.size() >= signature.size()) signature = bytes_.take<decltype(signature)>();
        const auto layer_bits = layer_bits_of({signature.data(), signature.size()});
        if (!layer_bits) {
            throw BadInput(input.file.string() +
                           ": expected a file that begins with 'SAFIR CListModeData', "
                           "'MUPET CListModeData' or 'NeuroLF CListModeData'");
        }
        layer_bits_ = *layer_bits;
        if ((bytes_.size() - safir_signature.size()) % sizeof(std::uint64_t) != 0) {
            throw BadInput(fmt::format("{}: {} bytes; expected 32, and 8 for each record: truncated",
                                       input.file.string(), bytes_.size()));
        }
    }
    bool take(gpu::RecordVector<gpu::Coincidence>& out) {
        while (!bytes_.at_end()) {
            const auto record = bytes_.take<std::uint64_t>();
            if ((record & safir_time_record) != 0) {
                const auto ticks = milliseconds_.ticks(record & safir_milliseconds, config::Rounding::up);
                if (!ticks)
                    bytes_.refuse(fmt::format("a time of {} ms; expected one below 2^63 ticks",
                                              record & safir_milliseconds));
                time_ = *ticks;
                continue;
            }
            const auto [a, b] = crystals_of_safir(record, layer_bits_);
            const gpu::Kind kind =
                (record & safir_delayed_event) != 0 ? gpu::Kind::delayed : gpu::Kind::prompt;
            out.push_back(*pair_of({time_, crystal(a), 0}, {time_, crystal(b), 0}, kind));
            return true;
        }
        return false;
    }
    [[nodiscard]] const ByteReader& bytes() const { return bytes_; }

  private:
    [[nodiscard]] std::uint32_t crystal(const SafirCrystal& at) const {
        const auto crystal = numbers_.crystal(at.number());
        if (!crystal) {
            bytes_.refuse(fmt::format("ring {}, detector {}, layer {}; expected {}", at.ring, at.detector,
                                      at.layer, numbers_.expectation()));
        }
        return *crystal;
    }

    ByteReader bytes_;
    config::WholeTimes milliseconds_;
    CrystalNumbers numbers_;
    unsigned layer_bits_ = safir_layer_bits;
    std::uint64_t time_ = 0;
};

}  // namespace

ForeignFile open_safir(const ForeignInput& input) {
    const auto records = std::make_shared<SafirRecords>(input);
    ForeignFile file;
    file.records = TakeRecords<gpu::Coincidence>([records](auto& out) { return records->take(out); });
    file.bytes = records->bytes().size();
    file.bytes_done = [records] { return records->bytes().done(); };
    file.coverage.loss.seconds_complete = false;
    file.coverage.unknown = {unknown_times,    unknown_clock, unknown_rules,
                             unknown_energies, unknown_dt,    "times of its pairs within a millisecond"};
    return file;
}

}  // namespace petacq::petlm
