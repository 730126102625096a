#include "tools/petlm/export/geometry/crystal_table.hpp"

#include <fmt/format.h>

#include "config/scanner/arrangement.hpp"
#include "tools/petlm/records/output.hpp"

namespace petacq::petlm {

std::vector<CrystalEntry> crystal_table(const config::Scanner& scanner) {
    if (scanner.is_ring()) return {};
    const config::Geometry& g = scanner.geometry;
    std::vector<CrystalEntry> table(g.crystal_count());
    for (std::uint32_t crystal = 0; crystal < g.crystal_count(); ++crystal) {
        const config::CrystalAddress at = scanner.arrangement->address(crystal);
        const config::CrystalLayer& layer = scanner.arrangement->layer_of(crystal);
        CrystalEntry& entry = table[crystal];
        entry.crystal = crystal;
        entry.place = scanner.arrangement->place(crystal);
        entry.length_mm = layer.length_mm;
        entry.y_mm = layer.y.sizes[at.column];
        entry.z_mm = layer.z.sizes[at.row];
        entry.module = at.module;
        entry.layer = at.layer;
        entry.column = at.column;
        entry.row = at.row;
    }
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local) {
            CrystalEntry& entry = table[g.crystal(unit / g.du_count, unit % g.du_count, local)];
            entry.bdm = unit / g.du_count;
            entry.du = unit % g.du_count;
            entry.local = local;
        }
    }
    return table;
}

void write_crystal_table(const std::filesystem::path& file, const std::vector<CrystalEntry>& table) {
    OutputFile out(file);
    out.text(
        "crystal,x,y,z,outward_x,outward_y,outward_z,length,size_y,size_z,module,layer,column,row,bdm,du,"
        "local\n");
    for (const CrystalEntry& e : table) {
        const auto& p = e.place.front_centre_mm;
        const auto& o = e.place.outward;
        out.text(fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", e.crystal, p[0], p[1],
                             p[2], o[0], o[1], o[2], e.length_mm, e.y_mm, e.z_mm, e.module, e.layer, e.column,
                             e.row, e.bdm, e.du, e.local));
    }
    out.close();
}

std::filesystem::path crystals_beside(const std::filesystem::path& records) {
    return records.parent_path() / (records.stem().string() + ".crystals.csv");
}

}  // namespace petacq::petlm
