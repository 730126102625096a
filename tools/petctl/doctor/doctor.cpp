#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "tools/petctl/commands.hpp"
#include "tools/petctl/doctor/diagnosis.hpp"
#include "tools/petctl/text.hpp"
#include "tools/petctl/values.hpp"

namespace petacq::petctl {

namespace {

/// Faster than samples are taken.
constexpr std::chrono::milliseconds look_interval{250};
/// For another status: there is one each second.
constexpr std::chrono::seconds longest_wait{5};

}  // namespace

int doctor(daemon::ControlClient& client, double seconds) {
    using Clock = std::chrono::steady_clock;
    const nlohmann::json before = client.call("status");
    nlohmann::json after = before;
    std::set<Sample> samples;
    const auto end =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    print("listening ...\n");
    const auto same = [&] { return at(after, {"uptime_s"}) == at(before, {"uptime_s"}); };
    while (Clock::now() < end || (same() && Clock::now() < end + longest_wait)) {
        std::this_thread::sleep_for(look_interval);
        after = client.call("status");
        add_samples(after, samples);
    }
    const Diagnosis diagnosis = diagnose(before, after, samples);
    print(daemon::report(diagnosis.findings));
    if (!diagnosis.to_write.empty()) print("\nTo write into the files:\n\n" + diagnosis.to_write);
    return daemon::any_problem(diagnosis.findings) ? exit_refused : 0;
}

}  // namespace petacq::petctl
