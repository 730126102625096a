// Crystals, rings, lines.
#include <algorithm>

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

}  // namespace

Picture crystal_map(const PictureData& data) {
    const std::uint32_t in_ring = data.bins.in_ring;
    const std::uint32_t rings = data.bins.rings;
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
    p.caption +=
        fmt::format(". The ring unrolled, as seen from outside with +z upwards. {} of {} crystals have none.",
                    grouped(silent), grouped(counts.size()));
    p.alt = fmt::format(
        "Map of the counts of {} crystals, {} around the ring and {} along the axis. {} have none.",
        grouped(counts.size()), in_ring, rings, grouped(silent));
    p.height = std::clamp(400.0 * rings / in_ring, 180.0, 420.0) + 58;
    show_map(p, {rings, in_ring, doubles(counts)}, {"crystal in its ring", 0, static_cast<double>(in_ring)},
             {"ring", 0, static_cast<double>(rings)}, data.singles ? "singles" : "photons");
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
    if (width > 1) p.caption += fmt::format(" {} rings in a bin.", width);
    p.alt = fmt::format("Michelogram: counts of prompts for each pair of {} rings.", data.bins.rings);
    p.height = 470;
    show_map(p, {bins, bins, doubles(data.pairs.prompts.michelogram)},
             {"second ring", 0, static_cast<double>(data.bins.rings)},
             {"first ring", 0, static_cast<double>(data.bins.rings)}, "prompts");
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
    const auto ring_z = [&](std::uint32_t ring) {
        return config::crystal_place(data.scanner, ring * data.bins.in_ring).front_centre_mm[2];
    };
    const std::size_t planes = 2 * std::size_t{data.bins.rings} - 1;
    for (std::uint32_t p = 0; p < planes; ++p)
        z.push_back((ring_z(p / 2) + ring_z(p - p / 2)) / 2);
    std::vector<double> edges;
    for (std::size_t i = 0; i + 1 < z.size(); ++i)
        edges.push_back((z[i] + z[i + 1]) / 2);
    const double half = z.size() > 1 ? (z[1] - z[0]) / 2 : data.scanner.dimensions.crystal_pitch_z_mm / 2;
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
    if (data.singles) pictures.push_back(energy_of_singles(data));
    pictures.push_back(energy_of_pairs(data));
    pictures.push_back(time_differences(data));
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
