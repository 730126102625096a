// HDF5: a column per field. docs/formats/hdf5.md.
#include <algorithm>
#include <span>
#include <utility>

#include "config/hdf5_handle.hpp"
#include "tools/petlm/export.hpp"
#include "tools/petlm/hdf5_chunk.hpp"
#include "tools/petlm/in_order.hpp"

namespace petacq::petlm {
namespace {

using config::Hdf5DataSet;
using config::Hdf5File;
using config::Hdf5List;
using config::Hdf5Space;
using config::Hdf5Type;
using Hdf5Group = config::Hdf5Handle<H5Gclose>;
using config::Hdf5Attribute;

constexpr std::size_t largest_attribute = 32768;  // the oldest file layout takes less than 64 KiB

void require(bool good) {
    if (!good) throw std::runtime_error("HDF5: " + config::hdf5_error());
}

/// Text of variable length, which Python and others take for text without further ado.
Hdf5Type text_type() {
    Hdf5Type type(H5Tcopy(H5T_C_S1));
    require(type && H5Tset_size(type.id(), H5T_VARIABLE) >= 0 && H5Tset_cset(type.id(), H5T_CSET_UTF8) >= 0);
    return type;
}

void attribute(hid_t object, const char* name, const std::string& text) {
    const Hdf5Type type = text_type();
    const Hdf5Space space(H5Screate(H5S_SCALAR));
    const Hdf5Attribute a(H5Acreate2(object, name, type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT));
    const char* words = text.c_str();
    require(a && H5Awrite(a.id(), type.id(), &words) >= 0);
}

template <class Value>
void attribute(hid_t object, const char* name, hid_t file_type, hid_t memory_type, Value value) {
    const Hdf5Space space(H5Screate(H5S_SCALAR));
    const Hdf5Attribute a(H5Acreate2(object, name, file_type, space.id(), H5P_DEFAULT, H5P_DEFAULT));
    require(a && H5Awrite(a.id(), memory_type, &value) >= 0);
}

/// For what is too long for an attribute.
void text_data_set(hid_t file, const char* name, const std::string& text) {
    const Hdf5Type type = text_type();
    const Hdf5Space space(H5Screate(H5S_SCALAR));
    const Hdf5DataSet set(
        H5Dcreate2(file, name, type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const char* words = text.c_str();
    require(set && H5Dwrite(set.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &words) >= 0);
}

/// A data set that grows by chunks.
class Column {
  public:
    Column(hid_t group, const char* name, hid_t file_type, const char* units) {
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
    /// The next chunk, packed, of which `count` records are there: all, unless it is the last.
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

/// One chunk of every column, as they stand in the file.
struct PackedRecords {
    std::vector<std::vector<std::byte>> columns;
    hsize_t count = 0;
};

/// Records in chunks to columns. What takes the time, packing, is shared by the cores.
template <class Record>
class Table {
  public:
    using Pack = PackedRecords (*)(const std::vector<Record>&);
    Table(std::vector<Column> columns, Pack pack)
        : columns_(std::move(columns)), pack_(pack), packed_([this](const PackedRecords& p) {
              for (std::size_t i = 0; i < columns_.size(); ++i)
                  columns_[i].write(p.columns[i], p.count);
          }) {}
    void add(std::span<const Record> records) {
        while (!records.empty()) {
            const auto taken = records.first(std::min(records.size(), Hdf5Chunk::records - chunk_.size()));
            chunk_.insert(chunk_.end(), taken.begin(), taken.end());
            records = records.subspan(taken.size());
            if (chunk_.size() == Hdf5Chunk::records) give_out();
        }
    }
    void close() {
        if (!chunk_.empty()) give_out();
        packed_.finish();
        for (Column& column : columns_)
            column.close();
    }

  private:
    void give_out() {
        packed_.add([records = std::exchange(chunk_, {}), pack = pack_] { return pack(records); });
    }

    std::vector<Column> columns_;
    Pack pack_;
    std::vector<Record> chunk_;
    InOrder<PackedRecords> packed_;
};

/// 0 prompt, 1 delayed, with names in the file.
Hdf5Type kind_type(hid_t base) {
    Hdf5Type type(H5Tenum_create(base));
    const std::uint8_t prompt = 0;
    const std::uint8_t delayed = 1;
    require(type && H5Tenum_insert(type.id(), "prompt", &prompt) >= 0 &&
            H5Tenum_insert(type.id(), "delayed", &delayed) >= 0);
    return type;
}

PackedRecords pack_coincidences(const std::vector<gpu::Coincidence>& records) {
    const auto column = [&](auto field) { return packed_hdf5_column(records, field); };
    return {
        {column([](const auto& c) { return static_cast<std::uint8_t>(c.kind); }),
         column([](const auto& c) { return c.time; }), column([](const auto& c) { return c.dt; }),
         column([](const auto& c) { return c.crystal_a; }), column([](const auto& c) { return c.crystal_b; }),
         column([](const auto& c) { return c.energy_a; }), column([](const auto& c) { return c.energy_b; })},
        records.size()};
}

PackedRecords pack_singles(const std::vector<gpu::Single>& records) {
    const auto column = [&](auto field) { return packed_hdf5_column(records, field); };
    return {{column([](const auto& s) { return s.time; }), column([](const auto& s) { return s.crystal; }),
             column([](const auto& s) { return s.energy; })},
            records.size()};
}

Exported write_coincidences(hid_t file, const ExportSource& source) {
    const Hdf5Group group(H5Gcreate2(file, "coincidences", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    require(static_cast<bool>(group));
    const hid_t at = group.id();
    const Hdf5Type kinds = kind_type(H5T_STD_U8LE);
    std::vector<Column> columns;
    columns.emplace_back(at, "kind", kinds.id(), "1");
    columns.emplace_back(at, "time", H5T_STD_U64LE, "ticks");
    columns.emplace_back(at, "dt", H5T_STD_U32LE, "ticks");
    columns.emplace_back(at, "crystal_a", H5T_STD_U32LE, "1");
    columns.emplace_back(at, "crystal_b", H5T_STD_U32LE, "1");
    columns.emplace_back(at, "energy_a", H5T_IEEE_F32LE, "keV");
    columns.emplace_back(at, "energy_b", H5T_IEEE_F32LE, "keV");
    Table<gpu::Coincidence> table(std::move(columns), pack_coincidences);
    Exported exported;
    source.for_each_block(source.crystals(), [&](const daemon::ListModeReader& reader) {
        table.add(reader.coincidences());
        for (const auto& c : reader.coincidences())
            ++(c.kind == gpu::Kind::prompt ? exported.prompts : exported.delayeds);
    });
    table.close();
    return exported;
}

Exported write_singles(hid_t file, const ExportSource& source) {
    const Hdf5Group group(H5Gcreate2(file, "singles", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    require(static_cast<bool>(group));
    const hid_t at = group.id();
    std::vector<Column> columns;
    columns.emplace_back(at, "time", H5T_STD_U64LE, "ticks");
    columns.emplace_back(at, "crystal", H5T_STD_U32LE, "1");
    columns.emplace_back(at, "energy", H5T_IEEE_F32LE, "keV");
    Table<gpu::Single> table(std::move(columns), pack_singles);
    Exported exported;
    source.for_each_block(source.crystals(), [&](const daemon::ListModeReader& reader) {
        table.add(reader.singles());
        exported.singles += reader.singles().size();
    });
    table.close();
    return exported;
}

/// Numbers as numbers, texts as texts, the rest as JSON.
void describe(hid_t file, const ExportSource& source) {
    const auto text_of = [](const nlohmann::json& value) {
        return value.is_string() ? value.get<std::string>()
                                 : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    for (const auto& [key, value] : source.description().items()) {
        if (value.is_null() || key.empty() || key == "made_by") continue;
        if (value.is_number_unsigned()) {
            attribute(file, key.c_str(), H5T_STD_U64LE, H5T_NATIVE_UINT64, value.get<std::uint64_t>());
        } else if (value.is_number()) {
            attribute(file, key.c_str(), H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, value.get<double>());
        } else if (const auto text = text_of(value); text.size() < largest_attribute) {
            attribute(file, key.c_str(), text);
        } else {
            text_data_set(file, key.c_str(), text);
        }
    }
    if (source.run().is_null()) return;
    for (const char* key : {"state", "stop_utc", "stop_reason", "note", "calibration_sha256"}) {
        const auto value = source.run().value(key, nlohmann::json());
        if (value.is_string() && !source.description().contains(key)) attribute(file, key, text_of(value));
    }
    text_data_set(file, "run_json", text_of(source.run()));
}

Exported write_file(const std::filesystem::path& path, const ExportSource& source) {
    Hdf5File file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    require(static_cast<bool>(file));
    attribute(file.id(), "made_by", "petlm export --format hdf5");
    describe(file.id(), source);
    Exported exported = source.kind() == daemon::RecordKind::singles ? write_singles(file.id(), source)
                                                                     : write_coincidences(file.id(), source);
    require(H5Fflush(file.id(), H5F_SCOPE_LOCAL) >= 0 && file.close());
    return exported;
}

}  // namespace

Exported export_hdf5(const ExportSource& source, const ExportOptions& options, ExportOutputs& outputs) {
    outputs.claim(options.output);
    // For its message where the file cannot be made: HDF5's own say little.
    OutputFile(options.output).close();
    const config::Hdf5Silence silence;
    Exported exported = write_file(ExportOutputs::partial(options.output), source);
    const bool singles = source.kind() == daemon::RecordKind::singles;
    exported.files = {options.output.filename().string() + ": group /" +
                      (singles ? "singles" : "coincidences") +
                      ", one data set per field, with its units as attribute"};
    exported.notes = {"Attributes of the file are what the list-mode file says of itself."};
    if (!source.run().is_null()) exported.notes.push_back("The data set /run_json is the run's run.json.");
    return exported;
}

}  // namespace petacq::petlm
