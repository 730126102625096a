// Phantoms of many kinds, and the sources they are made of.
#pragma once

#include <string>
#include <vector>

#include "tools/petsim/simulation/base/options.hpp"

namespace petacq::test {

/// Even activity in a cylinder.
sim::ActivitySource active_cylinder(const sim::Cylinder& shape, double mbq);

struct WaterPhantom {
    std::string name;
    std::vector<sim::ActivitySource> activity;
    sim::Cylinder water;
};

/// Ten of them, each with `mbq` in all. They fit into a bore of 80 mm; some are longer than any scanner.
std::vector<WaterPhantom> water_phantoms(double mbq);

}  // namespace petacq::test
