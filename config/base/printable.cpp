#include "config/base/printable.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <streambuf>

namespace petacq::config {

namespace {

/// A character of UTF-8 at the front of a text.
struct Character {
    std::size_t bytes = 0;  ///< 0: the front is not UTF-8
    char32_t code = 0;
    bool cut = false;  ///< the text ends within the character
};

Character first_character(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return {1, lead};
    const std::size_t bytes = lead >= 0xF0 && lead <= 0xF4 ? 4 : lead >= 0xE0 && lead < 0xF0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4) return {};
    char32_t code = lead & (0xFFU >> (bytes + 1));
    for (std::size_t i = 1; i < bytes; ++i) {
        if (i == text.size()) return {0, 0, true};
        if ((byte(i) & 0xC0U) != 0x80) return {};
        code = code << 6U | (byte(i) & 0x3FU);
    }
    const bool too_long = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
    if (too_long || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {};
    return {bytes, code};
}

bool acts_on_terminals(char32_t c) {
    struct CharacterRange {
        char32_t first;
        char32_t last;
    };
    // Controls; soft hyphen; marks of direction, embeddings, overrides and isolates; separators of lines and
    // paragraphs; invisible characters and tags.
    constexpr CharacterRange ranges[] = {{0, 0x1F},        {0x7F, 0x9F},      {0xAD, 0xAD},
                                         {0x61C, 0x61C},   {0x180E, 0x180E},  {0x200B, 0x200F},
                                         {0x2028, 0x202E}, {0x2060, 0x206F},  {0xFEFF, 0xFEFF},
                                         {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F}};
    for (const CharacterRange& range : ranges)
        if (c >= range.first && c <= range.last) return true;
    return false;
}

/// Appends printable text. Returns how much of it was taken: all, unless it ends within a character and
/// `more` may follow.
std::size_t append_printable(std::string& out, std::string_view text, std::string_view kept, bool more) {
    std::size_t at = 0;
    while (at < text.size()) {
        const Character c = first_character(text.substr(at));
        if (c.cut && more) break;
        const auto to = std::back_inserter(out);
        if (c.bytes == 0) {
            fmt::format_to(to, "\\x{:02x}", static_cast<unsigned char>(text[at]));
        } else if (!acts_on_terminals(c.code) ||
                   (c.bytes == 1 && kept.find(text[at]) != std::string_view::npos)) {
            out.append(text.substr(at, c.bytes));
        } else if (c.code < 0x10000) {
            fmt::format_to(to, "\\u{:04x}", static_cast<std::uint32_t>(c.code));
        } else {  // a pair of surrogates, as in JSON
            const auto above = static_cast<std::uint32_t>(c.code) - 0x10000;
            fmt::format_to(to, "\\u{:04x}\\u{:04x}", 0xD800 + (above >> 10U), 0xDC00 + (above & 0x3FFU));
        }
        at += c.bytes == 0 ? 1 : c.bytes;
    }
    return at;
}

}  // namespace

std::string printable(std::string_view text, std::string_view kept) {
    std::string out;
    out.reserve(text.size());
    append_printable(out, text, kept, false);
    return out;
}

class PrintableOutput::Filter final : public std::streambuf {
  public:
    explicit Filter(std::ostream& stream) : stream_(stream), to_(stream.rdbuf(this)) {}
    Filter(const Filter&) = delete;
    Filter& operator=(const Filter&) = delete;
    ~Filter() override {
        pass(false);
        stream_.rdbuf(to_);
    }

  protected:
    int_type overflow(int_type c) override {
        if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
        waiting_ += traits_type::to_char_type(c);
        return pass(true) ? c : traits_type::eof();
    }
    std::streamsize xsputn(const char* text, std::streamsize count) override {
        waiting_.append(text, static_cast<std::size_t>(count));
        return pass(true) ? count : 0;
    }
    int sync() override { return to_->pubsync(); }

  private:
    /// The begin of a character waits for its end, if there may be `more`.
    bool pass(bool more) {
        std::string out;
        waiting_.erase(0, append_printable(out, waiting_, "\n\t", more));
        const auto bytes = static_cast<std::streamsize>(out.size());
        return to_->sputn(out.data(), bytes) == bytes;
    }

    std::ostream& stream_;
    std::streambuf* const to_;
    std::string waiting_;
};

PrintableOutput::PrintableOutput()
    : out_(std::make_unique<Filter>(std::cout)), errors_(std::make_unique<Filter>(std::cerr)) {}

PrintableOutput::~PrintableOutput() = default;

}  // namespace petacq::config
