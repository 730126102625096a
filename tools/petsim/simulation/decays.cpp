// Annihilations and decays of Lu-176, one by one: from where they happen to what is detected.
#include <algorithm>
#include <cmath>

#include "tools/petsim/physics/compton.hpp"
#include "tools/petsim/simulation/events.hpp"

namespace petacq::sim {

namespace {

constexpr int id_bits = 24;  // for the number of an annihilation within its chunk

double bounded_normal(Random& random) {
    return std::clamp(random.normal(), -far_out, far_out);
}

}  // namespace

EventCounts& EventCounts::operator+=(const EventCounts& o) {
    annihilations += o.annihilations;
    scattered += o.scattered;
    photons_detected += o.photons_detected;
    pairs_detected += o.pairs_detected;
    intrinsic += o.intrinsic;
    darks += o.darks;
    unreadable += o.unreadable;
    return *this;
}

// `ticks` since decays begin.
Vector3 EventGenerator::start_point(const ActivitySource& source, double ticks, Random& random) const {
    Vector3 p = source.at;
    if (movement_.bed_interval() > 0 || source.motion.amplitude_mm != 0) {
        const Vector3 by = movement_.shift(source.motion, ticks);
        for (std::size_t i = 0; i < 3; ++i)
            p[i] += by[i];
    }
    if (source.shape == Shape::line) {
        const double along = random.uniform();
        for (std::size_t i = 0; i < 3; ++i)
            p[i] += along * (source.to[i] - source.at[i]);
    } else if (source.shape == Shape::cylinder) {
        Vector3 offset = point_in_cylinder(source, random);
        while (!source.cold.empty() && in_cold_region(source, offset))
            offset = point_in_cylinder(source, random);
        for (std::size_t i = 0; i < 3; ++i)
            p[i] += offset[i];
    }
    if (range_sigma_ > 0) {
        for (double& v : p)
            v += range_sigma_ * bounded_normal(random);
    }
    return p;
}

// The efficiency is drawn before the tracking instead of after it: only annihilations of which at least one
// photon would be detected if it entered a crystal are followed.
void EventGenerator::annihilate(Work& work, const Emitter& emitter, double ticks, bool scattered) const {
    Random& random = work.random;
    EventCounts& counts = work.chunk.counts;
    const std::uint64_t id = (work.chunk.index << id_bits | counts.annihilations) + 1;
    ++counts.annihilations;
    const double chance = random.uniform();
    const bool both = chance < both_given_either_;
    const bool second_only = !both && chance >= (1 + both_given_either_) / 2;

    const Vector3 p = start_point(emitter.source, static_cast<double>(work.start - begin_) + ticks, random);
    const double cosine = random.symmetric() * (scattered ? 1.0 : emitter.cosine_limit);
    const double sine = std::sqrt(1 - cosine * cosine);
    const Azimuth a = azimuth(random);
    const Vector3 d{sine * a.c, sine * a.s, cosine};
    // Two directions across the flight line.
    const Vector3 e1{-a.s, a.c, 0};
    const Vector3 e2{-cosine * a.c, -cosine * a.s, sine};
    std::uint32_t detected = 0;
    Origin first{id, hit_photon, history_first_photon};
    Origin second{id, hit_photon, history_second_photon};
    if (!second_only) {
        detected += arrive(work, {p, d}, ticks, annihilation_keV, first) ? 1 : 0;
    }
    if (both || second_only) {
        double along = -1;
        double across1 = 0;
        double across2 = 0;
        double energy = annihilation_keV;
        if (angle_sigma_ > 0) {
            across1 = angle_sigma_ * bounded_normal(random);
            across2 = angle_sigma_ * bounded_normal(random);
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
        detected += arrive(work, {p, w}, ticks, energy, second) ? 1 : 0;
    }
    if (scattered || ((first.kind | second.kind) & hit_scattered) != 0) ++counts.scattered;
    counts.photons_detected += detected;
    if (detected == 2) ++counts.pairs_detected;
}

void EventGenerator::emit_photon(Work& work, const Emitter& emitter, double ticks) const {
    EventCounts& counts = work.chunk.counts;
    Origin origin{(work.chunk.index << id_bits | counts.annihilations) + 1, hit_photon, history_first_photon};
    ++counts.annihilations;
    const Vector3 p =
        start_point(emitter.source, static_cast<double>(work.start - begin_) + ticks, work.random);
    const double cosine = work.random.symmetric() * emitter.cosine_limit;
    const double sine = std::sqrt(1 - cosine * cosine);
    const Azimuth a = azimuth(work.random);
    if (arrive(work, {p, {sine * a.c, sine * a.s, cosine}}, ticks, emitter.source.photon_kev, origin))
        ++counts.photons_detected;
    if ((origin.kind & hit_scattered) != 0) ++counts.scattered;
}

/// Each decay has its crystal, in which the beta stops. If the cascade is followed, its gammas begin there.
void EventGenerator::decay_lutetium(Work& work, double ticks) const {
    Random& random = work.random;
    EventCounts& counts = work.chunk.counts;
    const std::uint64_t id = first_decay_number + ((work.chunk.index << id_bits | counts.intrinsic) + 1);
    ++counts.intrinsic;
    const std::uint32_t crystal = random.below(calibration_.geometry().crystal_count());
    const double energy = lutetium_.draw(random);
    if (!options_.crystals.cascade) {
        detect(work, {crystal, 0}, ticks, energy, {0, hit_intrinsic, 0});
        return;
    }
    auto& deposits = work.chunk.deposits_;
    deposits.assign(1, {crystal, energy, 0});
    const config::CrystalPlace place = config::crystal_place(scanner_, crystal);
    const config::Dimensions& size = scanner_.dimensions;
    Vector3 at = config::point_at_depth(place, size.crystal_length_mm * random.uniform());
    const double aside = size.crystal_pitch_y_mm * 0.5 * random.symmetric();
    at[0] -= aside * place.outward[1];
    at[1] += aside * place.outward[0];
    at[2] += size.crystal_pitch_z_mm * 0.5 * random.symmetric();
    const double object_z = movement_.bed_mm(static_cast<double>(work.start - begin_) + ticks);
    for (const CascadeGamma& gamma : lutetium_cascade) {
        if (random.chance(gamma.emitted)) {
            Photon photon{{at, isotropic(random)}, gamma.energy};
            tracker_->follow(photon, object_z, random, deposits);
        } else {
            deposits.front().energy += gamma.energy;
        }
    }
    detect_deposits(work, ticks, {id, hit_intrinsic, 0});
}

bool EventGenerator::arrive(Work& work, const Ray& ray, double ticks, double energy, Origin& origin) const {
    if (!tracker_) {
        origin.history = 0;
        const auto entry = finder_.find(ray.at, ray.direction);
        return entry && detect(work, *entry, ticks, energy, origin);
    }
    Photon photon{ray, energy};
    work.chunk.deposits_.clear();
    const double object_z = movement_.bed_mm(static_cast<double>(work.start - begin_) + ticks);
    tracker_->follow(photon, object_z, work.random, work.chunk.deposits_);
    if (photon.object_scatters > 0) {
        origin.kind |= hit_scattered;
        origin.history |= std::min<std::uint8_t>(photon.object_scatters, history_scatters);
    }
    return detect_deposits(work, ticks, origin);
}

/// All but the first one of a photon or a decay are marked.
bool EventGenerator::detect_deposits(Work& work, double ticks, Origin origin) const {
    bool any = false;
    for (const Deposit& d : work.chunk.deposits_) {
        any |= detect(work, {d.crystal, d.path_mm}, ticks, d.energy, origin);
        origin.history |= history_later;
    }
    return any;
}

bool EventGenerator::detect(Work& work, const geometry::Entry& entry, double ticks, double energy,
                            Origin origin) const {
    double width = energy_width_;
    if (detector_ != nullptr) {
        const TrueCrystal& c = detector_->crystals[entry.crystal];
        if ((origin.kind & hit_photon) != 0 && !work.random.chance(c.efficiency / max_efficient_))
            return false;
        width = energy_width(c.energy_resolution);
    }
    const double arrival =
        ticks + entry.distance_mm * ticks_per_mm_ + time_sigma_ * bounded_normal(work.random);
    const double measured = energy + width * std::sqrt(energy) * work.random.normal();
    record(work, entry.crystal, arrival, measured, origin);
    return true;
}

void EventGenerator::record(Work& work, std::uint32_t crystal, double ticks, double energy,
                            Origin origin) const {
    const auto choice = static_cast<std::uint32_t>(work.random.bits() >> 32);
    work.chunk.detections_.push_back({origin.id, ticks, static_cast<float>(std::max(energy, 0.0)), crystal,
                                      choice, origin.kind, origin.history});
}

}  // namespace petacq::sim
