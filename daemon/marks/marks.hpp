// What operators note while a run is in progress: marks.jsonl in the directory of the run, a line for each.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/system/file.hpp"

namespace petacq::daemon {

inline constexpr const char* marks_file = "marks.jsonl";
inline constexpr std::size_t max_mark_bytes = 256;  ///< of a text
inline constexpr std::size_t max_marks = 1000;      ///< of a run

struct Mark {
    std::chrono::system_clock::time_point time;
    /// The detector time on which the sources agreed then; absent: no data had arrived.
    std::optional<std::uint64_t> ticks;
    std::string text;
};

/// {"utc": ..., "ticks": ..., "text": ...}
nlohmann::json to_json(const Mark& mark);
/// Throws std::invalid_argument, which says what was expected, unless the text can be that of a mark.
void check_mark_text(const std::string& text);

/// Writes the marks of a run. One thread at a time.
class MarksFile {
  public:
    /// The file appears with the first mark.
    explicit MarksFile(std::filesystem::path path) : path_(std::move(path)) {}

    /// Returns when the mark is on the disk. Throws std::system_error; the file then holds whole lines still.
    void append(const Mark& mark);
    /// Absent: there is no mark.
    [[nodiscard]] std::optional<FileIdentity> identity() const;

  private:
    const std::filesystem::path path_;
    std::optional<File> file_;
};

/// The marks in the directory of a run, in the order in which they were made. Lines that are none, such as
/// the last one of a run that a power cut ended, are left out. Throws std::system_error if the file cannot be
/// read.
std::vector<Mark> read_marks(const std::filesystem::path& run);
/// An array of them.
nlohmann::json to_json(const std::vector<Mark>& marks);

}  // namespace petacq::daemon
