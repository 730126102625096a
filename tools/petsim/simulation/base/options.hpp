// The options of a simulation: activity, detector, wire, faults. Names and units are those of the
// command line (docs/reference/petsim.md).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/base/words.hpp"
#include "config/nuclides/nuclides.hpp"
#include "config/scanner/scanner.hpp"
#include "net/wire.hpp"
#include "tools/petsim/detector/temperature.hpp"
#include "tools/petsim/physics/attenuation.hpp"
#include "tools/petsim/physics/cylinder.hpp"
#include "tools/petsim/random/random.hpp"
#include "tools/petsim/simulation/base/activity_curve.hpp"

namespace petacq::sim {

inline constexpr double min_photon_kev = 20;  ///< a photon of less is absorbed where it is

enum class Shape : std::uint8_t { point, line, cylinder };

enum class MotionShape : std::uint8_t { sine, triangle, breath };

/// How a source moves in each cycle: away from its place and back.
struct Motion {
    std::uint8_t axis = 2;    ///< 0 x, 1 y, 2 z
    double amplitude_mm = 0;  ///< furthest distance from its place, reached in the middle; 0: it rests
    MotionShape shape = MotionShape::sine;
};

/// A share of the positrons lives on, as positronium or free, for times of an exponential distribution.
struct PositronLifetime {
    double fraction = 0;
    double ns = 0;  ///< the mean
};

/// A positron emitter, or an emitter of single photons, distributed evenly over its shape.
struct ActivitySource {
    Shape shape = Shape::point;
    Vector3 at{};          ///< mm: the point, one end of the line, the centre of the cylinder
    Vector3 to{};          ///< mm: the other end of the line
    double radius_mm = 0;  ///< cylinder, its axis along z
    double length_mm = 0;  ///< cylinder
    /// At the start, 10^6 per second: positrons or single photons emitted; with a nuclide, decays.
    double activity_mbq = 0;
    double half_life_s = 0;  ///< 0: constant activity
    double photon_kev = 0;   ///< energy of single photons; 0: it emits positrons
    const config::Nuclide* nuclide =
        nullptr;  ///< of the table; absent: each decay emits a positron, no gamma
    /// Of its nuclide's positrons; what the fractions leave annihilates at once.
    std::vector<PositronLifetime> positronium{};
    Motion motion{};  ///< of the whole source
    /// Parts of a cylinder without activity; they move with it. The activity fills the rest evenly.
    std::vector<Cylinder> cold{};
    ActivityCurve curve{};  ///< multiplies the activity, besides the decay
};

/// A point of a cylinder, evenly drawn, relative to its centre.
Vector3 point_in_cylinder(const ActivitySource& source, Random& random);
/// Whether a cold region contains the point at this distance from the centre.
bool in_cold_region(const ActivitySource& source, const Vector3& offset);

/// An object in the scanner in which photons scatter; it lies on the bed.
struct ScatteringObject {
    Cylinder shape;
    double attenuation_per_cm = water_per_cm;  ///< linear, at 511 keV, all of it by Compton scatter
};

/// A breath or a heart beat: what sources, gates and triggers follow.
struct Cycle {
    double period_s = 0;  ///< mean; 0: there is none
    double spread = 0;    ///< standard deviation of the periods / mean
};

/// The bed with all sources on it moves along z, at once, by the same step again and again.
struct Bed {
    double step_mm = 0;
    double interval_s = 0;  ///< 0: it rests
};

/// The scanner turns about its axis, from +x to +y; negative: the other way.
struct Turning {
    double turns_per_minute = 0;  ///< evenly
    double step_deg = 0;          ///< or by this angle, at once, again and again
    double interval_s = 0;        ///< from one step to the next
    [[nodiscard]] bool turns() const { return turns_per_minute != 0 || step_deg != 0; }
};

inline constexpr double turn_tags = 120;  ///< of a scanner that turns evenly, in each turn

/// Open in the part of each cycle from phase `from` to phase `to`.
struct GateTags {
    std::uint8_t channel = 0;
    double from = 0;
    double to = 0;
};
struct RegularTags {
    std::uint8_t channel = 0;
    double interval_s = 0;
};
struct Tags {
    std::uint16_t source = 0;  ///< sends all of them but those of dead time, which all sources send
    std::optional<std::uint8_t> trigger;  ///< channel; at the start of each cycle, numbered from 1
    std::vector<GateTags> gates;
    std::optional<std::uint8_t> position;  ///< channel; of the bed, at the start and after each step
    std::optional<RegularTags> dead_time;
    std::optional<RegularTags> clock;  ///< milliseconds since the start
};

struct Physics {
    double efficiency = 0.5;         ///< probability that a photon entering a crystal is detected
    double scatter = 0.1;            ///< fraction of annihilations of which one photon scatters in the object
    double positron_range_mm = 0;    ///< FWHM of the Gaussian distance along each axis
    double noncollinearity_deg = 0;  ///< FWHM of the Gaussian angle along each of two directions
    double energy_resolution = 0.12;    ///< FWHM / energy at 511 keV; grows as 1 / sqrt(energy)
    double time_resolution_ps = 400;    ///< FWHM of a single photon
    std::uint64_t dead_time_ticks = 0;  ///< of a detector unit after each hit that it takes
    bool paralysable = false;           ///< hits in the dead time begin it again
    double block_pile_up_ns = 0;        ///< hits of a detector unit within this time of one give one frame
    double intrinsic_hz = 0;            ///< Lu-176 decays per crystal that contains lutetium, on average
    double dark_hz = 0;                 ///< per detector unit
    double dark_mean_keV = 25;          ///< NOLINT(readability-identifier-naming): of an exponential spectrum
    double temperature_c = 25;          ///< mean of all detector units
    double clock_drift_ps_per_c = 0;    ///< raw times are later by this for each degree above 25 C
    double gain_drift_percent_per_c = 0;  ///< gains are higher by this for each degree above 25 C
};

/// What a photon does in the crystals.
enum class CrystalModel : std::uint8_t {
    surface,  ///< it is absorbed at the front face through which it passes
    depth,    ///< it is absorbed where it interacts
    scatter,  ///< it is absorbed there, or leaves the energy of a Compton scatter and flies on
};

struct Crystals {
    CrystalModel model = CrystalModel::surface;  ///< the fastest; the command line has another default
    std::optional<double> attenuation_per_cm;    ///< linear, at 511 keV; absent: of the material
    std::optional<double> photo_share;  ///< of it, photoelectric at 511 keV; absent: of that material
    bool cascade = false;               ///< the gammas of Lu-176 are followed

    /// In the short form, with what the description of the scanner says where nothing else was asked for. In
    /// the long form each layer of crystals has its own.
    [[nodiscard]] Crystals of(const config::Scanner& scanner) const;
};

/// The fields that --corrupt can change.
enum class Field : std::uint8_t { marker, bdm, du, x, time, energy, magic, version, length };
inline constexpr std::size_t field_count = 9;
const char* name_of(Field field);
/// Throws std::invalid_argument naming the accepted words.
Field field_from_name(const std::string& name);
/// Whether corrupting the field makes the whole datagram unreadable.
constexpr bool breaks_datagram(Field field) {
    return field >= Field::magic;
}

struct ClockJump {
    std::uint16_t source = 0;
    double at_s = 0;
    std::int64_t ticks = 0;
    std::optional<std::uint64_t> datagrams;  ///< how many; absent: from then on
};
struct BoardReset {
    std::uint16_t source = 0;
    double at_s = 0;
};
struct Silence {
    std::uint16_t source = 0;
    double from_s = 0;
    double to_s = 0;
};

struct SilentUnit {
    std::uint32_t bdm = 0;
    std::uint32_t du = 0;
    double from_s = 0;
    double to_s = 0;
};
struct GainStep {
    std::uint32_t bdm = 0;
    double at_s = 0;
    double percent = 0;
};
struct NoisyCrystal {
    std::uint32_t crystal = 0;
    double at_s = 0;
    double hz = 0;
};

/// Probabilities are per datagram. Each fault is a class in faults/, but for the temperature
/// (detector/temperature.hpp); that of boards and datagrams acts in board/, that of detector units in
/// events/.
struct Faults {
    double loss = 0;
    double duplicate = 0;
    double reorder = 0;
    std::uint32_t reorder_span = 4;  ///< a datagram held back is sent after 1 to this many later ones
    std::array<double, field_count> corrupt{};
    std::vector<ClockJump> jumps;
    std::vector<BoardReset> resets;
    std::vector<Silence> silences;
    std::vector<SilentUnit> silent_units;
    std::vector<GainStep> gain_steps;  ///< steps of one BDM multiply
    std::vector<TemperatureStep> temperature_steps;
    std::vector<NoisyCrystal> noisy_crystals;
};

struct Wire {
    net::Framing framing = net::Framing::sequenced;
    /// BDMs are distributed over them in blocks; 0: those of the scanner description, else one per BDM.
    std::uint32_t sources = 0;
    std::uint32_t payload = 1472;
    double flush_us = 1000;     ///< detector time after which a partly filled datagram is sent
    double heartbeat_ms = 100;  ///< detector time without a datagram before a heartbeat; 0: none
    double skew_us = 100;       ///< sources are late by up to this much, evenly, and by jitter of a quarter
    bool end_of_stream = true;
    std::uint8_t head_marker = net::default_head_marker;
    std::uint8_t tail_marker = net::default_tail_marker;
    std::uint8_t tag_marker = net::default_tag_marker;
};

struct Options {
    std::uint64_t seed = 1;
    double start_s = 0;  ///< detector time at which the simulation begins
    double duration_s = 10;
    std::vector<ActivitySource> activity;
    double activity_scale = 1;  ///< multiplies every activity
    Cycle cycle;
    Bed bed;
    Turning turning;  ///< only of a scanner whose description has a rotation
    Physics physics;
    std::optional<ScatteringObject> object;  ///< without effect: physics.scatter
    Crystals crystals;
    Tags tags;
    Wire wire;
    Faults faults;
    std::uint32_t threads = 1;  ///< that generate events; the result does not depend on it
};

/// Whether photons are followed through an object or through the crystals, so that the truth has their
/// history.
inline bool follows_photons(const Options& o) {
    return o.object || o.crystals.model != CrystalModel::surface;
}
/// Whether a source emits gammas besides its positrons.
inline bool emits_gammas(const Options& o) {
    return std::any_of(o.activity.begin(), o.activity.end(), [](const ActivitySource& source) {
        return source.nuclide != nullptr && !source.nuclide->gammas.empty();
    });
}
/// Whether the truth says which photon made a hit.
inline bool knows_photons(const Options& o) {
    return follows_photons(o) || emits_gammas(o);
}
/// Whether a photon or a decay can hit several crystals. Such hits in one block give one frame.
inline bool hits_several_crystals(const Options& o) {
    return o.crystals.model == CrystalModel::scatter || o.crystals.cascade;
}

/// Throws std::invalid_argument with the name of the option, what was found and what was expected.
void check(const Options& options, const config::Scanner& scanner);
/// The sources on the wire: those of the scanner description, else one per BDM with its number as the id; or
/// as many as the options say, with the ids 0, 1, 2, ... For bare framing those that are made up have no id,
/// address or port.
std::vector<config::Source> wire_sources(const Options& options, const config::Scanner& scanner);
/// Every option that affects the result, for the truth file and the summary.
nlohmann::json to_json(const Options& options);
/// A source description (docs/reference/petsim.md).
struct SourceDescription {
    std::vector<ActivitySource> sources;
    std::optional<ScatteringObject> object;
};
/// Throws std::invalid_argument.
SourceDescription sources_from_json(const nlohmann::json& document);
/// Throws std::invalid_argument naming the accepted words.
MotionShape motion_shape_from_name(const std::string& name);
std::uint8_t axis_from_name(const std::string& name);

}  // namespace petacq::sim

namespace petacq::config {

template <>
inline constexpr Words<3> words<sim::CrystalModel>{"crystal model", {"surface", "depth", "scatter"}};

}  // namespace petacq::config
