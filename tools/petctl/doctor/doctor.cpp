#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "tools/petctl/commands.hpp"
#include "tools/petctl/doctor/diagnosis.hpp"
#include "tools/petctl/text.hpp"

namespace petacq::petctl {

namespace {

/// Faster than samples are taken.
constexpr std::chrono::milliseconds look_interval{250};

}  // namespace

int doctor(daemon::ControlClient& client, double seconds) {
    using Clock = std::chrono::steady_clock;
    const nlohmann::json before = client.call("status");
    nlohmann::json after = before;
    std::set<Sample> samples;
    const auto end =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    print("listening ...\n");
    while (Clock::now() < end) {
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
