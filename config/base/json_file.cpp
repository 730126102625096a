#include "config/base/json_file.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "config/base/file.hpp"

namespace petacq::config {

namespace {

using nlohmann::json;

constexpr std::size_t read_bytes = std::size_t{256} << 10;

/// Refuses duplicate keys while the parser runs.
class StructureCheck {
  public:
    bool operator()([[maybe_unused]] int depth, json::parse_event_t event, const json& parsed) {
        assert(static_cast<std::size_t>(depth) <= max_json_depth);
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

/// The place of the last character of the comment that begins at `i`, as the parser sees it; `i` if none
/// does.
std::size_t end_of_comment(std::string_view text, std::size_t i) {
    const std::string_view begin = text.substr(i, 2);
    std::size_t end = i;
    if (begin == "//") {
        end = text.find_first_of("\r\n", i);
    } else if (begin == "/*") {
        end = text.find("*/", i + 2);
        if (end != std::string_view::npos) ++end;
    }
    return end == std::string_view::npos ? text.size() : end;
}

}  // namespace

bool json_nested_deeper(std::string_view text, std::size_t levels) {
    std::size_t depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (!in_string && c == '/') {
            i = end_of_comment(text, i);
        } else if (in_string) {
            if (c == '\\') {
                ++i;
            } else if (c == '"') {
                in_string = false;
            }
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > levels) return true;
        } else if ((c == ']' || c == '}') && depth > 0) {
            --depth;
        }
    }
    return false;
}

json parse_json(std::string_view text) {
    if (text.empty()) throw Error("is empty; expected a JSON document");
    if (json_nested_deeper(text))
        throw Error("nested deeper than " + std::to_string(max_json_depth) + " levels");
    try {
        return json::parse(
            text.begin(), text.end(),
            [check = StructureCheck{}](int depth, json::parse_event_t event, json& parsed) mutable {
                return check(depth, event, parsed);
            },
            true, true);
    } catch (const json::exception& e) {
        // "[json.exception.parse_error.101] parse error at line 3, column 7: ...": users do not need the tag.
        std::string_view what = e.what();
        if (const auto tag = what.find("] "); what.starts_with('[') && tag != std::string_view::npos)
            what.remove_prefix(tag + 2);
        // The parser quotes the last token, which may be most of the file and need not be UTF-8.
        const std::string shown =
            json(what.substr(0, 400)).dump(-1, ' ', false, json::error_handler_t::replace);
        throw Error("not JSON: " + json::parse(shown).get<std::string>() + (what.size() > 400 ? "..." : ""));
    }
}

json read_json_file(const std::filesystem::path& file, std::size_t max_bytes) {
    const FilePointer f = open_for_reading(file);
    std::string text;
    // Grows with the file, not with the limit.
    for (std::size_t size = 0; size <= max_bytes && std::feof(f.get()) == 0 && std::ferror(f.get()) == 0;
         size = text.size()) {
        text.resize(std::min(max_bytes + 1, size + read_bytes));
        text.resize(size + std::fread(text.data() + size, 1, text.size() - size, f.get()));
    }
    if (std::ferror(f.get()) != 0) throw IoError(file.string() + ": cannot be read");
    if (text.size() > max_bytes) {
        throw Error(file.string() + ": larger than " + std::to_string(max_bytes) +
                    " bytes; expected a JSON document");
    }
    return naming_file(file, [&] { return parse_json(text); });
}

}  // namespace petacq::config
