#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iostream>
#include <string_view>
#include <system_error>

#include "daemon/listmode_reader.hpp"
#include "daemon/run_directory.hpp"
#include "tools/petlm/commands.hpp"

namespace petacq::petlm {
namespace {

/// Nobody reads standard output any more.
struct ReaderGone {};

class Csv {
  public:
    Csv& text(std::string_view word) {
        std::memcpy(at_, word.data(), word.size());
        at_ += word.size();
        return *this;
    }
    // Of a float, the shortest text that reads back to the same value.
    template <class Number>
    Csv& number(Number value, char behind) {
        at_ = std::to_chars(at_, buffer_.end(), value).ptr;
        *at_++ = behind;
        return *this;
    }
    void end_line() {
        if (buffer_.end() - at_ < longest_line) flush();
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
    static constexpr std::ptrdiff_t longest_line = 256;
    std::array<char, std::size_t{1} << 16U> buffer_{};
    char* at_ = buffer_.data();
};

void line(Csv& csv, const gpu::Coincidence& c) {
    switch (c.kind) {
        case gpu::Kind::prompt:
            csv.text("prompt,");
            break;
        case gpu::Kind::delayed:
            csv.text("delayed,");
            break;
        default:
            csv.number(static_cast<std::uint32_t>(c.kind), ',');
    }
    csv.number(c.time, ',').number(c.dt, ',').number(c.crystal_a, ',').number(c.crystal_b, ',');
    csv.number(c.energy_a, ',').number(c.energy_b, '\n').end_line();
}

void line(Csv& csv, const gpu::Single& s) {
    csv.number(s.time, ',').number(s.crystal, ',').number(s.energy, '\n').end_line();
}

void dump_records(daemon::ListModeReader& reader, Csv& csv, std::optional<gpu::Kind> kind,
                  std::uint64_t limit) {
    const bool pairs = reader.kind() == daemon::RecordKind::coincidences;
    csv.text(pairs ? "kind,time,dt,crystal_a,crystal_b,energy_a,energy_b\n" : "time,crystal,energy\n");
    while (limit != 0 && reader.next()) {
        if (!pairs) {
            for (const auto& single : reader.singles()) {
                if (limit == 0) break;
                line(csv, single);
                --limit;
            }
            continue;
        }
        for (const auto& pair : reader.coincidences()) {
            if (limit == 0) break;
            if (kind && pair.kind != *kind) continue;
            line(csv, pair);
            --limit;
        }
    }
    csv.flush();
}

}  // namespace

int dump(const std::filesystem::path& file, std::optional<gpu::Kind> kind,
         std::optional<std::uint64_t> limit) {
    const bool is_run = std::filesystem::is_directory(file);
    daemon::ListModeReader reader(is_run ? file / daemon::coincidences_file : file);
    if (kind && reader.kind() == daemon::RecordKind::singles) {
        throw UsageError(reader.path().string() + " holds singles: --kind is for coincidences");
    }
    try {
        Csv csv;
        dump_records(reader, csv, kind, limit.value_or(UINT64_MAX));
    } catch (const ReaderGone&) {
        return ok;
    }
    if (reader.condition().state == daemon::FileState::complete) return ok;
    std::cerr << "petlm: " << reader.path().string() << ": " << reader.condition().summary() << '\n';
    return has_problems;
}

}  // namespace petacq::petlm
