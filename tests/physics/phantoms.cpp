#include "tests/physics/phantoms.hpp"

namespace petacq::test {

sim::ActivitySource active_cylinder(const sim::Cylinder& shape, double mbq) {
    sim::ActivitySource source;
    source.shape = sim::Shape::cylinder;
    source.at = shape.at;
    source.radius_mm = shape.radius_mm;
    source.length_mm = shape.length_mm;
    source.activity_mbq = mbq;
    return source;
}

namespace {

sim::ActivitySource point(const sim::Vector3& at, double share) {
    sim::ActivitySource source;
    source.at = at;
    source.activity_mbq = share;
    return source;
}

}  // namespace

std::vector<WaterPhantom> water_phantoms(double mbq) {
    sim::ActivitySource with_cold = active_cylinder({{0, 0, 0}, 15, 34}, 1);
    with_cold.cold = {{{4, 3, 0}, 6, 34}};
    std::vector<WaterPhantom> all = {
        {"small", {active_cylinder({{2, -1, 3}, 6, 20}, 1)}, {{2, -1, 3}, 7, 24}},
        {"middle", {active_cylinder({{0, 0, 0}, 12, 34}, 1)}, {{0, 0, 0}, 13, 40}},
        {"large", {active_cylinder({{0, 0, 0}, 23, 34}, 1)}, {{0, 0, 0}, 25, 44}},
        {"off the axis", {active_cylinder({{14, -9, 0}, 8, 32}, 1)}, {{14, -9, 0}, 9, 36}},
        {"longer than the scanner", {active_cylinder({{0, 0, 0}, 10, 150}, 1)}, {{0, 0, 0}, 10, 150}},
        {"two rods",
         {active_cylinder({{-8, 6, 0}, 3, 30}, 0.4), active_cylinder({{9, -4, 0}, 4, 30}, 0.6)},
         {{0, 0, 0}, 16, 36}},
        {"cold rod", {with_cold}, {{0, 0, 0}, 16, 36}},
        {"beyond one end", {active_cylinder({{-3, 2, 22}, 9, 60}, 1)}, {{-3, 2, 22}, 11, 70}},
        {"two points", {point({5, 1, 4}, 0.5), point({-10, 4, -6}, 0.5)}, {{0, 0, 0}, 15, 40}},
        {"hot rod at the edge",
         {active_cylinder({{0, 0, 0}, 20, 34}, 0.85), active_cylinder({{14, 2, 0}, 2.5, 34}, 0.15)},
         {{0, 0, 0}, 21, 40}},
    };
    for (WaterPhantom& phantom : all) {
        for (sim::ActivitySource& source : phantom.activity)
            source.activity_mbq *= mbq;
    }
    return all;
}

}  // namespace petacq::test
