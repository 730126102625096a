#include "tools/petcal/draw/draw.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "config/scanner/arrangement.hpp"
#include "daemon/system/file.hpp"
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
