#include "daemon/marks/marks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "daemon/system/utc.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

std::optional<Mark> mark_of(const std::string& line) {
    const json document = json::parse(line, nullptr, false);
    if (!document.is_object()) return {};
    const auto text = document.find("text");
    const auto utc = document.find("utc");
    if (text == document.end() || !text->is_string() || utc == document.end() || !utc->is_string()) return {};
    const auto time = utc_time(utc->get_ref<const std::string&>());
    if (!time) return {};
    Mark mark{*time, {}, text->get<std::string>()};
    if (const auto ticks = document.find("ticks"); ticks != document.end() && ticks->is_number_unsigned())
        mark.ticks = ticks->get<std::uint64_t>();
    return mark;
}

}  // namespace

json to_json(const Mark& mark) {
    return {{"utc", utc_text(mark.time)},
            {"ticks", mark.ticks ? json(*mark.ticks) : json()},
            {"text", mark.text}};
}

json to_json(const std::vector<Mark>& marks) {
    json all = json::array();
    for (const Mark& mark : marks)
        all.push_back(to_json(mark));
    return all;
}

void check_mark_text(const std::string& text) {
    // Control characters would break lines and terminals.
    const bool one_line = std::none_of(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    if (one_line && !text.empty() && text.size() <= max_mark_bytes) return;
    const std::string found = one_line ? fmt::format("{} bytes", text.size()) : "control characters";
    throw std::invalid_argument(
        fmt::format("text: expected 1 to {} bytes on one line, found {}", max_mark_bytes, found));
}

void MarksFile::append(const Mark& mark) {
    const bool first = !file_;
    if (first) file_.emplace(path_);
    file_->append(to_json(mark).dump(-1, ' ', false, json::error_handler_t::replace) + '\n');
    file_->sync();
    if (first) sync_directory_of(path_);
}

std::optional<FileIdentity> MarksFile::identity() const {
    return file_ ? std::optional(file_->identity()) : std::nullopt;
}

std::vector<Mark> read_marks(const std::filesystem::path& run) {
    // An escaped byte takes six, and the rest of a line less than a hundred.
    constexpr std::size_t max_bytes = max_marks * (6 * max_mark_bytes + 100);
    const std::filesystem::path file = run / marks_file;
    std::error_code error;
    const bool exists = std::filesystem::exists(file, error);
    if (error) throw std::system_error(error, file.string());
    if (!exists) return {};
    std::ifstream in(file, std::ios::binary);
    if (!in) throw std::system_error(errno, std::generic_category(), file.string());
    std::string text(max_bytes, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (in.bad()) throw std::system_error(EIO, std::generic_category(), file.string());
    text.resize(static_cast<std::size_t>(in.gcount()));
    std::vector<Mark> marks;
    for (std::size_t begin = 0; begin < text.size() && marks.size() < max_marks;) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        if (auto mark = mark_of(text.substr(begin, end - begin))) marks.push_back(*std::move(mark));
        begin = end + 1;
    }
    return marks;
}

}  // namespace petacq::daemon
