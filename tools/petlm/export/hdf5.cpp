// HDF5: a column per field. docs/reference/formats/hdf5.md.
#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "config/hdf5/handle.hpp"
#include "daemon/coverage/unknown.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/system/utc.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/export/hdf5_chunk.hpp"
#include "tools/petlm/export/hdf5_parts.hpp"
#include "tools/petlm/export/recorded_time.hpp"
#include "tools/petlm/records/in_order.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {
namespace {

using config::Hdf5DataSet;
using config::Hdf5File;
using config::Hdf5List;
using config::Hdf5Space;
using config::Hdf5Type;

constexpr std::size_t largest_attribute = 32768;  // the oldest file layout allows less than 64 KiB

/// A data set that grows by chunks.
class Hdf5Column {
  public:
    Hdf5Column(hid_t group, const char* name, hid_t file_type, const char* units) {
        const hsize_t none = 0;
        const hsize_t any = H5S_UNLIMITED;
        const hsize_t size = Hdf5Chunk::records;
        const Hdf5Space space(H5Screate_simple(1, &none, &any));
        const Hdf5List creation(H5Pcreate(H5P_DATASET_CREATE));
        require(space && creation && H5Pset_chunk(creation.id(), 1, &size) >= 0 &&
                H5Pset_shuffle(creation.id()) >= 0 &&
                H5Pset_deflate(creation.id(), Hdf5Chunk::gzip_level) >= 0 &&
                H5Pset_fletcher32(creation.id()) >= 0);
        set_ = Hdf5DataSet(
            H5Dcreate2(group, name, file_type, space.id(), H5P_DEFAULT, creation.id(), H5P_DEFAULT));
        require(static_cast<bool>(set_));
        attribute(set_.id(), "units", units);
    }
    /// Appends a packed chunk with `count` records; only the last one may be partly filled.
    void write(const std::vector<std::byte>& packed, hsize_t count) {
        const hsize_t size = written_ + count;
        require(H5Dset_extent(set_.id(), &size) >= 0 &&
                H5Dwrite_chunk(set_.id(), H5P_DEFAULT, 0, &written_, packed.size(), packed.data()) >= 0);
        written_ = size;
    }
    void close() { require(set_.close()); }

  private:
    Hdf5DataSet set_;
    hsize_t written_ = 0;
};

/// One chunk of every column, as it is in the file.
struct PackedRecords {
    std::vector<std::vector<std::byte>> columns;
    hsize_t count = 0;
};

/// Which fields the records have; what they do not tell has no data set.
struct Told {
    bool dt;
    bool energies;  ///< of singles and pairs; that of a gamma is always there
};

/// Writes records to columns in chunks. All cores share the packing, which takes the time.
template <class Record>
class RecordTable {
  public:
    using Pack = PackedRecords (*)(const std::vector<Record>&, Told);
    RecordTable(std::vector<Hdf5Column> columns, Pack pack, Told told)
        : columns_(std::move(columns)), pack_(pack), told_(told), packed_([this](const PackedRecords& p) {
              for (std::size_t i = 0; i < columns_.size(); ++i)
                  columns_[i].write(p.columns[i], p.count);
          }) {}
    void add(std::span<const Record> records) {
        while (!records.empty()) {
            const auto taken = records.first(std::min(records.size(), Hdf5Chunk::records - chunk_.size()));
            chunk_.insert(chunk_.end(), taken.begin(), taken.end());
            records = records.subspan(taken.size());
            if (chunk_.size() == Hdf5Chunk::records) pack_chunk();
        }
    }
    void close() {
        if (!chunk_.empty()) pack_chunk();
        packed_.finish();
        for (Hdf5Column& column : columns_)
            column.close();
    }

  private:
    void pack_chunk() {
        packed_.add([records = std::exchange(chunk_, {}), pack = pack_, told = told_] {
            return pack(records, told);
        });
    }

    std::vector<Hdf5Column> columns_;
    Pack pack_;
    Told told_;
    std::vector<Record> chunk_;
    InOrder<PackedRecords> packed_;
};

/// An enumeration that names 0 so, and 1 delayed.
Hdf5Type kind_type(hid_t base, const char* zero) {
    Hdf5Type type(H5Tenum_create(base));
    const std::uint8_t first = 0;
    const std::uint8_t delayed = 1;
    require(type && H5Tenum_insert(type.id(), zero, &first) >= 0 &&
            H5Tenum_insert(type.id(), "delayed", &delayed) >= 0);
    return type;
}

/// `pair_of`: the pair of a record.
template <class Record, class PairOf>
PackedRecords pack_pairs(const std::vector<Record>& records, Told told, PairOf pair_of) {
    PackedRecords packed{{}, records.size()};
    const auto add = [&](auto field) {
        packed.columns.push_back(
            packed_hdf5_column(records, [&](const Record& record) { return field(pair_of(record)); }));
    };
    add([](const auto& c) { return static_cast<std::uint8_t>(c.kind); });
    add([](const auto& c) { return c.time; });
    if (told.dt) add([](const auto& c) { return c.dt; });
    add([](const auto& c) { return c.crystal_a; });
    add([](const auto& c) { return c.crystal_b; });
    if (told.energies) {
        add([](const auto& c) { return c.energy_a; });
        add([](const auto& c) { return c.energy_b; });
    }
    return packed;
}

PackedRecords pack_coincidences(const std::vector<gpu::Coincidence>& records, Told told) {
    return pack_pairs(records, told, std::identity());
}

PackedRecords pack_triples(const std::vector<gpu::Triple>& records, Told told) {
    PackedRecords packed =
        pack_pairs(records, told, [](const gpu::Triple& t) -> const gpu::Coincidence& { return t.pair; });
    const auto add = [&](auto field) { packed.columns.push_back(packed_hdf5_column(records, field)); };
    add([](const auto& t) { return static_cast<std::uint8_t>(t.third); });
    add([](const auto& t) { return t.gamma_dt; });
    add([](const auto& t) { return t.gamma_crystal; });
    add([](const auto& t) { return t.gamma_energy; });
    return packed;
}

PackedRecords pack_singles(const std::vector<gpu::Single>& records, Told told) {
    PackedRecords packed{{}, records.size()};
    const auto add = [&](auto field) { packed.columns.push_back(packed_hdf5_column(records, field)); };
    add([](const auto& s) { return s.time; });
    add([](const auto& s) { return s.crystal; });
    if (told.energies) add([](const auto& s) { return s.energy; });
    return packed;
}

struct Field {
    const char* name;
    hid_t type;
    const char* units;
};

/// Those of pack_pairs(). `kinds`: the type of the kind.
std::vector<Field> pair_fields(hid_t kinds, Told told) {
    std::vector<Field> fields = {{"kind", kinds, "1"}, {"time", H5T_STD_U64LE, "ticks"}};
    if (told.dt) fields.push_back({"dt", H5T_STD_U32LE, "ticks"});
    fields.insert(fields.end(), {{"crystal_a", H5T_STD_U32LE, "1"}, {"crystal_b", H5T_STD_U32LE, "1"}});
    if (told.energies)
        fields.insert(fields.end(),
                      {{"energy_a", H5T_IEEE_F32LE, "keV"}, {"energy_b", H5T_IEEE_F32LE, "keV"}});
    return fields;
}

/// Those of pack_singles().
std::vector<Field> single_fields(Told told) {
    std::vector<Field> fields = {{"time", H5T_STD_U64LE, "ticks"}, {"crystal", H5T_STD_U32LE, "1"}};
    if (told.energies) fields.push_back({"energy", H5T_IEEE_F32LE, "keV"});
    return fields;
}

/// Writes all records to a group with a column for each field.
template <class Record>
Exported write_group(hid_t file, const char* name, const std::vector<Field>& fields,
                     typename RecordTable<Record>::Pack pack, Told told, const ExportSource& source) {
    const Hdf5Group group(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    require(static_cast<bool>(group));
    std::vector<Hdf5Column> columns;
    for (const Field& field : fields)
        columns.emplace_back(group.id(), field.name, field.type, field.units);
    RecordTable<Record> table(std::move(columns), pack, told);
    Exported exported;
    source.for_each_block(source.crystals(), [&](const daemon::ListModeReader& reader) {
        table.add(records_of<Record>(reader));
        exported.count(reader);
    });
    table.close();
    return exported;
}

Exported write_records(hid_t file, const ExportSource& source) {
    const Told told{daemon::tells(source.coverage(), daemon::unknown_dt),
                    daemon::tells(source.coverage(), daemon::unknown_energies)};
    if (source.kind() == daemon::RecordKind::singles)
        return write_group<gpu::Single>(file, "singles", single_fields(told), pack_singles, told, source);
    const Hdf5Type kinds = kind_type(H5T_STD_U8LE, "prompt");
    std::vector<Field> fields = pair_fields(kinds.id(), told);
    if (source.kind() == daemon::RecordKind::triples) {
        const Hdf5Type thirds = kind_type(H5T_STD_U8LE, "coincident");
        fields.insert(fields.end(), {{"third", thirds.id(), "1"},
                                     {"gamma_dt", H5T_STD_I32LE, "ticks"},
                                     {"gamma_crystal", H5T_STD_U32LE, "1"},
                                     {"gamma_energy", H5T_IEEE_F32LE, "keV"}});
        return write_group<gpu::Triple>(file, "triples", fields, pack_triples, told, source);
    }
    return write_group<gpu::Coincidence>(file, "coincidences", fields, pack_coincidences, told, source);
}

std::string text_of(const nlohmann::json& value) {
    return value.is_string() ? value.get<std::string>() : json_line(value);
}

/// Numbers as numbers, strings as text, everything else as JSON.
void json_attribute(hid_t object, const std::string& key, const nlohmann::json& value) {
    if (value.is_number_unsigned()) {
        attribute(object, key.c_str(), H5T_STD_U64LE, H5T_NATIVE_UINT64, value.get<std::uint64_t>());
    } else if (value.is_number()) {
        attribute(object, key.c_str(), H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, value.get<double>());
    } else if (const auto text = text_of(value); text.size() < largest_attribute) {
        attribute(object, key.c_str(), text);
    } else {
        text_data_set(object, key.c_str(), text);
    }
}

/// The group "operator": what the operator said, each of the free keys under its own name.
void write_operator(hid_t file, const nlohmann::json& said) {
    const Hdf5Group group(H5Gcreate2(file, "operator", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    require(static_cast<bool>(group));
    for (const auto& [key, value] : said.items()) {
        if (key.empty() || value.is_null() || value.is_object()) continue;
        // Whole numbers, too: 100 MBq is no count.
        if (value.is_number()) {
            attribute(group.id(), key.c_str(), H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, value.get<double>());
        } else {
            json_attribute(group.id(), key, value);
        }
    }
    const auto keys = said.find("keys");
    if (keys == said.end() || !keys->is_object()) return;
    const Hdf5Group free(H5Gcreate2(group.id(), "keys", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    require(static_cast<bool>(free));
    for (const auto& [key, value] : keys->items())
        if (!key.empty()) json_attribute(free.id(), key, value);
}

/// The times and the loss of the coverage as numbers.
void write_times(hid_t file, const ExportSource& source) {
    const daemon::Coverage coverage = completed_coverage(source);
    const auto number = [&](const char* name, double value) {
        attribute(file, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, value);
    };
    if (source.coverage().intervals) {
        number("start_s", coverage.since_reference_s(coverage.span().start));
        number("duration_s", coverage.seconds());
        if (const auto stop = coverage.utc_of(coverage.span().end))
            attribute(file, "stop_utc", daemon::utc_text(*stop));
        if (coverage.activity) number("decay_factor", coverage.decay_factor(coverage.activity->half_life_s));
    }
    if (coverage.loss.live) number("live", *coverage.loss.live);
    if (!coverage.origin.calibration_sha256.empty())
        attribute(file, "calibration_sha256", coverage.origin.calibration_sha256);
}

void describe(hid_t file, const ExportSource& source) {
    // Attributes that are made here, whatever the description has.
    const std::set<std::string> own = {"made_by", "operator",           "coverage",
                                       "start_s", "duration_s",         "decay_factor",
                                       "live",    "calibration_sha256", "stop_utc"};
    for (const auto& [key, value] : source.description().items()) {
        if (value.is_null() || key.empty() || own.contains(key)) continue;
        json_attribute(file, key, value);
    }
    json_attribute(file, "coverage", daemon::to_json(source.coverage()));
    write_times(file, source);
    if (const nlohmann::json said = source.said_by_operator(); !said.is_null()) write_operator(file, said);
    if (source.run().is_null()) return;
    for (const char* key : {"state", "stop_reason", "note"}) {
        const auto value = source.run().value(key, nlohmann::json());
        if (value.is_string() && !source.description().contains(key)) attribute(file, key, text_of(value));
    }
    text_data_set(file, "run_json", text_of(source.run()));
}

/// Those of a run directory as they are, otherwise those of the runs of the records in part. Null: there are
/// none, `why` gives the reason.
std::unique_ptr<CoveredSeconds> seconds_of(const ExportSource& source, std::string& why) {
    const std::filesystem::path file = source.target() / daemon::seconds_file;
    if (std::filesystem::is_directory(source.target()) && std::filesystem::exists(file))
        return std::make_unique<CoveredSeconds>(file);
    auto seconds = CoveredSeconds::of(source.target(), source.coverage(), why);
    if (seconds && !seconds->other_rules().empty()) {
        why = seconds->other_rules();
        return nullptr;
    }
    return seconds;
}

Exported write_file(const std::filesystem::path& path, const ExportSource& source) {
    Hdf5File file(H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT));
    require(static_cast<bool>(file));
    attribute(file.id(), "made_by", "petlm export --format hdf5");
    describe(file.id(), source);
    Exported exported = write_records(file.id(), source);
    std::string why;
    if (const auto seconds = seconds_of(source, why)) {
        const std::uint64_t count = write_hdf5_seconds(file.id(), *seconds);
        exported.notes.push_back("The group /seconds has " + std::to_string(count) +
                                 " seconds: a data set per field, each with its units and a description. The "
                                 "data set 'covered' is the share of each second that the records cover.");
    } else {
        exported.lost.push_back("hdf5: no seconds: " + why + ".");
    }
    require(H5Fflush(file.id(), H5F_SCOPE_LOCAL) >= 0 && file.close());
    return exported;
}

}  // namespace

Exported export_hdf5(const ExportSource& source, const ExportOptions& options, Outputs& outputs) {
    outputs.claim(options.output);
    // Creates the file first: if that fails, its error message says more than HDF5's.
    OutputFile(options.output).close();
    const std::filesystem::path partial = Outputs::partial(options.output);
    std::filesystem::remove(partial);  // HDF5 makes a new one: it follows no link that took its place
    const config::Hdf5Silence silence;
    Exported exported = write_file(partial, source);
    exported.files = {options.output.filename().string() + ": group /" + daemon::name_of(source.kind()) +
                      ", one data set per field, with its units as an attribute"};
    exported.notes.insert(exported.notes.begin(),
                          "Attributes of the file are the description in the list-mode file.");
    for (const auto& [phrase, field] :
         {std::pair{daemon::unknown_dt, "dt"}, {daemon::unknown_energies, "energies"}}) {
        if (!daemon::tells(source.coverage(), phrase))
            exported.notes.push_back(std::string("There is no data set of ") + field + ": not known.");
    }
    if (!source.run().is_null()) exported.notes.push_back("The data set /run_json is the run's run.json.");
    return exported;
}

}  // namespace petacq::petlm
