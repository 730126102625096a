// Checks and JSON of the activity and of the object in which photons scatter.
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tools/geometry/hit_finder.hpp"
#include "tools/petsim/random/random.hpp"
#include "tools/petsim/simulation/base/options_check.hpp"

namespace petacq::sim {

namespace {

constexpr std::array<const char*, 3> shape_names{"point", "line", "cylinder"};

void check_cylinder(const std::string& what, const Cylinder& c) {
    within(("radius of " + what + " (mm)").c_str(), c.radius_mm, 0, 1e5);
    within(("length of " + what + " (mm)").c_str(), c.length_mm, 0, 1e5);
    within(("z of " + what + " (mm)").c_str(), c.at[2], -1e5, 1e5);
}

/// Cold regions must leave some of their source.
void check_cold(const ActivitySource& a) {
    constexpr int trials = 10'000;
    if (a.cold.empty()) return;
    if (a.shape != Shape::cylinder) refuse("a source with cold regions", "no cylinder", "a cylinder");
    for (const Cylinder& c : a.cold)
        check_cylinder("a cold region", c);
    Random random(0, Purpose::check, 0);
    int left = 0;
    for (int i = 0; i < trials; ++i)
        left += in_cold_region(a, point_in_cylinder(a, random)) ? 0 : 1;
    if (left * 100 < trials)
        refuse("the share of a source outside its cold regions", text(1.0 * left / trials), "at least 0.01");
}

/// Nothing reaches into the crystals, at these heights.
void check_room(const std::string& what, double reach, double low, double high,
                const config::Scanner& scanner) {
    const double room = geometry::free_radius_mm(scanner, low, high);
    if (reach < room) return;
    refuse("the distance of " + what + " from the axis", text(reach) + " mm",
           std::string("less than ") +
               (scanner.is_ring() ? "the ring radius, " : "that of the crystals there, ") + text(room) +
               " mm");
}

void check_positronium(const ActivitySource& a) {
    if (a.nuclide != nullptr && a.photon_kev != 0)
        refuse("a source with photon_keV", "one with a nuclide", "one without");
    if (!a.positronium.empty() && a.nuclide == nullptr)
        refuse("a source with positronium", "one without nuclide", "one with a nuclide");
    double sum = 0;
    for (const PositronLifetime& lifetime : a.positronium) {
        within("the fraction of a lifetime of positronium", lifetime.fraction, 0, 1);
        within("a lifetime of positronium (ns)", lifetime.ns, 0, 1000);
        sum += lifetime.fraction;
    }
    if (sum > 1 + 1e-9) refuse("the sum of the fractions of positronium", text(sum), "at most 1");
}

void check_source(const ActivitySource& a, const config::Scanner& scanner) {
    within("activity (MBq)", a.activity_mbq, 0, 1e6);
    within("half-life (s)", a.half_life_s, 0, 1e15);
    if (a.photon_kev != 0) within("energy of single photons (keV)", a.photon_kev, min_photon_kev, 3000);
    check_positronium(a);
    within("radius of a cylinder (mm)", a.radius_mm, 0, 1e5);
    within("length of a cylinder (mm)", a.length_mm, 0, 1e5);
    check_cold(a);
    check_curve(a.curve);
    double reach = std::hypot(a.at[0], a.at[1]) + a.radius_mm;
    if (a.shape == Shape::line) reach = std::max(reach, std::hypot(a.to[0], a.to[1]));
    if (a.motion.axis < 2) reach += std::abs(a.motion.amplitude_mm);
    for (const double z : {a.at[2], a.to[2]})
        within("z of a source (mm)", z, -1e5, 1e5);
    double low = a.at[2] - a.length_mm / 2;
    double high = a.at[2] + a.length_mm / 2;
    if (a.shape == Shape::line) {
        low = std::min(a.at[2], a.to[2]);
        high = std::max(a.at[2], a.to[2]);
    }
    check_room("a source", reach, low, high, scanner);
}

void check_object(const ScatteringObject& object, const config::Scanner& scanner) {
    const Cylinder& shape = object.shape;
    check_cylinder("--object", shape);
    within("the attenuation of --object (1/cm)", object.attenuation_per_cm, 0, 100);
    const double reach = std::hypot(shape.at[0], shape.at[1]) + shape.radius_mm;
    check_room("--object", reach, shape.at[2] - shape.length_mm / 2, shape.at[2] + shape.length_mm / 2,
               scanner);
}

Vector3 vector3(const nlohmann::json& j, const std::string& path, const char* key) {
    const auto found = j.find(key);
    if (found == j.end() || !found->is_array() || found->size() != 3 ||
        !std::all_of(found->begin(), found->end(), [](const auto& v) { return v.is_number(); })) {
        throw std::invalid_argument(path + "/" + key + ": expected three numbers");
    }
    return {(*found)[0].get<double>(), (*found)[1].get<double>(), (*found)[2].get<double>()};
}

double number(const nlohmann::json& j, const std::string& path, const char* key) {
    const auto found = j.find(key);
    if (found == j.end() || !found->is_number())
        throw std::invalid_argument(path + "/" + key + ": expected a number");
    return found->get<double>();
}

void only_keys(const nlohmann::json& j, const std::string& path, std::initializer_list<const char*> keys) {
    for (const auto& item : j.items()) {
        if (std::find(keys.begin(), keys.end(), item.key()) == keys.end())
            throw std::invalid_argument(path + "/" + item.key() + ": unknown key");
    }
}

Cylinder cylinder_from_json(const nlohmann::json& j, const std::string& path) {
    return {vector3(j, path, "centre_mm"), number(j, path, "radius_mm"), number(j, path, "length_mm")};
}

nlohmann::json to_json(const Cylinder& c) {
    return {{"centre_mm", c.at}, {"radius_mm", c.radius_mm}, {"length_mm", c.length_mm}};
}

std::vector<Cylinder> cold_from_json(const nlohmann::json& list, const std::string& path) {
    if (!list.is_array()) throw std::invalid_argument(path + ": expected a list");
    std::vector<Cylinder> out;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::string here = path + "/" + std::to_string(i);
        if (!list[i].is_object()) throw std::invalid_argument(here + ": expected an object");
        only_keys(list[i], here, {"centre_mm", "radius_mm", "length_mm"});
        out.push_back(cylinder_from_json(list[i], here));
    }
    return out;
}

ScatteringObject object_from_json(const nlohmann::json& j) {
    const std::string path = "/object";
    if (!j.is_object()) throw std::invalid_argument(path + ": expected an object");
    only_keys(j, path, {"centre_mm", "radius_mm", "length_mm", "attenuation_per_cm"});
    ScatteringObject out;
    out.shape = cylinder_from_json(j, path);
    if (j.contains("attenuation_per_cm")) out.attenuation_per_cm = number(j, path, "attenuation_per_cm");
    return out;
}

ActivityCurve curve_from_json(const nlohmann::json& list, const std::string& path) {
    if (!list.is_array() || list.empty()) throw std::invalid_argument(path + ": expected a list of points");
    ActivityCurve out;
    for (const nlohmann::json& point : list) {
        if (!point.is_array() || point.size() != 2 || !point[0].is_number() || !point[1].is_number()) {
            throw std::invalid_argument(path + "/" + std::to_string(out.size()) +
                                        ": expected a time in s and a relative activity");
        }
        out.push_back({point[0].get<double>(), point[1].get<double>()});
    }
    return out;
}

std::vector<PositronLifetime> positronium_from_json(const nlohmann::json& list, const std::string& path) {
    if (!list.is_array()) throw std::invalid_argument(path + ": expected a list");
    std::vector<PositronLifetime> out;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::string here = path + "/" + std::to_string(i);
        if (!list[i].is_object()) throw std::invalid_argument(here + ": expected an object");
        only_keys(list[i], here, {"fraction", "ns"});
        out.push_back({number(list[i], here, "fraction"), number(list[i], here, "ns")});
    }
    return out;
}

const config::Nuclide* nuclide_from_json(const nlohmann::json& name, const std::string& path) {
    const config::Nuclide* const nuclide =
        name.is_string() ? config::find_nuclide(name.get<std::string>()) : nullptr;
    if (nuclide != nullptr) return nuclide;
    std::string known;
    for (const config::Nuclide& n : config::nuclides())
        known += (known.empty() ? "" : ", ") + n.name;
    throw std::invalid_argument(path + ": expected one of " + known + "; found " + name.dump());
}

ActivitySource source_from_json(const nlohmann::json& j, const std::string& path) {
    if (!j.is_object()) throw std::invalid_argument(path + ": expected an object");
    const std::string type =
        j.value("type", nlohmann::json()).is_string() ? j["type"].get<std::string>() : "";
    ActivitySource a;
    if (type == "point") {
        only_keys(j, path,
                  {"type", "position_mm", "activity_MBq", "half_life_s", "photon_keV", "nuclide",
                   "positronium", "motion", "activity_curve"});
        a.at = vector3(j, path, "position_mm");
    } else if (type == "line") {
        only_keys(j, path,
                  {"type", "from_mm", "to_mm", "activity_MBq", "half_life_s", "photon_keV", "nuclide",
                   "positronium", "motion", "activity_curve"});
        a.shape = Shape::line;
        a.at = vector3(j, path, "from_mm");
        a.to = vector3(j, path, "to_mm");
    } else if (type == "cylinder") {
        only_keys(j, path,
                  {"type", "centre_mm", "radius_mm", "length_mm", "activity_MBq", "half_life_s", "photon_keV",
                   "nuclide", "positronium", "motion", "activity_curve", "cold"});
        a.shape = Shape::cylinder;
        const Cylinder c = cylinder_from_json(j, path);
        a.at = c.at;
        a.radius_mm = c.radius_mm;
        a.length_mm = c.length_mm;
        if (j.contains("cold")) a.cold = cold_from_json(j["cold"], path + "/cold");
    } else {
        throw std::invalid_argument(path + "/type: expected \"point\", \"line\" or \"cylinder\"");
    }
    a.activity_mbq = number(j, path, "activity_MBq");
    if (j.contains("half_life_s")) a.half_life_s = number(j, path, "half_life_s");
    if (j.contains("nuclide")) {
        if (j.contains("half_life_s"))
            throw std::invalid_argument(path +
                                        "/half_life_s: expected none beside a nuclide, which has its own");
        a.nuclide = nuclide_from_json(j["nuclide"], path + "/nuclide");
        a.half_life_s = a.nuclide->half_life_s;
    }
    if (j.contains("positronium"))
        a.positronium = positronium_from_json(j["positronium"], path + "/positronium");
    if (j.contains("photon_keV")) a.photon_kev = number(j, path, "photon_keV");
    if (j.contains("activity_curve"))
        a.curve = curve_from_json(j["activity_curve"], path + "/activity_curve");
    if (j.contains("motion")) a.motion = motion_from_json(j["motion"], path + "/motion");
    return a;
}

}  // namespace

Vector3 point_in_cylinder(const ActivitySource& source, Random& random) {
    double x = 0;
    double y = 0;
    do {
        x = random.symmetric();
        y = random.symmetric();
    } while (x * x + y * y > 1);
    return {source.radius_mm * x, source.radius_mm * y, source.length_mm * 0.5 * random.symmetric()};
}

bool in_cold_region(const ActivitySource& source, const Vector3& offset) {
    const Vector3& c = source.at;
    const Vector3 point{c[0] + offset[0], c[1] + offset[1], c[2] + offset[2]};
    return std::any_of(source.cold.begin(), source.cold.end(),
                       [&](const Cylinder& cold) { return cold.contains(point); });
}

void check_activity(const Options& options, const config::Scanner& scanner) {
    for (const auto& a : options.activity)
        check_source(a, scanner);
    if (options.object) check_object(*options.object, scanner);
}

nlohmann::json to_json(const ScatteringObject& o) {
    nlohmann::json j = to_json(o.shape);
    j["attenuation_per_cm"] = o.attenuation_per_cm;
    return j;
}

nlohmann::json to_json(const ActivitySource& a) {
    nlohmann::json j{{"type", shape_names.at(static_cast<std::size_t>(a.shape))},
                     {"activity_MBq", a.activity_mbq}};
    if (a.nuclide != nullptr) {
        j["nuclide"] = a.nuclide->name;
    } else if (a.half_life_s > 0) {
        j["half_life_s"] = a.half_life_s;
    }
    for (const PositronLifetime& lifetime : a.positronium)
        j["positronium"].push_back({{"fraction", lifetime.fraction}, {"ns", lifetime.ns}});
    if (a.photon_kev > 0) j["photon_keV"] = a.photon_kev;
    if (a.motion.amplitude_mm != 0) j["motion"] = to_json(a.motion);
    if (a.shape == Shape::line) {
        j["from_mm"] = a.at;
        j["to_mm"] = a.to;
    } else {
        j[a.shape == Shape::point ? "position_mm" : "centre_mm"] = a.at;
    }
    if (a.shape == Shape::cylinder) j.update({{"radius_mm", a.radius_mm}, {"length_mm", a.length_mm}});
    for (const CurvePoint& point : a.curve)
        j["activity_curve"].push_back({point.time_s, point.share});
    for (const Cylinder& c : a.cold)
        j["cold"].push_back(to_json(c));
    return j;
}

SourceDescription sources_from_json(const nlohmann::json& document) {
    if (!document.is_object()) throw std::invalid_argument("expected an object with the key \"sources\"");
    only_keys(document, "", {"sources", "object"});
    const auto list = document.find("sources");
    if (list == document.end() || !list->is_array()) throw std::invalid_argument("/sources: expected a list");
    SourceDescription out;
    for (std::size_t i = 0; i < list->size(); ++i) {
        out.sources.push_back(source_from_json((*list)[i], "/sources/" + std::to_string(i)));
    }
    if (document.contains("object")) out.object = object_from_json(document["object"]);
    return out;
}

}  // namespace petacq::sim
