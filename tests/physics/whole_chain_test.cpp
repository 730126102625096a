// A cylinder off the axis through the whole chain of calibration: its activity is that of the truth at every
// rate and under every policy, in a scanner with uneven crystals, a dead unit, dead time and Lu-176.
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/physics/laboratory.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;

namespace {

const Cylinder flood{0, 0, 24, 64};
const Cylinder known{0, 0, 12, 60};
const Cylinder body{7, -5, 10, 60};

struct BodyScan {
    double mbq;
    double seconds;
    const char* seed;

    [[nodiscard]] std::string name() const { return "body" + std::to_string(mbq); }
};
constexpr double known_mbq = 3;

constexpr std::array chain_policies = {"RemoveMultiples", "TakeAllGoods", "TakeWinnerOfGoods"};

/// Simulates and calibrates once, for all tests with the same model of crystals.
class Chain {
  public:
    explicit Chain(const std::string& crystals) : laboratory_(Equipment::ten_modules(crystals)) {}

    Laboratory::Image image_of(const BodyScan& scan, const std::string& policy) {
        if (calibrated_.insert(policy).second) calibrate(policy);
        acquire(scan.name(), scan.seconds, in_water(body, scan.mbq, scan.seed));
        return image(scan.name(), policy, body, policy + ".quantitative.h5");
    }

  private:
    static std::vector<std::string> in_water(const Cylinder& where, double mbq, const char* seed) {
        return {"--seed",     seed,         "--object",
                where.text(), "--cylinder", where.text() + "," + std::to_string(mbq)};
    }
    /// Runs under all policies, of one simulation.
    void acquire(const std::string& name, double seconds, const std::vector<std::string>& phantom) {
        if (!acquired_.insert(name).second) return;
        laboratory_.simulate(name, seconds, phantom);
        for (const char* policy : chain_policies) {
            laboratory_.use_policy(policy);
            laboratory_.replay(name, name + "." + policy);
        }
        std::filesystem::remove(laboratory_.path(name + ".pcap"));
    }
    void calibrate(const std::string& policy) {
        acquire("flood", 8, {"--seed", "3", "--scatter", "0", "--cylinder", flood.text() + ",6"});
        laboratory_.derive_normalisation("flood." + policy, flood, policy + ".h5");
        acquire("known", 8, in_water(known, known_mbq, "5"));
        image("known", policy, known, policy + ".h5");
        laboratory_.derive_activity(known, 1000 * known_mbq / known.ml(), policy + ".h5",
                                    policy + ".quantitative.h5");
    }
    Laboratory::Image image(const std::string& name, const std::string& policy, const Cylinder& water,
                            const std::string& normalisation) {
        return laboratory_.image(
            name + "." + policy,
            {"--normalisation", laboratory_.path(normalisation), "--attenuation", water.text(), "--voxel-mm",
             "1", "--fov-mm", "46", "--iterations", "8", "--subsets", "6", "--tof", "off"});
    }

    Laboratory laboratory_;
    std::set<std::string> acquired_;
    std::set<std::string> calibrated_;  ///< policies
};

/// Each policy is a section of its own.
void check_chain(const std::string& crystals, const BodyScan& scan) {
    static std::map<std::string, Chain> chains;
    for (const std::string policy : chain_policies) {
        DYNAMIC_SECTION(policy) {
            const auto image = chains.try_emplace(crystals, crystals).first->second.image_of(scan, policy);
            INFO(image.output);
            CHECK(image.statement.at("unit") == "kBq/ml");
            const double truth = 1000 * scan.mbq / body.ml();
            const double found_of_truth = image.mean(body, 2.5) / truth;
            CHECK(found_of_truth == Approx(1).margin(0.02));
        }
    }
}

}  // namespace

TEST_CASE("whole chain: 1 MBq with depth of interaction", "[.long]") {
    check_chain("depth", {1, 16, "11"});
}

TEST_CASE("whole chain: 20 MBq with depth of interaction", "[.long]") {
    check_chain("depth", {20, 0.8, "12"});
}

TEST_CASE("whole chain: 80 MBq with depth of interaction", "[.long]") {
    check_chain("depth", {80, 0.3, "13"});
}

TEST_CASE("whole chain: 1 MBq with scatter between crystals", "[.long]") {
    check_chain("scatter", {1, 16, "11"});
}

TEST_CASE("whole chain: 20 MBq with scatter between crystals", "[.long]") {
    check_chain("scatter", {20, 0.8, "12"});
}

TEST_CASE("whole chain: 80 MBq with scatter between crystals", "[.long]") {
    check_chain("scatter", {80, 0.3, "13"});
}
