#include "tools/petlm/import/declared/limits.hpp"

#include <fmt/format.h>

#include "tools/petlm/base/status.hpp"

namespace petacq::petlm {
namespace {

/// Files state energies as numbers of 32 bits.
constexpr double same_energy = 1e-6;

bool is_within(float energy, double lower_keV,  // NOLINT(readability-identifier-naming): a unit
               double upper_keV) {              // NOLINT(readability-identifier-naming): a unit
    const auto found = static_cast<double>(energy);
    return found >= lower_keV * (1 - same_energy) && found <= upper_keV * (1 + same_energy);
}

}  // namespace

void DeclaredLimits::check_time(std::uint64_t time) const {
    if (!times || (time >= times->start && time < times->end)) return;
    throw BadInput(
        fmt::format("{}: a record at tick {}, outside of the times that --start-ticks and "
                    "--duration-s declare; expected {} to {}",
                    file, time, times->start, times->end - 1));
}

void DeclaredLimits::check_energy(float found) const {
    if (!energy || is_within(found, energy->lower_keV, energy->upper_keV)) return;
    throw BadInput(
        fmt::format("{}: a record of {} keV, outside of the window that --lower-kev and "
                    "--upper-kev declare; expected {} to {}",
                    file, found, energy->lower_keV, energy->upper_keV));
}

void DeclaredLimits::check(const gpu::Single& single) const {
    check_time(single.time);
    check_energy(single.energy);
}

void DeclaredLimits::check(const gpu::Tag& tag) const {
    check_time(tag.time);
}

void DeclaredLimits::check(const gpu::Coincidence& pair) const {
    check_time(pair.time);
    check_energy(pair.energy_a);
    check_energy(pair.energy_b);
    if (window_ticks && pair.dt > *window_ticks) {
        throw BadInput(
            fmt::format("{}: a pair of photons {} ticks apart, more than the declared window; "
                        "expected at most {}",
                        file, pair.dt, *window_ticks));
    }
    if (!delayeds && pair.kind == gpu::Kind::delayed) {
        throw BadInput(
            fmt::format("{}: a delayed pair, and no delay is declared; expected --delay-ticks or "
                        "--delay-ns with the window",
                        file));
    }
}

void DeclaredLimits::check(const gpu::Triple& triple) const {
    check(triple.pair);
    if (!gammas) return;
    if (!is_within(triple.gamma_energy, gammas->lower_keV, gammas->upper_keV)) {
        throw BadInput(
            fmt::format("{}: a gamma of {} keV, outside of the window that --gamma-lower-kev and "
                        "--gamma-upper-kev declare; expected {} to {}",
                        file, triple.gamma_energy, gammas->lower_keV, gammas->upper_keV));
    }
    const std::int64_t dt = triple.gamma_dt;
    if (dt < -std::int64_t{gammas->before_ticks} || dt > std::int64_t{gammas->after_ticks}) {
        throw BadInput(
            fmt::format("{}: a gamma {} ticks after its pair, outside of the declared times; expected {} to "
                        "{}",
                        file, dt, -std::int64_t{gammas->before_ticks}, gammas->after_ticks));
    }
    if (!gammas->delay_ticks && triple.third == gpu::ThirdPhoton::delayed) {
        throw BadInput(
            fmt::format("{}: a delayed gamma, and no delay of gammas is declared; expected "
                        "--gamma-delay-ticks or --gamma-delay-ns",
                        file));
    }
}

}  // namespace petacq::petlm
