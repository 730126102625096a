// petlm lifetime: the lifetimes of positrons, and of the positronium that they form, from triples.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace petacq::petlm {

struct LifetimeOptions {
    std::filesystem::path target;                  ///< run directory, or a file of triples in one
    std::filesystem::path output;                  ///< directory
    bool force = false;                            ///< replace earlier results
    bool as_json = false;                          ///< prints what results.json holds
    std::optional<std::filesystem::path> scanner;  ///< instead of the one in run.json
    std::optional<double> depth_mm;                ///< mean depth of interaction in a crystal
    std::optional<std::filesystem::path> image;    ///< of the activity, which places annihilations on lines
    std::vector<std::string> regions;              ///< name=sphere:x,y,z,r or name=mask.nii; none: everything
    double min_share = 0.5;                        ///< of the activity on its line that a triple's region has
    std::string tof = "auto";                      ///< auto, off, or the resolution in ps
    std::optional<double> para_ns;                 ///< instead of the lifetimes in tissue
    std::optional<double> direct_ns;
    std::optional<double> resolution_ps;  ///< FWHM of a lifetime, instead of a fitted one
    std::optional<double> offset_ps;      ///< of times without a lifetime, instead of a fitted one
};

/// Fits a spectrum of each region and writes results.json, report.html, CSV files and, if the program was
/// built with cairo, PNG pictures. Returns an exit status. Throws UsageError, BadInput, daemon::NotListMode,
/// config::Error, std::system_error.
int lifetime(const LifetimeOptions& options);

}  // namespace petacq::petlm
