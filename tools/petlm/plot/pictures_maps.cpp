// Crystals, rings, lines.
#include <algorithm>
#include <cmath>
#include <limits>

#include "config/scanner/arrangement.hpp"
#include "config/shape/unrolled_map.hpp"
#include "tools/petlm/plot/pictures.hpp"

namespace petacq::petlm {

double max_of(const Matrix& matrix) {
    std::vector<double> counts;
    for (const double v : matrix.values) {
        if (v > 0) counts.push_back(v);
    }
    if (counts.empty()) return 1;
    std::sort(counts.begin(), counts.end());
    const double nearly_all = counts[(counts.size() - 1) * 999 / 1000];
    return counts.back() > 1.5 * nearly_all ? nearly_all : counts.back();
}

namespace {

constexpr std::size_t max_cells = 1024;

/// Adds cells of a large matrix together so that it fits a picture.
Matrix shrunk(Matrix matrix) {
    const auto together = [](std::size_t cells) { return (cells + max_cells - 1) / max_cells; };
    const std::size_t down = together(matrix.rows);
    const std::size_t across = together(matrix.columns);
    if (down == 1 && across == 1) return matrix;
    Matrix out{(matrix.rows + down - 1) / down, (matrix.columns + across - 1) / across, {}};
    out.values.resize(out.rows * out.columns);
    for (std::size_t row = 0; row < matrix.rows; ++row) {
        for (std::size_t column = 0; column < matrix.columns; ++column)
            out.values[row / down * out.columns + column / across] +=
                matrix.values[row * matrix.columns + column];
    }
    return out;
}

}  // namespace

void show_map(Picture& p, const Matrix& whole, const Axis& x, const Axis& y, const std::string& counted) {
    Matrix matrix = shrunk(whole);
    const double most = max_of(matrix);
    if (std::any_of(matrix.values.begin(), matrix.values.end(), [&](double v) { return v > most; })) {
        p.caption += fmt::format(" Brightest: {:.0f} or more.", most);
    }
    p.draw = [=, matrix = std::move(matrix), height = p.height](cairo_t* cairo, const Theme& theme) {
        Plot plot(cairo, theme, {0, 0, picture_width, height}, x, y, {0, 12, bar_width});
        plot.heat(matrix, most);
        plot.colour_bar(most, counted);
    };
}

namespace {

Counts both_kinds(const PictureData& data) {
    Counts counts = data.pairs.prompts.crystals;
    for (std::size_t i = 0; i < counts.size(); ++i)
        counts[i] += data.pairs.delayeds.crystals[i];
    return counts;
}

/// The crystals of all layers to scale; NaN between them.
Matrix drawn(const config::Arrangement& arrangement, const config::UnrolledMap& map, const Counts& counts,
             double height_mm, double layer_mm) {
    double smallest = map.width_mm();
    for (const config::ModuleType& type : arrangement.types()) {
        for (const config::CrystalLayer& layer : type.layers) {
            for (const config::CrystalRow* const row : {&layer.y, &layer.z})
                smallest = std::min(smallest, *std::min_element(row->sizes.begin(), row->sizes.end()));
        }
    }
    const double step = std::max({smallest / 2, map.width_mm() / max_cells, height_mm / max_cells});
    const auto cells = [step](double mm) {
        return std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(mm / step)));
    };
    Matrix m{cells(height_mm), cells(map.width_mm()), {}};
    m.values.assign(m.rows * m.columns, std::numeric_limits<double>::quiet_NaN());
    for (std::uint32_t crystal = 0; crystal < counts.size(); ++crystal) {
        const config::CrystalAddress address = arrangement.address(crystal);
        const config::MapRectangle r = map.crystal(address);
        const double up = address.layer * layer_mm;
        const auto place = [step](double mm, std::size_t most) {
            return std::min(static_cast<std::size_t>(std::lround(std::max(0.0, mm) / step)), most);
        };
        const std::size_t left = place(r.left, m.columns - 1);
        const std::size_t bottom = place(r.bottom + up, m.rows - 1);
        const std::size_t right = std::max(left + 1, place(r.right, m.columns));
        const std::size_t top = std::max(bottom + 1, place(r.top + up, m.rows));
        for (std::size_t row = bottom; row < top; ++row) {
            for (std::size_t column = left; column < right; ++column)
                m.values[row * m.columns + column] = static_cast<double>(counts[crystal]);
        }
    }
    return m;
}

/// Of a scanner in the long form.
Picture unrolled_map(const PictureData& data, const Counts& counts, std::uint64_t silent,
                     const std::string& what, Picture p) {
    const auto arrangement = data.scanner.arrangement;
    const config::UnrolledMap map(arrangement);
    const double layer_mm = 1.06 * map.height_mm();
    const double height_mm = (map.layers() - 1) * layer_mm + map.height_mm();
    p.caption += fmt::format(
        ". The modules unrolled around the axis, as seen from outside with +z upwards{}. {} of {} crystals "
        "have none.",
        map.layers() > 1 ? ", the layers one above the other with the front one at the bottom" : "",
        grouped(silent), grouped(counts.size()));
    p.alt = fmt::format("Map of the counts of {} crystals in {} modules. {} have none.",
                        grouped(counts.size()), grouped(arrangement->modules().size()), grouped(silent));
    p.height = std::clamp(700.0 * height_mm / map.width_mm(), 180.0, 900.0) + 58;
    show_map(p, drawn(*arrangement, map, counts, height_mm, layer_mm),
             {"around the axis (mm)", 0, map.width_mm()}, {"along the axis (mm)", 0, height_mm}, what);
    p.csv = [counts, arrangement, geometry = data.scanner.geometry](OutputFile& out) {
        out.text("crystal,module,layer,column,row,bdm,du,counts\n");
        std::vector<std::uint32_t> unit_of(counts.size());
        for (std::uint32_t unit = 0; unit < geometry.unit_count(); ++unit) {
            for (std::uint32_t local = 0; local < geometry.crystals_of_unit(unit); ++local)
                unit_of[geometry.crystal(unit / geometry.du_count, unit % geometry.du_count, local)] = unit;
        }
        for (std::uint32_t i = 0; i < counts.size(); ++i) {
            const config::CrystalAddress a = arrangement->address(i);
            print(out, "{},{},{},{},{},{},{},{}\n", i, a.module, a.layer, a.column, a.row,
                  unit_of[i] / geometry.du_count, unit_of[i] % geometry.du_count, counts[i]);
        }
    };
    return p;
}

}  // namespace

Picture crystal_map(const PictureData& data) {
    const Counts counts = data.singles ? data.singles->crystals : both_kinds(data);
    const auto silent = static_cast<std::uint64_t>(std::count(counts.begin(), counts.end(), 0U));
    Picture p;
    p.name = "singles-map";
    p.title = data.singles ? "Singles of the crystals" : "Photons in pairs of the crystals";
    p.caption =
        data.singles
            ? fmt::format("Singles accepted in each crystal (from {})", data.singles->from)
            : std::string(
                  "The run has neither histograms nor singles on disk: photons of its pairs in each crystal");
    const std::string what = data.singles ? "singles" : "photons";
    if (!data.scanner.is_ring()) return unrolled_map(data, counts, silent, what, std::move(p));
    const std::uint32_t in_ring = data.scanner.geometry.crystals_in_ring();
    const std::uint32_t rings = data.scanner.geometry.rings();
    p.caption +=
        fmt::format(". The ring unrolled, as seen from outside with +z upwards. {} of {} crystals have none.",
                    grouped(silent), grouped(counts.size()));
    p.alt = fmt::format(
        "Map of the counts of {} crystals, {} around the ring and {} along the axis. {} have none.",
        grouped(counts.size()), in_ring, rings, grouped(silent));
    p.height = std::clamp(400.0 * rings / in_ring, 180.0, 420.0) + 58;
    show_map(p, {rings, in_ring, doubles(counts)}, {"crystal in its ring", 0, static_cast<double>(in_ring)},
             {"ring", 0, static_cast<double>(rings)}, what);
    p.csv = [counts, in_ring](OutputFile& out) {
        out.text("crystal,ring,in_ring,counts\n");
        for (std::size_t i = 0; i < counts.size(); ++i)
            print(out, "{},{},{},{}\n", i, i / in_ring, i % in_ring, counts[i]);
    };
    return p;
}

Picture michelogram(const PictureData& data) {
    const std::uint32_t bins = data.bins.ring_bins;
    const std::uint32_t width = data.bins.rings_per_bin;
    Picture p;
    p.name = "michelogram";
    p.title = "Michelogram";
    p.caption =
        "Prompts by the rings of their two crystals; the first is the crystal with the smaller place in its "
        "ring. Above and below the diagonal are lines that lean this way and that.";
    if (!data.scanner.is_ring()) {
        p.caption += fmt::format(" Rings are {:.4g} mm of the axis, and the place is around it.",
                                 data.bins.rings.pitch_mm());
    }
    if (width > 1) p.caption += fmt::format(" {} rings in a bin.", width);
    p.alt = fmt::format("Michelogram: counts of prompts for each pair of {} rings.", data.bins.rings.count());
    p.height = 470;
    show_map(p, {bins, bins, doubles(data.pairs.prompts.michelogram)},
             {"second ring", 0, static_cast<double>(data.bins.rings.count())},
             {"first ring", 0, static_cast<double>(data.bins.rings.count())}, "prompts");
    p.csv = [&data, bins, width](OutputFile& out) {
        out.text("first_ring,second_ring,prompts,delayeds\n");
        for (std::size_t i = 0; i < data.pairs.prompts.michelogram.size(); ++i) {
            print(out, "{},{},{},{}\n", i / bins * width, i % bins * width, data.pairs.prompts.michelogram[i],
                  data.pairs.delayeds.michelogram[i]);
        }
    };
    return p;
}

Picture sinogram(const PictureData& data) {
    const LineBins& lines = data.bins.lines;
    const std::uint64_t beyond = data.pairs.prompts.beyond_sinogram + data.pairs.delayeds.beyond_sinogram;
    Picture p;
    p.name = "sinogram";
    p.title = "Sinogram";
    p.caption = fmt::format(
        "{}, all planes together. A point at (x, y) is on the line s = x cos \u03c6 + y sin \u03c6. Photons "
        "interact {}; counts are as they are, without correction for the number of crystal "
        "pairs in a bin, which is uneven.",
        data.delayeds() ? "Prompts less delayeds" : "Prompts", data.depth.text());
    if (data.scanner.rotation) p.caption += " The scanner turns: lines are those in its own frame.";
    if (beyond != 0) p.caption += fmt::format(" {} pairs are beyond its edge.", grouped(beyond));
    p.alt =
        "Sinogram: counts over the distance of a line from the axis in millimetres and its angle in degrees.";
    p.height = 430;
    show_map(p,
             {lines.angles(), lines.radial(), net(data.pairs.prompts.sinogram, data.pairs.delayeds.sinogram)},
             {"s (mm)", -lines.radius_mm(), lines.radius_mm()}, {"\u03c6 (degrees)", 0, 180},
             data.delayeds() ? "prompts \u2212 delayeds" : "prompts");
    p.csv = [&data, &lines](OutputFile& out) {
        out.text("phi_deg,s_mm,prompts,delayeds\n");
        for (std::uint32_t i = 0; i < data.pairs.prompts.sinogram.size(); ++i) {
            print(out, "{},{},{},{}\n", lines.angle_deg(i / lines.radial()),
                  lines.radial_mm(i % lines.radial()), data.pairs.prompts.sinogram[i],
                  data.pairs.delayeds.sinogram[i]);
        }
    };
    return p;
}

Picture axial_profile(const PictureData& data) {
    std::vector<double> z;  // of the planes
    const auto ring_z = [&](std::uint32_t ring) { return data.bins.rings.z_mm(ring); };
    const std::size_t planes = 2 * std::size_t{data.bins.rings.count()} - 1;
    for (std::uint32_t p = 0; p < planes; ++p)
        z.push_back((ring_z(p / 2) + ring_z(p - p / 2)) / 2);
    std::vector<double> edges;
    for (std::size_t i = 0; i + 1 < z.size(); ++i)
        edges.push_back((z[i] + z[i + 1]) / 2);
    const double half = z.size() > 1 ? (z[1] - z[0]) / 2 : data.bins.rings.pitch_mm() / 2;
    edges.insert(edges.begin(), z.front() - half);
    edges.push_back(z.back() + half);
    const std::vector<double> counts = net(data.pairs.prompts.planes, data.pairs.delayeds.planes);
    Picture p;
    p.name = "axial-profile";
    p.title = "Axial profile";
    p.caption = fmt::format(
        "{} in each plane of the single-slice rebinning: half way between the rings of the two crystals. The"
        " scanner sees its middle with more ring pairs than its ends.",
        data.delayeds() ? "Prompts less delayeds" : "Prompts");
    p.alt = "Profile along the axis: counts over z in millimetres.";
    p.height = 300;
    p.draw = [edges, counts, height = p.height](cairo_t* cairo, const Theme& theme) {
        Plot plot(cairo, theme, {0, 0, picture_width, height}, {"z (mm)", edges.front(), edges.back()},
                  count_axis("counts per plane", {counts}));
        plot.steps(edges, counts, {theme.trues, true});
    };
    p.csv = [&data, z](OutputFile& out) {
        out.text("plane,z_mm,prompts,delayeds\n");
        for (std::size_t i = 0; i < z.size(); ++i)
            print(out, "{},{},{},{}\n", i, z[i], data.pairs.prompts.planes[i], data.pairs.delayeds.planes[i]);
    };
    return p;
}

std::vector<Picture> pictures_of(const PictureData& data) {
    std::vector<Picture> pictures;
    if (data.image) pictures.push_back(cuts_of_image(data));
    if (resolution_by_module_known(data)) pictures.push_back(resolution_of_modules(data));
    if (data.singles) pictures.push_back(energy_of_singles(data));
    pictures.push_back(energy_of_pairs(data));
    pictures.push_back(time_differences(data));
    if (data.triples) {
        pictures.push_back(lifetimes(data));
        pictures.push_back(energy_of_gammas(data));
    }
    pictures.push_back(crystal_map(data));
    pictures.push_back(rates_over_time(data));
    if (data.ledger) pictures.push_back(loss_over_time(data));
    if (data.seconds_rows) pictures.push_back(corrections_over_time(data));
    if (data.seconds_rows && temperatures_known(*data.seconds_rows))
        pictures.push_back(temperature_over_time(data));
    for (std::size_t i = 0; i < data.bins.phases.size(); ++i)
        pictures.push_back(counts_by_phase(data, i));
    pictures.push_back(sinogram(data));
    pictures.push_back(axial_profile(data));
    pictures.push_back(michelogram(data));
    if (data.spectra) {
        pictures.push_back(flood_maps(data));
        pictures.push_back(energy_of_modules(data));
    }
    return pictures;
}

}  // namespace petacq::petlm
