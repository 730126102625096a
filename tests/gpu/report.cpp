// The report of a failure: how to repeat it, and a smaller failing case.
#include <sstream>

#include "tests/gpu/harness.hpp"

namespace petacq::test {

namespace {

// Removes frames in ever smaller pieces as long as the case still fails.
Case shrink(const Backend& backend, const Case& failing, const PlanOptions& options,
            std::uint64_t plan_seed) {
    Case smallest = failing;
    int tries = 600;
    for (std::size_t piece = (smallest.frames.size() + 1) / 2; piece > 0;) {
        bool smaller = false;
        for (std::size_t begin = 0; begin < smallest.frames.size() && tries > 0;) {
            Case candidate = smallest;
            const std::size_t end = std::min(begin + piece, candidate.frames.size());
            candidate.frames.erase(candidate.frames.begin() + static_cast<std::ptrdiff_t>(begin),
                                   candidate.frames.begin() + static_cast<std::ptrdiff_t>(end));
            --tries;
            if (try_case(backend, candidate, options, plan_seed).empty()) {
                begin = end;
            } else {
                smallest = std::move(candidate);
                smaller = true;
            }
        }
        if (tries <= 0 || (piece == 1 && !smaller)) break;
        if (!smaller || piece > 1) piece = std::max<std::size_t>(1, piece / 2);
    }
    return smallest;
}

void print_plan(std::ostream& out, const Case& c, const PlanOptions& options, std::uint64_t plan_seed) {
    Rng rng(plan_seed);
    const Plan plan = make_plan(c, options, rng);
    std::uint64_t watermark = 0;
    std::size_t printed = 0;
    for (std::size_t k = 0; k < plan.slices.size() && printed < 60; ++k) {
        const PlannedSlice& slice = plan.slices[k];
        out << "  slice " << k << ", watermark " << slice.watermark;
        if (slice.close_at) out << ", close_at " << *slice.close_at;
        out << (slice.ends_interval ? ", ends an interval\n" : "\n");
        for (const gpu::FrameSpan& span : slice.spans) {
            for (std::uint64_t i = 0; i < span.total() && printed < 60; ++i, ++printed) {
                const Converted converted =
                    reference_convert(frame_of(span, i), c.options, c.setup.calibration,
                                      {span.time_low, span.time_high, watermark, span.source});
                out << "    fate " << static_cast<int>(converted.fate) << " "
                    << (converted.is_tag ? to_string(converted.tag) : to_string(converted.single)) << "\n";
            }
        }
        watermark = slice.watermark;
    }
}

}  // namespace

std::string to_string(const gpu::Single& s) {
    std::ostringstream out;
    out.precision(9);
    out << "{time " << s.time << ", crystal " << s.crystal << ", energy " << s.energy << "}";
    return out.str();
}

std::string to_string(const gpu::Coincidence& c) {
    std::ostringstream out;
    out.precision(9);
    out << (c.kind == gpu::Kind::prompt ? "{prompt" : "{delayed") << ", time " << c.time << ", dt " << c.dt
        << ", crystals " << c.crystal_a << " " << c.crystal_b << ", energies " << c.energy_a << " "
        << c.energy_b << "}";
    return out.str();
}

std::string to_string(const gpu::Triple& t) {
    std::ostringstream out;
    out.precision(9);
    out << "{" << to_string(t.pair) << (t.third == gpu::ThirdPhoton::delayed ? ", delayed gamma" : ", gamma")
        << " dt " << t.gamma_dt << ", crystal " << t.gamma_crystal << ", energy " << t.gamma_energy << "}";
    return out.str();
}

std::string to_string(const gpu::FrameCounts& c) {
    std::ostringstream out;
    out << "{received " << c.received << ", bad_marker " << c.bad_marker << ", bad_address " << c.bad_address
        << ", outside_crystal " << c.outside_crystal << ", below_window " << c.below_window
        << ", above_window " << c.above_window << ", bad_time " << c.bad_time << ", time_jump " << c.time_jump
        << ", late " << c.late << ", accepted " << c.accepted << "}";
    return out.str();
}

std::string to_string(const gpu::Tag& t) {
    std::ostringstream out;
    out << "{time " << t.time << ", source " << t.source << ", channel " << int{t.channel} << ", kind "
        << int{t.kind} << ", value " << t.value << "}";
    return out.str();
}

std::string to_string(const gpu::TagCounts& c) {
    std::ostringstream out;
    out << "{received " << c.received << ", time_jump " << c.time_jump << ", late " << c.late << ", accepted "
        << c.accepted << "}";
    return out.str();
}

std::string to_string(const gpu::SingleCounts& c) {
    std::ostringstream out;
    out << "{decided " << c.decided << ", prompts " << c.prompts << ", delayeds " << c.delayeds
        << ", unpaired " << c.unpaired << ", same_crystal " << c.same_crystal << ", geometry " << c.geometry
        << ", in_dropped_multiples " << c.in_dropped_multiples << ", in_oversize_multiples "
        << c.in_oversize_multiples << ", unused_in_multiples " << c.unused_in_multiples << ", reused "
        << c.reused << ", delayed_dropped " << c.delayed_dropped << ", delayed_oversize "
        << c.delayed_oversize << ", groups " << c.groups << ", groups_blocked " << c.groups_blocked
        << ", unsearched " << c.unsearched << "}";
    return out.str();
}

std::string to_string(const gpu::GammaCounts& c) {
    std::ostringstream out;
    out << "{used " << c.used << ", unused " << c.unused << ", reused " << c.reused << ", triples "
        << c.triples << ", delayed " << c.delayed << "}";
    return out.str();
}

namespace {

std::string describe(const std::optional<gpu::GammaRules>& gammas) {
    if (!gammas) return "none";
    std::ostringstream out;
    out << gammas->lower << " to " << gammas->upper << " keV, before " << gammas->before << ", after "
        << gammas->after << ", policy " << static_cast<int>(gammas->policy) << ", delay "
        << (gammas->delay ? std::to_string(*gammas->delay) : "none");
    return out.str();
}

}  // namespace

std::string describe(const Case& c, const PlanOptions& options) {
    const gpu::CoincidenceRules& r = c.options.rules;
    const config::Geometry& g = c.setup.geometry;
    std::ostringstream out;
    out << "family " << name_of(c.family) << ", seed " << c.seed << ": " << c.frames.size() << " frames, "
        << c.options.threads << " threads\n  rules: window " << r.window << ", mode " << name_of(r.mode)
        << ", policy " << static_cast<int>(r.policy) << ", max_multiplicity " << r.max_multiplicity
        << ", min_module_difference " << r.min_module_difference << ", max_ring_difference "
        << r.max_ring_difference << ", delay " << (r.delay ? std::to_string(*r.delay) : "none") << ", "
        << name_of(r.delayeds) << "\n  gammas: " << describe(r.gammas) << "\n  energy: "
        << (c.options.energy.filter
                ? std::to_string(c.options.energy.lower) + " to " + std::to_string(c.options.energy.upper)
                : "all")
        << (g.channel_map ? "; long form, " : "; ring, ") << g.crystal_count() << " crystals, channels "
        << g.channels << ", modules " << g.modules.y << " x " << g.modules.z << ", blocks " << g.blocks.y
        << " x " << g.blocks.z << ", crystals " << g.crystals.y << " x " << g.crystals.z << ", position_size "
        << g.position_size << ", bins " << c.setup.calibration.bins << ", time offsets "
        << (c.setup.calibration.time_offset.empty() ? "no" : "yes") << "\n  plan: slices of "
        << options.slice_frames << ", disorder " << options.disorder << ", max_span " << options.max_span
        << ", slack " << options.slack << ", segments " << options.segments << ", late " << options.late
        << "\n";
    return out.str();
}

std::string report(const Backend& backend, const Case& c, const PlanOptions& options,
                   std::uint64_t plan_seed) {
    std::ostringstream out;
    out << "back-end " << backend.name << ", " << describe(c, options);
    const std::string again = try_case(backend, c, options, plan_seed);
    if (again.empty()) {
        out << "  did not fail again on a pipeline of its own\n";
        return out.str();
    }
    const Case small = shrink(backend, c, options, plan_seed);
    out << "  shrunk to " << small.frames.size()
        << " frames: " << try_case(backend, small, options, plan_seed) << "\n";
    print_plan(out, small, options, plan_seed);
    return out.str();
}

}  // namespace petacq::test
