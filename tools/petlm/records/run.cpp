#include "tools/petlm/records/run.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "config/base/json_file.hpp"
#include "daemon/listmode/reader.hpp"
#include "daemon/listmode/set.hpp"
#include "daemon/marks/marks.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/space/reserve.hpp"

namespace petacq::petlm {
namespace {

/// Returns 3 for "coincidences-0003".
std::optional<std::uint64_t> part_number(const std::string& stem, const std::string& name) {
    constexpr std::size_t fewest_digits = 4;
    if (stem.size() < name.size() + 1 + fewest_digits || !stem.starts_with(name + "-")) return std::nullopt;
    std::uint64_t number = 0;
    const char* end = stem.data() + stem.size();
    const auto parsed = std::from_chars(stem.data() + name.size() + 1, end, number);
    if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
    return number;
}

/// The set that a file of a run belongs to by its name; other files go by their own names.
std::filesystem::path set_of(const std::filesystem::path& file) {
    const std::string name = file.filename().string();
    const bool of_run = name.starts_with("coincidences") || name.starts_with("singles") ||
                        name.starts_with("triples") || name.starts_with("tags");
    return of_run ? daemon::set_of_file(file) : file;
}

/// Whether a file, or set, has the name of one that a run consists of: coincidences.plm, singles-0002.plm,
/// ...
bool has_name_of_run(const std::filesystem::path& set) {
    const std::string stem = set.stem().string();
    constexpr std::array kinds = {daemon::RecordKind::coincidences, daemon::RecordKind::singles,
                                  daemon::RecordKind::triples, daemon::RecordKind::tags,
                                  daemon::RecordKind::seconds};
    return std::any_of(kinds.begin(), kinds.end(), [&](daemon::RecordKind kind) {
        const std::string name = daemon::name_of(kind);
        return stem == name || part_number(stem, name);
    });
}

/// Whether it is a further part that was made just before its run was cut off: without a byte, not even a
/// header. What run.json and the ledger say of the run shows whether records are missing.
bool is_unwritten_part(const std::filesystem::path& set) {
    const std::string stem = set.stem().string();
    const std::size_t dash = stem.find('-');
    const auto number = dash == std::string::npos ? std::nullopt : part_number(stem, stem.substr(0, dash));
    return number && *number > 1 && daemon::bytes_of_files(set) == 0;
}

}  // namespace

std::vector<std::filesystem::path> listmode_files(const std::filesystem::path& target) {
    if (!std::filesystem::is_directory(target)) return {target};
    std::set<std::filesystem::path> files;
    std::set<std::filesystem::path> others;
    for (const auto& entry : std::filesystem::directory_iterator(target)) {
        if (entry.path().extension() != ".plm") continue;
        const std::filesystem::path set = set_of(entry.path());
        if (is_unwritten_part(set)) continue;
        if (!has_name_of_run(set)) {
            if (entry.path().stem().extension() != ".recovered") others.insert(entry.path());
            continue;
        }
        // Where a file has the name of the set, the set goes by the name of its first file.
        if (set != entry.path() && std::filesystem::exists(set)) {
            files.insert(daemon::file_of_set(set, 0));
        } else {
            files.insert(set);
        }
    }
    // What was made from a run, such as a cut or a recovered copy, has records that would count twice.
    if (files.empty()) files = std::move(others);
    if (files.empty()) throw daemon::NotListMode(target.string() + ": a directory without list-mode files");
    return {files.begin(), files.end()};
}

std::vector<std::filesystem::path> files_of_run(const std::filesystem::path& directory) {
    std::set<std::filesystem::path> files;
    if (!std::filesystem::is_directory(directory)) return {};
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        const std::filesystem::path& file = entry.path();
        if (file.extension() == ".plm" && has_name_of_run(set_of(file))) files.insert(file);
    }
    for (const char* name : {daemon::run_file, daemon::ledger_file, daemon::histograms_file,
                             daemon::spectra_file, daemon::marks_file})
        if (std::filesystem::exists(directory / name)) files.insert(directory / name);
    return {files.begin(), files.end()};
}

std::vector<std::filesystem::path> record_files(const std::filesystem::path& target,
                                                daemon::RecordKind kind) {
    if (!std::filesystem::is_directory(target)) return {target};
    const std::string name = daemon::name_of(kind);
    const auto refuse = [&](const std::string& why) {
        throw daemon::NotListMode(target.string() + ": " + why);
    };
    struct RecordPart {
        std::filesystem::path path;
        bool is_set;
        bool operator==(const RecordPart&) const = default;
    };
    std::optional<RecordPart> whole;
    std::map<std::uint64_t, RecordPart> parts;
    bool has_singles = false;
    for (const auto& entry : std::filesystem::directory_iterator(target)) {
        if (entry.path().extension() != ".plm") continue;
        const std::filesystem::path set = set_of(entry.path());
        if (is_unwritten_part(set)) continue;
        const RecordPart part{set, set != entry.path()};
        has_singles = has_singles || set.stem().string().starts_with("singles");
        if (set.stem() == name) {
            if (whole && *whole != part)
                refuse("holds both " + name +
                       ".plm and files of a set of that name; expected one or the other");
            whole = part;
        }
        const auto number = part_number(set.stem().string(), name);
        if (number && parts.emplace(*number, part).first->second != part)
            refuse("part " + std::to_string(*number) + " of its " + name + " exists twice");
    }
    if (whole && !parts.empty())
        refuse("holds both " + name + ".plm and parts of it; expected one or the other");
    if (whole) return {whole->path};
    if (parts.empty()) {
        refuse("a directory without " + name +
               (kind == daemon::RecordKind::coincidences && has_singles
                    ? "; petlm resort makes them from its singles"
                    : ""));
    }
    std::vector<std::filesystem::path> files;
    for (const auto& [number, part] : parts) {
        if (number != files.size() + 1)
            refuse("part " + std::to_string(files.size() + 1) + " of its " + name +
                   " is missing; the next one is " + part.path.filename().string());
        files.push_back(part.path);
    }
    return files;
}

nlohmann::json run_json(const std::filesystem::path& directory, std::string& why) {
    const auto path = directory / daemon::run_file;
    try {
        auto json = config::read_json_file(path, config::max_run_json_bytes);
        if (json.is_object()) return json;
        why = path.string() + ": not a JSON object";
    } catch (const config::Error& error) {
        why = error.what();
    }
    return nullptr;
}

std::string state_of_run(const std::filesystem::path& directory, const nlohmann::json& run) {
    const auto state = run.value("state", nlohmann::json("unknown"));
    if (state == "running" && !daemon::is_being_written(directory)) return "interrupted";
    return state.is_string() ? state.get<std::string>() : state.dump();
}

std::string json_line(const nlohmann::json& value) {
    return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace petacq::petlm
