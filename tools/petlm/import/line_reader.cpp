#include "tools/petlm/import/line_reader.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "tools/petlm/base/status.hpp"

namespace petacq::petlm {

LineReader::LineReader(const std::filesystem::path& file)
    : path_(file),
      file_(config::open_for_reading(file)),
      size_(std::filesystem::file_size(file)),
      buffer_(65536) {}

bool LineReader::fill() {
    at_ = 0;
    end_ = std::fread(buffer_.data(), 1, buffer_.size(), file_.get());
    if (end_ == 0 && std::ferror(file_.get()) != 0)
        throw std::system_error(EIO, std::generic_category(), path_.string() + ": cannot be read");
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (done_ == 0 && std::string_view(buffer_.data(), end_).starts_with(byte_order_mark))
        done_ = at_ = byte_order_mark.size();
    return end_ != 0;
}

bool LineReader::next() {
    do {
        line_.clear();
        ++number_;
        while (true) {
            if (at_ == end_ && !fill()) {
                if (line_.empty()) return false;
                break;
            }
            const char* const begin = buffer_.data() + at_;
            const auto* const end = static_cast<const char*>(std::memchr(begin, '\n', end_ - at_));
            const std::size_t length = end != nullptr ? static_cast<std::size_t>(end - begin) : end_ - at_;
            line_.append(begin, length);
            at_ += length + (end != nullptr ? 1 : 0);
            done_ += length + (end != nullptr ? 1 : 0);
            if (line_.size() > longest_line) {
                line_.clear();
                refuse(fmt::format("more than {} bytes; expected lines of text", longest_line));
            }
            if (end != nullptr) break;
        }
        if (line_.find('\0') != std::string::npos) refuse("a byte of 0; expected a file of text");
        if (!line_.empty() && line_.back() == '\r') line_.pop_back();
    } while (line_.empty());
    return true;
}

const std::vector<std::string_view>& LineReader::fields(char separator) {
    fields_.clear();
    std::string_view left = line_;
    while (true) {
        const std::size_t end = left.find(separator);
        std::string_view field = left.substr(0, end);
        while (!field.empty() && (field.front() == ' ' || field.front() == '"'))
            field.remove_prefix(1);
        while (!field.empty() && (field.back() == ' ' || field.back() == '"'))
            field.remove_suffix(1);
        fields_.push_back(field);
        if (end == std::string_view::npos) return fields_;
        left.remove_prefix(end + 1);
    }
}

void LineReader::refuse(const std::string& what) const {
    throw BadInput(fmt::format("{}: line {}: {}", path_.string(), number_, what));
}

}  // namespace petacq::petlm
