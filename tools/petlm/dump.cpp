#include <unistd.h>

#include <array>
#include <cerrno>
#include <iostream>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "daemon/listmode/reader.hpp"
#include "tools/petlm/commands.hpp"
#include "tools/petlm/export/csv_lines.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/run.hpp"
#include "tools/petlm/records/status.hpp"

namespace petacq::petlm {
namespace {

/// Thrown when the reader of standard output has gone away.
struct ReaderGone {};

/// Writes lines to standard output.
class Csv {
  public:
    void text(std::string_view words) { at_ = csv_text(at_, words); }
    template <class Record>
    void line(const Record& record) {
        if (buffer_.data() + buffer_.size() - at_ < static_cast<std::ptrdiff_t>(longest_csv_line)) flush();
        at_ = csv_line(at_, record);
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
    std::array<char, std::size_t{1} << 16U> buffer_{};
    char* at_ = buffer_.data();
};

/// Prints records of `kind`, if given, and subtracts their number from `limit`.
void dump_records(daemon::ListModeReader& reader, Csv& csv, std::optional<gpu::Kind> kind,
                  std::uint64_t& limit) {
    const auto print = [&](const auto& records, const auto& wanted) {
        for (std::size_t i = 0; i < records.size() && limit != 0; ++i) {
            if (!wanted(records[i])) continue;
            csv.line(records[i]);
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

}  // namespace

int dump(const DumpOptions& options) {
    const auto& [target, kind, limit] = options;
    int status = ok;
    std::uint64_t left = limit.value_or(UINT64_MAX);
    Csv csv;
    bool first = true;
    try {
        for (const auto& file : record_files(target, daemon::RecordKind::coincidences)) {
            daemon::ListModeReader reader(file);
            if (kind && reader.kind() != daemon::RecordKind::coincidences) {
                throw UsageError(reader.path().string() + " holds " + daemon::name_of(reader.kind()) +
                                 ": --kind is for coincidences");
            }
            if (std::exchange(first, false)) csv.text(csv_header(reader.kind()));
            dump_records(reader, csv, kind, left);
            csv.flush();
            if (reader.condition().state != daemon::FileState::complete) {
                std::cerr << "petlm: " << reader.path().string() << ": " << reader.condition().summary()
                          << '\n';
                status = has_problems;
            }
            if (left == 0) break;
        }
    } catch (const ReaderGone&) {
        return ok;
    }
    return status;
}

}  // namespace petacq::petlm
