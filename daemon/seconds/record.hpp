// The record of a second in a file: numbers, then numbers by module, by pair of modules and by crystal. The
// file describes it, so that readers of any version find the fields by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "daemon/seconds/second.hpp"

namespace petacq::daemon {

/// As NumPy spells them, little-endian: "<u4", "<u8", "<i8", "<f8".
enum class FieldType : std::uint8_t { u32, u64, i64, f64 };
const char* name_of(FieldType type);
std::size_t bytes_of(FieldType type);

enum class FieldShape : std::uint8_t {
    number,
    by_module,
    by_module_pair,
    by_crystal,
    by_energy,
    by_sector_pair
};

struct SecondField {
    std::string name;
    FieldType type = FieldType::u64;
    FieldShape shape = FieldShape::number;
    std::size_t count = 1;   ///< numbers: modules, pairs of modules or of sectors, crystals, energies
    std::size_t offset = 0;  ///< in the record
    std::string unit;
    std::string help;

    [[nodiscard]] std::size_t bytes() const { return count * bytes_of(type); }
};

/// The records of one scanner. The first field is `start`, the second `length`.
class SecondRecord {
  public:
    /// `gammas`: gammas are looked for; without, the record has no fields of them.
    explicit SecondRecord(const config::Geometry& geometry, bool gammas = false);

    [[nodiscard]] const std::vector<SecondField>& fields() const { return fields_; }
    /// A multiple of 64.
    [[nodiscard]] std::uint32_t bytes() const { return bytes_; }
    /// The value of `fields` in the header of a file.
    [[nodiscard]] nlohmann::json description() const;
    /// Fills `record`, which has room for bytes(). REQUIRES: the second of this scanner.
    void write(const Second& second, std::span<std::byte> record) const;

  private:
    bool gammas_;
    std::vector<std::uint16_t> modules_of_crystals_;
    gpu::Sectors sectors_;
    std::vector<SecondField> fields_;
    std::uint32_t bytes_ = 0;
};

/// The fields that the header of a file describes: those of types that this version knows. Throws
/// std::invalid_argument if `start` and `length` are not the first two, or a field lies outside the record or
/// has no numbers.
std::vector<SecondField> fields_of(const nlohmann::json& description, std::size_t record_bytes);

}  // namespace petacq::daemon
