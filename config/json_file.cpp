#include "config/json_file.hpp"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "config/file.hpp"

namespace petacq::config {

namespace {

using nlohmann::json;

/// Length of the well-formed UTF-8 sequence at the start of `s`; 0 if there is none.
std::size_t utf8_sequence(std::string_view s) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(s[i]); };
    const std::uint8_t lead = byte(0);
    if (lead < 0x80) return 1;
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || s.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return 0;
    }
    // Overlong forms, surrogates, and code points above U+10FFFF.
    const std::uint8_t second = byte(1);
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
        (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) {
        return 0;
    }
    return length;
}

void check_utf8(std::string_view text) {
    std::size_t line = 1;
    std::size_t line_start = 0;
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t length = utf8_sequence(text.substr(i));
        if (length == 0) {
            throw Error("not UTF-8 text at line " + std::to_string(line) + ", column " +
                        std::to_string(i - line_start + 1) + " (byte " + std::to_string(i) +
                        "); expected a JSON document");
        }
        if (text[i] == '\n') {
            ++line;
            line_start = i + 1;
        }
        i += length;
    }
}

/// Refuses duplicate keys and deep nesting while the parser runs, before a hostile file can fill the memory.
class StructureCheck {
  public:
    bool operator()(int depth, json::parse_event_t event, const json& parsed) {
        if (depth > max_json_depth)
            throw Error("nested deeper than " + std::to_string(max_json_depth) + " levels");
        if (event == json::parse_event_t::object_start) {
            open_.emplace_back();
        } else if (event == json::parse_event_t::object_end) {
            open_.pop_back();
        } else if (event == json::parse_event_t::key) {
            const auto& key = parsed.get_ref<const std::string&>();
            if (!open_.back().keys.insert(key).second)
                throw Error(path() + ": duplicate key " + parsed.dump());
            open_.back().current = key;
        }
        return true;
    }

  private:
    struct Object {
        std::set<std::string> keys;
        std::string current;
    };
    [[nodiscard]] std::string path() const {
        std::string p;
        for (std::size_t i = 0; i + 1 < open_.size(); ++i)
            p += '/' + open_[i].current;
        return p.empty() ? "the document" : p;
    }
    std::vector<Object> open_;
};

}  // namespace

json parse_json(std::string_view text) {
    if (text.empty()) throw Error("is empty; expected a JSON document");
    check_utf8(text);
    try {
        return json::parse(
            text.begin(), text.end(),
            [check = StructureCheck{}](int depth, json::parse_event_t event, json& parsed) mutable {
                return check(depth, event, parsed);
            });
    } catch (const json::exception& e) {
        // "[json.exception.parse_error.101] parse error at line 3, column 7: ...": users do not need the tag.
        std::string_view what = e.what();
        if (const auto tag = what.find("] "); what.starts_with('[') && tag != std::string_view::npos)
            what.remove_prefix(tag + 2);
        // The parser quotes the last token, which may be most of the file.
        std::size_t cut = std::min<std::size_t>(what.size(), 400);
        while (cut > 0 && cut < what.size() && (static_cast<std::uint8_t>(what[cut]) & 0xC0) == 0x80)
            --cut;
        throw Error("not JSON: " + std::string(what.substr(0, cut)) + (cut < what.size() ? "..." : ""));
    }
}

json read_json_file(const std::filesystem::path& file) {
    const FilePointer f = open_for_reading(file);
    std::string text(max_json_bytes + 1, '\0');
    const std::size_t size = std::fread(text.data(), 1, text.size(), f.get());
    if (std::ferror(f.get()) != 0) throw IoError(file.string() + ": cannot be read");
    if (size > max_json_bytes) {
        throw Error(file.string() + ": larger than " + std::to_string(max_json_bytes) +
                    " bytes; expected a JSON document");
    }
    text.resize(size);
    return naming_file(file, [&] { return parse_json(text); });
}

}  // namespace petacq::config
