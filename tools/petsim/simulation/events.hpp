// The physics: from decays to hits, in independent chunks of detector time.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/calibration.hpp"
#include "config/scanner.hpp"
#include "tools/geometry/hit_finder.hpp"
#include "tools/petsim/detector/detector.hpp"
#include "tools/petsim/detector/temperature.hpp"
#include "tools/petsim/physics/ray.hpp"
#include "tools/petsim/physics/spectra.hpp"
#include "tools/petsim/random/random.hpp"
#include "tools/petsim/simulation/inverse_calibration.hpp"
#include "tools/petsim/simulation/movement.hpp"
#include "tools/petsim/simulation/options.hpp"
#include "tools/petsim/simulation/tracking.hpp"

namespace petacq::sim {

/// The origin of a hit; also the low bits of the flags of a truth record.
enum HitKind : std::uint8_t { hit_photon = 0x1, hit_scattered = 0x2, hit_intrinsic = 0x4, hit_dark = 0x8 };

/// What happened to a photon that was followed, before its hit (0 where photons are not followed), and to its
/// energy.
enum HitHistory : std::uint8_t {
    history_scatters = 0x0F,      ///< how often it scattered in the object, at most 15
    history_first_photon = 0x10,  ///< of the two of its annihilation
    history_second_photon = 0x20,
    history_later = 0x40,  ///< its first energy went to another crystal
    history_gain_step = 0x80,
};
inline constexpr int history_photon_shift = 4;  ///< to TruthPhoton

/// An annihilation has a number below this; a decay of Lu-176 whose cascade is followed has one above.
inline constexpr std::uint64_t first_decay_number = std::uint64_t{1} << 63;

/// A detected hit, as the board reads it out.
struct Hit {
    std::uint64_t raw_time;      ///< ticks, before the time offset
    std::uint64_t annihilation;  ///< 0: none
    std::uint32_t crystal;
    float energy;  ///< keV, as the calibration gives it for `adc`; with a true detector as it was measured
    std::uint16_t adc;
    std::uint16_t unit;  ///< bdm * du_count + du
    std::uint8_t x;
    std::uint8_t y;
    std::uint8_t kind;
    std::uint8_t history;  ///< with history_gain_step
};
static_assert(sizeof(Hit) == 32);

/// Several hits that a board takes for one: the light adds up, and the position is the mean, weighted by the
/// light. The time is that of the first, all else that of the brightest.
class LightSum {
  public:
    explicit LightSum(const Hit& first);
    void add(const Hit& hit);
    [[nodiscard]] Hit result() const;

  private:
    Hit sum_;
    bool several_ = false;
    std::uint16_t brightest_;
    double light_;
    double x_;
    double y_;
};

inline constexpr double fwhm_per_sigma = 2.3548200450309493;
/// Sigmas within which Gaussians are kept where a bound is needed.
inline constexpr double far_out = 6;
/// The sigma of an energy E is this times sqrt(E); `resolution`: FWHM / energy at 511 keV.
inline double energy_width(double resolution) {
    return resolution / fwhm_per_sigma * std::sqrt(annihilation_keV);
}

struct EventCounts {
    std::uint64_t annihilations = 0;  ///< followed one by one, see EventGenerator::decays
    std::uint64_t scattered = 0;      ///< of these, with a scattered photon
    std::uint64_t photons_detected = 0;
    std::uint64_t pairs_detected = 0;  ///< annihilations of which both photons were detected
    std::uint64_t intrinsic = 0;
    std::uint64_t darks = 0;
    std::uint64_t unreadable = 0;  ///< hits in crystals to which no position maps, or that are dead
    EventCounts& operator+=(const EventCounts& o);
    bool operator==(const EventCounts&) const = default;
};

/// The hits of a piece of detector time, ordered by source and then by raw time.
struct Chunk {
    std::uint64_t index = 0;
    std::vector<Hit> hits;
    std::vector<std::uint32_t> first;  ///< [source + 1]: where its hits begin
    EventCounts counts;

  private:
    friend class EventGenerator;
    /// A hit before it is read out.
    struct Detection {
        std::uint64_t annihilation;
        double ticks;  ///< since the start of the chunk
        float energy;  ///< keV
        std::uint32_t crystal;
        std::uint32_t choice;  ///< of the position
        std::uint8_t kind;
        std::uint8_t history;
    };
    struct Key {
        std::uint64_t time;
        std::uint32_t hit;
    };
    static void sort_keys(std::span<Key> keys);
    std::vector<Detection> detections_;
    std::vector<Deposit> deposits_;
    std::vector<Hit> unsorted_;
    std::vector<Key> keys_;
    std::vector<std::uint32_t> fill_;
};

/// Generates chunks. Any thread may generate any chunk, and chunk i is always the same.
class EventGenerator {
  public:
    /// The options must have passed check(). With a true detector the calibration only numbers the crystals.
    /// Throws std::invalid_argument if the efficiency of a crystal exceeds 1. What is passed by reference or
    /// pointer must outlive the generator.
    EventGenerator(const config::Scanner& scanner, const InverseCalibration& calibration,
                   const Options& options, const Detector* detector);

    [[nodiscard]] std::uint64_t chunk_count() const { return chunk_count_; }
    void generate(std::uint64_t index, Chunk& chunk) const;
    /// No hit of chunk `index` or a later one has a raw time below this.
    [[nodiscard]] std::uint64_t raw_time_floor(std::uint64_t index) const;
    [[nodiscard]] const Movement& movement() const { return movement_; }
    [[nodiscard]] std::uint64_t end_ticks() const { return begin_ + length_; }
    /// Ticks at which decays begin: the start time, and late enough for every raw time to be positive.
    [[nodiscard]] std::uint64_t begin_ticks() const { return begin_; }
    /// Detector time of the first `chunks` chunks.
    [[nodiscard]] double seconds(std::uint64_t chunks) const;
    /// Mean number of positrons emitted in the first `chunks` chunks. Only those that could be detected are
    /// followed; the Poisson process leaves out the others.
    [[nodiscard]] double decays(std::uint64_t chunks) const;
    /// Mean number of those that are followed.
    [[nodiscard]] double followed(std::uint64_t chunks) const;

  private:
    /// A source with its geometric limit: photons with |cos| to the axis above cosine_limit miss the scanner
    /// from any point of the source.
    struct Emitter {
        ActivitySource source;
        double cosine_limit = 1;
        double detectable = 0;  ///< chance that of its photons one would be detected if all entered crystals
        double scatter = 0;     ///< share of decays of which a photon scatters where they happen
        /// How many of these decays are followed.
        [[nodiscard]] double followed(double decays) const {
            return decays * detectable * ((1 - scatter) * cosine_limit + scatter);
        }
    };
    /// Whose hit it is.
    struct Origin {
        std::uint64_t id;
        std::uint8_t kind;
        std::uint8_t history;
    };
    struct Work {  ///< state of one call of generate()
        Random random;
        Chunk& chunk;
        std::uint64_t start;  ///< of the chunk, ticks
    };
    /// What gain steps and temperature do to a unit at a time.
    struct Change {
        double gain = 1;
        double ticks = 0;  ///< its raw times are later by this much
        bool stepped = false;
    };

    void add_emitter(const ActivitySource& source);
    [[nodiscard]] double mean_activity(const ActivitySource& source, double from_s, double to_s) const;
    [[nodiscard]] Vector3 start_point(const ActivitySource& source, double ticks, Random& random) const;
    void annihilate(Work& work, const Emitter& emitter, double ticks, bool scattered) const;
    void emit_photon(Work& work, const Emitter& emitter, double ticks) const;
    void decay_lutetium(Work& work, double ticks) const;
    /// The photon flies until it is detected or lost; whether it was detected. Notes a scatter in the object.
    bool arrive(Work& work, const Ray& ray, double ticks, double energy, Origin& origin) const;
    bool detect_deposits(Work& work, double ticks, Origin origin) const;
    /// Whether it was detected, at the efficiency of the crystal relative to the best one.
    bool detect(Work& work, const geometry::Entry& entry, double ticks, double energy, Origin origin) const;
    void record(Work& work, std::uint32_t crystal, double ticks, double energy, Origin origin) const;
    void make_noise(Work& work, double from_s, double length) const;
    static std::uint8_t history_of(const Chunk::Detection& d, const Change& change);
    void read_out(Work& work) const;
    void read_out_calibration(Work& work) const;
    void read_out_detector(Work& work) const;
    [[nodiscard]] std::uint32_t neighbour(const InverseCalibration::Channel& channel, Random& random) const;
    [[nodiscard]] Change change_of(std::uint32_t unit, const Work& work, double ticks) const;
    [[nodiscard]] double max_drift_ticks() const;
    static void join_deposits(std::vector<Hit>& hits);
    void add_detector(const Detector& detector, const config::Scanner& scanner);
    void sort_by_source(Chunk& chunk) const;

    const config::Scanner& scanner_;
    const InverseCalibration& calibration_;
    const Detector* detector_;
    geometry::HitFinder finder_;
    std::optional<Tracker> tracker_;  ///< if photons are followed beyond the front faces
    bool joins_;                      ///< hits of one decay in one unit give one frame
    Options options_;
    Movement movement_;
    double tick_s_;
    double ticks_per_mm_;
    double time_sigma_;  ///< ticks
    Temperatures temperatures_;
    double clock_drift_;  ///< ticks per degree
    bool changes_;        ///< whether gains or clocks do
    std::int64_t highest_offset_;
    double guard_ticks_;
    double range_sigma_;
    double angle_sigma_;
    double energy_width_;  ///< sigma at energy E is this times sqrt(E)
    double efficiency_;    ///< chance that a photon that enters the best crystal is detected
    double either_;        ///< that at least one of two is
    double both_given_either_;
    double max_efficient_ = 1;          ///< of the crystals of the true detector
    std::vector<std::uint32_t> noisy_;  ///< its noisy crystals
    std::vector<Emitter> emitters_;
    Quantiles compton_;
    Quantiles lutetium_;  ///< of the beta alone if the cascade is followed
    Quantiles dark_;
    std::vector<std::uint16_t> source_of_unit_;
    std::uint32_t sources_ = 0;
    std::uint64_t begin_ = 0;
    std::uint64_t length_ = 0;
    std::uint64_t chunk_ticks_ = 0;
    std::uint64_t chunk_count_ = 0;
};

}  // namespace petacq::sim
