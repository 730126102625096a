#include "tools/petcal/draw/draw.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "config/scanner/arrangement.hpp"
#include "daemon/system/file.hpp"
#include "gpu/rules/partners.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/report/cairo.hpp"
#include "tools/report/page.hpp"

namespace petacq::petcal {

namespace {

struct NamedColour {
    SceneColour colour;
    const char* name;
    const char* label;
};
constexpr std::array colours{NamedColour{SceneColour::module, "module", "modules"},
                             NamedColour{SceneColour::bdm, "bdm", "BDMs"},
                             NamedColour{SceneColour::board, "board", "boards"},
                             NamedColour{SceneColour::type, "type", "types of modules"},
                             NamedColour{SceneColour::layer, "layer", "layers"}};

/// How many pairs of modules `good_pairs` allows, before it looks at places of crystals; and modules that it
/// leaves without any good pair.
std::string good_pairs_text(const config::Scanner& scanner, const config::Arrangement& arrangement) {
    const config::PairGeometry& pairs = *scanner.geometry.pairs;
    const std::size_t groups = pairs.groups.size();
    std::vector<std::uint64_t> count(groups);
    for (std::uint32_t m = 0; m < arrangement.modules().size(); ++m)
        ++count[pairs.crystals[arrangement.crystal({m, 0, 0, 0})].group];
    std::uint64_t in_order = 0;
    for (std::size_t a = 0; a < groups; ++a) {
        std::uint64_t others = 0;
        for (std::size_t b = 0; b < groups; ++b)
            if (pairs.may_pair[a * groups + b] != 0) others += count[b] - (a == b ? 1 : 0);
        in_order += count[a] * others;
    }
    const std::size_t alone = gpu::modules_without_partner(scanner, {}).size();
    const std::uint64_t modules = arrangement.modules().size();
    std::string text = fmt::format("{} of {} pairs of modules", in_order / 2, modules * (modules - 1) / 2);
    if (alone > 0) text += fmt::format("; {} {} in none", alone, alone == 1 ? "module is" : "modules are");
    return text;
}

std::string table_of(const config::Scanner& scanner, const config::Arrangement& arrangement) {
    const config::Geometry& g = scanner.geometry;
    std::set<std::uint32_t> bdms;
    std::uint32_t units = 0;
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        if (g.crystals_of_unit(unit) == 0) continue;
        ++units;
        bdms.insert(unit / g.du_count);
    }
    std::string types;
    for (const config::ModuleType& type : arrangement.types()) {
        types += types.empty() ? "" : "; ";
        types += type.name + ":";
        for (const config::CrystalLayer& layer : type.layers)
            types += fmt::format(" {} x {} {} of {:g} mm", layer.y.count(), layer.z.count(), layer.material,
                                 layer.length_mm);
    }
    const auto number = [](std::size_t n) { return report::Cell{std::to_string(n), true}; };
    report::Table table;
    table.rows = {
        {{"modules"}, number(arrangement.modules().size())},
        {{"crystals"}, number(arrangement.crystal_count())},
        {{"BDMs"}, number(bdms.size())},
        {{"detector units"}, number(units)},
        {{"boards"}, scanner.sources.empty() ? report::Cell{"not listed"} : number(scanner.sources.size())},
        {{"types, across x along"}, {types}}};
    if (g.pairs) table.rows.push_back({{"may be good"}, {good_pairs_text(scanner, arrangement)}});
    return report::html_of(table);
}

/// The text of a script element: nothing in it may end the element.
std::string script_json(const nlohmann::json& value) {
    std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at))
        text.replace(at, 1, "\\u003c");
    return text;
}

}  // namespace

std::optional<SceneColour> scene_colour(std::string_view name) {
    const auto found =
        std::find_if(colours.begin(), colours.end(), [&](const NamedColour& c) { return c.name == name; });
    return found == colours.end() ? std::nullopt : std::optional(found->colour);
}

std::string page_of(const config::Scanner& scanner, std::string_view colour) {
    const auto arrangement = config::arrangement_of(scanner);
    std::string options;
    for (const NamedColour& c : colours) {
        if (c.colour == SceneColour::board && scanner.sources.empty()) continue;
        options += fmt::format("<option value=\"{}\"{}>{}</option>", c.name,
                               colour == c.name ? " selected" : "", c.label);
    }
    report::Page page;
    page.title = "Scanner " + scanner.name;
    page.body =
        "<p><label>Colours: <select id=\"colour\">" + options +
        "</select></label> <label><input type=\"checkbox\" id=\"numbers\" checked> numbers</label> "
        "<label><input type=\"checkbox\" id=\"crystals\"> all crystals</label></p>\n"
        "<figure><canvas id=\"drawing\" tabindex=\"0\" role=\"img\" aria-label=\"The scanner in three "
        "dimensions\"></canvas><figcaption>Drag to turn, with shift to move; wheel, + and - to zoom. A "
        "click on a box shows its crystals with their numbers. z is the axis of the scanner.</figcaption>"
        "</figure>\n<p id=\"about\" aria-live=\"polite\"></p>\n<p id=\"legend\"></p>\n" +
        table_of(scanner, *arrangement) + "<script type=\"application/json\" id=\"scene\">" +
        script_json(json_of(scene_of(scanner), scanner)) + "</script>\n<script>" +
        std::string(drawing_script()) + "</script>\n";
    return report::html_of(page);
}

void draw(const config::Scanner& scanner, const DrawOptions& options) {
    const auto colour = scene_colour(options.colour);
    if (!colour)
        throw petlm::UsageError("--colour: expected module, bdm, board, type or layer, found '" +
                                options.colour + "'");
    if (colour == SceneColour::board && scanner.sources.empty())
        throw petlm::UsageError("--colour board: expected a description that lists its sources");
    if (options.suffix == ".html") {
        daemon::replace_file(options.output, page_of(scanner, options.colour));
    } else if (options.suffix == ".png") {
        if constexpr (report::with_cairo) {
            daemon::replace_file(options.output, picture_of(scanner, *colour));
        } else {
            throw petlm::UsageError(report::without_cairo);
        }
    } else {
        throw petlm::UsageError("--output: expected a name that ends in .html or .png, found '" +
                                options.suffix + "'");
    }
}

}  // namespace petacq::petcal
