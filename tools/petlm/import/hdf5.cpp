// HDF5: our own exports, and files of other programs that have the same data sets.
// docs/reference/formats/hdf5.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/base/error.hpp"
#include "config/base/file.hpp"
#include "config/base/json_file.hpp"
#include "config/hdf5/handle.hpp"
#include "config/nuclides/nuclides.hpp"
#include "daemon/run/operator_data.hpp"
#include "daemon/system/utc.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/import/foreign_file.hpp"
#include "tools/petlm/import/in_child.hpp"

namespace petacq::petlm {
namespace {

using config::Hdf5Attribute;
using config::Hdf5DataSet;
using config::Hdf5File;
using config::Hdf5List;
using config::Hdf5Space;
using config::Hdf5Type;
using nlohmann::json;

constexpr hsize_t records_at_once = 65536;           // records read at once
constexpr hsize_t largest_chunk_bytes = 64U << 20U;  // HDF5 takes memory for whole chunks
constexpr std::uint64_t largest_compression = 1100;  // of gzip
constexpr std::size_t largest_text = std::size_t{64} << 20U;

/// A value in memory, and which types in the file it holds.
struct ValueType {
    hid_t memory;
    H5T_class_t of_class;
    H5T_sign_t sign;
    std::size_t bytes;
    const char* text;
};
template <class Value>
ValueType value_type();
template <>
ValueType value_type<std::uint8_t>() {
    return {H5T_NATIVE_UINT8, H5T_INTEGER, H5T_SGN_NONE, 1,
            "unsigned integers of 8 bits, or an enumeration of them"};
}
template <>
ValueType value_type<std::uint32_t>() {
    return {H5T_NATIVE_UINT32, H5T_INTEGER, H5T_SGN_NONE, 4, "unsigned integers of at most 32 bits"};
}
template <>
ValueType value_type<std::uint64_t>() {
    return {H5T_NATIVE_UINT64, H5T_INTEGER, H5T_SGN_NONE, 8, "unsigned integers of at most 64 bits"};
}
template <>
ValueType value_type<std::int32_t>() {
    return {H5T_NATIVE_INT32, H5T_INTEGER, H5T_SGN_2, 4, "signed integers of at most 32 bits"};
}
template <>
ValueType value_type<float>() {
    return {H5T_NATIVE_FLOAT, H5T_FLOAT, H5T_SGN_ERROR, 4, "floating-point numbers of at most 32 bits"};
}

class Hdf5Input {
  public:
    explicit Hdf5Input(std::filesystem::path path) : path_(std::move(path)) {
        config::open_for_reading(path_);  // its message is clearer than HDF5's
        if (H5Fis_hdf5(path_.c_str()) <= 0) refuse("expected an HDF5 file");
        const Hdf5List access(H5Pcreate(H5P_FILE_ACCESS));
        if (access && H5Pset_file_locking(access.id(), false, true) >= 0)
            file_ = Hdf5File(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, access.id()));
        if (!file_) refuse("expected a sound HDF5 file: " + config::hdf5_error());
    }
    [[nodiscard]] hid_t id() const { return file_.id(); }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[noreturn]] void refuse(const std::string& what) const { throw BadInput(path_.string() + ": " + what); }

    /// A link of the file itself: what others point to stays unread.
    [[nodiscard]] bool has(const std::string& name) const {
        const htri_t there = H5Lexists(id(), name.c_str(), H5P_DEFAULT);
        if (there <= 0) return false;
        H5L_info_t link{};
        if (H5Lget_info(id(), name.c_str(), &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD)
            refuse(fmt::format("{}: expected an object in the file, found a link to something else", name));
        return true;
    }
    /// Nothing if it has no such attribute. Throws BadInput if that is no single number.
    [[nodiscard]] std::optional<double> number(const char* name) const {
        if (H5Aexists(id(), name) <= 0) return std::nullopt;
        const Hdf5Attribute attribute(H5Aopen(id(), name, H5P_DEFAULT));
        const Hdf5Type type(attribute ? H5Aget_type(attribute.id()) : -1);
        const Hdf5Space space(attribute ? H5Aget_space(attribute.id()) : -1);
        const bool good = type && space && H5Sget_simple_extent_npoints(space.id()) == 1 &&
                          (H5Tget_class(type.id()) == H5T_FLOAT || H5Tget_class(type.id()) == H5T_INTEGER);
        double value = 0;
        if (!good || H5Aread(attribute.id(), H5T_NATIVE_DOUBLE, &value) < 0 || !std::isfinite(value))
            refuse(fmt::format("attribute {}: expected a number", name));
        return value;
    }
    [[nodiscard]] std::string attribute_text(hid_t object, const char* name) const {
        if (H5Aexists(object, name) <= 0) return {};
        const Hdf5Attribute attribute(H5Aopen(object, name, H5P_DEFAULT));
        if (!attribute) return {};
        return text(Hdf5Type(H5Aget_type(attribute.id())), Hdf5Space(H5Aget_space(attribute.id())), name,
                    [&](hid_t type, void* to) { return H5Aread(attribute.id(), type, to); });
    }
    /// Of a data set of one text; empty: there is none.
    [[nodiscard]] std::string data_text(const char* name) const {
        if (!has(name)) return {};
        const Hdf5DataSet set(H5Dopen2(id(), name, H5P_DEFAULT));
        if (!set) refuse(fmt::format("{}: expected a data set", name));
        return text(
            Hdf5Type(H5Dget_type(set.id())), Hdf5Space(H5Dget_space(set.id())), name,
            [&](hid_t type, void* to) { return H5Dread(set.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to); });
    }

  private:
    template <class Read>
    [[nodiscard]] std::string text(const Hdf5Type& type, const Hdf5Space& space, const char* name,
                                   Read read) const {
        const bool good = type && space && H5Tget_class(type.id()) == H5T_STRING &&
                          H5Sget_simple_extent_npoints(space.id()) == 1;
        if (!good) refuse(fmt::format("{}: expected one text", name));
        std::string words;
        if (H5Tis_variable_str(type.id()) > 0) {
            auto found = read_in_child([&] {
                char* data = nullptr;
                if (read(type.id(), static_cast<void*>(&data)) < 0)
                    throw std::runtime_error(config::hdf5_error());
                return std::string(data != nullptr ? data : "");
            });
            if (!found) refuse(fmt::format("{}: expected a readable text", name));
            words = std::move(*found);
        } else {
            const std::size_t bytes = H5Tget_size(type.id());
            if (bytes > largest_text) refuse(fmt::format("{}: expected a text of at most 64 MiB", name));
            words.resize(bytes);
            if (read(type.id(), words.data()) < 0)
                refuse(fmt::format("{}: expected a readable text: {}", name, config::hdf5_error()));
            words.resize(std::min(words.find('\0'), words.size()));
        }
        return words;
    }

    config::Hdf5Silence silence_;
    std::filesystem::path path_;
    Hdf5File file_;
};

/// One field of all records.
template <class Value>
class InputColumn {
  public:
    InputColumn(const Hdf5Input& file, const std::string& name, const char* units) : name_(name) {
        const ValueType wanted = value_type<Value>();
        const auto refuse = [&](const std::string& what) { file.refuse(fmt::format("{}: {}", name, what)); };
        if (!file.has(name)) refuse(fmt::format("no such data set; expected {}", wanted.text));
        set_ = Hdf5DataSet(H5Dopen2(file.id(), name.c_str(), H5P_DEFAULT));
        const Hdf5Type type(set_ ? H5Dget_type(set_.id()) : -1);
        const Hdf5Space space(set_ ? H5Dget_space(set_.id()) : -1);
        const Hdf5List creation(set_ ? H5Dget_create_plist(set_.id()) : -1);
        if (!type || !space || !creation) refuse("expected a data set: " + config::hdf5_error());
        const bool enumeration = H5Tget_class(type.id()) == H5T_ENUM && wanted.bytes == 1;
        const Hdf5Type base(enumeration ? H5Tget_super(type.id()) : H5Tcopy(type.id()));
        const bool good = base && H5Tget_class(base.id()) == wanted.of_class &&
                          H5Tget_size(base.id()) <= wanted.bytes &&
                          (wanted.of_class != H5T_INTEGER || H5Tget_sign(base.id()) == wanted.sign);
        if (!good) refuse(fmt::format("expected {}", wanted.text));
        // An enumeration is read as its numbers.
        memory_ =
            Hdf5Type(enumeration ? H5Tget_native_type(type.id(), H5T_DIR_ASCEND) : H5Tcopy(wanted.memory));
        if (!memory_ || H5Tget_size(memory_.id()) != sizeof(Value))
            refuse(fmt::format("expected {}", wanted.text));
        hsize_t chunk = 0;
        if (H5Sget_simple_extent_ndims(space.id()) != 1 ||
            H5Sget_simple_extent_dims(space.id(), &records_, nullptr) != 1)
            refuse("expected one dimension");
        const H5D_layout_t layout = H5Pget_layout(creation.id());
        if (layout == H5D_VIRTUAL || H5Pget_external_count(creation.id()) != 0)
            refuse("expected data in the file");
        if (layout == H5D_CHUNKED && (H5Pget_chunk(creation.id(), 1, &chunk) != 1 ||
                                      chunk > largest_chunk_bytes / H5Tget_size(type.id())))
            refuse("expected chunks of at most 64 MiB");
        // Data that were never written would be made of nothing.
        if (records_ != 0 && records_ / largest_compression > H5Dget_storage_size(set_.id()))
            refuse(fmt::format("{} values in {} bytes; expected data of all", records_,
                               H5Dget_storage_size(set_.id())));
        const std::string found = file.attribute_text(set_.id(), "units");
        if (found != units)
            refuse(fmt::format("units '{}'; expected the attribute units = {}", found, units));
    }
    [[nodiscard]] hsize_t records() const { return records_; }
    /// Throws std::runtime_error with what HDF5 says.
    const std::vector<Value>& read(hsize_t first, hsize_t count) {
        values_.resize(count);
        const Hdf5Space in_file(H5Dget_space(set_.id()));
        const Hdf5Space in_memory(H5Screate_simple(1, &count, nullptr));
        const bool good =
            in_file && in_memory &&
            H5Sselect_hyperslab(in_file.id(), H5S_SELECT_SET, &first, nullptr, &count, nullptr) >= 0 &&
            H5Dread(set_.id(), memory_.id(), in_memory.id(), in_file.id(), H5P_DEFAULT, values_.data()) >= 0;
        if (!good) throw std::runtime_error(name_ + ": expected readable values: " + config::hdf5_error());
        return values_;
    }

  private:
    std::string name_;
    Hdf5DataSet set_;
    Hdf5Type memory_;
    hsize_t records_ = 0;
    std::vector<Value> values_;
};

/// The fields of records of a kind. Each sets its member in all records of a records_at_once.
template <class Record>
class InputTable {
  public:
    InputTable(std::shared_ptr<Hdf5Input> file, std::string group, std::uint32_t crystals)
        : file_(std::move(file)), group_(std::move(group)), crystals_(crystals) {}

    template <class Value, class Set>
    void column(const char* name, const char* units, Set set) {
        auto column = std::make_shared<InputColumn<Value>>(*file_, group_ + "/" + name, units);
        if (columns_.empty()) records_ = column->records();
        if (column->records() != records_)
            file_->refuse(fmt::format("{}/{}: {} values; expected {}, as the first field has", group_, name,
                                      column->records(), records_));
        columns_.push_back([this, column, set](Record* records, hsize_t first, hsize_t count) {
            try {
                const std::vector<Value>& values = column->read(first, count);
                for (hsize_t i = 0; i < count; ++i)
                    set(records[i], values[i]);
            } catch (const std::runtime_error& error) {
                file_->refuse(error.what());
            }
        });
    }
    template <class Check>
    bool take(gpu::RecordVector<Record>& out, Check good) {
        if (done_ == records_) return false;
        const hsize_t count = std::min(records_at_once, records_ - done_);
        const std::size_t old = out.size();
        out.resize(old + count);
        for (const auto& column : columns_)
            column(out.data() + old, done_, count);
        for (hsize_t i = 0; i < count; ++i) {
            const std::string wrong = good(out[old + i]);
            if (!wrong.empty()) file_->refuse(fmt::format("{}, record {}: {}", group_, done_ + i, wrong));
        }
        done_ += count;
        return true;
    }
    /// Whether the file has the fields, all or none of them.
    [[nodiscard]] bool has(std::initializer_list<const char*> names) const {
        const auto there = [&](const char* name) { return file_->has(group_ + "/" + name); };
        if (std::none_of(names.begin(), names.end(), there)) return false;
        const auto missing = std::find_if_not(names.begin(), names.end(), there);
        if (missing != names.end()) {
            file_->refuse(fmt::format("{}/{}: no such data set; expected all of {}, or none", group_,
                                      *missing, fmt::join(names, ", ")));
        }
        return true;
    }
    [[nodiscard]] std::string crystal_error(std::initializer_list<std::uint32_t> crystals) const {
        for (const std::uint32_t crystal : crystals)
            if (crystal >= crystals_)
                return fmt::format("crystal {}; expected a number below {}, the crystals of the scanner",
                                   crystal, crystals_);
        return {};
    }
    [[nodiscard]] std::uint64_t done() const { return done_; }
    [[nodiscard]] std::uint64_t records() const { return records_; }

  private:
    std::shared_ptr<Hdf5Input> file_;
    std::string group_;
    std::uint32_t crystals_;
    std::vector<std::function<void(Record*, hsize_t, hsize_t)>> columns_;
    hsize_t records_ = 0;
    hsize_t done_ = 0;
};

std::string energy_error(float energy) {
    return std::isfinite(energy) && energy >= 0
               ? std::string()
               : fmt::format("energy {}; expected a finite number of at least 0", energy);
}

std::string first_of(std::initializer_list<std::string> errors) {
    for (const std::string& error : errors)
        if (!error.empty()) return error;
    return {};
}

/// The fields of a pair. `pair_of_record`: the pair in a record. Adds to `unknown` what has no field.
template <class Record, class Pair>
void add_pair_columns(InputTable<Record>& table, std::vector<std::string>& unknown, Pair pair_of_record) {
    table.template column<std::uint8_t>(
        "kind", "1", [=](Record& r, std::uint8_t v) { pair_of_record(r).kind = static_cast<gpu::Kind>(v); });
    table.template column<std::uint64_t>("time", "ticks",
                                         [=](Record& r, std::uint64_t v) { pair_of_record(r).time = v; });
    if (table.has({"dt"})) {
        table.template column<std::uint32_t>("dt", "ticks",
                                             [=](Record& r, std::uint32_t v) { pair_of_record(r).dt = v; });
    } else {
        unknown.emplace_back(unknown_dt);
    }
    table.template column<std::uint32_t>(
        "crystal_a", "1", [=](Record& r, std::uint32_t v) { pair_of_record(r).crystal_a = v; });
    table.template column<std::uint32_t>(
        "crystal_b", "1", [=](Record& r, std::uint32_t v) { pair_of_record(r).crystal_b = v; });
    if (!table.has({"energy_a", "energy_b"})) {
        unknown.emplace_back(unknown_energies);
        return;
    }
    table.template column<float>("energy_a", "keV",
                                 [=](Record& r, float v) { pair_of_record(r).energy_a = v; });
    table.template column<float>("energy_b", "keV",
                                 [=](Record& r, float v) { pair_of_record(r).energy_b = v; });
}

template <class Table>
std::string pair_error(const Table& table, const gpu::Coincidence& c) {
    const bool kind = c.kind <= gpu::Kind::delayed;
    return first_of({kind ? "" : fmt::format("kind {}; expected 0 or 1", static_cast<std::uint32_t>(c.kind)),
                     table.crystal_error({c.crystal_a, c.crystal_b}), energy_error(c.energy_a),
                     energy_error(c.energy_b)});
}

/// Sets what takes the records of a table, and what tells how much of the file that is.
template <class Record, class Check>
void set_records(ForeignFile& file, const std::shared_ptr<InputTable<Record>>& table, Check good) {
    file.records = TakeRecords<Record>([table, good](auto& out) { return table->take(out, good); });
    file.bytes_done = [table, bytes = file.bytes] {
        return table->records() == 0 ? bytes
                                     : static_cast<std::uint64_t>(static_cast<double>(bytes) *
                                                                  static_cast<double>(table->done()) /
                                                                  static_cast<double>(table->records()));
    };
}

/// Returns what the file has no fields for, as phrases of `unknown`.
std::vector<std::string> open_records(const std::shared_ptr<Hdf5Input>& input, std::uint32_t crystals,
                                      ForeignFile& file) {
    std::vector<std::string> unknown;
    std::vector<std::string> kinds;
    for (const char* kind : {"singles", "coincidences", "triples"})
        if (input->has(kind)) kinds.emplace_back(kind);
    if (kinds.size() > 1) {
        input->refuse(fmt::format("holds {}; expected records of one kind, as petlm export writes them",
                                  fmt::join(kinds, " and ")));
    }
    if (input->has("singles")) {
        const auto table = std::make_shared<InputTable<gpu::Single>>(input, "singles", crystals);
        table->column<std::uint64_t>("time", "ticks", [](gpu::Single& s, std::uint64_t v) { s.time = v; });
        table->column<std::uint32_t>("crystal", "1", [](gpu::Single& s, std::uint32_t v) { s.crystal = v; });
        if (table->has({"energy"})) {
            table->column<float>("energy", "keV", [](gpu::Single& s, float v) { s.energy = v; });
        } else {
            unknown.emplace_back(unknown_energies);
        }
        set_records(file, table, [t = table.get()](const gpu::Single& s) {
            return first_of({t->crystal_error({s.crystal}), energy_error(s.energy)});
        });
    } else if (input->has("coincidences")) {
        const auto table = std::make_shared<InputTable<gpu::Coincidence>>(input, "coincidences", crystals);
        add_pair_columns(*table, unknown, [](gpu::Coincidence& c) -> gpu::Coincidence& { return c; });
        set_records(file, table, [t = table.get()](const gpu::Coincidence& c) { return pair_error(*t, c); });
    } else if (input->has("triples")) {
        const auto table = std::make_shared<InputTable<gpu::Triple>>(input, "triples", crystals);
        add_pair_columns(*table, unknown, [](gpu::Triple& t) -> gpu::Coincidence& { return t.pair; });
        table->column<std::uint8_t>(
            "third", "1", [](gpu::Triple& t, std::uint8_t v) { t.third = static_cast<gpu::ThirdPhoton>(v); });
        table->column<std::int32_t>("gamma_dt", "ticks",
                                    [](gpu::Triple& t, std::int32_t v) { t.gamma_dt = v; });
        table->column<std::uint32_t>("gamma_crystal", "1",
                                     [](gpu::Triple& t, std::uint32_t v) { t.gamma_crystal = v; });
        table->column<float>("gamma_energy", "keV", [](gpu::Triple& t, float v) { t.gamma_energy = v; });
        set_records(file, table, [t = table.get()](const gpu::Triple& triple) {
            const bool third = triple.third <= gpu::ThirdPhoton::delayed;
            return first_of({pair_error(*t, triple.pair), third ? "" : "third; expected 0 or 1",
                             t->crystal_error({triple.gamma_crystal}), energy_error(triple.gamma_energy)});
        });
    } else {
        input->refuse("expected a group singles, coincidences or triples");
    }
    return unknown;
}

json json_in(const Hdf5Input& input, const std::string& text, const char* what) {
    if (text.empty()) return {};
    try {
        return config::parse_json(text);
    } catch (const config::Error& error) {
        input.refuse(fmt::format("{}: expected JSON: {}", what, error.what()));
    }
}

/// What another program says of the file from which it has taken the records; null if nothing.
std::shared_ptr<const json> made_of(const Hdf5Input& input) {
    json said = json_in(input, input.attribute_text(input.id(), "imported"), "attribute imported");
    if (said.is_null()) return nullptr;
    const auto is_text = [](const json& value) { return value.is_string() && value != ""; };
    const bool good = said.is_object() && is_text(said.value("format", json())) &&
                      (!said.contains("version") || is_text(said["version"])) &&
                      said.value("from", json()).is_array() && !said["from"].empty() &&
                      std::all_of(said["from"].begin(), said["from"].end(), is_text);
    if (!good) {
        input.refuse(
            "attribute imported: expected an object with texts format and version (if it is known), "
            "and from, a list of the names of files");
    }
    json taken = {{"format", said["format"]}, {"from", said["from"]}};
    if (said.contains("version")) taken["version"] = said["version"];
    return std::make_shared<const json>(std::move(taken));
}

/// The source that another program has put under "operator" into run.json: half-lives are in the table of
/// this program. Adds to `missing` that of a nuclide which is not.
std::optional<daemon::StatedActivity> source_in(const Hdf5Input& input, const json& run,
                                                std::vector<std::string>& missing) {
    const json said = run.is_object() ? run.value("operator", json()) : json();
    const json nuclide = said.is_object() ? said.value("nuclide", json()) : json();
    if (!nuclide.is_string()) return std::nullopt;
    if (config::find_nuclide(nuclide.get<std::string>()) == nullptr) {
        missing.emplace_back(daemon::unknown_half_life);
        return std::nullopt;
    }
    try {
        const json assay = said.value("assay_utc", json());
        const auto when = assay.is_string() ? daemon::utc_time(assay.get<std::string>()) : std::nullopt;
        return daemon::stated_activity(
            daemon::operator_data(said, when.value_or(std::chrono::system_clock::time_point{})));
    } catch (const std::invalid_argument& error) {
        input.refuse(std::string("run_json: operator: ") + error.what());
    }
}

}  // namespace

config::Scanner scanner_in_hdf5(const std::filesystem::path& file) {
    const Hdf5Input input(file);
    const json run = json_in(input, input.data_text("run_json"), "run_json");
    if (!run.is_object() || !run.contains("scanner"))
        throw UsageError(file.string() + ": holds no description of the scanner; expected --scanner");
    try {
        return config::scanner_from_json(run["scanner"]);
    } catch (const config::Error& error) {
        input.refuse(std::string("run_json: expected a scanner description: ") + error.what());
    }
}

ForeignFile open_hdf5(const ForeignInput& request) {
    const auto input = std::make_shared<Hdf5Input>(request.file);
    ForeignFile file;
    file.bytes = std::filesystem::file_size(request.file);
    const auto tick_ps = input->number("tick_ps");
    if (!tick_ps) input->refuse("no attribute tick_ps; expected the length of the ticks of its times in ps");
    if (*tick_ps != request.scanner.tick_ps) {
        input->refuse(fmt::format("tick_ps = {}; expected that of the scanner {}, {}", *tick_ps,
                                  request.scanner.name, request.scanner.tick_ps));
    }
    const auto crystals = input->number("crystals");
    const std::uint32_t count = request.scanner.geometry.crystal_count();
    if (crystals && *crystals != count)
        input->refuse(fmt::format("crystals = {}; expected those of the scanner {}, {}", *crystals,
                                  request.scanner.name, count));
    std::vector<std::string> missing = open_records(input, count, file);
    const json coverage = json_in(*input, input->attribute_text(input->id(), "coverage"), "coverage");
    if (json run = json_in(*input, input->data_text("run_json"), "run_json"); run.is_object())
        file.run = std::make_shared<const json>(std::move(run));
    file.coverage.loss.seconds_complete = false;
    if (coverage.is_null()) {
        file.coverage.unknown = {unknown_times, unknown_clock, unknown_rules};
    } else {
        try {
            file.coverage = daemon::coverage_from_json(coverage);
        } catch (const std::exception& error) {
            input->refuse(std::string("attribute coverage: expected that of an export: ") + error.what());
        }
    }
    file.made_of = made_of(*input);
    if (file.made_of && file.run && !file.coverage.activity)
        file.coverage.activity = source_in(*input, *file.run, missing);
    for (const std::string& what : missing)
        if (daemon::tells(file.coverage, what)) file.coverage.unknown.push_back(what);
    json description = json::object();
    for (const char* name : {"run_id", "start_utc", "version", "note"})
        if (const std::string text = input->attribute_text(input->id(), name); !text.empty())
            description[name] = text;
    for (const char* name : {"window_ticks", "delay_ticks"}) {
        const auto number = input->number(name);
        if (number && *number >= 0 && *number < 0x1p53)
            description[name] = static_cast<std::uint64_t>(*number);
    }
    file.description = std::make_shared<json>(std::move(description));
    return file;
}

}  // namespace petacq::petlm
