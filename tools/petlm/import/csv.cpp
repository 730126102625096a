// CSV: our own exports, and tables of other software. docs/reference/formats/csv.md.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>

#include "config/base/error.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/csv_lines.hpp"
#include "tools/petlm/import/csv_columns.hpp"
#include "tools/petlm/import/export_readme.hpp"
#include "tools/petlm/import/foreign_file.hpp"
#include "tools/petlm/import/line_reader.hpp"

namespace petacq::petlm {
namespace {

using Fields = std::vector<std::string_view>;

template <class Number>
Number number_of(const LineReader& lines, std::string_view text, const char* what) {
    const auto number = number_from<Number>(text);
    if (!number)
        lines.refuse(
            fmt::format("{} '{}': expected {}", what, text,
                        std::is_floating_point_v<Number> ? "a number" : "a whole number in its range"));
    return *number;
}

float energy_of(const LineReader& lines, std::string_view text, const char* what) {
    const auto energy = number_of<float>(lines, text, what);
    if (!std::isfinite(energy) || energy < 0)
        lines.refuse(fmt::format("{} '{}': expected a finite number of at least 0", what, text));
    return energy;
}

gpu::Kind kind_of(const LineReader& lines, std::string_view text) {
    if (text == "prompt") return gpu::Kind::prompt;
    if (text == "delayed") return gpu::Kind::delayed;
    lines.refuse(fmt::format("kind '{}': expected prompt or delayed", text));
}

/// The records of our own export. Numbers read back to what they were.
class OwnLines {
  public:
    OwnLines(const LineReader& lines, CsvTold told, std::uint32_t crystals)
        : lines_(lines), told_(told), crystals_(crystals) {}

    void read(const Fields& f, gpu::Single& s) const {
        s = {number_of<std::uint64_t>(lines_, f[0], "time"), crystal(f[1]),
             told_.energies ? energy_of(lines_, f[2], "energy") : 0};
    }
    void read(const Fields& f, gpu::Coincidence& c) const { read_pair(f, c); }
    void read(const Fields& f, gpu::Triple& t) const {
        const std::size_t at = read_pair(f, t.pair);
        if (f[at] != "coincident" && f[at] != "delayed")
            lines_.refuse(fmt::format("gamma '{}': expected coincident or delayed", f[at]));
        t.third = f[at] == "coincident" ? gpu::ThirdPhoton::coincident : gpu::ThirdPhoton::delayed;
        t.gamma_dt = number_of<std::int32_t>(lines_, f[at + 1], "gamma_dt");
        t.gamma_crystal = crystal(f[at + 2]);
        t.gamma_energy = energy_of(lines_, f[at + 3], "gamma_energy");
    }
    void read(const Fields& f, gpu::Tag& t) const {
        constexpr unsigned channels = 16;
        t.time = number_of<std::uint64_t>(lines_, f[0], "time");
        t.source = number_of<std::uint16_t>(lines_, f[1], "source");
        t.channel = number_of<std::uint8_t>(lines_, f[2], "channel");
        if (t.channel >= channels) lines_.refuse(fmt::format("channel {}: expected 0 to 15", f[2]));
        const auto word = std::find(csv_tag_kinds.begin(), csv_tag_kinds.end(), f[3]);
        t.kind = word != csv_tag_kinds.end() ? static_cast<std::uint8_t>(word - csv_tag_kinds.begin())
                                             : number_of<std::uint8_t>(lines_, f[3], "kind");
        t.value = t.kind == static_cast<std::uint8_t>(gpu::TagKind::position)
                      ? static_cast<std::uint32_t>(number_of<std::int32_t>(lines_, f[4], "value"))
                      : number_of<std::uint32_t>(lines_, f[4], "value");
    }

  private:
    /// Returns the number of its fields.
    std::size_t read_pair(const Fields& f, gpu::Coincidence& c) const {
        c = {};
        c.kind = kind_of(lines_, f[0]);
        c.time = number_of<std::uint64_t>(lines_, f[1], "time");
        std::size_t at = 2;
        if (told_.dt) c.dt = number_of<std::uint32_t>(lines_, f[at++], "dt");
        c.crystal_a = crystal(f[at++]);
        c.crystal_b = crystal(f[at++]);
        if (told_.energies) {
            c.energy_a = energy_of(lines_, f[at++], "energy_a");
            c.energy_b = energy_of(lines_, f[at++], "energy_b");
        }
        return at;
    }
    [[nodiscard]] std::uint32_t crystal(std::string_view text) const {
        const auto number = number_of<std::uint32_t>(lines_, text, "crystal");
        if (number >= crystals_)
            lines_.refuse(fmt::format("crystal {}: expected a number below {}, the crystals of the scanner",
                                      number, crystals_));
        return number;
    }

    const LineReader& lines_;
    CsvTold told_;
    std::uint32_t crystals_;
};

template <class Record>
TakeRecords<Record> own_records(const std::shared_ptr<LineReader>& lines, CsvTold told,
                                std::uint32_t crystals, std::size_t columns) {
    return [lines, own = OwnLines(*lines, told, crystals), columns](gpu::RecordVector<Record>& out) {
        if (!lines->next()) return false;
        const Fields& fields = lines->fields(',');
        if (fields.size() != columns)
            lines->refuse(fmt::format("{} columns; expected {}", fields.size(), columns));
        own.read(fields, out.emplace_back());
        return true;
    };
}

/// Sets what takes the records if the first line is that of our export.
bool open_own(const std::shared_ptr<LineReader>& lines, std::uint32_t crystals, ForeignFile& file) {
    const std::string first = lines->line() + '\n';
    const auto columns = static_cast<std::size_t>(std::count(first.begin(), first.end(), ',') + 1);
    for (const CsvTold told :
         {CsvTold{}, CsvTold{true, false}, CsvTold{false, true}, CsvTold{false, false}}) {
        const auto is_of = [&](daemon::RecordKind kind) { return first == csv_header(kind, told); };
        if (is_of(daemon::RecordKind::singles)) {
            file.records = own_records<gpu::Single>(lines, told, crystals, columns);
        } else if (is_of(daemon::RecordKind::tags)) {
            file.records = own_records<gpu::Tag>(lines, told, crystals, columns);
        } else if (is_of(daemon::RecordKind::triples)) {
            file.records = own_records<gpu::Triple>(lines, told, crystals, columns);
        } else if (is_of(daemon::RecordKind::coincidences)) {
            file.records = own_records<gpu::Coincidence>(lines, told, crystals, columns);
        } else {
            continue;
        }
        if (!told.energies) file.coverage.unknown.emplace_back(unknown_energies);
        if (!told.dt) file.coverage.unknown.emplace_back(unknown_dt);
        return true;
    }
    return false;
}

/// A table of other software.
class ForeignTable {
  public:
    ForeignTable(std::shared_ptr<LineReader> lines, char separator, const ForeignInput& input)
        : lines_(std::move(lines)),
          separator_(separator),
          columns_(csv_columns(input.options.columns, lines_->fields(separator))),
          waiting_(!columns_.has_names),
          kind_(input.kind),
          tick_ps_(input.scanner.tick_ps),
          numbers_(input.options.crystals
                       ? crystal_number_table(*input.options.crystals, input.scanner.geometry.crystal_count())
                       : CrystalNumbers(input.scanner.geometry.crystal_count())) {}
    [[nodiscard]] const CsvColumns& columns() const { return columns_; }

    bool take(gpu::RecordVector<gpu::Single>& out) {
        if (!next()) return false;
        out.push_back({time(*columns_.time), crystal(*columns_.crystal), energy(columns_.energy)});
        return true;
    }
    bool take(gpu::RecordVector<gpu::Coincidence>& out) {
        if (!next()) return false;
        const gpu::Single a{time(*columns_.time), crystal(*columns_.crystal_a), energy(columns_.energy_a)};
        gpu::Single b{a.time, crystal(*columns_.crystal_b), energy(columns_.energy_b)};
        if (columns_.time_b) b.time = time(*columns_.time_b);
        if (columns_.dt) b.time = later(a.time);
        const auto pair = pair_of(a, b, kind());
        if (!pair) lines_->refuse(too_far_apart);
        out.push_back(*pair);
        return true;
    }

  private:
    bool next() {
        // Without names the first line has been read, and is a record.
        if (!std::exchange(waiting_, false) && !lines_->next()) return false;
        fields_ = &lines_->fields(separator_);
        return true;
    }
    [[nodiscard]] std::string_view text(const CsvColumn& column) const {
        if (column.at >= fields_->size())
            lines_->refuse(fmt::format("{} columns; expected at least {}", fields_->size(), column.at + 1));
        return (*fields_)[column.at];
    }
    [[nodiscard]] std::uint64_t ticks(std::string_view text, const CsvColumn& column) const {
        if (!column.time) {
            // Whole numbers may be written as 12.0.
            std::string_view whole = text;
            if (const std::size_t point = whole.find('.');
                point != std::string_view::npos &&
                whole.find_first_not_of('0', point + 1) == std::string_view::npos)
                whole = whole.substr(0, point);
            const auto number = number_from<std::uint64_t>(whole);
            if (!number) lines_->refuse(fmt::format("time '{}': expected whole ticks of at least 0", text));
            return *number;
        }
        try {
            return config::ticks_of(without_needless_digits(text), *column.time, tick_ps_,
                                    config::Rounding::nearest);
        } catch (const config::Error& error) {
            lines_->refuse(std::string("time: ") + error.what());
        }
    }
    /// A double has 17 digits; other programs write more of it.
    static std::string without_needless_digits(std::string_view text) {
        constexpr std::size_t enough = 18;
        const std::size_t end = std::min(text.find_first_of("eE"), text.size());
        const std::size_t first = text.find_first_of("123456789");
        if (first >= end) return std::string(text);
        std::string shorter(text.substr(0, first));
        std::size_t digits = 0;
        bool after_point = shorter.find('.') != std::string::npos;
        for (const char c : text.substr(first, end - first)) {
            if (c == '.') after_point = true;
            if (c != '.' && ++digits > enough) {
                if (after_point) continue;
                shorter += '0';
                continue;
            }
            shorter += c;
        }
        return shorter.append(text.substr(end));
    }
    [[nodiscard]] std::uint64_t time(const CsvColumn& column) const { return ticks(text(column), column); }
    /// The other photon may be the earlier one.
    [[nodiscard]] std::uint64_t later(std::uint64_t time) const {
        std::string_view dt = text(*columns_.dt);
        const bool earlier = dt.starts_with('-');
        if (earlier) dt.remove_prefix(1);
        const std::uint64_t apart = ticks(dt, *columns_.dt);
        if (earlier ? apart > time : apart > UINT64_MAX - time)
            lines_->refuse(
                fmt::format("dt '{}': expected a photon at 0 to 2^64-1 ticks", text(*columns_.dt)));
        return earlier ? time - apart : time + apart;
    }
    [[nodiscard]] std::uint32_t crystal(const CsvColumn& column) const {
        const std::string_view number = text(column);
        const auto found = numbers_.crystal(number_of<std::uint64_t>(*lines_, number, "crystal"));
        if (!found) lines_->refuse(fmt::format("crystal {}: expected {}", number, numbers_.expectation()));
        return *found;
    }
    [[nodiscard]] float energy(const std::optional<CsvColumn>& column) const {
        if (!column) return 0;
        if (column->keV == 1) return energy_of(*lines_, text(*column), "energy");
        const double energy = number_of<double>(*lines_, text(*column), "energy") * column->keV;
        if (!(energy >= 0 && energy < 1e30))
            lines_->refuse(fmt::format("energy '{}': expected a finite number of at least 0", text(*column)));
        return static_cast<float>(energy);
    }
    [[nodiscard]] gpu::Kind kind() const {
        return columns_.pair_kind ? kind_of(*lines_, text(*columns_.pair_kind)) : kind_;
    }

    std::shared_ptr<LineReader> lines_;
    char separator_;
    CsvColumns columns_;
    bool waiting_;
    gpu::Kind kind_;
    double tick_ps_;
    CrystalNumbers numbers_;
    const Fields* fields_ = nullptr;
};

/// That of which the first line has most.
char separator_of(const std::string& line) {
    char best = ',';
    for (const char candidate : {',', ';', '\t'})
        if (std::count(line.begin(), line.end(), candidate) > std::count(line.begin(), line.end(), best))
            best = candidate;
    return best;
}

}  // namespace

ForeignFile open_csv(const ForeignInput& input) {
    const auto lines = std::make_shared<LineReader>(input.file);
    ForeignFile file;
    file.bytes = lines->size();
    file.bytes_done = [lines] { return lines->done(); };
    file.coverage.unknown = {unknown_times, unknown_clock};
    file.coverage.loss.seconds_complete = false;
    const auto state_ticks = [&] {
        if (const auto remark = remark_of_ticks(input))
            file.remarks = [remark] { return std::vector{*remark}; };
    };
    if (!lines->next())
        throw BadInput(input.file.string() + ": empty; expected a line of names, then the records");
    if (input.options.columns.empty()) {
        if (!open_own(lines, input.scanner.geometry.crystal_count(), file)) {
            lines->refuse(
                "expected the names of a table of petlm export; --columns says which columns another one "
                "has");
        }
        if (input.options.crystals) throw UsageError("--crystals: expected with --columns");
        if (input.options.delayeds) throw UsageError("--delayeds: expected with --columns");
        file.coverage.unknown.emplace_back(unknown_rules);
        state_ticks();
        return file;
    }
    const auto table = std::make_shared<ForeignTable>(lines, separator_of(lines->line()), input);
    const CsvColumns& columns = table->columns();
    for (const auto& times : {columns.time, columns.time_b, columns.dt})
        if (times && !times->time) state_ticks();
    if (columns.kind == daemon::RecordKind::singles) {
        file.records = TakeRecords<gpu::Single>([table](auto& out) { return table->take(out); });
        if (!columns.energy) file.coverage.unknown.emplace_back(unknown_energies);
    } else {
        file.records = TakeRecords<gpu::Coincidence>([table](auto& out) { return table->take(out); });
        if (!columns.energy_a) file.coverage.unknown.emplace_back(unknown_energies);
        if (!columns.dt && !columns.time_b) file.coverage.unknown.emplace_back(unknown_dt);
        if (columns.pair_kind && input.options.delayeds)
            throw UsageError("--delayeds: expected without kind=COLUMN, which tells them");
    }
    file.coverage.unknown.emplace_back(unknown_rules);
    return file;
}

}  // namespace petacq::petlm
