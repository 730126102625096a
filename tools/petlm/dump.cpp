#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/base/answer.hpp"
#include "daemon/listmode/reader.hpp"
#include "daemon/seconds/reader.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/commands.hpp"
#include "tools/petlm/export/csv_lines.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {
namespace {

/// Thrown when the reader of standard output has gone away.
struct ReaderGone {};

/// Writes lines to standard output.
class LineOutput {
  public:
    void text(std::string_view words) {
        while (words.size() > room()) {
            const std::size_t some = room();
            at_ = csv_text(at_, words.substr(0, some));
            words.remove_prefix(some);
            flush();
        }
        at_ = csv_text(at_, words);
    }
    template <class Record>
    void line(const Record& record, CsvTold told) {
        if (room() < longest_csv_line) flush();
        at_ = csv_line(at_, record, told);
    }
    void flush() {
        for (const char* from = buffer_.data(); from != at_;) {
            const ssize_t wrote = ::write(STDOUT_FILENO, from, static_cast<std::size_t>(at_ - from));
            if (wrote >= 0) {
                from += wrote;
            } else if (errno == EPIPE) {
                throw ReaderGone();
            } else if (errno != EINTR) {
                throw std::system_error(errno, std::generic_category(), "standard output");
            }
        }
        at_ = buffer_.data();
    }

  private:
    [[nodiscard]] std::size_t room() const {
        return static_cast<std::size_t>(buffer_.data() + buffer_.size() - at_);
    }
    std::array<char, std::size_t{1} << 16U> buffer_{};
    char* at_ = buffer_.data();
};

/// A number as it is, a word in quotes; null for a number that JSON does not have.
void append_value(std::string& line, std::string_view cell) {
    const bool number = cell.find_first_of("0123456789") != std::string_view::npos;
    const bool no_number = cell.ends_with("nan") || cell.ends_with("inf");
    if (no_number) {
        line += "null";
    } else if (number) {
        line += cell;
    } else {
        line.append("\"").append(cell).append("\"");
    }
}

void append_key(std::string& line, std::string_view name) {
    line.append(line.empty() ? "{\"" : ",\"").append(name).append("\":");
}

/// Takes what stands before the next comma, or the end of the line.
std::string_view take_cell(std::string_view& rest) {
    const std::string_view cell = rest.substr(0, rest.find_first_of(",\n"));
    rest.remove_prefix(std::min(rest.size(), cell.size() + 1));
    return cell;
}

/// A record as an object: the columns of its line of CSV, by their names.
template <class Record>
void write_json(LineOutput& out, std::string& line, std::string_view names, const Record& record,
                CsvTold told) {
    std::array<char, longest_csv_line> csv{};
    const char* const end = csv_line(csv.data(), record, told);
    std::string_view cells(csv.data(), static_cast<std::size_t>(end - csv.data()));
    line.clear();
    while (!names.empty()) {
        append_key(line, take_cell(names));
        append_value(line, take_cell(cells));
    }
    out.text(line += "}\n");
}

CsvTold told_by(const daemon::ListModeReader& reader) {
    try {
        return CsvTold::of(daemon::coverage_of(reader.description(), nullptr, false));
    } catch (const std::invalid_argument&) {
        return {};  // records of a file whose description is damaged are shown as they are
    }
}

/// Prints records of `kind`, if given, and subtracts their number from `limit`.
void dump_records(daemon::ListModeReader& reader, LineOutput& out, bool as_json,
                  std::optional<gpu::Kind> kind, CsvTold told, std::uint64_t& limit) {
    std::string line;
    const std::string names = csv_header(reader.kind(), told);
    const auto print = [&](const auto& records, const auto& wanted) {
        for (std::size_t i = 0; i < records.size() && limit != 0; ++i) {
            if (!wanted(records[i])) continue;
            if (as_json) {
                write_json(out, line, names, records[i], told);
            } else {
                out.line(records[i], told);
            }
            --limit;
        }
    };
    while (limit != 0 && reader.next()) {
        with_records(reader, [&](auto records) {
            print(records, [&](const auto& record) {
                if constexpr (std::is_same_v<decltype(record), const gpu::Coincidence&>) {
                    return !kind || record.kind == *kind;
                } else {
                    return true;
                }
            });
        });
    }
}

/// 0, or 1 with a line for the operator.
int check_complete(const daemon::ListModeReader& reader) {
    if (reader.condition().state == daemon::FileState::complete) return ok;
    config::print_warning("petlm", reader.path().string() + ": " + reader.condition().summary());
    return has_problems;
}

/// The fields in a line of each second: those that are one number, or start, length and the one asked for.
std::vector<daemon::SecondField> columns_of(const daemon::SecondsReader& reader,
                                            const std::optional<std::string>& field) {
    std::vector<daemon::SecondField> columns;
    if (!field) {
        for (const daemon::SecondField& f : reader.fields())
            if (f.shape == daemon::FieldShape::number) columns.push_back(f);
        return columns;
    }
    const daemon::SecondField* const found = reader.find(*field);
    if (found == nullptr) throw UsageError("--field " + *field + ": the seconds have no such field");
    columns = {reader.fields()[0], reader.fields()[1], *found};
    return columns;
}

std::string csv_names(const std::vector<daemon::SecondField>& columns) {
    std::string line;
    for (const daemon::SecondField& column : columns) {
        for (std::size_t i = 0; i < column.count; ++i) {
            line.append(line.empty() ? "" : ",").append(column.name);
            if (column.shape != daemon::FieldShape::number) line += '[' + std::to_string(i) + ']';
        }
    }
    return line + '\n';
}

std::string csv_values(const daemon::SecondsReader& reader, const std::vector<daemon::SecondField>& columns) {
    std::string line;
    for (const daemon::SecondField& column : columns) {
        const daemon::FieldValues values = reader.values(column);
        for (std::size_t i = 0; i < values.size(); ++i)
            line.append(line.empty() ? "" : ",").append(values.text(i));
    }
    return line + '\n';
}

/// A field that is not one number is an array.
std::string json_values(const daemon::SecondsReader& reader,
                        const std::vector<daemon::SecondField>& columns) {
    std::string line;
    for (const daemon::SecondField& column : columns) {
        append_key(line, column.name);
        const daemon::FieldValues values = reader.values(column);
        const bool array = column.shape != daemon::FieldShape::number;
        if (array) line += '[';
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (i != 0) line += ',';
            append_value(line, values.text(i));
        }
        if (array) line += ']';
    }
    return line + "}\n";
}

int dump_seconds(const std::filesystem::path& file, const DumpOptions& options, LineOutput& out) {
    daemon::SecondsReader reader(file);
    const std::vector<daemon::SecondField> columns = columns_of(reader, options.field);
    if (!options.as_json) out.text(csv_names(columns));
    for (std::uint64_t left = options.limit.value_or(UINT64_MAX); left != 0 && reader.next(); --left)
        out.text(options.as_json ? json_values(reader, columns) : csv_values(reader, columns));
    out.flush();
    return check_complete(reader.reader());
}

daemon::RecordKind wanted_kind(const DumpOptions& options) {
    if (options.seconds || options.field) return daemon::RecordKind::seconds;
    if (options.singles) return daemon::RecordKind::singles;
    return options.triples ? daemon::RecordKind::triples : daemon::RecordKind::coincidences;
}

/// The files to print and whether they hold seconds.
std::pair<std::vector<std::filesystem::path>, bool> files_to_dump(const DumpOptions& options) {
    const daemon::RecordKind wanted = wanted_kind(options);
    const auto files = record_files(options.target, wanted);
    const daemon::RecordKind kind = daemon::ListModeReader(files.front()).kind();
    if (wanted != daemon::RecordKind::coincidences && kind != wanted)
        throw UsageError(files.front().string() + " holds no " + daemon::name_of(wanted));
    const bool found = kind == daemon::RecordKind::seconds;
    if (found && options.kind)
        throw UsageError(files.front().string() + " holds seconds: --kind is for coincidences");
    return {files, found};
}

}  // namespace

int dump(const DumpOptions& options) {
    int status = ok;
    std::uint64_t left = options.limit.value_or(UINT64_MAX);
    const auto& kind = options.kind;
    LineOutput out;
    std::optional<CsvTold> told;  // by all files: they are of one run
    try {
        const auto [files, seconds] = files_to_dump(options);
        if (seconds) return dump_seconds(files.front(), options, out);
        for (const auto& file : files) {
            daemon::ListModeReader reader(file);
            if (kind && reader.kind() != daemon::RecordKind::coincidences) {
                throw UsageError(reader.path().string() + " holds " + daemon::name_of(reader.kind()) +
                                 ": --kind is for coincidences");
            }
            if (!told) {
                told = told_by(reader);
                if (!options.as_json) out.text(csv_header(reader.kind(), *told));
            }
            dump_records(reader, out, options.as_json, kind, *told, left);
            out.flush();
            status = std::max(status, check_complete(reader));
            if (left == 0) break;
        }
    } catch (const ReaderGone&) {
        return ok;
    }
    return status;
}

}  // namespace petacq::petlm
