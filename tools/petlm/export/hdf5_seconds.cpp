// HDF5: the seconds of a run, and what all of the file is made of.
#include <fmt/format.h>
#include <algorithm>

#include <array>
#include <stdexcept>
#include <vector>

#include "daemon/seconds/reader.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/hdf5_parts.hpp"

namespace petacq::petlm {

using config::Hdf5Attribute;
using config::Hdf5DataSet;
using config::Hdf5List;
using config::Hdf5Space;
using config::Hdf5Type;

void require(bool good) {
    if (!good) throw std::runtime_error("HDF5: " + config::hdf5_error());
}

Hdf5Type hdf5_text_type() {
    Hdf5Type type(H5Tcopy(H5T_C_S1));
    require(type && H5Tset_size(type.id(), H5T_VARIABLE) >= 0 && H5Tset_cset(type.id(), H5T_CSET_UTF8) >= 0);
    return type;
}

void attribute(hid_t object, const char* name, const std::string& text) {
    const Hdf5Type type = hdf5_text_type();
    const Hdf5Space space(H5Screate(H5S_SCALAR));
    const Hdf5Attribute a(H5Acreate2(object, name, type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT));
    const char* words = text.c_str();
    require(a && H5Awrite(a.id(), type.id(), &words) >= 0);
}

void text_data_set(hid_t file, const char* name, const std::string& text) {
    const Hdf5Type type = hdf5_text_type();
    const Hdf5Space space(H5Screate(H5S_SCALAR));
    const Hdf5DataSet set(
        H5Dcreate2(file, name, type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const char* words = text.c_str();
    require(set && H5Dwrite(set.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &words) >= 0);
}

namespace {

hid_t type_of(daemon::FieldType type) {
    switch (type) {
        case daemon::FieldType::u32:
            return H5T_STD_U32LE;
        case daemon::FieldType::u64:
            return H5T_STD_U64LE;
        case daemon::FieldType::i64:
            return H5T_STD_I64LE;
        case daemon::FieldType::f64:
            break;
    }
    return H5T_IEEE_F64LE;
}

daemon::SecondField covered_field() {
    daemon::SecondField field;
    field.name = "covered";
    field.type = daemon::FieldType::f64;
    field.count = 1;
    field.help = "Share of the recorded time of this second that the records cover";
    return field;
}

/// What a second has of a field that its run does not know.
std::vector<std::byte> unknown_values(const daemon::SecondsReader& seconds,
                                      const daemon::SecondField& field) {
    if (field.type != daemon::FieldType::f64) {
        throw BadInput(fmt::format(
            "{}: its seconds lack the field {}, which other runs of these records have, and whole numbers "
            "cannot say that they are unknown; export each run by itself",
            seconds.reader().path().string(), field.name));
    }
    const std::vector<double> unknown(field.count, std::numeric_limits<double>::quiet_NaN());
    const auto bytes = std::as_bytes(std::span(unknown));
    return {bytes.begin(), bytes.end()};
}

/// The data set of one field. It grows with each second.
class FieldSet {
  public:
    FieldSet(hid_t group, const daemon::SecondField& field)
        : field_(field), rank_(field.shape == daemon::FieldShape::number ? 1 : 2) {
        constexpr hsize_t numbers_in_chunk = 1024;
        constexpr int gzip_level = 1;
        const std::array<hsize_t, 2> none{0, field.count};
        const std::array<hsize_t, 2> most{H5S_UNLIMITED, field.count};
        const std::array<hsize_t, 2> chunk{rank_ == 1 ? numbers_in_chunk : 1, field.count};
        const Hdf5Space space(H5Screate_simple(rank_, none.data(), most.data()));
        const Hdf5List creation(H5Pcreate(H5P_DATASET_CREATE));
        require(space && creation && H5Pset_chunk(creation.id(), rank_, chunk.data()) >= 0 &&
                H5Pset_shuffle(creation.id()) >= 0 && H5Pset_deflate(creation.id(), gzip_level) >= 0);
        set_ = Hdf5DataSet(H5Dcreate2(group, field.name.c_str(), type_of(field.type), space.id(), H5P_DEFAULT,
                                      creation.id(), H5P_DEFAULT));
        require(static_cast<bool>(set_));
        attribute(set_.id(), "units", field.unit.empty() ? "1" : field.unit);
        attribute(set_.id(), "description", field.help);
    }
    /// `values`: field.count numbers of the type of the field.
    void write(hsize_t second, const std::byte* values) {
        const std::array<hsize_t, 2> size{second + 1, field_.count};
        const std::array<hsize_t, 2> start{second, 0};
        const std::array<hsize_t, 2> count{1, field_.count};
        require(H5Dset_extent(set_.id(), size.data()) >= 0);
        const Hdf5Space all(H5Dget_space(set_.id()));
        const Hdf5Space memory(H5Screate_simple(rank_, count.data(), nullptr));
        require(all && memory &&
                H5Sselect_hyperslab(all.id(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr) >=
                    0 &&
                H5Dwrite(set_.id(), type_of(field_.type), memory.id(), all.id(), H5P_DEFAULT, values) >= 0);
    }
    void close() { require(set_.close()); }
    [[nodiscard]] const daemon::SecondField& field() const { return field_; }

  private:
    daemon::SecondField field_;
    int rank_;
    Hdf5DataSet set_;
};

}  // namespace

std::uint64_t write_hdf5_seconds(hid_t file, CoveredSeconds& seconds) {
    const Hdf5Group group(H5Gcreate2(file, "seconds", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    require(static_cast<bool>(group));
    FieldSet covered(group.id(), covered_field());
    std::vector<FieldSet> sets;
    std::uint64_t second = 0;
    try {
        for (const daemon::SecondField& field : seconds.fields())
            if (field.count != 0) sets.emplace_back(group.id(), field);
        for (; seconds.next(); ++second) {
            const daemon::SecondsReader& reader = seconds.reader();
            for (FieldSet& set : sets) {
                const daemon::SecondField* const field = reader.find(set.field().name);
                if (field != nullptr)
                    set.write(second, reader.record().data() + field->offset);
                else
                    set.write(second, unknown_values(reader, set.field()).data());
            }
            const double share = seconds.share();
            covered.write(second, reinterpret_cast<const std::byte*>(&share));
        }
    } catch (const std::invalid_argument& error) {
        throw BadInput(seconds.file().string() + ": " + error.what());
    }
    for (FieldSet& set : sets)
        set.close();
    covered.close();
    return second;
}

}  // namespace petacq::petlm
