#include "tools/petsim/simulation/events/decays.hpp"

#include <algorithm>
#include <cmath>

#include "tools/petsim/physics/compton.hpp"

namespace petacq::sim {

namespace {

constexpr int id_bits = 24;  // for the number of an annihilation within its chunk

/// The number of the next decay.
std::uint64_t next_id(Chunk& chunk) {
    return (chunk.index << id_bits | chunk.counts.annihilations++) + 1;
}

}  // namespace

Decays::Decays(const Options& options, const config::Scanner& scanner, const Movement& movement,
               const geometry::HitFinder& finder, const Emitters& emitters, const CrystalResponse& response)
    : options_(options),
      movement_(movement),
      finder_(finder),
      emitters_(emitters),
      response_(response),
      ticks_per_ns_(1000 / scanner.tick_ps),
      knows_photons_(knows_photons(options)),
      tracker_(follows_photons(options) ? std::optional<Tracker>(std::in_place, scanner, options)
                                        : std::nullopt),
      compton_(compton_cosines()),
      lutetium_crystals_(scanner),
      lutetium_(options.crystals.cascade ? lutetium_beta_energies() : lutetium_energies()) {}

void Decays::emit(ChunkDraft& draft, const Emitter& emitter, double ticks, bool scattered) const {
    if (emitter.source.photon_kev > 0) {
        emit_photon(draft, emitter, ticks);
    } else if (emitter.cascade) {
        decay_nuclide(draft, emitter, ticks, scattered);
    } else {
        annihilate(draft, emitter, ticks, scattered);
    }
}

// The efficiency is drawn before the tracking instead of after it: only annihilations of which at least one
// photon would be detected if it entered a crystal are followed.
void Decays::annihilate(ChunkDraft& draft, const Emitter& emitter, double ticks, bool scattered) const {
    Random& random = draft.random;
    const std::uint64_t id = next_id(draft.chunk);
    const double both_given_either = response_.both_given_either();
    const double chance = random.uniform();
    const bool both = chance < both_given_either;
    const bool second_only = !both && chance >= (1 + both_given_either) / 2;

    const Vector3 p = emitters_.annihilation_point(
        emitters_.decay_point(emitter.source, draft.since_begin(ticks), random), random);
    if (!emitter.source.positronium.empty()) ticks += lifetime_ticks(emitter.source, random);
    annihilate_at(draft, p, id, ticks, emitter.cosine_limit, scattered, {!second_only, both || second_only});
}

/// How long a positron lives.
double Decays::lifetime_ticks(const ActivitySource& source, Random& random) const {
    double chance = random.uniform();
    for (const PositronLifetime& lifetime : source.positronium) {
        if (chance < lifetime.fraction) return lifetime.ns * ticks_per_ns_ * random.exponential();
        chance -= lifetime.fraction;
    }
    return 0;
}

/// Gammas are drawn one by one: a level that feeds another makes no difference to how often both come.
void Decays::decay_nuclide(ChunkDraft& draft, const Emitter& emitter, double ticks, bool scattered) const {
    Random& random = draft.random;
    EventCounts& counts = draft.chunk.counts;
    const config::Nuclide& nuclide = *emitter.source.nuclide;
    const std::uint64_t id = next_id(draft.chunk);
    const Vector3 p = emitters_.decay_point(emitter.source, draft.since_begin(ticks), random);
    const bool positron = random.chance(nuclide.branching_ratio);
    for (const config::Gamma& gamma : nuclide.gammas) {
        if (gamma.delay_half_life_s > 0 || !random.chance(nuclide.chance(gamma, positron))) continue;
        if (!random.chance(response_.efficiency())) continue;
        HitOrigin origin{id, hit_photon, history_gamma};
        if (!arrive(draft, {p, isotropic(random)}, ticks, gamma.energy_keV, origin)) continue;
        ++counts.photons_detected;
        ++counts.gammas_detected;
    }
    if (!positron) return;
    const bool first = random.chance(response_.efficiency());
    const bool second = random.chance(response_.efficiency());
    if (!first && !second) return;
    annihilate_at(draft, p, id, ticks + lifetime_ticks(emitter.source, random), 1, scattered,
                  {first, second});
}

void Decays::annihilate_at(ChunkDraft& draft, const Vector3& p, std::uint64_t id, double ticks,
                           double cosine_limit, bool scattered, Photons photons) const {
    Random& random = draft.random;
    EventCounts& counts = draft.chunk.counts;
    const double cosine = random.symmetric() * (scattered ? 1.0 : cosine_limit);
    const double sine = std::sqrt(1 - cosine * cosine);
    const Azimuth a = azimuth(random);
    const Vector3 d{sine * a.c, sine * a.s, cosine};
    // Two directions across the flight line.
    const Vector3 e1{-a.s, a.c, 0};
    const Vector3 e2{-cosine * a.c, -cosine * a.s, sine};
    std::uint32_t detected = 0;
    HitOrigin first{id, hit_photon, history_first_photon};
    HitOrigin second{id, hit_photon, history_second_photon};
    if (photons.first) {
        detected += arrive(draft, {p, d}, ticks, annihilation_keV, first) ? 1 : 0;
    }
    if (photons.second) {
        double along = -1;
        double across1 = 0;
        double across2 = 0;
        double energy = annihilation_keV;
        const double angle_sigma = emitters_.angle_sigma();
        if (angle_sigma > 0) {
            across1 = angle_sigma * bounded_normal(random);
            across2 = angle_sigma * bounded_normal(random);
        }
        if (scattered) {
            const double c = compton_.draw(random);
            const double s = std::sqrt(std::max(0.0, 1 - c * c));
            const Azimuth b = azimuth(random);
            along = -c;
            across1 = across1 * c + s * b.c;
            across2 = across2 * c + s * b.s;
            energy *= compton_share(annihilation_keV, c);
            second.kind |= hit_scattered;
        }
        const double scale = 1 / std::sqrt(along * along + across1 * across1 + across2 * across2);
        Vector3 w{};
        for (std::size_t i = 0; i < 3; ++i)
            w[i] = (along * d[i] + across1 * e1[i] + across2 * e2[i]) * scale;
        detected += arrive(draft, {p, w}, ticks, energy, second) ? 1 : 0;
    }
    if (scattered || ((first.kind | second.kind) & hit_scattered) != 0) ++counts.scattered;
    counts.photons_detected += detected;
    if (detected == 2) ++counts.pairs_detected;
}

void Decays::emit_photon(ChunkDraft& draft, const Emitter& emitter, double ticks) const {
    EventCounts& counts = draft.chunk.counts;
    const bool gamma = emitter.source.nuclide != nullptr;
    HitOrigin origin{next_id(draft.chunk), hit_photon, gamma ? history_gamma : history_first_photon};
    Vector3 p = emitters_.decay_point(emitter.source, draft.since_begin(ticks), draft.random);
    if (!gamma) p = emitters_.annihilation_point(p, draft.random);
    const double cosine = draft.random.symmetric() * emitter.cosine_limit;
    const double sine = std::sqrt(1 - cosine * cosine);
    const Azimuth a = azimuth(draft.random);
    if (arrive(draft, {p, {sine * a.c, sine * a.s, cosine}}, ticks, emitter.source.photon_kev, origin)) {
        ++counts.photons_detected;
        if (gamma) ++counts.gammas_detected;
    }
    if ((origin.kind & hit_scattered) != 0) ++counts.scattered;
}

/// Each decay has its crystal, in which the beta stops. If the cascade is followed, its gammas begin there.
void Decays::decay_lutetium(ChunkDraft& draft, double ticks) const {
    Random& random = draft.random;
    EventCounts& counts = draft.chunk.counts;
    const std::uint64_t id = first_decay_number + ((draft.chunk.index << id_bits | counts.intrinsic) + 1);
    ++counts.intrinsic;
    const std::uint32_t crystal = lutetium_crystals_.draw(random);
    const double energy = lutetium_.draw(random);
    if (!options_.crystals.cascade) {
        response_.detect(draft, {crystal, 0}, ticks, energy, {0, hit_intrinsic, 0});
        return;
    }
    auto& deposits = draft.chunk.deposits;
    deposits.assign(1, {crystal, energy, 0, 0});
    const Vector3 at = lutetium_crystals_.point_in(crystal, random);
    const double since_begin = draft.since_begin(ticks);
    const Vector3 object = object_shift(movement_.scanner_angle(since_begin), since_begin);
    for (const CascadeGamma& gamma : lutetium_cascade) {
        if (random.chance(gamma.emitted)) {
            Photon photon{{at, isotropic(random)}, gamma.energy};
            tracker_->follow(photon, object, random, deposits);
        } else {
            deposits.front().energy += gamma.energy;
        }
    }
    detect_deposits(draft, ticks, {id, hit_intrinsic, 0});
}

Vector3 Decays::object_shift(double angle, double ticks_since_begin) const {
    Vector3 shift{0, 0, movement_.bed_mm(ticks_since_begin)};
    if (!options_.object || !movement_.turns()) return shift;
    const Vector3& at = options_.object->shape.at;
    const Vector3 turned = config::turned(at, -angle);
    shift[0] += turned[0] - at[0];
    shift[1] += turned[1] - at[1];
    return shift;
}

// The crystals stand still in the frame of the scanner: photons and the object turn the other way.
bool Decays::arrive(ChunkDraft& draft, const Ray& in_space, double ticks, double energy,
                    HitOrigin& origin) const {
    const double since_begin = draft.since_begin(ticks);
    const double angle = movement_.scanner_angle(since_begin);
    const Ray ray = movement_.turns()
                        ? Ray{config::turned(in_space.at, -angle), config::turned(in_space.direction, -angle)}
                        : in_space;
    if (!tracker_) {
        if (!knows_photons_) origin.history = 0;
        const auto entry = finder_.find(ray.at, ray.direction);
        if (!entry || !response_.finds(entry->crystal, draft.random)) return false;
        response_.detect(draft, *entry, ticks, energy, origin);
        return true;
    }
    Photon photon{ray, energy};
    draft.chunk.deposits.clear();
    tracker_->follow(photon, object_shift(angle, since_begin), draft.random, draft.chunk.deposits);
    const bool detected = detect_deposits(draft, ticks, origin);
    if (photon.object_scatters > 0) origin.kind |= hit_scattered;
    return detected;
}

/// All but the first one of a photon or a decay are marked. What a photon leaves before it scatters in the
/// object, on its way back from the crystals, is not scattered.
bool Decays::detect_deposits(ChunkDraft& draft, double ticks, const HitOrigin& origin) const {
    const auto& deposits = draft.chunk.deposits;
    const bool photon = (origin.kind & hit_photon) != 0;
    const auto most = std::max_element(deposits.begin(), deposits.end(),
                                       [](const auto& a, const auto& b) { return a.energy < b.energy; });
    if (most == deposits.end()) return false;
    if (photon && !response_.finds(most->crystal, draft.random)) return false;
    for (const Deposit& d : deposits) {
        HitOrigin here = origin;
        if (photon && d.object_scatters > 0) {
            here.kind |= hit_scattered;
            here.history |= std::min<std::uint8_t>(d.object_scatters, history_scatters);
        }
        if (&d != &deposits.front()) here.history |= history_later;
        response_.detect(draft, {d.crystal, d.path_mm}, ticks, d.energy, here);
    }
    return true;
}

}  // namespace petacq::sim
